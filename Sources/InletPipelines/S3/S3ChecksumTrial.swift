internal import FoundationEssentials
internal import InletCore
internal import InletLinux
internal import InletTransfer

/// Finds the cheapest checksum that a store compares and confirms, with tiny objects below `.inlet-check/`. The store
/// must confirm a right one and refuse a wrong one, for an object and for a part.
///
/// It begins by deleting what is not there: keys that may not delete leave nothing behind.
struct S3ChecksumTrial: Sendable {
    struct Result: Sendable {
        var checksum: StoreChecksum
        /// These keys may not try it; then the ETag counts.
        var isForbidden = false
        /// Objects that could not be removed, and why.
        var left: [(key: String, why: String)] = []
    }

    static let folder = ".inlet-check/"
    /// From cheap to expensive.
    static let algorithms: [Digest.Algorithm] = [.crc64nvme, .crc32c, .sha256]

    private let api: S3API
    private let name = folder + [UInt8].unforeseeable(8).hex
    private let content = Array("inlet check\n".utf8)
    private var right: String { name + "-right" }
    private var parts: String { name + "-parts" }
    /// Objects that may be there.
    private var made: [String] = []

    init(_ api: S3API) { self.api = api }

    private func wrong(_ algorithm: Digest.Algorithm) -> String { "\(name)-wrong-\(algorithm.rawValue)" }

    /// - Throws: where the store does not answer now, and where neither a checksum nor an ETag proves anything.
    mutating func run(at now: WallTime = .now) async throws(DeliveryError) -> Result {
        let (api, right) = (api, right)
        if try await Self.isForbidden({ () async throws(DeliveryError) in try await api.delete(right) }) {
            return Result(checksum: StoreChecksum(.md5, learnedAt: now), isForbidden: true)
        }
        var result: Result
        do throws(DeliveryError) {
            result = try await tries(at: now)
        } catch {
            _ = await remove()
            throw error
        }
        result.left = await remove()
        return result
    }

    private mutating func tries(at now: WallTime) async throws(DeliveryError) -> Result {
        var uncompared: [Digest.Algorithm] = []
        for algorithm in Self.algorithms {
            switch try await verdict(on: algorithm, now) {
            case .compared: return Result(checksum: StoreChecksum(algorithm, uncompared: uncompared, learnedAt: now))
            case .uncompared: uncompared.append(algorithm)
            case .unconfirmed: break
            case .forbidden: return Result(checksum: StoreChecksum(.md5, learnedAt: now), isForbidden: true)
            }
        }
        // A failure here would fail every file.
        let md5 = Checksum.md5(content)
        let answer = try await api.send(put(right, md5), "putting \(api.url(right).redacted)")
        guard ETagVerifier.bare(answer.header("ETag") ?? "") == md5.hex else { throw Self.provesNothing(api) }
        return Result(checksum: StoreChecksum(.md5, uncompared: uncompared, learnedAt: now))
    }

    private enum Verdict {
        case compared
        /// Confirmed, although it was wrong.
        case uncompared
        /// Refused, ignored, or not the same with parts.
        case unconfirmed
        case forbidden
    }

    private mutating func verdict(
        on algorithm: Digest.Algorithm, _ now: WallTime
    ) async throws(DeliveryError) -> Verdict {
        guard let sum = SliceHasher.sums([algorithm], of: content)[algorithm] else { return .unconfirmed }
        var other = sum
        other.bytes[0] ^= 0xFF
        if !made.contains(parts) { made.append(parts) }
        let (api, wrong) = (api, wrong(algorithm))
        let calls = (put(right, sum), put(wrong, other))
        // Side by side, as far as one answer does not decide about the next question: the first delivery waits for this.
        async let refusal = Swift.Result<_, DeliveryError>(of: try await Self.tried(calls.1, api))
        var answer: HTTPResponse?
        let isForbidden = try await Self.isForbidden { () async throws(DeliveryError) in
            answer = try await Self.tried(calls.0, api)
        }
        let said = await refusal
        if isForbidden { return .forbidden }
        guard let answer, S3API.checksum(algorithm, of: answer) == sum else { return .unconfirmed }
        if let answer = try said.get() {
            return S3API.checksum(algorithm, of: answer) == nil ? .unconfirmed : .uncompared
        }
        async let absence = Swift.Result<_, DeliveryError>(of: try await isAbsent(wrong))
        let parts = await Swift.Result<_, DeliveryError>(of: try await comparesParts(algorithm, sum, other, now))
        guard let isAbsent = try await absence.get() else { return .forbidden }
        guard isAbsent else { return .unconfirmed }
        return try parts.get()
    }

