internal import InletCore
internal import InletJournal

/// What a person or a program can keep as evidence of what became of a file.
struct Receipt: Sendable {
    /// One JSON object on one line.
    let json: String

    init(_ job: Job, state: FileState, disposition: String, finishedAt: WallTime) {
        let file = job.file
        var fields: [(String, String)] = [
            ("job", String(file.id)), ("path", JSONText.quote(file.fullPath.display)),
            ("size", String(file.identity.size)), ("state", JSONText.quote(state.rawValue)),
            ("route", JSONText.quote(file.route ?? "")), ("disposition", JSONText.quote(disposition)),
            ("admitted_at", JSONText.quote(file.admittedAt.rfc3339)),
            ("finished_at", JSONText.quote(finishedAt.rfc3339)),
        ]
        if let reason = file.reason {
            fields.append(("code", JSONText.quote(file.code?.rawValue ?? "")))
            fields.append(("reason", JSONText.quote(reason)))
        }
        let deliveries = job.deliveries.map(Self.json).joined(separator: ",")
        fields.append(("deliveries", "[\(deliveries)]"))
        json = Self.object(fields)
    }

    private static func json(_ delivery: DeliveryRow) -> String {
        var fields: [(String, String)] = [
            ("destination", JSONText.quote(delivery.destination)), ("state", JSONText.quote(delivery.state.rawValue)),
            ("key", JSONText.quote(delivery.proof?.key ?? delivery.key ?? "")),
            ("attempts", String(delivery.attempts)),
        ]
        if let proof = delivery.proof {
            fields.append(("size", String(proof.size)))
            fields.append(("verified", JSONText.quote(proof.method.rawValue)))
            if let content = proof.content { fields.append(("digest", JSONText.quote(content.digest.description))) }
            if let size = proof.content?.partSize { fields.append(("part_size", String(size))) }
            if let etag = proof.etag { fields.append(("etag", JSONText.quote(etag))) }
            if let url = proof.url { fields.append(("url", JSONText.quote(url))) }
        }
        if let code = delivery.code { fields.append(("code", JSONText.quote(code.rawValue))) }
        if let reason = delivery.reason { fields.append(("reason", JSONText.quote(reason))) }
        return object(fields)
    }

    private static func object(_ fields: [(String, String)]) -> String {
        "{" + fields.map { "\(JSONText.quote($0.0)):\($0.1)" }.joined(separator: ",") + "}"
    }
}
