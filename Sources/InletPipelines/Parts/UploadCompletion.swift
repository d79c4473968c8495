internal import InletCore
internal import InletLinux
internal import InletTransfer

/// Asks the store to compose the object, and finds out what happened when the answer is lost.
struct UploadCompletion: Sendable {
    let store: any PartStore
    /// nil when the source is gone.
    let sender: PartSender?
    let attempt: Attempt

    private static let tries = 3
    private static let waits = RetryPolicy(backoff: .milliseconds(300), maxBackoff: .seconds(5))

    func complete(_ record: UploadRecord) async throws(DeliveryError) -> Proof {
        var tried = 0
        while true {
            do throws(DeliveryError) {
                if try await store.isTaken(record.upload.key) {
                    // It may be ours, from a request whose answer was lost.
                    if record.isCompleting || tried > 0, let proof = try await lookUp(record) { return proof }
                    throw DeliveryError(
                        .giveUp, .destinationExists, "an object has the key '\(DisplayText.escape(record.upload.key))'")
                }
                return proof(record, try await store.complete(record))
            } catch {
                tried += 1
                switch error.code {
                case .badRequest, .uploadGone: return try await resolve(record, error)
                case .cancelled, .destinationExists: throw error
                case .notFound:
                    // A bucket that is not there says nothing of the upload.
                    guard case .retry = error.verdict else { throw error }
                    return try await resolve(record, error)
                // Our own earlier request, whose answer was lost, may still be at work.
                case .conflict: break
                default: if error.verdict == .giveUp || error.verdict == .credentials { throw error }
                }
                if tried >= Self.tries { return try await resolve(record, Self.passing(error)) }
                try await pause(tried)
            }
        }
    }

    /// A conflict with ourselves passes.
    private static func passing(_ error: DeliveryError) -> DeliveryError {
        error.code == .conflict ? DeliveryError(.retry(after: nil), .conflict, error.reason) : error
    }

    /// The proof of an object whose composition was asked for by an earlier attempt; nil when there was none, or the
    /// store does not have it.
    func composedEarlier(_ order: DeliveryOrder) async throws(DeliveryError) -> Proof? {
        guard let record = UploadRecord(attempt.checkpoint.entries, fileSize: order.source.size), record.isCompleting
        else { return nil }
        return try await lookUp(record)
    }

    /// The proof, if the store has the object.
    func lookUp(_ record: UploadRecord) async throws(DeliveryError) -> Proof? {
        try await store.composed(record, sender).map { proof(record, $0) }
    }

    /// The store may have composed the object although we were not told: it is looked up before anything is sent again.
    private func resolve(_ record: UploadRecord, _ error: DeliveryError) async throws(DeliveryError) -> Proof {
        if let proof = try await lookUp(record) { return proof }
        guard error.code == .notFound || error.code == .uploadGone else { throw error }
        if error.code == .uploadGone {
            // One that only misses a part is still there.
            try? await store.abort(id: record.upload.id, key: record.upload.key)
        }
        var notes = record.lasting.merging(store.lastingNotes) { $1 }
        notes[UploadRecord.completingName] = []
        try await attempt.checkpoint.replace(with: notes)
        throw DeliveryError(
            .retry(after: nil), .uploadGone,
            "\(error.reason); the object is not there either, or cannot be seen, so it is sent again")
    }

    private func pause(_ tried: Int) async throws(DeliveryError) {
        if attempt.isStopping() { throw .stopping }
        var random = SystemRandomNumberGenerator()
        let wait = Self.waits.delay(afterAttempt: tried, asked: nil, using: &random)
        try await DeliveryError.sleep(for: wait, "completing the upload")
    }

    private func proof(_ record: UploadRecord, _ composed: Composed) -> Proof {
        Proof(
            key: record.upload.key, size: record.plan.fileSize, method: record.method, content: record.content,
            // What the store calls it from now on: not every one computes the tag of S3.
            etag: composed.etag.flatMap { $0.isEmpty ? nil : $0 } ?? record.expectedETag,
            url: store.location(record.upload.key, answered: composed.url))
    }
}
