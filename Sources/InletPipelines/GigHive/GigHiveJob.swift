internal import InletCore
internal import InletLinux
internal import InletTransfer
internal import SystemPackage

/// One attempt at one file: what both transports share.
struct GigHiveJob: Sendable {
    let api: GigHiveAPI
    let path: FilePath
    /// nil when nothing is at the path any more.
    let opened: SourceFile?
    let order: DeliveryOrder
    let attempt: Attempt
    let fields: GigHiveFields
    /// Where SHA-256s are computed, beside the sockets' threads.
    let hashing: BlockingPool

    var size: Int64 { order.source.size }
    var name: FileName { FileName(path) }
    var mediaType: String { GigHiveMedia.declaredType(name.plainExtension, mediaType: order.mediaType) }

    var source: SourceFile {
        get throws(DeliveryError) {
            guard let opened else {
                throw DeliveryError(.sourceGone, .sourceGone, "\(path.display): removed before it was delivered")
            }
            return opened
        }
    }

    /// Whether the source is still what was admitted. - Throws: as `SourceGuard.check`.
    func checkSource() throws(DeliveryError) { try SourceGuard.check(source, order) }

    /// Takes the server's word that it has a file: into the checkpoint first, then it is read.
    ///
    /// - Throws: `.badAnswer` when it cannot be understood; asking once more then tells.
    func accept(_ response: HTTPResponse, _ request: HTTPRequest) async throws(DeliveryError) -> GigHiveReply {
        let label = "\(request.method) \(request.url.redacted)"
        guard let reply = GigHiveReply(response, request: label) else {
            throw GigHiveVerdict.done.error(response, label)
        }
        // A duplicate gives nothing that is not there the next time, and may be another file than ours.
        if !reply.isDuplicate {
            var notes = GigHiveNotes([:])
            notes.reply = reply
            await attempt.checkpoint.putPersistently(notes.replyNote)
        }
        return reply
    }

    /// The proof, if the server's checksum is that of the file.
    func proof(_ reply: GigHiveReply, _ digest: Digest) async throws(DeliveryError) -> Proof {
        guard reply.checksum == digest.hex else { throw try await mismatch(reply, digest) }
        return reply.proof(order, digest: digest, asset: asset(reply))
    }

    /// The proof of a file that was filed by an attempt that did not live to say so.
    func proof(ofEarlier reply: GigHiveReply, sent: Digest?) async throws(DeliveryError) -> Proof {
        if let sent { return try await proof(reply, sent) }
        do throws(DeliveryError) {
            try checkSource()
        } catch {
            // What was admitted has arrived, and cannot be compared any more.
            return reply.proof(order, digest: nil, asset: asset(reply))
        }
        return try await proof(reply, try await hashed(RunningHash(), to: size).get().digest)
    }

    func hashed(_ hash: RunningHash, to end: Int64) async -> Result<RunningHash, DeliveryError> {
        await Result(of: try await advanced(hash, to: end))
    }

    private func advanced(_ hash: RunningHash, to end: Int64) async throws(DeliveryError) -> RunningHash {
        let source = try source
        return try await DeliveryError.onTransfer(await hash.advanced(to: end, of: source, on: hashing))
    }

    /// The server holds other bytes under our name: what it filed wrongly is deleted, so that the next attempt can begin
    /// anew; what was there before stays.
    private func mismatch(_ reply: GigHiveReply, _ digest: Digest) async throws(DeliveryError) -> DeliveryError {
        let what = "\(name.display): the server's SHA-256 is \(reply.checksum ?? "missing"), the file's \(digest.hex)"
        if reply.isDuplicate {
            return DeliveryError(.giveUp, .conflict, "\(what); it refused the file as one that it has")
        }
        if let asset = reply.assetID, let token = reply.deleteToken {
            do throws(DeliveryError) {
                try await api.delete(asset: asset, token: token)
            } catch {
                // While the server may still take the token, its only copy stays, and with it what it has to be compared
                // with; the next attempt begins here again.
                guard error.verdict == .giveUp else {
                    var notes = GigHiveNotes([:])
                    notes.sent = digest
                    await attempt.checkpoint.putPersistently(notes.sentNote)
                    throw error
                }
            }
        }
        try await attempt.checkpoint.replace(with: [CheckpointNote.mayBeVisible: []])
        // A file that was written to explains other bytes better than damage does.
        try checkSource()
        return DeliveryError(.retry(after: nil), .corrupted, "\(what); the bytes were damaged on the way")
    }

    private func asset(_ reply: GigHiveReply) -> HTTPURL? {
        reply.assetID.map { api.settings.url.appending(path: "api/uploads/\($0)") }
    }
}

extension FileName {
    /// The name as a person may see it.
    var display: String { DisplayText.escape(bytes) }
}
