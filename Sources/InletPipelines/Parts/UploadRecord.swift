internal import InletCore
internal import InletTransfer

/// A multipart upload in the checkpoint: one note when it is opened, one for each proved part.
struct UploadRecord: Sendable {
    var upload: OpenUpload
    let plan: PartPlan
    /// ETags of the proved parts, by number.
    var parts: [Int: VerifiedPart] = [:]
    /// Set before asking the store to compose: from then on the object may exist.
    var isCompleting = false
    /// Set when the upload must not continue, and is not dropped yet.
    var isStale = false
    /// Notes that outlive this upload: that something may be visible, the chosen key, and uploads that the store would
    /// not drop.
    var lasting: [String: [UInt8]] = [:]

    struct VerifiedPart: Sendable, Equatable, Codable {
        /// As received, with quotes.
        var etag: String
        /// Hexadecimal; nil where the MD5 was not compared.
        var md5: String?
        /// The store's confirmation instead of the MD5.
        var checksum: Digest?
    }

    private struct Opening: Codable {
        var upload: OpenUpload
        var plan: PartPlan
    }

    static let openingName = "upload"
    static let completingName = CheckpointName.mayBeVisible
    static let staleName = "stale"
    /// The key chosen instead of the frozen one.
    static let chosenName = "key"
    /// How many times in a row this delivery's URLs expired while in use.
    static let expiryName = "expired"

    /// The prefix of an upload's id that the store would not drop; the note is its key.
    static let refusedName = "refused:"
}

extension UploadRecord {
    /// The upload in `entries`; nil when there is none, or it was for a file of another size.
    init?(_ entries: [String: [UInt8]], fileSize: Int64) {
        guard let opening: Opening = JSON.note(entries[Self.openingName]), opening.plan.fileSize == fileSize,
            opening.plan.isUsable,
            opening.upload.partURLs.isEmpty || opening.upload.partURLs.count == opening.plan.count
        else { return nil }
        self.init(upload: opening.upload, plan: opening.plan, lasting: Self.lasting(entries))
        for number in 1...plan.count { parts[number] = JSON.note(entries[Self.partName(number)]) }
        isCompleting = entries[Self.completingName] != nil && missing.isEmpty
        isStale = entries[Self.staleName] != nil
    }

    /// The upload id and key in `entries`, whatever else they contain.
    static func identity(_ entries: [String: [UInt8]]) -> (id: String, key: String)? {
        upload(entries).map { ($0.id, $0.key) }
    }

    static func upload(_ entries: [String: [UInt8]]) -> OpenUpload? {
        let opening: Opening? = JSON.note(entries[openingName])
        return opening?.upload
    }

    /// The `entries` that outlive every upload.
    static func lasting(_ entries: [String: [UInt8]]) -> [String: [UInt8]] {
        entries.filter { $0.key.hasPrefix(refusedName) || [completingName, chosenName].contains($0.key) }
    }

    static func refusedUploads(_ entries: [String: [UInt8]]) -> [(id: String, key: String)] {
        entries.filter { $0.key.hasPrefix(refusedName) }.map {
            (String($0.key.dropFirst(refusedName.count)), String(decoding: $0.value, as: UTF8.self))
        }
    }

    /// Every upload in `entries`: the last one, and those that the store would not drop.
    static func uploads(_ entries: [String: [UInt8]]) -> [(id: String, key: String)] {
        (identity(entries).map { [$0] } ?? []) + refusedUploads(entries)
    }

    var openingNote: [UInt8] { JSON.note(of: Opening(upload: upload, plan: plan)) }

    /// The opening note without the parts' URLs, where it has any: with it the upload can be dropped, not continued.
    static func stripped(_ note: [UInt8]) -> [UInt8]? {
        guard var opening: Opening = JSON.note(note), !opening.upload.partURLs.isEmpty else { return nil }
        opening.upload.partURLs = []
        return JSON.note(of: opening)
    }

    /// The notes of `entries` that another agent continues with. It asks the store for the parts, so they are left out.
    /// So are the parts' URLs, which are secrets, and how often they expired on this agent's line.
    static func handedOver(_ entries: [String: [UInt8]]) -> [String: [UInt8]] {
        var notes = lasting(entries)
        guard var opening: Opening = JSON.note(entries[openingName]) else { return notes }
        opening.upload.partURLs = []
        notes[openingName] = JSON.note(of: opening)
        notes[staleName] = entries[staleName]
        return notes
    }

