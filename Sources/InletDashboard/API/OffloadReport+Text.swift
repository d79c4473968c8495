internal import InletCore

extension OffloadReport {
    /// For a terminal or a printer of plain text.
    package var text: String {
        var lines = ["OFFLOAD REPORT  \(batch.name)", ""]
        lines += head.map { "\(Self.padded($0.0, 10)) \($0.1)" }
        let (missing, delivered) = (files.filter { !$0.isDelivered }, files.filter(\.isDelivered))
        if !missing.isEmpty { lines += ["", "NOT DELIVERED"] + missing.flatMap(Self.lines) }
        if !delivered.isEmpty { lines += ["", "DELIVERED"] + delivered.flatMap(Self.lines) }
        lines += ["", "TOTAL  \(sum)", ""]
        for role in Self.signers {
            lines += ["", "\(Self.padded(role, 14)) ______________________  Date ____________"]
        }
        return lines.joined(separator: "\n")
    }

    static let signers = ["Offloaded by", "Checked by"]

    private static func lines(_ file: File) -> [String] {
        var lines = ["\(file.path)  \(ByteText.format(file.size))  \(file.state)"]
        lines.append("    modified \(file.modified_at)  " + file.digests.joined(separator: "  "))
        if let reason = file.reason { lines.append("    \(reason)") }
        for delivery in file.deliveries {
            let place = delivery.url ?? delivery.key ?? ""
            let verified = delivery.verified.map { ", verified by \($0)" } ?? ""
            let end = delivery.ended_at.map { " at \($0)" } ?? ""
            lines.append("    → \(delivery.destination): \(delivery.state)\(verified)\(end)  \(place)")
            if let reason = delivery.reason, reason != file.reason { lines.append("      \(reason)") }
        }
        return lines
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
