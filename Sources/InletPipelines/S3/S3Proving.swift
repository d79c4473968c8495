package import InletCore
internal import InletLinux
internal import InletTransfer
internal import Synchronization

/// How the bytes of one delivery are proved: as `verify` says, or for `auto` as the store was seen to do. An open upload
/// continues as it was opened.
struct S3Proving: Sendable, Equatable {
    /// Never `auto`.
    var verify: S3Settings.Verify
    /// When the store was asked; nil where the configuration decides.
    var learnedAt: WallTime?

    /// The checksum that travels with the bytes.
    var algorithm: Digest.Algorithm? { verify.algorithm }

    /// Whether the store compares one checksum of the whole object, combined from those of its parts. A configured
    /// `crc32c` leaves that to the store: some compare it with single parts only.
    var isOfWhole: Bool { verify == .crc64nvme || verify == .crc32c && learnedAt != nil }

    init(_ verify: S3Settings.Verify) { self.verify = verify }

    init(_ learned: StoreChecksum) {
        self.init(UploadChecksum(algorithm: learned.algorithm, learnedAt: learned.learnedAt))
    }

    init(_ opened: UploadChecksum) {
        verify = S3Settings.Verify(rawValue: opened.algorithm.rawValue) ?? .md5
        learnedAt = opened.learnedAt
    }

    /// For the note of an open upload.
    var checksum: UploadChecksum? { algorithm.map { UploadChecksum(algorithm: $0, learnedAt: learnedAt) } }

    /// The fields about it in the request that opens an upload.
    var opening: HTTPFields {
        guard let algorithm else { return [] }
        return [("x-amz-checksum-algorithm", algorithm.nameInS3)] + (isOfWhole ? [Self.wholeType] : [])
    }

    static let wholeType: (name: String, value: String) = ("x-amz-checksum-type", "FULL_OBJECT")

    /// How slices are proved: over plain HTTP also with the SHA-256 that the signature covers.
    func slices(isEncrypted: Bool) -> SliceProof {
        let signed: Set<Digest.Algorithm> = isEncrypted ? [] : [.sha256]
        guard let algorithm else { return SliceProof(kind: verify == .size ? .size : .md5, ahead: signed) }
        return SliceProof(kind: .checksum, ahead: signed.union([algorithm]))
    }
}

/// The checksums that stores were seen to compare: asked once for each address, then kept in memory and in the journal.
package final class StoreChecksums: Sendable {
    private enum Known {
        case learned(StoreChecksum)
        /// The store has refused it since; what the journal says no longer counts.
        case refused
    }

    private let known = Mutex<[String: Known]>([:])
    private let memory = Mutex<(any StoreChecksumMemory)?>(nil)

    package init() {}

    /// Uses the journal from now on.
    package func use(_ memory: any StoreChecksumMemory) { self.memory.withLock { $0 = memory } }

    /// The checksum of the store at `address`. Asks the store where none is known, or one that is too old; deliveries
    /// that begin together ask once.
    func learned(
        at address: String, now: @autoclosure () -> WallTime = .now,
        ask: () async throws(DeliveryError) -> S3ChecksumTrial.Result
    ) async throws(DeliveryError) -> StoreChecksum {
        if let checksum = valid(at: address, now()) { return checksum }
        return try await KeyedMutex.shared.alone("checksum:\(address)") { () async throws(DeliveryError) in
            // Another has learned it since.
            if let checksum = valid(at: address, now()) { return checksum }
            if let checksum = await kept(at: address), checksum.isValid(at: now()) {
                known.withLock { $0[address] = .learned(checksum) }
                return checksum
            }
            let result = try await ask()
            await keep(result, at: address)
            return result.checksum
        }
    }

    /// The answer of a store that let itself be asked also counts for the next process.
    func keep(_ result: S3ChecksumTrial.Result, at address: String) async {
        known.withLock { $0[address] = .learned(result.checksum) }
        guard !result.isForbidden, let memory = memory.withLock(\.self) else { return }
        // Otherwise the next process asks again; the journal's monitor reports a disk that does not write.
        await bestEffort(try await memory.keep(result.checksum, at: address))
    }

    /// The store no longer does what was learned then: the next delivery asks again.
    func forget(at address: String, learnedAt: WallTime) {
        known.withLock { known in
            guard case .learned(let checksum) = known[address], checksum.learnedAt == learnedAt else { return }
            known[address] = .refused
        }
    }

    /// The checksum of the store at `address`, where this process knows it.
    func valid(at address: String, _ now: WallTime = .now) -> StoreChecksum? {
        guard case .learned(let checksum) = known.withLock({ $0[address] }), checksum.isValid(at: now) else {
            return nil
        }
        return checksum
    }

    private func kept(at address: String) async -> StoreChecksum? {
        guard known.withLock({ $0[address] }) == nil, let memory = memory.withLock(\.self) else { return nil }
        // A checksum that cannot be read is learned again.
        return (try? await memory.storeChecksum(at: address)) ?? nil
    }
}

/// One store's place among `StoreChecksums`.
struct S3StoreKnowledge: Sendable {
    let checksums: StoreChecksums
    let address: String

    func forget(_ proving: S3Proving) {
        if let time = proving.learnedAt { checksums.forget(at: address, learnedAt: time) }
    }

    /// An error after which a store that was seen to compare a checksum is asked again. The upload that was opened with
    /// it does not continue.
    func reconsidered(_ error: DeliveryError, _ proving: S3Proving) -> DeliveryError {
        let words = error.reason.split(separator: " was answered with ", maxSplits: 1).last?.lowercased() ?? ""
        guard proving.learnedAt != nil, proving.algorithm != nil, error.code == .badRequest,
            words.contains("checksum") || words.hasPrefix("501")
        else { return error }
        forget(proving)
        return DeliveryError(
            .retry(after: nil), .uploadGone,
            "\(error.reason); the store compared this checksum before, so the next attempt asks it again (verify: auto)"
        )
    }
}
