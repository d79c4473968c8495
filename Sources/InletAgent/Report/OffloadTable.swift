internal import InletCore

/// The report as a table (RFC 4180): one line for each file and destination, the same columns always.
extension OffloadReport {
    private static let columns = [
        "batch", "card", "insertion", "inserted_at", "roll", "camera", "operator", "job", "path", "bytes",
        "modified_at", "duration_s", "timecode", "state", "check", "hashes", "destination", "delivery_state", "key",
        "url", "verified", "ended_at", "asked_at", "reason",
    ]

    package func table() -> String {
        let insertions = Dictionary(
            (cards ?? []).flatMap(\.insertions).map { ($0.insertion, $0) }, uniquingKeysWith: { first, _ in first })
        var lines = [Self.columns]
        for file in files {
            let insertion = file.insertion.flatMap { insertions[$0] }
            let start = [
                batch.map { "\($0.batch)" }, file.card, file.insertion.map { "\($0)" }, insertion?.inserted_at,
                insertion?.roll, file.camera, insertion?.operator, "\(file.job)", file.path, "\(file.size)",
                file.modified_at, file.duration_ms.map(Self.seconds), file.timecode, file.state, file.check,
                file.digests.joined(separator: " "),
            ].map { $0 ?? "" }
            for delivery in file.deliveries {
                let end = [
                    delivery.destination, delivery.state, delivery.key, delivery.url, delivery.verified,
                    delivery.ended_at, delivery.asked_at, delivery.reason ?? file.reason,
                ].map { $0 ?? "" }
                lines.append(start + end)
            }
            if file.deliveries.isEmpty {
                lines.append(start + [String](repeating: "", count: 7) + [file.reason ?? ""])
            }
        }
        return lines.map(CSVText.line).joined()
    }

    private static func seconds(_ milliseconds: Int64) -> String {
        let rest = String(milliseconds % 1000 + 1000).dropFirst()
        return "\(milliseconds / 1000).\(rest)"
    }
}
