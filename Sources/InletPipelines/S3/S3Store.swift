internal import FoundationEssentials
internal import InletCore
internal import InletTransfer

/// Objects of one delivery in an S3 bucket: their description, sending and look-up.
struct S3Store: PartStore {
    let api: S3API
    /// The delivery, under its chosen key.
    let order: DeliveryOrder
    let proving: S3Proving

    private var settings: S3Settings { api.settings }

    var limits: PartLimits {
        PartLimits(
            partSize: settings.partSize, largestPart: settings.largestPart, mostParts: S3Settings.mostParts,
            parallel: settings.parallelParts, largestObject: settings.maxObjectSize,
            remedy: "send it to another destination, or in pieces; raise max_object_size where the store takes more")
    }

    var objectHeaders: HTTPFields {
        var headers: HTTPFields = []
        // Every file has such a list: it reserves room for later additions.
        headers.reserveCapacity(settings.objectHeaders.count + 3)
        headers.append(("Content-Type", order.mediaType))
        headers += settings.objectHeaders
        headers.append(("x-amz-meta-mtime", Self.modifiedText(order.source.modified)))
        return headers
    }

    /// Accepts only a new key, where the settings require it; the store decides, when it makes the object.
    var condition: HTTPFields { settings.ifExists.keepsOthers ? Self.onlyNew : [] }

    static let conditionName = "If-None-Match"
    static let onlyNew: HTTPFields = [(conditionName, "*")]

    func open(_ order: DeliveryOrder, _ plan: PartPlan) async throws(DeliveryError) -> OpenUpload {
        do throws(DeliveryError) {
            let id = try await api.create(order.key, headers: objectHeaders + proving.opening)
            return OpenUpload(id: id, key: order.key, checksum: proving.checksum)
        } catch {
            throw api.knowledge.reconsidered(error, proving)
        }
    }

    /// The store's list of parts decides. Noted parts that are gone are sent again. Parts that arrived before they were
    /// noted are not, if the file has the same bytes there; they are noted at once, so that no later attempt reads them
    /// again.
    func resume(_ old: UploadRecord, _ sender: PartSender) async throws(DeliveryError) -> UploadRecord? {
        guard old.upload.key == order.key else { return nil }
        let listed: [Int: S3API.ListedPart]
        do throws(DeliveryError) {
            listed = try await api.parts(old.upload)
        } catch {
            if error.code == .uploadGone || error.code == .notFound { return nil }
            // A store without ListParts.
            if error.verdict == .giveUp { return old }
            throw error
        }
        var record = old
        for number in 1...record.plan.count {
            // Another agent's parts are all read here.
            if sender.attempt.isStopping() { throw .stopping }
            let range = record.plan.range(number)
            guard let there = listed[number], there.size == range.upperBound - range.lowerBound else {
                record.parts[number] = nil
                continue
            }
            if let noted = record.parts[number] {
                if ETagVerifier.bare(noted.etag) != ETagVerifier.bare(there.etag) { record.parts[number] = nil }
            } else if let part = try await proved(there, range, sender) {
                record.parts[number] = part
                try await sender.attempt.checkpoint.put(UploadRecord.notes(of: part, number))
            }
        }
        return record
    }

    /// An unnoted part counts if its checksum or its ETag is that of these bytes; other tags prove nothing.
    private func proved(
        _ part: S3API.ListedPart, _ range: Range<Int64>, _ sender: PartSender
    ) async throws(DeliveryError) -> UploadRecord.VerifiedPart? {
        guard proving.verify != .size else { return UploadRecord.VerifiedPart(etag: part.etag) }
        if let checksum = part.checksum, checksum.algorithm == proving.algorithm {
            let isSame = try await sender.sums([checksum.algorithm], range)[checksum.algorithm] == checksum
            return isSame ? UploadRecord.VerifiedPart(etag: part.etag, checksum: checksum) : nil
        }
        // The request that composes the object states the checksum of every part, whatever the list shows.
        let sums = try await sender.sums(Set([.md5, proving.algorithm].compactMap(\.self)), range)
        guard let md5 = sums[.md5], ETagVerifier.bare(part.etag) == md5.hex else { return nil }
        return UploadRecord.VerifiedPart(
            etag: part.etag, md5: md5.hex, checksum: proving.algorithm.flatMap { sums[$0] })
    }

