internal import InletCore
internal import InletJournal

/// What a person or a program can keep as evidence of what became of a file.
struct Receipt: Sendable {
    /// One JSON object on one line.
    let json: String

    init(_ job: Job, state: FileState, disposition: String, finishedAt: WallTime) {
        let file = job.file
        var fields: [(String, String)] = [
            ("job", String(file.id)), ("path", JSONString.quote(file.fullPath.display)),
            ("size", String(file.identity.size)), ("state", JSONString.quote(state.rawValue)),
            ("route", JSONString.quote(file.route ?? "")), ("disposition", JSONString.quote(disposition)),
            ("admitted_at", JSONString.quote(file.admittedAt.rfc3339)),
            ("finished_at", JSONString.quote(finishedAt.rfc3339)),
        ]
        if let reason = file.reason {
            fields.append(("code", JSONString.quote(file.code?.rawValue ?? "")))
            fields.append(("reason", JSONString.quote(reason)))
        }
        let deliveries = job.deliveries.map(Self.json).joined(separator: ",")
        fields.append(("deliveries", "[\(deliveries)]"))
        json = Self.object(fields)
    }

    private static func json(_ delivery: DeliveryRow) -> String {
        var fields: [(String, String)] = [
            ("destination", JSONString.quote(delivery.destination)),
            ("state", JSONString.quote(delivery.state.rawValue)),
            ("key", JSONString.quote(delivery.proof?.key ?? delivery.key ?? "")),
            ("attempts", String(delivery.attempts)),
        ]
        if let proof = delivery.proof {
            fields.append(("size", String(proof.size)))
            fields.append(("verified", JSONString.quote(proof.method.rawValue)))
            if let content = proof.content { fields.append(("digest", JSONString.quote(content.digest.description))) }
            if let size = proof.content?.partSize { fields.append(("part_size", String(size))) }
            if let etag = proof.etag { fields.append(("etag", JSONString.quote(etag))) }
            if let url = proof.url { fields.append(("url", JSONString.quote(url))) }
            if let details = proof.details, !details.isEmpty {
                let sorted = details.sorted { $0.key < $1.key }.map { ($0.key, JSONString.quote($0.value)) }
                fields.append(("details", object(sorted)))
            }
        }
        if let code = delivery.code { fields.append(("code", JSONString.quote(code.rawValue))) }
        if let reason = delivery.reason { fields.append(("reason", JSONString.quote(reason))) }
        return object(fields)
    }

    private static func object(_ fields: [(String, String)]) -> String {
        "{" + fields.map { "\(JSONString.quote($0.0)):\($0.1)" }.joined(separator: ",") + "}"
    }
}
