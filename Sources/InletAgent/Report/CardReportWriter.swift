internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import SystemPackage

/// Writes the report on a card into the top of each destination's folder that has files of it (`card_report`). Never
/// replaces a file, and never writes into a watched folder.
struct CardReportWriter {
    let shared: Shared
    let pool: BlockingPool

    private static let mostNames = 100

    /// A failure is logged, and changes nothing about the card.
    ///
    /// - Returns: the report, and the files that were written.
    /// - Throws: when the journal cannot be read.
    @discardableResult
    func write(_ card: CardRow, _ forms: [OffloadForm]) async throws -> (report: OffloadReport, files: [FilePath]) {
        let report = try await shared.journal.offload(card)
        var (written, folders): ([FilePath], Set<FilePath>) = ([], [])
        let names = Set(report.files.flatMap { $0.deliveries.filter(\.isThere).map(\.destination) })
        for name in names.sorted() {
            guard let folder = shared.destinations[name]?.folder, folders.insert(folder).inserted else { continue }
            do {
                for file in try await write(report, forms, into: folder) {
                    shared.log.emit(.reportWritten(volume: card.name, destination: name, file: file))
                    written.append(file)
                }
            } catch {
                shared.log.emit(.reportFailed(volume: card.name, destination: name, reason: "\(error)"))
            }
        }
        return (report, written)
    }

    private func write(
        _ report: OffloadReport, _ forms: [OffloadForm], into folder: FilePath
    ) async throws -> [FilePath] {
        if let root = shared.settings.sendRoots.lazy.compactMap({ $0.root(of: folder) }).first {
            throw Refusal("it would be admitted as a new file of the watched folder \(root.display)")
        }
        let documents = forms.map { (form: $0, bytes: Array(report.document($0).utf8)) }
        return try await pool.run { () throws(SystemError) in
            // The dot follows a link. A missing folder is an unmounted disk, and is not created.
            _ = try DirectoryStream(folder.appending("."))
            return try documents.map { document throws(SystemError) in
                try Self.create(document.bytes, in: folder, report.fileName, document.form.ending)
            }
        }
    }

    /// As `NAME.html`, or `NAME_2.html` where that is taken.
    private static func create(
        _ bytes: [UInt8], in folder: FilePath, _ name: String, _ ending: String
    ) throws(SystemError) -> FilePath {
        var number = 1
        while true {
            let path = folder.appending(number == 1 ? "\(name).\(ending)" : "\(name)_\(number).\(ending)")
            do throws(SystemError) {
                try DurableFile.create(bytes, at: path, mode: 0o644)
                return path
            } catch {
                number += 1
                if !error.isTaken || number > mostNames { throw error }
            }
        }
    }
}

extension OffloadReport.Delivery {
    fileprivate var isThere: Bool { state == DeliveryState.delivered.rawValue }
}
