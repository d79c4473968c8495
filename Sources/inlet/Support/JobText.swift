import InletAgent
import InletCore
import InletDashboard

// Jobs for people.
extension JobReport {
    static func table(_ jobs: [JobReport]) -> String {
        let tints: [String: TextStyle] = ["failed": .bad, "rejected": .bad, "expired": .bad, "delivered": .good]
        return Console.table(
            [
                .number("JOB"), .text("STATE"), .number("SIZE"), .text("TO"), .name("PATH"), .note("LABELS"),
                .note("REASON"),
            ],
            jobs.map { job in
                [
                    StyledText("\(job.job)", .strong), StyledText(job.state, tints[job.state]),
                    StyledText(ByteText.format(job.size)),
                    StyledText(job.deliveries.map(\.destination).joined(separator: ",")), StyledText(job.path),
                    StyledText(job.labels.map(pairs) ?? "", .faint), StyledText(job.reason ?? ""),
                ]
            })
    }

    /// `name=value name=value`
    static func pairs(_ labels: [String: String]) -> String {
        labels.sorted { $0.key < $1.key }.map { DisplayText.escape("\($0.key)=\($0.value)") }.joined(separator: " ")
    }

    /// Escaped like file names: a server or an earlier version may have written it.
    private static func plain(_ text: String) -> String { DisplayText.escape(text) }

    var story: String {
        var lines = [
            Console.tint(Self.plain(path), .strong),
            "  job \(job), \(ByteText.format(size)), \(state)" + (route.map { ", route \($0)" } ?? ""),
            "  admitted \(admitted_at)",
        ]
        if let ended = ended_at { lines.append("  ended    \(ended)") }
        if let finished = finished_at {
            lines.append("  finished \(finished): \(Self.plain(disposition ?? "kept"))")
        }
        if let batch {
            let files = batch.files.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
            lines.append("  batch    \(batch.batch) \(Self.plain(batch.name)): \(batch.state); \(files)")
        }
        if let labels { lines.append("  labels   \(Self.pairs(labels))") }
        if let reason { lines.append("  \(Self.plain(reason)) [\(code ?? "")]") }
        for delivery in deliveries {
            lines.append("  → \(delivery.destination): \(delivery.state), attempts \(delivery.attempts)")
            if let key = delivery.key { lines.append("      key      \(Self.plain(key))") }
            if let verified = delivery.verified {
                lines.append("      verified \(verified) \(Self.plain(delivery.etag ?? ""))")
            }
            if let url = delivery.url { lines.append("      at       \(Self.plain(url))") }
            for (name, text) in (delivery.details ?? [:]).sorted(by: { $0.key < $1.key }) {
                lines.append("      \(Self.plain(name).padded(8)) \(Self.plain(text))")
            }
            if let after = delivery.after, delivery.state == DeliveryState.ready.rawValue, delivery.next_at == nil {
                lines.append("      after    \(after)")
            }
            if let next = delivery.next_at { lines.append("      next     \(next)") }
            if let reason = delivery.reason {
                lines.append("      \(Self.plain(reason))" + (delivery.code.map { " [\($0)]" } ?? ""))
            }
        }
        return lines.joined(separator: "\n")
    }
}

extension CommandReport {
    /// Prints the result of an order; exits with 1 if it failed.
    func show() throws {
        guard done else { throw ExitStatus.failed.saying(message) }
        Console.print(message)
    }
}
