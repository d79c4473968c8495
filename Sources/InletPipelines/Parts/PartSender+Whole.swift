internal import InletCore
internal import InletLinux
internal import InletTransfer

extension PartSender {
    /// Sends the whole file in one request that makes the object.
    ///
    /// Hashes before it sends: the object is visible once the store has the last byte, and what changes between then and the
    /// end of a later hashing would look like damage. A store that is told the MD5 refuses damage before that.
    ///
    /// - Parameters:
    ///   - location: where people find the object.
    ///   - target: asked for after the hashing and the waiting, so that a URL's life is spent on sending.
    func sendWhole(
        at location: String?, to target: () async throws(DeliveryError) -> any SliceTarget
    ) async throws(DeliveryError) -> Proof {
        let whole = 0..<order.source.size
        let kinds = proof.kind == .md5 ? proof.ahead.union(.md5) : proof.ahead
        let content = try smallContent()
        let known = if let content { SliceHasher.sums(kinds, of: content) } else { try await sums(kinds, whole) }
        let part: UploadRecord.ProvedPart
        do throws(DeliveryError) {
            part = try await lane.carry(order.source.size, of: order.id, isStopping: attempt.isStopping) {
                () async throws(DeliveryError) in
                let target = try await target()
                return try await send(
                    whole, to: target, what: "\(order.key) (\(ByteText.format(order.source.size)))", known: known,
                    content: content)
            }
        } catch {
            // Its answer may be all that was lost. What a crash hides is known by the interrupted attempt.
            if mayHaveArrived, error.code != .destinationExists {
                await attempt.checkpoint.putPersistently([CheckpointNote.mayBeVisible: []])
            }
            throw error
        }
        let digest = part.md5.flatMap { Digest(.md5, hex: $0) } ?? part.checksum
        // A CRC is too short to tell a touched file's content by.
        let hash = digest.flatMap { $0.algorithm == .crc32c ? nil : ContentHash(digest: $0, partSize: nil) }
        let method: Proof.Method = part.md5 != nil ? .md5Parts : part.checksum != nil ? .checksum : .size
        return Proof(
            key: order.key, size: order.source.size, method: method, content: hash, etag: ETagJudge.bare(part.etag),
            url: location)
    }

    /// Files up to this size are read once, hashed and sent from memory: a few system calls instead of many.
    private static let smallest = 64 << 10

    /// The whole file, as it was admitted; nil for one that is not small. Blocks for one read.
    private func smallContent() throws(DeliveryError) -> [UInt8]? {
        guard order.source.size <= Self.smallest else { return nil }
        let content: [UInt8]
        do {
            content = try source.content(of: Int(order.source.size))
        } catch {
            throw DeliveryError(reading: error)
        }
        // After the reading: what was read is what was admitted.
        try SourceGuard.check(source, order)
        guard content.count == order.source.size else {
            throw DeliveryError(
                .sourceChanged, .sourceChanged, "\(source.path.display): it was changed while it was read")
        }
        return content
    }
}
