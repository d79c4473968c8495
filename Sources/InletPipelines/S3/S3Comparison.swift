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
        /// The tag is the MD5 of the whole, or of the parts of `plan`: the file's own has to be computed.
        case compare(partSize: Int64?)
    }

    /// - Parameter expectedETag: where it is known already.
    func clue(_ found: S3API.Found, expectedETag: String?) -> Clue {
        guard found.size == order.source.size else { return .different }
        if let expectedETag, found.etag == expectedETag { return .same }
        let pieces = found.etag.split(separator: "-", omittingEmptySubsequences: false)
        guard let digest = pieces.first, Digest(.md5, hex: String(digest))?.bytes.count == 16 else {
            return byTime(found)
        }
        if pieces.count == 1 { return .compare(partSize: nil) }
        guard pieces.count == 2, let plan = ([plan] + plans).first(where: { $0.count == Int(pieces[1]) })
        else { return byTime(found) }
        return expectedETag == nil ? .compare(partSize: plan.partSize) : .different
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
        case .compare(let partSize):
            // A file that is gone or was changed since cannot tell any more.
            guard let sender, (try? SourceGuard.check(sender.source, order)) != nil else {
                return byTime(found) == .same ? Match() : nil
            }
            let model = ContentHash(digest: Digest(.md5, []), partSize: partSize)
            let content: ContentHash
            do {
                content = try await Checksum.content(like: model, of: sender.source, on: sender.hashing)
            } catch {
                throw DeliveryError(error)
            }
            if found.etag.hasPrefix(content.digest.hex) { return Match(content: content) }
            // With keys of its own (SSE-KMS) a store's tags look like MD5 and are not.
            return verify != .md5 && byTime(found) == .same ? Match() : nil
        }
    }

    /// An object that holds the file.
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
