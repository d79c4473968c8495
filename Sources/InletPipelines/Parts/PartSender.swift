internal import InletCore
internal import InletLinux
internal import InletTransfer

/// Sends one slice of a file until the store has proved it, in up to five tries.
struct PartSender: Sendable {
    let client: HTTPClient
    let source: SourceFile
    let order: DeliveryOrder
    let attempt: Attempt
    /// Shared by all files of the destination.
    let hashing: HashLanes
    /// Shared by the destination's large bodies.
    let lane: UploadLane
    let proof: SliceProof

    /// - Parameters:
    ///   - what: the slice's name in errors, such as `part 3 of 12`.
    ///   - sums: those that are known of `sumsAhead`; where the MD5 is missing, it is computed while sending.
    ///   - content: the slice itself, if it has already been read.
    ///   - first: the answer to a request that sent the slice already.
    func send(
        _ range: Range<Int64>, to target: any SliceTarget, what: @autoclosure () -> String, _ sums: SliceSums,
        content: [UInt8]? = nil, continuing first: FirstAnswer? = nil
    ) async throws(DeliveryError) -> UploadRecord.VerifiedPart {
        var judge = ETagVerifier()
        var failed = 0
        var isDamaged = false
        while true {
            let began = ContinuousClock.now
            do throws(DeliveryError) {
                let body = content.map { .bytes($0) } ?? slice(range)
                let claim = try await put(body, range, target, what, sums, first)
                let judgement = judge.judge(claim.said, against: claim.wanted)
                if judgement == .proved { return claim.part }
                attempt.meter.add(range.lowerBound - range.upperBound)
                // Other bytes are more likely a write to the file than damage.
                try source.requireUnchanged(since: order)
                // Where one request makes the object, the next would mistake it for another's.
                if judgement != .sendAgain || target.isOnce {
                    let mayBeForeign = judgement != .corrupted && claim.wanted?.algorithm == .md5
                    throw mayBeForeign ? notMD5(what(), target) : Self.corrupted(what(), target)
                }
                isDamaged = true
            } catch {
                failed += 1
                // A store that writes parts as they come (rclone) has kept the damage, and takes the part no second time.
                if isDamaged, error.code == .badRequest { throw Self.corrupted(what(), target) }
                isDamaged = isDamaged || error.code == .digestMismatch
                if error.code == .throttled { lane.refused(since: began) }
                try await Retrying.pauseSending(after: failed, error, attempt, final: Self.isFinal) {
                    () throws(DeliveryError) in try source.requireUnchanged(since: order)
                }
            }
        }
    }

    /// The checksums that a slice's request must state, and the MD5 with them where it costs no extra pass.
    func sumsAhead(_ range: Range<Int64>) async throws(DeliveryError) -> SliceSums {
        if proof.ahead.isEmpty { return [:] }
        return try await sums(proof.kind == .md5 ? proof.ahead.union([.md5]) : proof.ahead, range)
    }

    /// Reads the file only where something is required.
    func sums(_ kinds: Set<Digest.Algorithm>, _ range: Range<Int64>) async throws(DeliveryError) -> SliceSums {
        if kinds.isEmpty { return [:] }
        return try await DeliveryError.onTransfer(
            await hashing.sums(
                kinds, of: source, offset: range.lowerBound, length: range.upperBound - range.lowerBound))
    }

    /// The checksum in an answer, and the expected one, which is nil where any will do.
    private typealias Claim = (said: String, wanted: Digest?, part: UploadRecord.VerifiedPart)

    private func slice(_ range: Range<Int64>) -> HTTPBody {
        let length = range.upperBound - range.lowerBound
        source.adviseSequential(offset: range.lowerBound, length: length)
        return .slice(source, offset: range.lowerBound, length: length)
    }

    /// Reads the beginning of a slice in its disk's turns; whoever hashed it has done so already.
    private func readAhead(_ range: Range<Int64>) async {
        guard source.hasTurns else { return }
        let pool = hashing.pool.branch(source.opened.device)
        let most = min(range.count, Self.mostAhead)
        for offset in stride(from: range.lowerBound, to: range.lowerBound + Int64(most), by: Int(SourceFile.turnLength))
        {
            if Task.isCancelled { return }
            await pool.run { source.takeTurn(offset: offset, length: range.upperBound - offset) }
        }
    }

