internal import InletCore
internal import InletTransfer
internal import SystemPackage

/// A store that takes an object in parts: the needs of `MultipartUpload`. `r2` gets presigned URLs from an API, `s3`
/// signs every request itself; the rest is shared code.
protocol PartStore: Sendable {
    var limits: PartLimits { get }

    /// Opens an upload. An unusable one is dropped again before this throws.
    func open(_ order: DeliveryOrder, _ plan: PartPlan) async throws(DeliveryError) -> OpenUpload

    /// Compares a journaled upload with the store.
    /// - Returns: the parts that are there and proved; nil when the upload cannot continue.
    func resume(_ record: UploadRecord, _ sender: PartSender) async throws(DeliveryError) -> UploadRecord?

    /// The target of part `number`, which counts from 1.
    func target(_ number: Int, of upload: OpenUpload) throws(DeliveryError) -> any SliceTarget

    /// Whether the key belongs to an object that must stay. Called right before the parts are composed: some stores
    /// that honour a condition with one PUT ignore it there.
    func isTaken(_ key: String) async throws(DeliveryError) -> Bool

    /// Composes the object; every part of `record` is proved. Not retried here.
    func complete(_ record: UploadRecord) async throws(DeliveryError) -> ComposedObject

    /// The store's facts about the object of `record`; nil when it does not have it, as far as it can tell.
    /// - Parameter sender: reads the source where it must be compared; nil when the source is gone.
    func composed(_ record: UploadRecord, _ sender: PartSender?) async throws(DeliveryError) -> ComposedObject?

    /// The proof of the object under the upload's key, where its content is seen to be the file's; nil where it is not, or
    /// cannot be compared. For an upload that may have been completed, and whose parts are not all known here.
    func arrived(_ record: UploadRecord, _ sender: PartSender) async throws(DeliveryError) -> Proof?

    /// Drops an upload and its parts. A missing upload counts as dropped.
    func abort(id: String, key: String) async throws(DeliveryError)

    /// Where people find the object; never a signed URL.
    func location(_ key: String, answered: String?) -> String?
}

extension PartStore {
    func isTaken(_ key: String) async throws(DeliveryError) -> Bool { false }
}

/// A pipeline whose destination takes objects in parts: the remains there are the same for all of them.
protocol PartPipeline: Pipeline {
    /// The store of one delivery; `notes` are its checkpoint's.
    func store(_ order: DeliveryOrder, _ notes: [String: [UInt8]]) -> any PartStore
}

extension PartPipeline {
    /// The answer to the last complete may have been lost: then the admitted content has arrived completely.
    package func conclude(
        _ path: FilePath, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome? {
        let store = store(order, attempt.checkpoint.entries)
        return try await store.composedEarlier(order, attempt, nil).map { .delivered($0) }
    }

    package func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError) {
        let store = store(order, checkpoint)
        for (id, key) in UploadRecord.uploads(checkpoint) { try await store.abort(id: id, key: key) }
    }

    package func handedOver(_ checkpoint: [String: [UInt8]]) -> [String: [UInt8]] {
        UploadRecord.handedOver(checkpoint)
    }
}

/// The cutting of files for a store.
struct PartLimits: Sendable {
    /// Configured, or the smallest; larger where a file would have more than `mostParts`.
    var partSize: Int64
    /// The largest parts on a fast line; equals `partSize` where that is configured.
    var largestPart: Int64
    var mostParts: Int64
    /// Parts of one file sent at once, at most; a slow line carries fewer.
    var parallel: Int
    /// The longest object that the store takes, in bytes.
    var largestObject: Int64
    /// The remedy for a longer file; continues a sentence.
    var remedy = "send it to another destination, or in pieces"

    /// Whether the file can be an object there, known before hours of sending.
    func check(_ order: DeliveryOrder) throws(DeliveryError) {
        guard order.source.size > largestObject else { return }
        throw DeliveryError(
            .giveUp, .tooLarge,
            "'\(DisplayText.escape(order.key))' has \(ByteText.format(order.source.size)), and this store takes objects up "
                + "to \(ByteText.format(largestObject)); \(remedy)")
    }
}

struct OpenUpload: Sendable, Equatable, Codable {
    var id: String
    /// The key in the store.
    var key: String
    /// The presigned URL of part n at index n-1; empty where requests are signed here. Secrets until they expire.
    var partURLs: [String] = []
    /// The checksum with which it was opened, and which its store expects with every part; nil where there was none.
    var checksum: UploadChecksum?
}

struct UploadChecksum: Sendable, Equatable, Codable {
    var algorithm: Digest.Algorithm
    /// When the store was asked whether it compares it; nil where the configuration decides.
    var learnedAt: WallTime?
}

/// The store's facts about the composed object; its tag is without quotes.
typealias ComposedObject = (url: String?, etag: String?)

/// The target of one slice of a file.
protocol SliceTarget: Sendable {
    /// For error texts; without any signature.
    var address: String { get }

    /// Whether a second request would meet the first one's object, and be refused for it.
    var isOnce: Bool { get }

