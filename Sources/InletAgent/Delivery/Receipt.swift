internal import InletCore
internal import InletJournal
internal import InletLinux

/// What a person or a program can keep as evidence of what became of a file.
struct Receipt: Sendable {
    /// One JSON object on one line.
    let json: [UInt8]

    init(_ job: Job, state: FileState, disposition: String, finishedAt: WallTime) {
        let file = job.file
        var object = JSONLine()
        object.add("job", file.id)
        object.add("path", file.fullPath.display)
        object.add("size", file.identity.size)
        object.add("state", state.rawValue)
        object.add("route", file.route ?? "")
        object.add("disposition", disposition)
        object.add("admitted_at", file.admittedAt.rfc3339)
        object.add("finished_at", finishedAt.rfc3339)
        if !file.labels.isEmpty {
            var labels = JSONLine()
            for (name, text) in file.labels.sorted(by: { $0.key < $1.key }) { labels.add(name, text) }
            object.add("labels", labels)
        }
        if let reason = file.reason {
            object.add("code", file.code?.rawValue ?? "")
            object.add("reason", reason)
        }
        object.add("deliveries", job.deliveries.map(Self.object))
        json = object.finished
    }

    /// For the journal: a file whose source stays as it is needs no finisher.
    static let atOnce: EndingRule = { job in
        guard FinishAction(job.file) == .keep else { return nil }
        let receipt = Receipt(job, state: job.file.state, disposition: Disposition.kept, finishedAt: .now)
        return Ending(disposition: Disposition.kept, receipt: receipt.json)
    }

    private static func object(_ delivery: DeliveryRow) -> JSONLine {
        var object = JSONLine()
        object.add("destination", delivery.destination)
        object.add("state", delivery.state.rawValue)
        object.add("key", delivery.proof?.key ?? delivery.key ?? "")
        object.add("attempts", Int64(delivery.attempts))
        if let proof = delivery.proof { add(proof, to: &object) }
        if let code = delivery.code { object.add("code", code.rawValue) }
        if let reason = delivery.reason { object.add("reason", reason) }
        return object
    }

    private static func add(_ proof: Proof, to object: inout JSONLine) {
        object.add("size", proof.size)
        object.add("verified", proof.method.rawValue)
        if let content = proof.content { object.add("digest", content.digest.description) }
        if let size = proof.content?.partSize { object.add("part_size", size) }
        if let etag = proof.etag { object.add("etag", etag) }
        if let url = proof.url { object.add("url", url) }
        guard let details = proof.details, !details.isEmpty else { return }
        var list = JSONLine()
        for (name, value) in details.sorted(by: { $0.key < $1.key }) { list.add(name, value) }
        object.add("details", list)
    }
}