    func target(_ number: Int, of upload: OpenUpload) throws(DeliveryError) -> any SliceTarget {
        S3Target(
            api: api, proving: proving, key: upload.key,
            query: [("partNumber", "\(number)"), ("uploadId", upload.id)], headers: [])
    }

    var wholeTarget: S3Target {
        S3Target(api: api, proving: proving, key: order.key, query: [], headers: objectHeaders + condition)
    }

    /// States the whole object's checksum where the store compares one. A store that refuses it has not composed what
    /// was sent: the file is sent again.
    func complete(_ record: UploadRecord) async throws(DeliveryError) -> ComposedObject {
        let wanted = record.checksum(ofWhole: proving.isOfWhole)
        var headers = condition
        if let wanted, proving.isOfWhole {
            headers += [(wanted.algorithm.fieldInS3, Data(wanted.bytes).base64EncodedString()), S3Proving.wholeType]
        }
        do throws(DeliveryError) {
            return try await api.complete(record, headers: headers, wanted: wanted)
        } catch {
            guard wanted != nil, error.code == .digestMismatch else { throw api.knowledge.reconsidered(error, proving) }
            throw DeliveryError(.retry(after: nil), .uploadGone, error.reason)
        }
    }

    func isTaken(_ key: String) async throws(DeliveryError) -> Bool {
        guard settings.ifExists.keepsOthers else { return false }
        return try await api.look(key) != nil
    }

    func composed(_ record: UploadRecord, _ sender: PartSender?) async throws(DeliveryError) -> ComposedObject? {
        guard let found = try await api.look(record.upload.key, proving.algorithm) else { return nil }
        if let checksum = found.checksum, let whole = record.wholeCRC, checksum.algorithm == whole.algorithm {
            return found.size == record.plan.fileSize && checksum == whole ? (nil, found.etag) : nil
        }
        let comparison = S3ObjectMatch(order: order, plan: record.plan, verify: proving.verify)
        let match = try await comparison.isSame(found, expectedETag: record.expectedETag, sender)
        return match.isSame ? (nil, found.etag) : nil
    }

    func arrived(_ record: UploadRecord, _ sender: PartSender) async throws(DeliveryError) -> Proof? {
        guard record.upload.key == order.key, let found = try await api.look(order.key, proving.algorithm) else {
            return nil
        }
        let proof = try await proof(found, under: order.key, comparison(record.plan), sender)
        return proof.flatMap { isCertain($0) ? $0 : nil }
    }

    /// Of a file that may also have been cut for another rate, or under another configuration.
    func comparison(_ plan: PartPlan) -> S3ObjectMatch {
        var comparison = S3ObjectMatch(order: order, plan: plan, verify: proving.verify)
        comparison.plans = PartPlan.all(
            fileSize: order.source.size, from: PartPlan.defaultSize, to: PartPlan.largestAuto,
            mostParts: S3Settings.mostParts)
        return comparison
    }

    /// The proof of an object that is there; nil where it is another.
    func proof(
        _ found: S3API.Found, under key: String, _ comparison: S3ObjectMatch, _ sender: PartSender
    ) async throws(DeliveryError) -> Proof? {
        let match = try await comparison.isSame(found, expectedETag: nil, sender)
        guard match.isSame else { return nil }
        let method: Proof.Method =
            switch match.content?.digest.algorithm {
            case nil: .size
            case .md5: .md5Parts
            default: .checksum
            }
        return Proof(
            key: key, size: found.size, method: method, content: match.content,
            etag: found.etag, url: location(key, answered: nil))
    }

    /// Whether the content was compared, where nothing less tells.
    func isCertain(_ proof: Proof) -> Bool { proof.content != nil || !settings.verify.needsContent }

    func abort(id: String, key: String) async throws(DeliveryError) { try await api.abort(id: id, key: key) }

