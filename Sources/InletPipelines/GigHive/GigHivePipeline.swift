package import InletCore
package import InletLinux
package import InletTransfer

/// Delivers to a GigHive server: one streamed form for smaller files, tus and a finalizing call for larger ones.
///
/// The server names files by their checksum; the order's key is what our own records call it by.
package struct GigHivePipeline: Pipeline {
    private let settings: GigHiveSettings
    private let api: GigHiveAPI
    private let hashing: BlockingPool

    package init(settings: GigHiveSettings, client: HTTPClient, hashing: BlockingPool) {
        self.settings = settings
        self.hashing = hashing
        api = GigHiveAPI(settings: settings, client: client)
    }

    package func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome {
        if attempt.isStopping() { throw .stopping }
        var notes = GigHiveNotes(attempt.checkpoint.entries)
        let job = GigHiveJob(
            api: api, source: source, order: order, attempt: attempt, fields: try fields(source, order),
            hashing: hashing)
        if let reply = notes.reply { return .delivered(try await job.proof(ofEarlier: reply, sent: notes.sent)) }
        if notes.sent != nil {
            if notes.isStuck {
                // A person tries again, and may give up again.
                notes.isStuck = false
                try await attempt.checkpoint.put(notes.finalizeNote)
            }
            // What was admitted is at the server, whatever has become of the file since.
            attempt.meter.add(job.size)
            return try await TusUpload(job: job).deliver(notes)
        }
        try SourceGuard.check(source, order)
        try checkFile(job)
        if !usesTus(job.size, notes) {
            if let proof = try await FormUpload(job: job).deliver() { return .delivered(proof) }
            notes.needsTus = true
            try await attempt.checkpoint.put(notes.lasting)
            try SourceGuard.check(source, order)
        }
        return try await TusUpload(job: job).deliver(notes)
    }

    package func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError) {
        let notes = GigHiveNotes(checkpoint)
        guard let upload = notes.upload, notes.reply == nil else { return }
        if notes.isStuck {
            throw DeliveryError(
                .retry(after: nil), .conflict, "upload \(upload) is kept at the server: a retry need not send it again")
        }
        try await Tus(api: api).drop(upload)
    }

    package func probe() async throws(DeliveryError) -> String { try await api.probe() }

    /// The pin of the key that the server has now, as `pin:` takes it; nil without TLS.
    package func serverPin() async throws(DeliveryError) -> String? {
        do {
            return try await api.client.pin(of: settings.url)?.text
        } catch {
            throw DeliveryError(error)
        }
    }

    /// Deletes what a proof is about, with the token that came with it.
    ///
    /// - Returns: what was done, in a few words.
    package func undo(_ proof: Proof) async throws(DeliveryError) -> String {
        guard let asset = proof.details?["asset_id"].flatMap({ Int64($0) }),
            let token = proof.keepsakes?.reveal(GigHiveReply.deleteTokenName)
        else {
            throw DeliveryError(
                .giveUp, .notFound,
                "there is no token to delete it with: the server gives one for new files only, in its first answer; "
                    + "its admin can delete it")
        }
        try await api.delete(asset: asset, token: token)
        return "asset \(asset) is deleted at \(settings.url.redacted)"
    }

    // MARK: - Before anything is sent

    private func usesTus(_ size: Int64, _ notes: GigHiveNotes) -> Bool {
        switch settings.transport {
        case .tus: true
        case .multipart: false
        case .auto: notes.needsTus || notes.upload != nil || size > settings.multipartLimit
        }
    }

    private func fields(_ source: SourceFile, _ order: DeliveryOrder) throws(DeliveryError) -> GigHiveFields {
        do {
            return try GigHiveFields(
                order.fields, defaults: Self.defaults(source, order), isGuest: api.isGuest)
        } catch {
            throw DeliveryError(
                .giveUp, .badRequest,
                "\(source.path.display): \(error.field) \(error.reason); correct 'with:' of its route")
        }
    }

    /// The default templates on what does not change between attempts: for files that were sent here by name only.
    private static func defaults(_ source: SourceFile, _ order: DeliveryOrder) -> [String: String] {
        let facts = KeyFields(
            path: source.path, modified: order.source.modified, category: "",
            admitted: WallTime(nanoseconds: order.source.modified))
        return FieldSpec.filled([:], GigHiveFields.specs).mapValues { $0.text(facts) }
    }

    private func checkFile(_ job: GigHiveJob) throws(DeliveryError) {
        let shown = job.source.path.display
        if job.size == 0 {
            throw DeliveryError(.giveUp, .badRequest, "\(shown) is empty; the server takes no empty files")
        }
        if job.size > settings.maxUploadBytes {
            let limit = settings.maxUploadBytes
            let (size, most) = (ByteText.format(job.size), ByteText.format(limit))
            let compared =
                size == most ? "\(job.size) bytes, over the limit of \(limit)" : "\(size), over the limit of \(most)"
            throw DeliveryError(.giveUp, .tooLarge, "\(shown) is \(compared) (max_upload_bytes); nothing was sent")
        }
        if let objection = GigHiveMedia.objection(to: job.name) { throw DeliveryError(.giveUp, .badRequest, objection) }
    }
}
