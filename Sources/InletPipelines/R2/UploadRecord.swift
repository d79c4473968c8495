internal import FoundationEssentials
internal import InletCore
internal import InletTransfer

/// A multipart upload as the checkpoint remembers it: one note when it is opened, one for each part that is proved.
struct UploadRecord: Sendable {
    var upload: SpiralAPI.Upload
    let plan: PartPlan
    /// ETags of the proved parts, by number.
    var parts: [Int: ProvedPart] = [:]
    /// Set before the store is asked to compose: from then on the object may exist.
    var isCompleting = false
    /// Set when the upload must not go on, and dropping it has not succeeded yet.
    var isStale = false

    struct ProvedPart: Sendable, Equatable, Codable {
        /// As received, quotes and all.
        var etag: String
        /// Hexadecimal; nil with `verify: size`.
        var md5: String?
    }

    private struct Opening: Codable {
        var upload: SpiralAPI.Upload
        var plan: PartPlan
    }

    static let openingName = "upload"
    static let completingName = CheckpointNote.mayBeVisible
    static let staleName = "stale"
    /// How many times in a row this delivery's URLs expired while they were in use.
    static let expiryName = "expired"

    /// Before the id of an upload that the store would not drop; the note is its key.
    static let refusedName = "refused:"

    init(upload: SpiralAPI.Upload, plan: PartPlan) {
        self.upload = upload
        self.plan = plan
    }

    /// The upload that `entries` speak of; nil when there is none, or it was for a file of another size.
    init?(_ entries: [String: [UInt8]], fileSize: Int64) {
        guard let note = entries[Self.openingName],
            let opening = try? JSONDecoder().decode(Opening.self, from: Data(note)), opening.plan.fileSize == fileSize,
            opening.upload.partURLs.count == opening.plan.count
        else { return nil }
        self.init(upload: opening.upload, plan: opening.plan)
        for number in 1...plan.count {
            guard let note = entries[Self.partName(number)] else { continue }
            parts[number] = try? JSONDecoder().decode(ProvedPart.self, from: Data(note))
        }
        isCompleting = entries[Self.completingName] != nil && missing.isEmpty
        isStale = entries[Self.staleName] != nil
    }

    /// The upload id and key that `entries` speak of, whatever else is in them.
    static func identity(_ entries: [String: [UInt8]]) -> (id: String, key: String)? {
        guard let note = entries[openingName], let opening = try? JSONDecoder().decode(Opening.self, from: Data(note))
        else { return nil }
        return (opening.upload.id, opening.upload.key)
    }

    /// The notes of uploads that the store would not drop.
    static func refused(_ entries: [String: [UInt8]]) -> [String: [UInt8]] {
        entries.filter { $0.key.hasPrefix(refusedName) }
    }

    static func refusedUploads(_ entries: [String: [UInt8]]) -> [(id: String, key: String)] {
        refused(entries).map {
            (String($0.key.dropFirst(refusedName.count)), String(decoding: $0.value, as: UTF8.self))
        }
    }

    var openingNote: [UInt8] {
        get throws { Array(try JSONEncoder().encode(Opening(upload: upload, plan: plan))) }
    }

    static func partName(_ number: Int) -> String { "part:\(number)" }

    static func note(_ part: ProvedPart) throws -> [UInt8] { Array(try JSONEncoder().encode(part)) }

    var missing: [Int] { (1...plan.count).filter { parts[$0] == nil } }

    var provedBytes: Int64 { parts.keys.reduce(0) { $0 + Int64(plan.range($1).count) } }

    /// The MD5 over the parts' MD5s: what R2 makes the object's ETag of. nil unless every part's MD5 is known.
    var composite: Digest? {
        let digests = (1...plan.count).map { parts[$0]?.md5.flatMap { Digest(.md5, hex: $0) } }
        guard digests.allSatisfy({ $0 != nil }) else { return nil }
        return Checksum.md5(digests.compactMap(\.self).flatMap(\.bytes))
    }

    /// The object's ETag as R2 computes it.
    var expectedETag: String? { composite.map { "\($0.hex)-\(plan.count)" } }
}

/// A presigned URL's own account of its life (AWS Signature Version 4, query parameters).
enum PresignedLife {
    /// Whether the URL has expired by our clock; nil when it does not say.
    static func hasExpired(_ url: HTTPURL, now: WallTime) -> Bool? {
        guard let date = url.queryItem("X-Amz-Date"), let life = url.queryItem("X-Amz-Expires").flatMap(Int64.init),
            let signed = time(date)
        else { return nil }
        return signed + .seconds(life) <= now
    }

    /// Parses `20261121T072000Z`.
    static func time(_ text: String) -> WallTime? {
        guard text.utf8.count == 16, text.hasSuffix("Z") else { return nil }
        let digits = text.filter(\.isNumber)
        guard digits.count == 14, let all = Int64(digits) else { return nil }
        let (date, clock) = all.quotientAndRemainder(dividingBy: 1_000_000)
        var components = DateComponents()
        components.year = Int(date / 10_000)
        components.month = Int(date / 100 % 100)
        components.day = Int(date % 100)
        components.hour = Int(clock / 10_000)
        components.minute = Int(clock / 100 % 100)
        components.second = Int(clock % 100)
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        return calendar.date(from: components).map {
            WallTime(milliseconds: Int64(($0.timeIntervalSince1970 * 1000).rounded()))
        }
    }
}