    /// The page cache of a small machine has room for as much, four times at once.
    private static let mostAhead = 64 << 20

    /// Sends the slice and, where needed, hashes it at the same time: the two readers share the page cache.
    private func put(
        _ body: HTTPBody, _ range: Range<Int64>, _ target: any SliceTarget, _ what: () -> String, _ sums: SliceSums,
        _ first: FirstAnswer?
    ) async throws(DeliveryError) -> Claim {
        await client.untilOpen()
        if sums.isEmpty { await readAhead(range) }
        if let first = first?.take(of: target.address) {
            let answer = try first.get()
            if answer.isSuccess { attempt.meter.add(body.length) }
            return try await claim(answer, range, target, what, sums, nil)
        }
        let request = try target.request(body, sums)
        guard proof.kind == .md5, sums[.md5] == nil else {
            let answer = try await client.exchange(request, meter: attempt.meter)
            return try await claim(answer, range, target, what, sums, nil)
        }
        // A failed send ends the scope, and with it the hashing.
        async let hashed = Result<_, DeliveryError>(of: try await self.sums([.md5], range))
        let answer = try await client.exchange(request, meter: attempt.meter)
        return try await claim(answer, range, target, what, sums, await hashed)
    }

    /// The verdict on a slice's answer.
    /// - Parameter hashed: the slice's own MD5, where it was computed meanwhile.
    private func claim(
        _ answer: HTTPResponse, _ range: Range<Int64>, _ target: any SliceTarget, _ what: () -> String,
        _ sums: SliceSums, _ hashed: Result<SliceSums, DeliveryError>?
    ) async throws(DeliveryError) -> Claim {
        guard answer.isSuccess else { throw target.refusal(answer, what()) }
        guard let etag = answer.header("ETag"), !ETagVerifier.bare(etag).isEmpty else {
            attempt.meter.add(range.lowerBound - range.upperBound)
            throw DeliveryError(
                .retry(after: nil), .missingETag,
                "\(what()): \(target.address) answered \(answer.status) without an ETag",
                heard: StepFailure(answer.status, .foreign))
        }
        if let said = target.confirmed(answer), let wanted = sums[said.algorithm] {
            let part = UploadRecord.VerifiedPart(etag: etag, checksum: wanted)
            return (said.hex, wanted, part)
        }
        let md5: Digest?
        if let hashed {
            md5 = try hashed.get()[.md5]
        } else {
            // A store that confirms no other checksum is judged by its tag.
            md5 = sums[.md5] == nil && proof.kind == .checksum ? try await self.sums([.md5], range)[.md5] : sums[.md5]
        }
        return (etag, md5, UploadRecord.VerifiedPart(etag: etag, md5: md5?.hex))
    }

    /// Errors that repeating the request cannot cure.
    private static let isFinal: Set<ErrorCode> = [
        .urlExpired, .uploadGone, .corrupted, .clockSkewed, .redirected, .destinationFull, .notFound,
    ]

    private static func corrupted(_ what: String, _ target: any SliceTarget) -> DeliveryError {
        let times = target.isOnce ? "" : ", twice"
        return DeliveryError(
            .retry(after: nil), .corrupted,
            "\(what): \(target.address) holds other bytes than were sent\(times); the network or the store is damaging "
                + "data")
    }

    private func notMD5(_ what: String, _ target: any SliceTarget) -> DeliveryError {
        DeliveryError(
            .giveUp, .foreignETag, "\(what): this store's ETag is not MD5 (\(target.address)); \(proof.remedy)",
            heard: StepFailure(200, .refusal))
    }

