internal import InletCore
internal import InletTransfer

/// Whether an object that is there is the file of a delivery.
struct S3Comparison: Sendable {
    let order: DeliveryOrder
    /// How the file is cut here; an object cut otherwise has another ETag for the same bytes.
    let plan: PartPlan
    let verify: S3Settings.Verify
    /// How else it may have been cut, by an earlier delivery of ours.
    var plans: [PartPlan] = []

    /// What the object's tag and metadata tell without reading the file.
    enum Clue: Sendable, Equatable {
        case same
        case different
        /// The tag is the MD5 of the whole (nil), or of the MD5s of parts, of which these sizes give as many: the file's own
        /// have to be computed, until one is the same.
        case compare(partSizes: [Int64?])
    }

    /// Sizes of parts that other tools begin with (aws-cli, rclone, mc, s5cmd, and their round ones).
    private static let usualSizes: [Int64] = [5, 8, 10, 15, 16, 50, 64, 100, 128].map { $0 << 20 }
    /// Each costs a reading of the file.
    private static let mostSizes = 4

    /// Sizes of parts that cut the file in `count`, ours first; of those that hold all of it, one.
    private func sizes(_ count: Int) -> [Int64] {
        let size = order.source.size
        let all = ours(count) + Self.usualSizes.filter { Int((size + $0 - 1) / $0) == count }
        var sizes: [Int64] = []
        for one in all.map({ min($0, max(size, 1)) }) where !sizes.contains(one) { sizes.append(one) }
        return Array(sizes.prefix(Self.mostSizes))
    }

    private func ours(_ count: Int) -> [Int64] { ([plan] + plans).filter { $0.count == count }.map(\.partSize) }

    /// - Parameter expectedETag: where it is known already.
    func clue(_ found: S3API.Found, expectedETag: String?) -> Clue {
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

    /// Length and modification time, as rclone judges. Only our own files' times are there.
    func byTime(_ found: S3API.Found) -> Clue {
        let isSame = found.modified.flatMap { ModifiedTime.nanoseconds($0) } == order.source.modified
        return isSame ? .same : .different
    }

    /// A proof that the object holds the file, reading the file where tags have to be compared; nil when it does not.
    func isSame(
        _ found: S3API.Found, expectedETag: String?, _ sender: PartSender?
    ) async throws(DeliveryError) -> Match? {
        switch clue(found, expectedETag: expectedETag) {
        case .same: return Match(content: nil)
        case .different: return nil
        case .compare(let partSizes):
            guard let sender, try Self.canBeRead(sender, order) else { return byTime(found) == .same ? Match() : nil }
            for partSize in partSizes {
                if sender.attempt.isStopping() { throw .stopping }
                let content = try await content(partSize, sender)
                if found.etag.hasPrefix(content.digest.hex) { return Match(content: content) }
            }
            // With keys of its own (SSE-KMS) a store's tags look like MD5 and are not.
            return verify != .md5 && byTime(found) == .same ? Match() : nil
        }
    }

    /// A file that is gone or was changed since cannot tell any more.
    private static func canBeRead(_ sender: PartSender, _ order: DeliveryOrder) throws(DeliveryError) -> Bool {
        do throws(DeliveryError) {
            try SourceGuard.check(sender.source, order)
            return true
        } catch  where error.verdict == .sourceGone || error.verdict == .sourceChanged {
            return false
        }
    }

    private func content(_ partSize: Int64?, _ sender: PartSender) async throws(DeliveryError) -> ContentHash {
        let model = ContentHash(digest: Digest(.md5, []), partSize: partSize)
        return try await DeliveryError.onTransfer(
            await Checksum.content(like: model, of: sender.source, on: sender.hashing))
    }

    struct Match: Sendable, Equatable {
        /// Where contents were compared.
        var content: ContentHash?
    }
}

/// Modification times as rclone keeps them in metadata: seconds since 1970, with decimals.
enum ModifiedTime {
    private static let second: Int64 = 1_000_000_000

    /// `1700000000.123456789`, always with nine decimals.
    static func text(_ nanoseconds: Int64) -> String {
        let (seconds, rest) = nanoseconds.magnitude.quotientAndRemainder(dividingBy: UInt64(second))
        let digits = String(rest)
        let decimals = String(repeating: "0", count: 9 - digits.count) + digits
        return "\(nanoseconds < 0 ? "-" : "")\(seconds).\(decimals)"
    }

    /// Reads what `text` writes, with any number of decimals up to nine.
    static func nanoseconds(_ text: String) -> Int64? {
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
