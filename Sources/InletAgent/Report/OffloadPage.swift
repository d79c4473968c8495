/// The report as a self-contained page without scripts and fonts, for paper as much as for a browser.
extension OffloadReport {
    package func page(_ style: ReportStyle = .iso) -> String {
        let title = Self.escape("Offload report \(name)")
        let pictures = files.contains { $0.first_frame != nil } ? "; img-src data:" : ""
        let doubt = doubt(style).map { "<p class=\"doubt\">\(Self.escape($0))</p>\n" } ?? ""
        return """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'\(pictures)">
            <title>\(title)</title>
            <style>
            \(Self.style)
            </style>
            </head>
            <body>
            <h1>\(title)</h1>
            \(Self.table(head(style)))
            \(groups.map { section($0, style) }.joined())\
            <p class="sum">Total: \(Self.escape(Self.sum(files, style)))</p>
            \(doubt)\(Self.signers.map { "<p class=\"sign\">\(Self.escape($0))<span></span>Date<span></span></p>" }
                .joined(separator: "\n"))
            </body>
            </html>

            """
    }

    /// A card begins on a page of its own, and the head of its table is on each of its pages.
    private static let style = """
        @page { margin: 15mm }
        body { font: 10pt/1.4 system-ui, sans-serif; color: #111; margin: 2em auto; max-width: 75em; padding: 0 1em }
        table { border-collapse: collapse; width: 100% }
        thead { display: table-header-group }
        tr { break-inside: avoid }
        h2, h3 { break-after: avoid }
        th, td { text-align: left; vertical-align: top; padding: .25em .6em; border-bottom: 1px solid #ccc }
        td, code { overflow-wrap: anywhere }
        code { font: 9pt ui-monospace, monospace }
        .head { width: auto }
        .card + .card { break-before: page }
        .group { font-size: 9pt; color: #444 }
        .size { text-align: right; white-space: nowrap }
        .unclear h2, .unclear h3, .missing h2, .missing h3, .missing .state, .check, .doubt { color: #a00 }
        .state, .time { white-space: nowrap }
        .check { font-weight: bold }
        .place, .facts { font-size: 9pt; color: #444 }
        .frame { max-height: 4.5em; margin: .2em .4em 0 0 }
        .sum { font-weight: bold }
        .sign { margin-top: 3em; break-inside: avoid }
        .sign span { display: inline-block; width: 16em; border-bottom: 1px solid #111; margin: 0 1.5em 0 .5em }
        @media print { body { margin: 0; max-width: none; padding: 0 } }
        """

    private static func table(_ lines: [(String, String)]) -> String {
        let rows = lines.map { "<tr><th>\(escape($0.0))</th><td>\(escape($0.1))</td></tr>" }.joined(separator: "\n")
        return "<table class=\"head\">\n\(rows)\n</table>"
    }

    private func section(_ group: Group, _ style: ReportStyle) -> String {
        let level = cards == nil ? 2 : 3
        let name = group.card.map { "Card \($0.name)" } ?? (cards == nil ? nil : "Not from a card")
        let gaps = group.missing.map {
            "<p class=\"check\">\(Self.escape("\($0) is missing from its run of numbers"))</p>\n"
        }
        var parts = ""
        if !group.unclear.isEmpty || !gaps.isEmpty {
            parts += "<section class=\"unclear\">\n<h\(level)>Check before you format</h\(level)>\n" + gaps.joined()
            parts += Self.table(group.unclear, name, style) + "</section>\n"
        }
        let sections = [("Not delivered", "missing", group.undelivered), ("Delivered", "delivered", group.delivered)]
        for (title, kind, files) in sections where !files.isEmpty {
            parts += "<section class=\"\(kind)\">\n<h\(level)>\(title)</h\(level)>\n"
            parts += Self.table(files, name, style) + "</section>\n"
        }
        guard let name else { return parts }
        let head = group.card.map { Self.table(Self.head(of: $0, style)) + "\n" } ?? ""
        let sum = "<p class=\"sum\">\(Self.escape(Self.sum(group.files, style)))</p>\n"
        return "<section class=\"card\">\n<h2>\(Self.escape(name))</h2>\n\(head)\(parts)\(sum)</section>\n"
    }

    private static func table(_ files: [File], _ group: String?, _ style: ReportStyle) -> String {
        if files.isEmpty { return "" }
        let name = group.map { "<tr class=\"group\"><th colspan=\"5\">\(escape($0))</th></tr>" } ?? ""
        return """
            <table>
            <thead>\(name)<tr><th>File</th><th>Size</th><th>Modified</th><th>State</th><th>Checksum</th></tr></thead>
            <tbody>
            \(files.map { row($0, style) }.joined(separator: "\n"))
            </tbody>
            </table>

            """
    }

    private static func row(_ file: File, _ style: ReportStyle) -> String {
        let places = file.deliveries.map { delivery in
            let facts = [
                delivery.destination, delivery.state, delivery.comparison, delivery.ended_at.map(style.time),
                delivery.asked_at.map { "asked \(style.time($0))" }, delivery.place,
                delivery.reason,
            ]
            let text = facts.compactMap(\.self).filter { !$0.isEmpty }.joined(separator: " · ")
            return "<div class=\"place\">\(escape(text))</div>"
        }.joined()
        let notes = [
            file.check.map { "<div class=\"check\">\(escape($0))</div>" },
            file.reason.map { "<div>\(escape($0))</div>" },
            file.facts.isEmpty ? nil : "<div class=\"facts\">\(escape(file.facts))</div>",
        ].compactMap(\.self).joined()
        let digests = file.digests.map { "<code>\(escape($0))</code>" }.joined(separator: "<br>")
        return """
            <tr><td>\(escape(file.path))\(notes)\(frames(file))\(places)</td>\
            <td class="size">\(escape(style.size(file.size)))</td>\
            <td class="time">\(escape(style.time(file.modified_at)))</td><td class="state">\(escape(file.state))</td><td>\(digests)</td></tr>
            """
    }

    private static func frames(_ file: File) -> String {
        let frames = [("first frame", file.first_frame), ("last frame", file.last_frame)].compactMap { name, data in
            data.map { "<img class=\"frame\" alt=\"\(name)\" src=\"\(escape($0))\">" }
        }
        return frames.isEmpty ? "" : "<div>\(frames.joined())</div>"
    }

    private static let escapes: [Unicode.Scalar: String] = [
        "&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;", "'": "&#39;",
    ]

    private static func escape(_ text: String) -> String {
        text.unicodeScalars.map { escapes[$0] ?? String($0) }.joined()
    }
}
