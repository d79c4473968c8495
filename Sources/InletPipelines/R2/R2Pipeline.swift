package import InletCore
package import InletLinux
package import InletTransfer

/// Delivers to Cloudflare R2 through the Spiral Storage API: presigned multipart uploads that survive a restart, and a
/// single presigned PUT for small files where the dialect has one.
package struct R2Pipeline: PartPipeline {
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
        if let proof = try await api.checkSource(sender) { return .delivered(proof) }
        // An upload that another dialect has opened goes on: nothing else would drop it.
        if settings.dialect == .v1, order.source.size <= Self.singleLimit,
            UploadRecord.identity(attempt.checkpoint.entries) == nil
        {
            let proof = try await sender.sendWhole(at: api.location(order.key, answered: nil)) {
                () async throws(DeliveryError) in
                let url = try api.checked(try await api.presign(order))
                return PresignedTarget(url: url, headers: [("Content-Type", order.mediaType)])
            }
            return .delivered(proof)
        }
        return .delivered(try await MultipartUpload(store: api, sender: sender).deliver())
    }

    func store(_ order: DeliveryOrder, _ notes: [String: [UInt8]]) -> any PartStore { api }

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
