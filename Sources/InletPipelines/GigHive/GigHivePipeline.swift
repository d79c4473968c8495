package import InletCore
package import InletLinux
internal import InletTransfer
package import SystemPackage

/// Delivers to a GigHive server: one streamed form for smaller files, tus and a finalizing call for larger ones.
///
/// The server names files by checksum; the order's key is the name in our own records.
package struct GigHivePipeline: Pipeline {
    let api: GigHiveAPI
    let hashing: BlockingPool

    private var settings: GigHiveSettings { api.settings }

    package func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome {
        if attempt.isStopping() { throw .stopping }
        var notes = GigHiveNotes(attempt.checkpoint.entries)
        let job = try job(source.path, source, order, attempt)
        if let reply = notes.reply { return .delivered(try await filed(job, notes, reply)) }
        if notes.sent != nil {
            // The admitted content is at the server, whatever happened to the file since.
            try await takeUp(job, &notes)
            return try await job.deliverByTus(notes)
        }
        try job.checkSource()
        try checkFile(job)
        if !usesTus(job.size, notes) {
            if let proof = try await job.deliverForm() { return .delivered(proof) }
            notes.needsTus = true
            notes.mayBeVisible = notes.mayBeVisible || attempt.meter.hasStarted
            try await attempt.checkpoint.put(notes.lasting)
            try job.checkSource()
        }
        return try await job.deliverByTus(notes)
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
        return try await job.finish(&notes)
    }

    package func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError) {
        let notes = GigHiveNotes(checkpoint)
        // If a token came with the answer, the server has consumed the upload.
        guard let upload = notes.upload, notes.reply?.deleteToken == nil else { return }
        if let since = notes.stuckSince, WallTime.now < since + GigHiveNotes.keptWhenStuck {
            throw DeliveryError(
                .retry(after: nil), .conflict, "upload \(upload) is kept at the server: a retry need not send it again")
        }
        try await Tus(api: api).drop(upload)
    }

    package func handedOver(_ checkpoint: [String: [UInt8]]) -> [String: [UInt8]] {
        GigHiveNotes(checkpoint).handedOver
    }

    package func probe() async throws(DeliveryError) -> String { try await api.probe() }

    /// Deletes the object of a proof, with its token.
    ///
    /// - Returns: what was done, in a few words.
    package func undo(_ proof: Proof) async throws(DeliveryError) -> String {
        guard let asset = proof.details?["asset_id"].flatMap({ Int64($0) }),
            let token = proof.secrets?.reveal(GigHiveReply.deleteTokenName)
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
        // Bytes that another event already had stay in the upload, and the attempt that found out may not have dropped
        // it yet.
        if let upload = notes.upload, reply.deleteToken == nil {
            await bestEffort(try await Tus(api: api).delete(upload))
        }
        return try await job.proof(ofEarlier: reply, sent: notes.sent)
    }

    /// Continues a complete upload.
    private func takeUp(_ job: GigHiveJob, _ notes: inout GigHiveNotes) async throws(DeliveryError) {
        if notes.stuckSince != nil {
            // A person may retry, and give up again.
            notes.stuckSince = nil
            try await job.attempt.checkpoint.put(notes.finalizeNote)
        }
        job.attempt.meter.add(job.size)
    }

    private func job(
        _ path: FilePath, _ source: SourceFile?, _ order: DeliveryOrder, _ attempt: Attempt
    ) throws(DeliveryError) -> GigHiveJob {
        let fields = try DeliveryError.onFields(
            of: path, GigHiveFields(order.fields, defaults: Self.defaults(path, order), isGuest: api.isGuest))
        return GigHiveJob(
            api: api, path: path, opened: source, order: order, attempt: attempt, fields: fields, hashing: hashing)
    }

    // MARK: - Before anything is sent

    private func usesTus(_ size: Int64, _ notes: GigHiveNotes) -> Bool {
        switch settings.transport {
        case .tus: true
        case .multipart: false
        case .auto: notes.needsTus || notes.upload != nil || size > settings.multipartLimit
        }
    }

    /// The default templates on facts that stay the same between attempts: for files sent here only by name.
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
        if let objection = Self.objection(to: job.name) { throw DeliveryError(.giveUp, .badRequest, objection) }
    }
}

