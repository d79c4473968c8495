internal import InletCore
internal import InletLinux
internal import InletTransfer

/// Asks the store to compose the object, and finds out what happened when the answer is lost.
struct UploadCompletion: Sendable {
    let api: SpiralAPI
    let order: DeliveryOrder
    let attempt: Attempt

    private static let tries = 3
    private static let waits = RetryPolicy(backoff: .milliseconds(300), maxBackoff: .seconds(5))

    func complete(_ record: UploadRecord) async throws(DeliveryError) -> Proof {
        let bare = (1...record.plan.count).map { ETagJudge.bare(record.parts[$0]?.etag ?? "") }
        var tried = 0
        while true {
            do throws(DeliveryError) {
                return proof(record, url: try await api.complete(record.upload, etags: bare))
            } catch {
                tried += 1
                switch error.code {
                case .badRequest: return try await completeQuoted(record, error)
                case .notFound: return try await resolve(record, error)
                case .cancelled: throw error
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

    /// Some stores want the tags exactly as they sent them.
    private func completeQuoted(_ record: UploadRecord, _ first: DeliveryError) async throws(DeliveryError) -> Proof {
        let raw = (1...record.plan.count).map { record.parts[$0]?.etag ?? "" }
        guard raw.contains(where: { $0.contains("\"") }) else { return try await resolve(record, first) }
        do throws(DeliveryError) {
            return proof(record, url: try await api.complete(record.upload, etags: raw))
        } catch {
            guard error.code == .notFound || error.code == .badRequest else { throw error }
            return try await resolve(record, error)
        }
    }

    /// The proof, if the store has the object.
    func lookUp(_ record: UploadRecord) async throws(DeliveryError) -> Proof? {
        let finding = try await ObjectLookup(api: api).find(record.upload.key)
        let isThere = ObjectLookup.matches(finding, size: record.plan.fileSize, expectedETag: record.expectedETag)
        return isThere ? proof(record, url: nil) : nil
    }

    /// The store may have composed the object although we were not told: it is looked up before anything is sent again.
    private func resolve(_ record: UploadRecord, _ error: DeliveryError) async throws(DeliveryError) -> Proof {
        if let proof = try await lookUp(record) { return proof }
        if error.code == .notFound {
            try await attempt.checkpoint.replace(with: [UploadRecord.completingName: []])
            throw DeliveryError(
                .retry(after: nil), .uploadGone,
                "\(error.reason); the object is not there either, or cannot be seen, so it is sent again")
        }
        throw error
    }

    private func pause(_ tried: Int) async throws(DeliveryError) {
        if attempt.isStopping() { throw .stopping }
        var random = SystemRandomNumberGenerator()
        do {
            try await Task.sleep(for: Self.waits.delay(afterAttempt: tried, asked: nil, using: &random))
        } catch {
            throw DeliveryError(.cancelled, .cancelled, "cancelled while completing the upload")
        }
    }

    private func proof(_ record: UploadRecord, url: String?) -> Proof {
        let composite = record.composite
        return Proof(
            key: record.upload.key, size: record.plan.fileSize, method: composite == nil ? .size : .md5Parts,
            content: composite.map { ContentHash(digest: $0, partSize: record.plan.partSize) },
            etag: record.expectedETag, url: api.publicLocation(record.upload.key, answered: url))
    }
}
