import Foundation
import InletCore
import InletDashboard

/// Jobs for people and for programs.
enum JobText {
    static func json(_ job: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(job), as: UTF8.self)
    }

    static func table(_ jobs: [JobReport]) -> String {
        let head = ["JOB", "STATE", "SIZE", "TO", "PATH"].map { Console.tint($0, .faint) }
        return Console.table(
            [head]
                + jobs.map { job in
                    let tint: Console.Tint? =
                        ["failed": .bad, "rejected": .bad, "expired": .bad, "delivered": .good][job.state]
                    return [
                        Console.tint("\(job.job)", .strong), tint.map { Console.tint(job.state, $0) } ?? job.state,
                        Console.tint(ByteText.format(job.size), .strong),
                        job.deliveries.map(\.destination).joined(separator: ","),
                        job.path + (job.labels.map { "  " + pairs($0) } ?? "")
                            + (job.reason.map { "\n        \($0)" } ?? ""),
                    ]
                })
    }

    /// `name=value name=value`
    static func pairs(_ labels: [String: String]) -> String {
        labels.sorted { $0.key < $1.key }.map { DisplayText.escape("\($0.key)=\($0.value)") }.joined(separator: " ")
    }

    static func story(_ job: JobReport) -> String {
        var lines = [
            Console.tint("\(job.path)", .strong),
            "  job \(job.job), \(ByteText.format(job.size)), \(job.state)" + (job.route.map { ", route \($0)" } ?? ""),
            "  admitted \(job.admitted_at)",
        ]
        if let ended = job.ended_at { lines.append("  ended    \(ended)") }
        if let finished = job.finished_at { lines.append("  finished \(finished): \(job.disposition ?? "kept")") }
        if let batch = job.batch {
            let files = batch.files.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
            lines.append("  batch    \(batch.batch) \(batch.name): \(batch.state); \(files)")
        }
        if let labels = job.labels { lines.append("  labels   \(Self.pairs(labels))") }
        if let reason = job.reason { lines.append("  \(reason) [\(job.code ?? "")]") }
        for delivery in job.deliveries {
            lines.append("  → \(delivery.destination): \(delivery.state), attempts \(delivery.attempts)")
            if let key = delivery.key { lines.append("      key      \(key)") }
            if let verified = delivery.verified { lines.append("      verified \(verified) \(delivery.etag ?? "")") }
            if let url = delivery.url { lines.append("      at       \(url)") }
            for (name, text) in (delivery.details ?? [:]).sorted(by: { $0.key < $1.key }) {
                lines.append("      \(name.padded(8)) \(text)")
            }
            if let after = delivery.after, delivery.state == DeliveryState.ready.rawValue, delivery.next_at == nil {
                lines.append("      after    \(after)")
            }
            if let next = delivery.next_at { lines.append("      next     \(next)") }
            if let reason = delivery.reason {
                lines.append("      \(reason)" + (delivery.code.map { " [\($0)]" } ?? ""))
            }
        }
        return lines.joined(separator: "\n")
    }
}
