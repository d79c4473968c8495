internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// What a person or a program can keep as evidence of what became of a file.
struct Receipt: Sendable {
    /// What a receipt says that leaves the journal, and this machine.
    struct Origin: Sendable {
        /// Of Inlet.
        var version: String
        var host: String
    }

    /// One JSON object on one line.
    let json: [UInt8]

    /// - Parameters:
    ///   - written: where the receipt is as a file; nil = only in the journal.
    ///   - note: why it is there and not where the route asks for it.
    init(
        _ job: Job, state: FileState, disposition: String, finishedAt: WallTime, origin: Origin? = nil,
        written: FilePath? = nil, note: String? = nil
    ) {
        let file = job.file
        var object = JSONLine()
        object.add("job", file.id)
        object.add("path", file.fullPath.display)
        object.add("size", file.identity.size)
        object.add("state", state.rawValue)
        object.add("route", file.route ?? "")
        object.add("disposition", disposition)
        object.add("modified_at", WallTime(nanoseconds: file.identity.modified).rfc3339)
        object.add("admitted_at", file.admittedAt.rfc3339)
        object.add("finished_at", finishedAt.rfc3339)
        object.add("media_type", file.mediaType)
        Self.add(whatIsKnownOf: file, to: &object)
        if let reason = file.reason {
            if let code = file.code { object.add("code", code.rawValue) }
            object.add("reason", reason)
        }
        object.add("deliveries", job.deliveries.map(Self.object))
        if let written { object.add("receipt_file", written.display) }
        if let note { object.add("receipt_note", note) }
        if let origin {
            object.add("inlet", origin.version)
            object.add("host", origin.host)
        }
        json = object.finished
    }

    /// For the journal: a file whose source stays as it is, and whose receipt is in the journal alone, needs no finisher.
    static let atOnce: EndingRule = { job in
        guard FinishAction(job.file) == .keep, job.file.policy.receipts == .none else { return nil }
        let receipt = Receipt(job, state: job.file.state, disposition: Disposition.kept, finishedAt: .now)
        return Ending(disposition: Disposition.kept, receipt: receipt.json)
    }

    /// What not every file has.
    private static func add(whatIsKnownOf file: FileRow, to object: inout JSONLine) {
        if let category = file.category { object.add("category", category) }
        if let role = file.role { object.add("role", role) }
        if let batch = file.batchID { object.add("batch", batch) }
        if !file.labels.isEmpty { object.add("labels", list(file.labels)) }
        if !file.digests.isEmpty {
            var digests = JSONLine()
            for digest in file.digests { digests.add(digest.algorithm.rawValue, digest.hex) }
            object.add("digests", digests)
        }
    }

    private static func list(_ texts: [String: String]) -> JSONLine {
        var list = JSONLine()
        for (name, value) in texts.sorted(by: { $0.key < $1.key }) { list.add(name, value) }
        return list
    }

    private static func object(_ delivery: DeliveryRow) -> JSONLine {
        var object = JSONLine()
        object.add("destination", delivery.destination)
        object.add("state", delivery.state.rawValue)
        object.add("key", delivery.proof?.key ?? delivery.key ?? "")
        object.add("attempts", Int64(delivery.attempts))
        if let started = delivery.startedAt { object.add("started_at", started.rfc3339) }
        if let ended = delivery.endedAt { object.add("ended_at", ended.rfc3339) }
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
        object.add("details", list(details))
    }
}