/// One attempt at one file: shared by both transports.
struct GigHiveJob: Sendable {
    let api: GigHiveAPI
    let path: FilePath
    /// nil when nothing is at the path any more.
    let opened: SourceFile?
    let order: DeliveryOrder
    let attempt: Attempt
    let fields: GigHiveFields
    /// Threads for SHA-256, beside the sockets'.
    let hashing: BlockingPool

    var tus: Tus { Tus(api: api) }
    var size: Int64 { order.source.size }
    var name: FileName { FileName(path) }
    var mediaType: String { GigHivePipeline.declaredType(name.plainExtension, mediaType: order.mediaType) }

    var source: SourceFile {
        get throws(DeliveryError) {
            guard let opened else {
                throw DeliveryError(.sourceGone, .sourceGone, "\(path.display): removed before it was delivered")
            }
            return opened
        }
    }

    /// Whether the source is still the admitted file. - Throws: as `requireUnchanged`.
    func checkSource() throws(DeliveryError) { try source.requireUnchanged(since: order) }

    /// Accepts the server's record of a file: writes it into the checkpoint, then reads it.
    ///
    /// - Throws: `.badAnswer` when it is unreadable; another request then tells.
    func accept(_ response: HTTPResponse, _ request: HTTPRequest) async throws(DeliveryError) -> GigHiveReply {
        let label = "\(request.method) \(request.url.redacted)"
        guard let reply = GigHiveReply(response, request: label) else {
            throw GigHiveVerdict.done.error(response, label)
        }
        // A duplicate's record can be asked for again, and may be another file's than ours.
        if !reply.isDuplicate {
            await attempt.checkpoint.putPersistently([GigHiveReply.noteName: JSON.note(of: reply)])
        }
        return reply
    }

    /// The proof, if the server's checksum is that of the file.
    func proof(_ reply: GigHiveReply, _ digest: Digest) async throws(DeliveryError) -> Proof {
        guard reply.checksum == digest.hex else { throw try await mismatch(reply, digest) }
        return reply.proof(order, digest: digest, asset: asset(reply))
    }

    /// The proof of a file filed by an attempt that died before it could say so.
    func proof(ofEarlier reply: GigHiveReply, sent: Digest?) async throws(DeliveryError) -> Proof {
        if let sent { return try await proof(reply, sent) }
        do throws(DeliveryError) {
            try checkSource()
        } catch {
            // The admitted content has arrived, but cannot be compared any more.
            return reply.proof(order, digest: nil, asset: asset(reply))
        }
        return try await proof(reply, try await hashed(RunningHash(), to: size).get().digest)
    }

    func hashed(_ hash: RunningHash, to end: Int64) async -> Result<RunningHash, DeliveryError> {
        do throws(DeliveryError) {
            let source = try source
            return .success(try await DeliveryError.onTransfer(await hash.advanced(to: end, of: source, on: hashing)))
        } catch {
            return .failure(error)
        }
    }

    /// The server holds other bytes under our name. A file that it filed wrongly is deleted, so that the next attempt
    /// can start anew; an earlier one stays.
    private func mismatch(_ reply: GigHiveReply, _ digest: Digest) async throws(DeliveryError) -> DeliveryError {
        let what = "\(name.display): the server's SHA-256 is \(reply.checksum ?? "missing"), the file's \(digest.hex)"
        if reply.isDuplicate {
            return DeliveryError(.giveUp, .conflict, "\(what); it refused the file as one that it has")
        }
        if let asset = reply.assetID, let token = reply.deleteToken {
            do throws(DeliveryError) {
                try await api.delete(asset: asset, token: token)
            } catch {
                // While the server may still accept the token, its only copy stays, with the checksum to compare; the
                // next attempt starts here again.
                guard error.verdict == .giveUp else {
                    var notes = GigHiveNotes([:])
                    notes.sent = digest
                    await attempt.checkpoint.putPersistently(notes.sentNote)
                    throw error
                }
            }
        }
        try await attempt.checkpoint.replace([CheckpointName.mayBeVisible: []])
        // Other bytes are more likely a write to the file than damage.
        try checkSource()
        return DeliveryError(.retry(after: nil), .corrupted, "\(what); the bytes were damaged on the way")
    }

    private func asset(_ reply: GigHiveReply) -> HTTPURL? {
        reply.assetID.map { api.settings.url.appending(path: "api/uploads/\($0)") }
    }
}

extension FileName {
    var display: String { DisplayText.escape(bytes) }
}

