package import InletCore

/// The report as a file.
extension OffloadReport {
    package func document(_ form: OffloadForm, _ style: ReportStyle = .iso) -> String {
        switch form {
        case .html: page(style)
        case .csv: table()
        // It has only texts and numbers: encoding it does not fail.
        case .json: String(decoding: (try? JSON.encode(self, isPretty: true)) ?? [], as: UTF8.self) + "\n"
        case .text: text(style) + "\n"
        }
    }

    /// A name for a file, without its ending, with the local date: letters, digits and `-._`.
    package var fileName: String {
        let day = WallTime(rfc3339: printed_at)?.rfc3339(in: nil).prefix(10) ?? ""
        return "INLET-REPORT-\(UnitManifest.plain(name))-\(day)"
    }
}