    /// Whether the store may have been asked to compose the object, perhaps by another agent, whose parts are not noted
    /// here.
    var mayBeComposed: Bool { lasting[Self.completingName] != nil }

    static func partName(_ number: Int) -> String { "part:\(number)" }

    static func notes(of part: VerifiedPart, _ number: Int) -> [String: [UInt8]] {
        [partName(number): JSON.note(of: part)]
    }

    var missing: [Int] { (1...plan.count).filter { parts[$0] == nil } }

    var provedBytes: Int64 { parts.keys.reduce(0) { $0 + Int64(plan.range($1).count) } }

    /// The MD5 over the parts' MD5s, from which S3 makes the object's ETag. nil unless every part's MD5 is known.
    var composite: Digest? { digests { $0.md5.flatMap { Digest(.md5, hex: $0) } }.map { Checksum.md5($0) } }

    /// The SHA-256 over the parts' SHA-256s; nil unless every part's is confirmed.
    private var compositeSHA256: Digest? {
        digests { $0.checksum.flatMap { $0.algorithm == .sha256 ? $0 : nil } }.map { Checksum.sha256($0) }
    }

    /// The CRC of the whole content, combined from those of its parts; nil unless every part's is confirmed.
    var wholeCRC: Digest? {
        var whole: Digest?
        for number in 1...plan.count {
            guard let next = parts[number]?.checksum else { return nil }
            guard let before = whole else {
                whole = next
                continue
            }
            guard let both = before.combined(with: next, length: Int64(plan.range(number).count)) else { return nil }
            whole = both
        }
        return whole.flatMap { $0.algorithm == .sha256 ? nil : $0 }
    }

    /// The checksum that the store must say of the composed object; nil where it is the ETag, or none.
    func checksum(ofWhole isOfWhole: Bool) -> Digest? { isOfWhole ? wholeCRC : compositeSHA256 }

    /// The parts' checksum of the content, which can be recomputed from the file.
    var content: ContentHash? {
        if let composite = composite ?? compositeSHA256 {
            return ContentHash(digest: composite, partSize: plan.partSize)
        }
        return wholeCRC.flatMap { $0.algorithm.isShort ? nil : ContentHash(digest: $0, partSize: nil) }
    }

    /// A confirmed checksum that `content` does not have.
    var details: [String: String]? {
        guard content == nil else { return nil }
        return wholeCRC.map { [Proof.checksumName: $0.description] }
    }

    /// The weakest proof of any part.
    var method: Proof.Method {
        if composite != nil { return .md5Parts }
        return missing.isEmpty && parts.values.allSatisfy { $0.md5 != nil || $0.checksum != nil } ? .checksum : .size
    }

    /// The object's ETag as S3 computes it.
    var expectedETag: String? { composite.map { "\($0.hex)-\(plan.count)" } }

    /// The bytes of every part's digest, in order; nil when one is missing.
    private func digests(_ digest: (VerifiedPart) -> Digest?) -> [UInt8]? {
        let all = (1...plan.count).map { parts[$0].flatMap(digest) }
        return all.contains(nil) ? nil : all.flatMap { $0?.bytes ?? [] }
    }
}

/// A part of an upload that its store has proved. The part of a delivery's notes that may be shown: never ids, keys or
/// URLs.
package struct StoredPart: Sendable, Equatable {
    /// From 1.
    package var number: Int
    package var size: Int64
    /// Without quotes.
    package var etag: String

    /// The parts, in order; empty for notes of a pipeline that sends no parts.
    package static func all(in entries: [String: [UInt8]], fileSize: Int64) -> [StoredPart] {
        guard let record = UploadRecord(entries, fileSize: fileSize) else { return [] }
        return record.parts.sorted { $0.key < $1.key }.map { number, part in
            StoredPart(
                number: number, size: Int64(record.plan.range(number).count),
                etag: DisplayText.escape(part.etag.filter { $0 != "\"" }))
        }
    }
}
