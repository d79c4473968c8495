package import InletCore
package import InletJournal
internal import InletLinux
internal import SystemPackage

/// The report on a batch's files, for a person to print, sign and keep. Paths are escaped. Keys may be added, never
/// renamed.
package struct OffloadReport: Codable, Sendable, NamedSchema {
    package struct Delivery: Codable, Sendable, NamedSchema {
        package var destination: String
        package var state: String
        package var key: String?
        package var url: String?
        /// How the destination's copy was compared with the file.
        package var verified: String?
        package var ended_at: String?
        package var reason: String?

        fileprivate var comparison: String? { verified.map { "verified by \($0)" } }
        fileprivate var place: String { url ?? key ?? "" }

        static var schemaName: String { "OffloadDelivery" }
        static let notes: [String: SchemaDescription] = ["ended_at": .time]
    }

    package struct File: Codable, Sendable, NamedSchema {
        package var job: Int64
        /// The path below the unit's folder.
        package var path: String
        package var size: Int64
        package var modified_at: String
        package var state: String
        /// `xxh64:…`, as read from the source.
        package var digests: [String]
        package var reason: String?
        package var deliveries: [Delivery]

        static var schemaName: String { "OffloadFile" }
        static let notes: [String: SchemaDescription] = ["modified_at": .time, "state": .schema(.fileState)]

        /// Whether every destination of its route has it.
        var isDelivered: Bool { state == FileState.delivered.rawValue || state == FileState.duplicate.rawValue }
    }

    package var batch: JobReport.Batch
    /// The folder of the files.
    package var source: String
    package var host: String
    package var printed_at: String
    /// Undelivered files first, then by path.
    package var files: [File]

    static let notes: [String: SchemaDescription] = ["printed_at": .time]

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

    private var missing: [File] { files.filter { !$0.isDelivered } }
    private var delivered: [File] { files.filter(\.isDelivered) }

    /// The numbers of files and bytes, in all and delivered.
    var totals: (files: Int, bytes: Int64, deliveredFiles: Int, deliveredBytes: Int64) {
        (files.count, files.reduce(0) { $0 + $1.size }, delivered.count, delivered.reduce(0) { $0 + $1.size })
    }

    /// The lines of the head: a label and its value.
    func head(_ style: ReportStyle) -> [(String, String)] {
        let counts = batch.files.sorted { $0.key < $1.key }.map { "\(style.number($0.value)) \($0.key)" }.joined(
            separator: ", ")
        return [
            ("Batch", "\(batch.batch)"), ("State", batch.state), ("Source", source), ("Route", batch.route),
            ("Begun", style.time(batch.created_at)),
            ("Complete", batch.closed_at.map(style.time) ?? "not yet"),
            ("Ended", batch.ended_at.map(style.time) ?? "not yet"), ("Host", host),
            ("Files", counts.isEmpty ? "none" : counts),
            ("Printed", style.time(printed_at)),
        ]
    }

    /// The reason of a state. It mentions an unreadable part of the record, which must not look like an unknown one.
    fileprivate static func reason(_ reason: String?, isDamaged: Bool) -> String? {
        let damage = isDamaged ? "its record in the journal is partly unreadable" : nil
        let reasons = [reason.map { DisplayText.escape($0) }, damage].compactMap(\.self)
        return reasons.isEmpty ? nil : reasons.joined(separator: "; ")
    }

    /// The summary in a sentence.
    func sum(_ style: ReportStyle) -> String {
        let totals = totals
        return "\(style.number(totals.deliveredFiles)) of \(style.number(totals.files)) files delivered, "
            + "\(style.size(totals.deliveredBytes)) of \(style.size(totals.bytes)) "
            + "(\(style.number(totals.deliveredBytes)) of \(style.number(totals.bytes)) bytes)"
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

// MARK: - As text

extension OffloadReport {
    /// For a terminal or a printer of plain text.
    package func text(_ style: ReportStyle = .iso) -> String {
        var lines = ["OFFLOAD REPORT  \(batch.name)", ""]
        lines += head(style).map { "\(Self.padded($0.0, 10)) \($0.1)" }
        if !missing.isEmpty { lines += ["", "NOT DELIVERED"] + missing.flatMap { Self.lines($0, style) } }
        if !delivered.isEmpty { lines += ["", "DELIVERED"] + delivered.flatMap { Self.lines($0, style) } }
        lines += ["", "TOTAL  \(sum(style))", ""]
        for role in Self.signers {
            lines += ["", "\(Self.padded(role, 14)) ______________________  Date ____________"]
        }
        return lines.joined(separator: "\n")
    }

    static let signers = ["Offloaded by", "Checked by"]

    private static func lines(_ file: File, _ style: ReportStyle) -> [String] {
        var lines = ["\(file.path)  \(style.size(file.size))  \(file.state)"]
        lines.append("    modified \(style.time(file.modified_at))  " + file.digests.joined(separator: "  "))
        if let reason = file.reason { lines.append("    \(reason)") }
        for delivery in file.deliveries {
            let state = [delivery.state, delivery.comparison].compactMap(\.self).joined(separator: ", ")
            let end = delivery.ended_at.map { " at \(style.time($0))" } ?? ""
            lines.append("    → \(delivery.destination): \(state)\(end)  \(delivery.place)")
            if let reason = delivery.reason, reason != file.reason { lines.append("      \(reason)") }
        }
        return lines
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}

// MARK: - As a page

extension OffloadReport {
    /// A self-contained page without scripts, fonts or pictures, for paper as much as for a browser.
    package func page(_ style: ReportStyle = .iso) -> String {
        let title = Self.escape("Offload report \(batch.name)")
        return """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
            <title>\(title)</title>
            <style>
            \(Self.style)
            </style>
            </head>
            <body>
            <h1>\(title)</h1>
            <table class="head">
            \(head(style).map { "<tr><th>\(Self.escape($0.0))</th><td>\(Self.escape($0.1))</td></tr>" }.joined(separator: "\n"))
            </table>
            \(Self.section("Not delivered", "missing", missing, style))\(Self.section("Delivered", "delivered", delivered, style))\
            <p class="sum">Total: \(Self.escape(sum(style)))</p>
            \(Self.signers.map { "<p class=\"sign\">\(Self.escape($0))<span></span>Date<span></span></p>" }
                .joined(separator: "\n"))
            </body>
            </html>

            """
    }

    private static let style = """
        @page { margin: 15mm }
        body { font: 10pt/1.4 system-ui, sans-serif; color: #111; margin: 2em auto; max-width: 75em; padding: 0 1em }
        table { border-collapse: collapse; width: 100% }
        thead { display: table-header-group }
        tr { break-inside: avoid }
        th, td { text-align: left; vertical-align: top; padding: .25em .6em; border-bottom: 1px solid #ccc }
        td, code { overflow-wrap: anywhere }
        code { font: 9pt ui-monospace, monospace }
        .head { width: auto }
        .size { text-align: right; white-space: nowrap }
        .missing h2, .missing .state { color: #a00 }
        .place { font-size: 9pt; color: #444 }
        .sum { font-weight: bold }
        .sign { margin-top: 3em; break-inside: avoid }
        .sign span { display: inline-block; width: 16em; border-bottom: 1px solid #111; margin: 0 1.5em 0 .5em }
        @media print { body { margin: 0; max-width: none; padding: 0 } }
        """

    private static func section(_ title: String, _ name: String, _ files: [File], _ style: ReportStyle) -> String {
        if files.isEmpty { return "" }
        return """
            <section class="\(name)">
            <h2>\(title)</h2>
            <table>
            <thead><tr><th>File</th><th>Size</th><th>Modified</th><th>State</th><th>Checksum</th></tr></thead>
            <tbody>
            \(files.map { row($0, style) }.joined(separator: "\n"))
            </tbody>
            </table>
            </section>

            """
    }

    private static func row(_ file: File, _ style: ReportStyle) -> String {
        let places = file.deliveries.map { delivery in
            let facts = [
                delivery.destination, delivery.state, delivery.comparison, delivery.ended_at.map(style.time),
                delivery.place,
                delivery.reason,
            ]
            let text = facts.compactMap(\.self).filter { !$0.isEmpty }.joined(separator: " · ")
            return "<div class=\"place\">\(escape(text))</div>"
        }.joined()
        let reason = file.reason.map { "<div>\(escape($0))</div>" } ?? ""
        let digests = file.digests.map { "<code>\(escape($0))</code>" }.joined(separator: "<br>")
        return """
            <tr><td>\(escape(file.path))\(reason)\(places)</td><td class="size">\(escape(style.size(file.size)))</td>\
            <td>\(escape(style.time(file.modified_at)))</td><td class="state">\(escape(file.state))</td><td>\(digests)</td></tr>
            """
    }

    private static let escapes: [Unicode.Scalar: String] = [
        "&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;", "'": "&#39;",
    ]

    private static func escape(_ text: String) -> String {
        text.unicodeScalars.map { escapes[$0] ?? String($0) }.joined()
    }
}
