internal import Foundation
internal import InletCore

/// The forms in which a report is written to a file.
package enum OffloadForm: String, Sendable, CaseIterable {
    case html
    case csv
    case json
    case text

    package var ending: String { self == .text ? "txt" : rawValue }

    package var mediaType: String {
        switch self {
        case .html: "text/html"
        case .csv: "text/csv"
        case .json: "application/json"
        case .text: "text/plain"
        }
    }
}

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

    /// A name for a file, without its ending: letters, digits and `-._`.
    package var fileName: String { "INLET-REPORT-\(UnitManifest.plain(name))-\(printed_at.prefix(10))" }
}
