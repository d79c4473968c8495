internal import InletCore
internal import InletTransfer

extension PartSender {
    /// Sends the whole file in one request that makes the object.
    ///
    /// Hashes before it sends: the object is visible once the store has the last byte, and what changes between then and the
    /// end of a later hashing would look like damage. A store that is told the MD5 refuses damage before that.
    ///
    /// - Parameters:
    ///   - location: where people find the object.
    ///   - target: asked for after the hashing, so that a URL's life is spent on sending.
    func sendWhole(
        at location: String?, to target: () async throws(DeliveryError) -> any SliceTarget
    ) async throws(DeliveryError) -> Proof {
        let whole = 0..<order.source.size
        let known = try await sums(proof.kind == .md5 ? proof.ahead.union(.md5) : proof.ahead, whole)
        let target = try await target()
        let part: UploadRecord.ProvedPart
        do throws(DeliveryError) {
            part = try await send(
                whole, to: target, what: "\(order.key) (\(ByteText.format(order.source.size)))", known: known)
        } catch {
            // Its answer may be all that was lost. What a crash hides is known by the interrupted attempt.
            if mayHaveArrived, error.code != .destinationExists {
                await attempt.checkpoint.putPersistently([CheckpointNote.mayBeVisible: []])
            }
            throw error
        }
        let digest = part.md5.flatMap { Digest(.md5, hex: $0) } ?? part.checksum
        // A CRC is too short to tell a touched file's content by.
        let content = digest.flatMap { $0.algorithm == .crc32c ? nil : ContentHash(digest: $0, partSize: nil) }
        let method: Proof.Method = part.md5 != nil ? .md5Parts : part.checksum != nil ? .checksum : .size
        return Proof(
            key: order.key, size: order.source.size, method: method, content: content, etag: ETagJudge.bare(part.etag),
            url: location)
    }
}