    /// Whether the refused object is not there; nil for keys that may not read, and cannot tell.
    private func isAbsent(_ key: String) async throws(DeliveryError) -> Bool? {
        do throws(DeliveryError) {
            return try await api.head(key) == nil
        } catch {
            guard error.isDenied else { throw error }
            // Where keys may not list, missing objects are denied too.
            return try await api.look(right).map { _ in true }
        }
    }

    /// The same with an upload in parts, as large files are sent.
    private func comparesParts(
        _ algorithm: Digest.Algorithm, _ sum: Digest, _ other: Digest, _ now: WallTime
    ) async throws(DeliveryError) -> Verdict {
        let size = Int64(content.count)
        let order = DeliveryOrder(
            id: 0, destination: "", key: parts, mediaType: "text/plain", fields: [:],
            source: FileIdentity(size: size, modified: 0, changed: 0, inode: 0, device: 0))
        let store = S3Store(api: api, order: order, proving: S3Proving(StoreChecksum(algorithm, learnedAt: now)))
        let plan = PartPlan(fileSize: size, configured: PartPlan.smallestSize)
        let opened = try await Self.tolerated { () async throws(DeliveryError) in try await store.open(order, plan) }
        guard let upload = opened else { return .unconfirmed }
        var verdict = Verdict.unconfirmed
        do throws(DeliveryError) {
            let (api, calls) = (api, (call(parts, sum, part: (1, upload)), call(parts, other, part: (2, upload))))
            async let refusal = Swift.Result<_, DeliveryError>(of: try await Self.tried(calls.1, api))
            let answer = await Swift.Result<_, DeliveryError>(of: try await Self.tried(calls.0, api))
            if let answer = try await refusal.get() {
                verdict = S3API.checksum(algorithm, of: answer) == nil ? .unconfirmed : .uncompared
            } else if let answer = try answer.get(), S3API.checksum(algorithm, of: answer) == sum,
                let etag = answer.header("ETag")
            {
                var record = UploadRecord(upload: upload, plan: plan)
                record.parts[1] = UploadRecord.VerifiedPart(etag: etag, checksum: sum)
                let whole = record
                let composed = try await Self.tolerated { () async throws(DeliveryError) in
                    try await store.complete(whole)
                }
                if composed != nil { return .compared }
            }
        } catch {
            // The reason for stopping is thrown; a store expires open uploads.
            await bestEffort(try await api.abort(id: upload.id, key: parts))
            throw error
        }
        // As above.
        await bestEffort(try await api.abort(id: upload.id, key: parts))
        return verdict
    }

    private mutating func put(_ key: String, _ sum: Digest) -> S3API.Call {
        if !made.contains(key) { made.append(key) }
        return call(key, sum)
    }

    private func call(_ key: String, _ sum: Digest, part: (number: Int, of: OpenUpload)? = nil) -> S3API.Call {
        var headers = part == nil ? [("Content-Type", "text/plain")] + api.settings.objectHeaders : []
        // As files are sent: with object lock, stores insist on a checksum that they know.
        let name = sum.algorithm == .md5 ? "Content-MD5" : sum.algorithm.fieldInS3
        headers.append((name, Data(sum.bytes).base64EncodedString()))
        let query: S3API.Query = part.map { [("partNumber", "\($0.number)"), ("uploadId", $0.of.id)] } ?? []
        return S3API.Call(method: "PUT", key: key, query: query, headers: headers, body: .bytes(content))
    }

