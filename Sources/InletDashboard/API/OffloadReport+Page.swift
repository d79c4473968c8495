internal import InletCore

extension OffloadReport {
    /// One page that needs nothing else: no script, no font, no picture. Meant for paper as much as for a browser.
    package var page: String {
        let title = Self.escape("Offload report \(batch.name)")
        let (missing, delivered) = (files.filter { !$0.isDelivered }, files.filter(\.isDelivered))
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
            \(head.map { "<tr><th>\(Self.escape($0.0))</th><td>\(Self.escape($0.1))</td></tr>" }.joined(separator: "\n"))
            </table>
            \(Self.section("Not delivered", "missing", missing))\(Self.section("Delivered", "delivered", delivered))\
            <p class="sum">Total: \(Self.escape(sum))</p>
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

    private static func section(_ title: String, _ name: String, _ files: [File]) -> String {
        if files.isEmpty { return "" }
        return """
            <section class="\(name)">
            <h2>\(title)</h2>
            <table>
            <thead><tr><th>File</th><th>Size</th><th>Modified</th><th>State</th><th>Checksum</th></tr></thead>
            <tbody>
            \(files.map(row).joined(separator: "\n"))
            </tbody>
            </table>
            </section>

            """
    }

    private static func row(_ file: File) -> String {
        let places = file.deliveries.map { delivery in
            let facts = [
                delivery.destination, delivery.state, delivery.verified.map { "verified by \($0)" } ?? "",
                delivery.ended_at ?? "", delivery.url ?? delivery.key ?? "", delivery.reason ?? "",
            ]
            let text = facts.filter { !$0.isEmpty }.joined(separator: " · ")
            return "<div class=\"place\">\(escape(text))</div>"
        }.joined()
        let reason = file.reason.map { "<div>\(escape($0))</div>" } ?? ""
        let digests = file.digests.map { "<code>\(escape($0))</code>" }.joined(separator: "<br>")
        return """
            <tr><td>\(escape(file.path))\(reason)\(places)</td><td class="size">\(escape(ByteText.format(file.size)))</td>\
            <td>\(escape(file.modified_at))</td><td class="state">\(escape(file.state))</td><td>\(digests)</td></tr>
            """
    }

    static func escape(_ text: String) -> String {
        var result = ""
        for character in text.unicodeScalars {
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "'": result += "&#39;"
            default: result.unicodeScalars.append(character)
            }
        }
        return result
    }
}