    /// Sends the whole file in one request that makes the object.
    ///
    /// Hashes before it sends: the object is visible once the store has the last byte, and a change between then and a
    /// later hash would look like damage. A store that knows the MD5 refuses damage before that.
    ///
    /// - Parameters:
    ///   - location: where people find the object.
    ///   - target: evaluated after hashing and waiting, so that a URL's life is spent on sending.
    func sendWhole(
        at location: String?, to target: () async throws(DeliveryError) -> any SliceTarget
    ) async throws(DeliveryError) -> Proof {
        let whole = 0..<order.source.size
        let kinds = proof.kind == .md5 ? proof.ahead.union([.md5]) : proof.ahead
        let content = try smallContent()
        let sums = if let content { SliceHasher.sums(kinds, of: content) } else { try await sums(kinds, whole) }
        let part: UploadRecord.VerifiedPart
        do throws(DeliveryError) {
            part = try await lane.carry(order.source.size, of: order.id, isStopping: attempt.isStopping) {
                () async throws(DeliveryError) in
                let target = try await target()
                return try await send(
                    whole, to: target, what: Self.name(of: order), sums, content: content,
                    continuing: attempt.first)
            }
        } catch {
            // Only its answer may be lost; an empty body leaves no trace in the meter. After a crash the interrupted
            // attempt tells.
            let mayHaveArrived = attempt.meter.hasStarted || order.source.size == 0
            if mayHaveArrived, error.code != .destinationExists {
                await attempt.checkpoint.putPersistently([CheckpointName.mayBeVisible: []])
            }
            throw error
        }
        return Self.proof(of: order, by: part, at: location)
    }

    /// A whole file in errors.
    static func name(of order: DeliveryOrder) -> String { "\(order.key) (\(ByteText.format(order.source.size)))" }

    /// The proof of a whole file.
    static func proof(of order: DeliveryOrder, by part: UploadRecord.VerifiedPart, at location: String?) -> Proof {
        let digest = part.md5.flatMap { Digest(.md5, hex: $0) } ?? part.checksum
        let hash = digest.flatMap { $0.algorithm.isShort ? nil : ContentHash(digest: $0, partSize: nil) }
        let method: Proof.Method = part.md5 != nil ? .md5Parts : part.checksum != nil ? .checksum : .size
        return Proof(
            key: order.key, size: order.source.size, method: method, content: hash, etag: ETagVerifier.bare(part.etag),
            url: location, details: hash == nil ? digest.map { [Proof.checksumName: $0.description] } : nil)
    }

    /// Files up to this size are read once, then hashed and sent from memory: a few system calls instead of many.
    static let smallest = 64 << 10

    /// The whole admitted file; nil for one that is not small. Blocks for one read.
    private func smallContent() throws(DeliveryError) -> [UInt8]? {
        guard order.source.size <= Self.smallest else { return nil }
        let content = try DeliveryError.onReading(source.content(of: Int(order.source.size)))
        // After the reading: the bytes read are the admitted ones.
        try source.requireUnchanged(since: order)
        guard content.count == order.source.size else {
            throw DeliveryError(
                .sourceChanged, .sourceChanged, "\(source.path.display): it was changed while it was read")
        }
        return content
    }
}

/// Judges the arrived bytes of a part by its ETag.
///
/// One foreign value may be damage in transit: the part is sent again. A different foreign value is certainly damage;
/// the same one again means that this store's ETags are not MD5.
struct ETagVerifier: Sendable {
    enum Outcome: Sendable, Equatable {
        case proved
        case sendAgain
        case corrupted
        case notMD5
    }

    private var foreign: String?

    /// - Parameters:
    ///   - said: the ETag received, or any other checksum in hexadecimal.
    ///   - wanted: the expected value; nil accepts any tag (`verify: size`).
    mutating func judge(_ said: String, against wanted: Digest?) -> Outcome {
        guard let wanted else { return .proved }
        let bare = Self.bare(said)
        if bare == wanted.hex { return .proved }
        guard let foreign else {
            self.foreign = bare
            return .sendAgain
        }
        return foreign == bare ? .notMD5 : .corrupted
    }

    /// The tag without quotes and weakness mark, its letters in lower case (RFC 9110 8.8.3).
    static func bare(_ etag: String) -> String {
        let strong = etag.utf8.dropFirst(etag.hasPrefix("W/") ? 2 : 0)
        // Called several times for every small file: one allocation.
        return String(unsafeUninitializedCapacity: strong.count) { room in
            var count = 0
            for byte in strong where byte != UInt8(ascii: "\"") {
                room[count] = (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
                count += 1
            }
            return count
        }
    }
}