    func location(_ key: String, answered: String?) -> String? {
        (settings.publicURL?.appending(path: key) ?? api.url(key)).redacted
    }
}

struct S3Target: SliceTarget {
    let api: S3API
    let proving: S3Proving
    let key: String
    let query: S3API.Query
    let headers: HTTPFields

    var address: String { api.url(key).redacted }

    var isOnce: Bool { headers.contains { $0.name == S3Store.conditionName } }

    func request(_ body: HTTPBody, _ sums: SliceSums) throws(DeliveryError) -> HTTPRequest {
        var headers = headers
        if query.isEmpty, let md5 = sums[.md5] {
            headers.append(("Content-MD5", Data(md5.bytes).base64EncodedString()))
        }
        if let algorithm = proving.algorithm, let sum = sums[algorithm] {
            headers.append((algorithm.fieldInS3, Data(sum.bytes).base64EncodedString()))
        }
        return try api.signed(
            S3API.Call(
                method: "PUT", key: key, query: query, headers: headers, body: body, isFile: true,
                sha256: sums[.sha256],
                answerDeadline: .seconds(120)))
    }

    func refusal(_ answer: HTTPResponse, _ what: String) -> DeliveryError {
        api.knowledge.reconsidered(api.refusal(answer, "\(what) to \(address)"), proving)
    }

    /// Where a store no longer confirms what it was seen to compare, its ETag counts for this slice.
    func confirmed(_ answer: HTTPResponse) -> Digest? {
        guard let algorithm = proving.algorithm else { return nil }
        let said = S3API.checksum(algorithm, of: answer)
        if said == nil { api.knowledge.forget(proving) }
        return said
    }
}

extension Digest.Algorithm {
    /// S3's names for its additional checksums ("Checking object integrity", Amazon S3 User Guide).
    var nameInS3: String { self == .xxh64 ? "XXHASH64" : rawValue.uppercased() }

    /// The header field of such a checksum.
    var fieldInS3: String { "x-amz-checksum-" + nameInS3.lowercased() }
}

/// Whether an object that is there is the file of a delivery.
struct S3ObjectMatch: Sendable {
    let order: DeliveryOrder
    /// The cutting of the file here; an object cut differently has another ETag for the same bytes.
    let plan: PartPlan
    let verify: S3Settings.Verify
    /// Other ways in which an earlier delivery of ours may have cut it.
    var plans: [PartPlan] = []

    /// Conclusions from the object's tag and metadata without reading the file.
    enum MetadataMatch: Sendable, Equatable {
        case same
        case different
        /// The tag is the MD5 of the whole (nil), or of the MD5s of parts with one of these sizes: the file's own must
        /// be computed, until one is equal.
        case compare(partSizes: [Int64?])
    }

    /// First part sizes of other tools (aws-cli, rclone, mc, s5cmd, and round ones).
    private static let usualSizes: [Int64] = [5, 8, 10, 15, 16, 50, 64, 100, 128].map { $0 << 20 }
    /// Each costs a reading of the file.
    private static let mostSizes = 4

    /// Part sizes that cut the file into `count`, ours first; one of those that hold all of it.
    private func sizes(_ count: Int) -> [Int64] {
        let size = order.source.size
        let all = ours(count) + Self.usualSizes.filter { Int((size + $0 - 1) / $0) == count }
        var sizes: [Int64] = []
        for one in all.map({ min($0, max(size, 1)) }) where !sizes.contains(one) { sizes.append(one) }
        return Array(sizes.prefix(Self.mostSizes))
    }

    private func ours(_ count: Int) -> [Int64] { ([plan] + plans).filter { $0.count == count }.map(\.partSize) }