    /// The request that carries `body`, made again for each try, because signatures carry a time.
    func request(_ body: HTTPBody, _ sums: SliceSums) throws(DeliveryError) -> HTTPRequest

    /// An answer other than a success, as an agent's error.
    func refusal(_ answer: HTTPResponse, _ what: String) -> DeliveryError

    /// The checksum that the store confirms; nil where it confirms none.
    func confirmed(_ answer: HTTPResponse) -> Digest?
}

extension SliceTarget {
    var isOnce: Bool { false }

    func confirmed(_ answer: HTTPResponse) -> Digest? { nil }

    /// The slice, where the answer proves it by what is known of it; nil where it does not, or more must be computed.
    func verified(_ answer: HTTPResponse, _ sums: SliceSums, _ kind: SliceProof.Kind) -> UploadRecord.VerifiedPart? {
        guard answer.isSuccess, let etag = answer.header("ETag") else { return nil }
        let bare = ETagVerifier.bare(etag)
        if bare.isEmpty { return nil }
        if let said = confirmed(answer), let wanted = sums[said.algorithm] {
            return said == wanted ? UploadRecord.VerifiedPart(etag: etag, checksum: wanted) : nil
        }
        if kind == .size { return UploadRecord.VerifiedPart(etag: etag, md5: sums[.md5]?.hex) }
        guard let md5 = sums[.md5]?.hex, md5 == bare else { return nil }
        return UploadRecord.VerifiedPart(etag: etag, md5: md5)
    }
}

/// How slices are proved to have arrived.
struct SliceProof: Sendable, Equatable {
    enum Kind: Sendable, Equatable {
        /// The ETag is the MD5 of what was read.
        case md5
        /// The store confirms the checksum sent with the bytes; where it does not, its ETag counts.
        case checksum
        /// There is an ETag.
        case size
    }

    var kind: Kind
    /// The values that the request must state before its body.
    var ahead: Set<Digest.Algorithm>
    /// The remedy where the store's ETags are no MD5; continues a sentence.
    var remedy = "set 'verify: size' on this destination"

    static let md5 = SliceProof(kind: .md5, ahead: [])
    static let size = SliceProof(kind: .size, ahead: [])
}

/// The cutting of a file: parts of one size but the last, as R2 demands, chosen once per file and journaled.
struct PartPlan: Sendable, Equatable, Codable {
    /// Store limits (Cloudflare R2, "Limits" and "Multipart upload"): parts from 5 MiB, below 5 GiB.
    static let smallestSize: Int64 = 5 << 20
    static let largestSize: Int64 = 4 << 30
    /// `part_size: auto`: the smallest to the largest, in powers of two.
    static let defaultSize: Int64 = 8 << 20
    static let largestAuto: Int64 = 64 << 20
    /// Our own limit for presigned parts: one answer carries a URL for every part.
    static let mostParts: Int64 = 1000

    /// The configured part size (nil is `auto`), and how far parts may grow on a fast line.
    static func sizes<Table>(
        _ values: Section<Table>, _ key: KeyPath<Table, Key<Int64?>>
    ) throws(SettingFault) -> (smallest: Int64, largest: Int64) {
        let given = values[dynamicMember: key]
        guard (smallestSize...largestSize).contains(given ?? defaultSize) else {
            throw values.fault(key, "must be between 5MiB and 4GiB (limits of the store)")
        }
        return (given ?? defaultSize, given ?? largestAuto)
    }

    private static let mebibyte: Int64 = 1 << 20

    let fileSize: Int64
    let partSize: Int64

    /// The plan for a file of `fileSize` bytes: `configured`, or the size that keeps it at `mostParts` parts, in whole
    /// MiB.
    init(fileSize: Int64, configured: Int64, mostParts: Int64 = Self.mostParts) {
        self.fileSize = fileSize
        let needed = (fileSize + mostParts - 1) / mostParts
        let wholeMiB = (needed + Self.mebibyte - 1) / Self.mebibyte * Self.mebibyte
        partSize = max(configured, wholeMiB)
    }

    /// Whether a store can have taken parts so; other agents' notes are not trusted with that.
    var isUsable: Bool { fileSize >= 0 && (1...1 << 40).contains(partSize) && fileSize / partSize <= 10_000 }

    /// Every possible plan for a file whose part size follows from the line.
    static func all(fileSize: Int64, from smallest: Int64, to largest: Int64, mostParts: Int64) -> [PartPlan] {
        let sizes = sequence(first: smallest) { $0 * 2 <= largest ? $0 * 2 : nil }
        return sizes.map { PartPlan(fileSize: fileSize, configured: $0, mostParts: mostParts) }
    }

    /// At least 1: an empty file is one empty part.
    var count: Int { max(1, Int((fileSize + partSize - 1) / partSize)) }

    /// The bytes of part `number`, which counts from 1.
    func range(_ number: Int) -> Range<Int64> {
        let start = Int64(number - 1) * partSize
        return start..<min(start + partSize, fileSize)
    }
}
