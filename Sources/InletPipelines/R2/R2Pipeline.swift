package import InletCore
package import InletLinux
package import InletTransfer
package import SystemPackage

/// Delivers to Cloudflare R2 through the Spiral Storage API: presigned multipart uploads that survive a restart, and a
/// single presigned PUT for small files where the dialect has one.
package struct R2Pipeline: Pipeline {
    let settings: R2Settings
    let api: SpiralAPI
    /// Sends what files hold, as fast as the destination's limit lets it.
    private let client: HTTPClient
    let hashing: BlockingPool
    private let lane = UploadLane()

    /// Files up to this many bytes go by single PUT in dialect v1, as its clients do.
    static let singleLimit: Int64 = 5 << 20

    package init(settings: R2Settings, client: HTTPClient, hashing: BlockingPool) {
        self.settings = settings
        self.hashing = hashing
        self.client = client
        // Its questions are small, and probes and aborts must have their answers also while nothing may be sent.
        api = SpiralAPI(settings: settings, client: client.limited(by: nil))
    }

    package func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome {
        if attempt.isStopping() { throw .stopping }
        let sender = PartSender(
            client: client, source: source, order: order, attempt: attempt, hashing: hashing,
            lane: lane, proof: settings.verify == .md5 ? .md5 : .size)
        let upload = MultipartUpload(store: SpiralStore(api: api), sender: sender, order: order, attempt: attempt)
        do {
            try SourceGuard.check(source, order)
        } catch {
            // The answer to the last complete may have been lost: then what was admitted has arrived, whole.
            if let proof = try await upload.composedEarlier() { return .delivered(proof) }
            throw error
        }
        // An upload that another dialect has opened goes on: nothing else would drop it.
        if settings.dialect == .v1, order.source.size <= Self.singleLimit,
            UploadRecord.identity(attempt.checkpoint.entries) == nil
        {
            let proof = try await sender.sendWhole(at: api.publicLocation(order.key, answered: nil)) {
                () async throws(DeliveryError) in
                let url = try api.checked(try await api.presign(order))
                return PresignedTarget(url: url, headers: [("Content-Type", order.mediaType)])
            }
            return .delivered(proof)
        }
        return .delivered(try await upload.deliver())
    }

    /// The answer to the last complete may have been lost: then what was admitted has arrived, whole.
    package func conclude(
        _ path: FilePath, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome? {
        let completion = UploadCompletion(store: SpiralStore(api: api), sender: nil, attempt: attempt)
        return try await completion.composedEarlier(order).map { .delivered($0) }
    }

    package func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError) {
        for upload in UploadRecord.uploads(checkpoint) {
            try await api.abort(id: upload.id, key: upload.key)
        }
    }

    /// Asks for what is not there. Only where the answer may be that of any program, an upload of one part is opened, and
    /// dropped again.
    package func probe() async throws(DeliveryError) -> String {
        let said = "\(settings.api.redacted) answers, dialect \(settings.dialect.rawValue)"
        if try await api.answers() { return said }
        let order = DeliveryOrder(
            id: 0, destination: "", key: ".inlet-check", mediaType: "application/octet-stream", fields: [:],
            source: FileIdentity(size: 0, modified: 0, changed: 0, inode: 0, device: 0))
        let upload = try await api.create(order, count: 1)
        try await api.abort(id: upload.id, key: upload.key)
        return said
    }
}