    /// nil where the store refuses the request's content.
    private static func tried(_ call: S3API.Call, _ api: S3API) async throws(DeliveryError) -> HTTPResponse? {
        try await tolerated { () async throws(DeliveryError) in
            try await api.send(call, "trying a checksum at \(api.url(call.key).redacted)")
        }
    }

    /// nil for refusals of a checksum, right or wrong.
    private static func tolerated<Value>(
        _ call: () async throws(DeliveryError) -> Value
    ) async throws(DeliveryError) -> Value? {
        do throws(DeliveryError) {
            return try await call()
        } catch {
            let refusals: [ErrorCode] = [.digestMismatch, .badRequest, .corrupted, .uploadGone]
            guard refusals.contains(error.code) else { throw error }
            return nil
        }
    }

    /// Whether these keys, or this store, do not allow the call at all.
    private static func isForbidden(
        _ call: () async throws(DeliveryError) -> Void
    ) async throws(DeliveryError) -> Bool {
        do throws(DeliveryError) {
            try await call()
            return false
        } catch {
            if error.code == .notFound, error.verdict == .retry(after: nil) { return false }
            guard error.isDenied || error.code == .badRequest else { throw error }
            return true
        }
    }

    /// Removes the objects. - Returns: those that stay, with the store's words: object lock may hold them.
    private func remove() async -> [(key: String, why: String)] {
        await withTaskGroup(of: (key: String, why: String)?.self) { group in
            for key in made {
                group.addTask {
                    do throws(DeliveryError) {
                        try await DeliveryError.ignoring(.notFound, in: await api.delete(key))
                    } catch {
                        if await isThere(key) { return (key, error.reason) }
                    }
                    return nil
                }
            }
            return await group.reduce(into: []) { left, one in if let one { left.append(one) } }
        }
    }

    /// An object of which the store does not tell may be there.
    private func isThere(_ key: String) async -> Bool {
        do { return try await api.head(key) != nil } catch { return true }
    }

    private static func provesNothing(_ api: S3API) -> DeliveryError {
        DeliveryError(
            .giveUp, .foreignETag,
            "\(api.settings.base.redacted) compares no checksum that Inlet knows, and its ETags are not MD5; "
                + "to compare lengths only, set 'verify: size' on this destination",
            heard: StepFailure(200, .refusal))
    }
}

extension S3ChecksumTrial.Result {
    /// The lines of `inlet check`.
    var findings: [SettingFinding] {
        let checksum = checksum
        func name(_ algorithm: Digest.Algorithm) -> String {
            switch algorithm {
            case .crc64nvme: "CRC-64/NVME"
            case .crc32c: "CRC-32C"
            default: algorithm.rawValue.uppercased()
            }
        }
        var findings: [SettingFinding] = checksum.uncompared.map {
            (true, "the store confirms a wrong \(name($0)): it does not compare it, and Inlet does not rely on it")
        }
        if isForbidden {
            let path = S3ChecksumTrial.folder
            findings.append(
                (
                    true,
                    "verify: auto compares the MD5 of ETags: these keys may not put, read and delete objects below \(path); "
                        + "where they may, Inlet finds a cheaper checksum"
                ))
        } else if checksum.algorithm == .md5 {
            findings.append((true, "verify: auto compares the MD5 of ETags: the store compares no other checksum"))
        } else {
            let words = "the store confirmed a right \(name(checksum.algorithm)) and refused a wrong one"
            findings.append((true, "verify: auto uses \(checksum.algorithm.rawValue): \(words)"))
        }
        return findings
            + left.map { key, why in (false, "the test object \(key) stays in the bucket: \(why); remove it by hand") }
    }
}