    /// - Parameter expectedETag: where it is known already.
    func clue(_ found: S3API.Found, expectedETag: String?) -> MetadataMatch {
        guard found.size == order.source.size else { return .different }
        if let expectedETag, found.etag == expectedETag { return .same }
        let pieces = found.etag.split(separator: "-", omittingEmptySubsequences: false)
        guard let digest = pieces.first, Digest(.md5, hex: String(digest))?.bytes.count == 16 else {
            return byTime(found)
        }
        if pieces.count == 1 { return .compare(partSizes: [nil]) }
        guard pieces.count == 2, let count = Int(pieces[1]) else { return byTime(found) }
        if expectedETag != nil { return ours(count).isEmpty ? byTime(found) : .different }
        let sizes = sizes(count)
        if sizes.isEmpty { return byTime(found) }
        return .compare(partSizes: sizes)
    }

    /// Length and modification time, as rclone judges. Only our own files have their times there.
    func byTime(_ found: S3API.Found) -> MetadataMatch {
        let isSame = found.modified.flatMap { S3Store.modifiedTime($0) } == order.source.modified
        return isSame ? .same : .different
    }

    /// Whether the object holds the file, which is read where tags must be compared; with the content, where it was
    /// compared.
    func isSame(
        _ found: S3API.Found, expectedETag: String?, _ sender: PartSender?
    ) async throws(DeliveryError) -> (isSame: Bool, content: ContentHash?) {
        if found.etag != expectedETag, found.size == order.source.size, let checksum = found.checksum, let sender,
            try isUnchanged(sender)
        {
            let own = try await sender.sums([checksum.algorithm], 0..<found.size)[checksum.algorithm]
            return own == checksum ? (true, ContentHash(digest: checksum, partSize: nil)) : (false, nil)
        }
        switch clue(found, expectedETag: expectedETag) {
        case .same: return (true, nil)
        case .different: return (false, nil)
        case .compare(let partSizes):
            let byTime: (Bool, ContentHash?) = (byTime(found) == .same, nil)
            guard let sender, try isUnchanged(sender) else { return byTime }
            for partSize in partSizes {
                if sender.attempt.isStopping() { throw .stopping }
                let model = ContentHash(digest: Digest(.md5, []), partSize: partSize)
                let content = try await DeliveryError.onTransfer(
                    await Checksum.content(like: model, of: sender.source, on: sender.hashing.pool))
                if found.etag.hasPrefix(content.digest.hex) { return (true, content) }
            }
            // With its own keys (SSE-KMS) a store's tags look like MD5 and are not.
            return verify != .md5 ? byTime : (false, nil)
        }
    }

    /// A file that is gone or has changed since cannot tell any more.
    private func isUnchanged(_ sender: PartSender) throws(DeliveryError) -> Bool {
        do throws(DeliveryError) {
            try sender.source.requireUnchanged(since: order)
            return true
        } catch  where error.verdict == .sourceGone || error.verdict == .sourceChanged {
            return false
        }
    }
}

/// Modification times as rclone keeps them in metadata: seconds since 1970, with decimals.
extension S3Store {
    private static let second: Int64 = 1_000_000_000

    /// `1700000000.123456789`, always with nine decimals.
    static func modifiedText(_ nanoseconds: Int64) -> String {
        let (seconds, rest) = nanoseconds.magnitude.quotientAndRemainder(dividingBy: UInt64(second))
        let digits = String(rest)
        let decimals = String(repeating: "0", count: 9 - digits.count) + digits
        return "\(nanoseconds < 0 ? "-" : "")\(seconds).\(decimals)"
    }

    /// Reads the output of `modifiedText`, with up to nine decimals.
    static func modifiedTime(_ text: String) -> Int64? {
        let isNegative = text.hasPrefix("-")
        let parts = (isNegative ? text.dropFirst() : text[...]).split(
            separator: ".", omittingEmptySubsequences: false)
        let areDigits = parts.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }
        guard (1...2).contains(parts.count), areDigits, let seconds = Int64(parts[0]) else { return nil }
        let decimals = parts.count == 2 ? parts[1] : ""
        guard decimals.utf8.count <= 9 else { return nil }
        let padded = decimals + String(repeating: "0", count: 9 - decimals.utf8.count)
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: second)
        let (sum, carry) = whole.addingReportingOverflow(Int64(padded) ?? 0)
        return overflow || carry ? nil : isNegative ? -sum : sum
    }
}