/// A delivery to GigHive in its checkpoint.
struct GigHiveNotes: Sendable, Equatable {
    /// The running tus upload; its URL follows from the destination's.
    var upload: String?
    /// Bytes of it that the server has acknowledged.
    var offset: Int64 = 0
    /// The file's checksum, once all bytes were sent: from then on the server may have filed it.
    var sent: Digest?
    /// How long finalizing was postponed because the server was not ready, in milliseconds.
    var waited: Int64 = 0
    var tries = 0
    /// How often in a row the server reported the sent bytes as missing.
    var missing = 0
    /// Set when the bytes were sent again because of that.
    var isSecond = false
    /// `transport: auto` found a form to be too large.
    var needsTus = false
    /// A request was sent that may have filed the file.
    var mayBeVisible = false
    /// When we gave up on a server that never became ready. The upload stays for `keptWhenStuck`, so that a retry in
    /// that time need not send it again.
    var stuckSince: WallTime?
    /// The server's record; the file is there.
    var reply: GigHiveReply?

    /// Shorter than the attempts to drop an abandoned upload last: the server itself never forgets one.
    static let keptWhenStuck = Duration.seconds(40 * 60)

    init(_ entries: [String: [UInt8]]) {
        // Another agent's note names nothing but an upload.
        upload = entries["upload"].flatMap(Self.text).flatMap { Tus.isID($0) ? $0 : nil }
        offset = entries["offset"].flatMap(Self.text).flatMap { Int64($0) } ?? 0
        sent = entries["sent"].flatMap(Self.text).flatMap { Digest(.sha256, hex: $0) }
        isSecond = entries["second"] != nil
        needsTus = entries["transport"] != nil
        mayBeVisible = entries[CheckpointName.mayBeVisible] != nil
        reply = JSON.note(entries[GigHiveReply.noteName])
        // There is nothing to finalize.
        if upload == nil, reply == nil { sent = nil }
        guard let progress = JSON.object(entries["finalize"]), let waited = progress["waited"]?.integer,
            let tries = progress["tries"]?.integer, let missing = progress["missing"]?.integer
        else { return }
        self.waited = Self.clamped(waited)
        (self.tries, self.missing) = (Int(Self.clamped(tries)), Int(Self.clamped(missing)))
        stuckSince = progress["stuckSince"]?.integer.map { WallTime(milliseconds: $0) }
    }

    var uploadNote: [String: [UInt8]] { ["upload": Array((upload ?? "").utf8)] }
    var offsetNote: [String: [UInt8]] { ["offset": Array(String(offset).utf8)] }
    /// From here on the server may file it.
    var sentNote: [String: [UInt8]] {
        ["sent": Array((sent?.hex ?? "").utf8), CheckpointName.mayBeVisible: []]
    }

    var finalizeNote: [String: [UInt8]] {
        let progress = JSONValue.members([
            "waited": .number(String(waited)), "tries": JSONValue(tries), "missing": JSONValue(missing),
            "stuckSince": stuckSince.map { .number(String($0.milliseconds)) },
        ])
        return ["finalize": progress.bytes]
    }

    /// Notes that outlive an upload that starts anew.
    var lasting: [String: [UInt8]] {
        var notes: [String: [UInt8]] = [:]
        if isSecond { notes["second"] = [] }
        if needsTus { notes["transport"] = Array("tus".utf8) }
        if mayBeVisible { notes[CheckpointName.mayBeVisible] = [] }
        return notes
    }

    /// The notes with which another agent continues. The server tells it the offset. The answer's tokens stay here,
    /// because they delete the file: one that this agent had filed, and another one reports, cannot be taken back.
    var handedOver: [String: [UInt8]] {
        var (notes, progress) = (lasting, self)
        progress.stuckSince = nil
        if upload != nil { notes.merge(uploadNote) { $1 } }
        if sent != nil { notes.merge(sentNote) { $1 } }
        if (waited, tries, missing) != (0, 0, 0) { notes.merge(progress.finalizeNote) { $1 } }
        if var reply {
            (reply.deleteToken, reply.statusNonce) = (nil, nil)
            notes[GigHiveReply.noteName] = JSON.note(of: reply)
        }
        return notes
    }

    /// Other agents' numbers may be anything.
    private static func clamped(_ number: Int64) -> Int64 { min(max(0, number), 1 << 40) }

    /// Starts anew: nothing of the upload is remembered.
    mutating func forgetUpload() { self = GigHiveNotes(lasting) }

    private static func text(_ bytes: [UInt8]) -> String? { String(validating: bytes, as: UTF8.self) }
}
