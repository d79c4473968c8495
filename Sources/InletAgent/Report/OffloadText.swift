/// The report for a terminal or a printer of plain text.
extension OffloadReport {
    package func text(_ style: ReportStyle = .iso) -> String {
        var lines = ["OFFLOAD REPORT  \(name)", ""]
        lines += head(style).map { "\(Self.padded($0.0, 10)) \($0.1)" }
        for group in groups {
            if let card = group.card {
                lines += ["", "CARD  \(card.name)"]
                lines += Self.head(of: card, style).map { "\(Self.padded($0.0, 11)) \($0.1)" }
            } else if cards != nil {
                lines += ["", "NOT FROM A CARD"]
            }
            lines += Self.lines(group, style)
            if cards != nil { lines += ["", "SUM  \(Self.sum(group.files, style))"] }
        }
        lines += ["", "TOTAL  \(Self.sum(files, style))", ""]
        if let doubt = doubt(style) { lines.insert(doubt, at: lines.count - 1) }
        for role in Self.signers {
            lines += ["", "\(Self.padded(role, 14)) ______________________  Date ____________"]
        }
        return lines.joined(separator: "\n")
    }

    private static func lines(_ group: Group, _ style: ReportStyle) -> [String] {
        var lines: [String] = []
        if !group.unclear.isEmpty || !group.missing.isEmpty {
            lines += ["", advice] + group.missing.map { "\($0) is missing from its run of numbers" }
            lines += group.unclear.flatMap { Self.lines($0, style) }
        }
        let sections = [("NOT DELIVERED", group.undelivered), ("DELIVERED", group.delivered)]
        for (title, files) in sections where !files.isEmpty {
            lines += ["", title] + files.flatMap { Self.lines($0, style) }
        }
        return lines
    }

    private static func lines(_ file: File, _ style: ReportStyle) -> [String] {
        var lines = ["\(file.path)  \(style.size(file.size))  \(file.state)"]
        if let check = file.check { lines.append("    ! \(check)") }
        lines.append("    " + (["modified \(style.time(file.modified_at))"] + file.digests).joined(separator: "  "))
        if !file.facts.isEmpty { lines.append("    \(file.facts)") }
        if let reason = file.reason { lines.append("    \(reason)") }
        for delivery in file.deliveries {
            let state = [delivery.state, delivery.comparison].compactMap(\.self).joined(separator: ", ")
            let end = delivery.ended_at.map { " at \(style.time($0))" } ?? ""
            let asked = delivery.asked_at.map { ", asked \(style.time($0))" } ?? ""
            lines.append("    → \(delivery.destination): \(state)\(end)\(asked)  \(delivery.place)")
            if let reason = delivery.reason, reason != file.reason { lines.append("      \(reason)") }
        }
        return lines
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
