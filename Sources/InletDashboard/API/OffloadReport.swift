package import InletCore
package import InletJournal
internal import InletLinux
internal import SystemPackage

/// What became of the files of a batch, for a person to print, sign and keep. Paths are shown escaped. Keys may be
/// added, never renamed.
package struct OffloadReport: Codable, Sendable {
    package struct Delivery: Codable, Sendable {
        package var destination: String
        package var state: String
        package var key: String?
        package var url: String?
        /// How the destination's copy was compared with the file.
        package var verified: String?
        package var ended_at: String?
        package var reason: String?
    }

    package struct File: Codable, Sendable {
        package var job: Int64
        /// Below the unit's folder.
        package var path: String
        package var size: Int64
        package var modified_at: String
        package var state: String
        /// `xxh64:…`, as it was read from the source.
        package var digests: [String]
        package var reason: String?
        package var deliveries: [Delivery]

        /// Whether every destination of its route has it.
        var isDelivered: Bool { state == FileState.delivered.rawValue || state == FileState.duplicate.rawValue }
    }

    package var batch: JobReport.Batch
    /// The folder that the files came from.
    package var source: String
    package var host: String
    package var printed_at: String
    /// What was not delivered comes first, then by path.
    package var files: [File]

    package init(_ batch: Batch, _ jobs: [Job], at now: WallTime) {
        self.batch = JobReport.Batch(batch)
        source = batch.unit.map { batch.root.pushing($0) }?.display ?? batch.root.display
        host = DisplayText.escape(ProcessSetup.hostName)
        printed_at = now.rfc3339Seconds
        let all = jobs.filter { !$0.file.isUnitMarker }.map { File($0, below: batch.unit) }
        files =
            all.filter { !$0.isDelivered }.sorted { $0.path < $1.path }
            + all.filter(\.isDelivered).sorted { $0.path < $1.path }
    }

    /// Files and bytes, of all and of what was delivered.
    var totals: (files: Int, bytes: Int64, deliveredFiles: Int, deliveredBytes: Int64) {
        let delivered = files.filter(\.isDelivered)
        return (
            files.count, files.reduce(0) { $0 + $1.size }, delivered.count, delivered.reduce(0) { $0 + $1.size }
        )
    }

    /// The head's lines: what, and its value.
    var head: [(String, String)] {
        let counts = batch.files.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
        return [
            ("Batch", "\(batch.batch)"), ("State", batch.state), ("Source", source), ("Route", batch.route),
            ("Begun", batch.created_at), ("Complete", batch.closed_at ?? "not yet"),
            ("Ended", batch.ended_at ?? "not yet"), ("Host", host), ("Files", counts.isEmpty ? "none" : counts),
            ("Printed", printed_at),
        ]
    }

    /// Why it stands so; what is left out because it cannot be read must not pass for never known.
    fileprivate static func reason(_ reason: String?, isDamaged: Bool) -> String? {
        let damage = isDamaged ? "not all that the journal knows of it can be read" : nil
        let reasons = [reason.map { DisplayText.escape($0) }, damage].compactMap(\.self)
        return reasons.isEmpty ? nil : reasons.joined(separator: "; ")
    }

    /// The sum in a sentence.
    var sum: String {
        let totals = totals
        return "\(totals.deliveredFiles) of \(totals.files) files delivered, "
            + "\(ByteText.format(totals.deliveredBytes)) of \(ByteText.format(totals.bytes)) "
            + "(\(totals.deliveredBytes) of \(totals.bytes) bytes)"
    }
}

extension OffloadReport.File {
    fileprivate init(_ job: Job, below unit: FilePath?) {
        let file = job.file
        var below = file.path
        if let unit { _ = below.removePrefix(unit) }
        self.init(
            job: file.id, path: below.display, size: file.identity.size,
            modified_at: WallTime(nanoseconds: file.identity.modified).rfc3339Seconds, state: file.state.rawValue,
            digests: file.digests.map(\.description),
            reason: OffloadReport.reason(file.reason, isDamaged: file.isDamaged),
            deliveries: job.deliveries.filter { $0.closes == nil }.map { OffloadReport.Delivery($0) })
    }
}

extension OffloadReport.Delivery {
    fileprivate init(_ row: DeliveryRow) {
        self.init(
            destination: row.destination, state: row.state.rawValue,
            key: (row.proof?.key ?? row.key).map { DisplayText.escape($0) },
            url: row.proof?.url.map { DisplayText.escape($0) }, verified: row.proof?.method.rawValue,
            ended_at: row.endedAt?.rfc3339Seconds, reason: OffloadReport.reason(row.reason, isDamaged: row.isDamaged))
    }
}
