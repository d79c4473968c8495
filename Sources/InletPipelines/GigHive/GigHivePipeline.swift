package import InletCore
package import InletLinux
package import InletTransfer
package import SystemPackage

/// Delivers to a GigHive server: one streamed form for smaller files, tus and a finalizing call for larger ones.
///
/// The server names files by their checksum; the order's key is what our own records call it by.
package struct GigHivePipeline: Pipeline {
    private let settings: GigHiveSettings
    let api: GigHiveAPI
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
        let job = try job(source.path, source, order, attempt)
        if let reply = notes.reply { return .delivered(try await filed(job, notes, reply)) }
        if notes.sent != nil {
            // What was admitted is at the server, whatever has become of the file since.
            try await takeUp(job, &notes)
            return try await TusUpload(job: job).deliver(notes)
        }
        try job.checkSource()
        try checkFile(job)
        if !usesTus(job.size, notes) {
            if let proof = try await FormUpload(job: job).deliver() { return .delivered(proof) }
            notes.needsTus = true
            notes.mayBeVisible = notes.mayBeVisible || attempt.meter.hasStarted
            try await attempt.checkpoint.put(notes.lasting)
            try job.checkSource()
        }
        return try await TusUpload(job: job).deliver(notes)
    }

    package func conclude(
        _ path: FilePath, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome? {
        var notes = GigHiveNotes(attempt.checkpoint.entries)
        guard notes.reply != nil || notes.sent != nil else { return nil }
        if attempt.isStopping() { throw .stopping }
        let job = try job(path, nil, order, attempt)
        if let reply = notes.reply { return .delivered(try await filed(job, notes, reply)) }
        try await takeUp(job, &notes)
        return try await Finalizing(job: job).finish(&notes)
    }

    package func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError) {
        let notes = GigHiveNotes(checkpoint)
        // Where a token came with the answer, the server has used the upload up.
        guard let upload = notes.upload, notes.reply?.deleteToken == nil else { return }
        if let since = notes.stuckSince, WallTime.now < since + GigHiveNotes.keptWhenStuck {
            throw DeliveryError(
                .retry(after: nil), .conflict, "upload \(upload) is kept at the server: a retry need not send it again")
        }
        try await Tus(api: api).drop(upload)
    }

    package func probe() async throws(DeliveryError) -> String { try await api.probe() }

    /// The pin of the key that the server has now, as `pin:` takes it; nil without TLS.
    package func serverPin() async throws(DeliveryError) -> String? {
        try await api.service.http.serverPin(of: settings.url)
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

    // MARK: - Going on

    /// The proof from an answer that is in the notes.
    private func filed(
        _ job: GigHiveJob, _ notes: GigHiveNotes, _ reply: GigHiveReply
    ) async throws(DeliveryError) -> Proof {
        // Bytes that another event had already stay in the upload, and the attempt that learnt so may not have come to
        // dropping it.
        if let upload = notes.upload, reply.deleteToken == nil { try? await Tus(api: api).delete(upload) }
        return try await job.proof(ofEarlier: reply, sent: notes.sent)
    }

    /// Goes on with an upload that was sent whole.
    private func takeUp(_ job: GigHiveJob, _ notes: inout GigHiveNotes) async throws(DeliveryError) {
        if notes.stuckSince != nil {
            // A person tries again, and may give up again.
            notes.stuckSince = nil
            try await job.attempt.checkpoint.put(notes.finalizeNote)
        }
        job.attempt.meter.add(job.size)
    }

    private func job(
        _ path: FilePath, _ source: SourceFile?, _ order: DeliveryOrder, _ attempt: Attempt
    ) throws(DeliveryError) -> GigHiveJob {
        GigHiveJob(
            api: api, path: path, opened: source, order: order, attempt: attempt, fields: try fields(path, order),
            hashing: hashing)
    }

    // MARK: - Before anything is sent

    private func usesTus(_ size: Int64, _ notes: GigHiveNotes) -> Bool {
        switch settings.transport {
        case .tus: true
        case .multipart: false
        case .auto: notes.needsTus || notes.upload != nil || size > settings.multipartLimit
        }
    }

    private func fields(_ path: FilePath, _ order: DeliveryOrder) throws(DeliveryError) -> GigHiveFields {
        do {
            return try GigHiveFields(
                order.fields, defaults: Self.defaults(path, order), isGuest: api.isGuest)
        } catch {
            throw DeliveryError(
                .giveUp, .badRequest,
                "\(path.display): \(error.field) \(error.reason); correct 'with:' of its route")
        }
    }

    /// The default templates on what does not change between attempts: for files that were sent here by name only.
    private static func defaults(_ path: FilePath, _ order: DeliveryOrder) -> [String: String] {
        let facts = KeyFields(
            path: path, modified: order.source.modified, category: "",
            admitted: WallTime(nanoseconds: order.source.modified))
        return FieldSpec.filled([:], GigHiveFields.specs).mapValues { $0.text(facts) }
    }

    private func checkFile(_ job: GigHiveJob) throws(DeliveryError) {
        let shown = job.path.display
        if job.size == 0 {
            throw DeliveryError(.giveUp, .badRequest, "\(shown) is empty; the server takes no empty files")
        }
        if job.size > settings.maxUploadBytes {
            let limit = settings.maxUploadBytes
            let (size, most) = (ByteText.format(job.size), ByteText.format(limit))
            let compared =
                size == most
                ? "\(job.size) bytes, over the limit of \(most), \(limit) bytes" : "\(size), over the limit of \(most)"
            throw DeliveryError(.giveUp, .tooLarge, "\(shown) is \(compared) (max_upload_bytes); nothing was sent")
        }
        if let objection = GigHiveMedia.objection(to: job.name) { throw DeliveryError(.giveUp, .badRequest, objection) }
    }
}
