internal import InletCore
internal import InletTransfer
internal import SystemPackage

/// A store that takes an object in parts: what `MultipartUpload` needs of it. `r2` gets presigned URLs from an API, `s3`
/// signs every request itself; the rest is one piece of code.
protocol PartStore: Sendable {
    var limits: PartLimits { get }

    /// Opens an upload. One that cannot be used is dropped again before this throws.
    func open(_ order: DeliveryOrder, _ plan: PartPlan) async throws(DeliveryError) -> OpenUpload

    /// Holds a journaled upload against the store.
    /// - Returns: the parts that are there and proved; nil when the upload cannot go on.
    func resume(_ record: UploadRecord, _ sender: PartSender) async throws(DeliveryError) -> UploadRecord?

    /// Where part `number`, which counts from 1, goes.
    func target(_ number: Int, of upload: OpenUpload) throws(DeliveryError) -> any SliceTarget

    /// Whether an object has the key that must stay. Asked right before the parts are composed: not every store that takes a
    /// condition with one PUT heeds it there.
    func isTaken(_ key: String) async throws(DeliveryError) -> Bool

    /// Composes the object; every part of `record` is proved. Not retried here.
    func complete(_ record: UploadRecord) async throws(DeliveryError) -> ComposedObject

    /// What the store says of the object that `record` makes; nil when it does not have it, as far as it can tell.
    /// - Parameter sender: reads the source where it has to be compared; nil when that is gone.
    func composed(_ record: UploadRecord, _ sender: PartSender?) async throws(DeliveryError) -> ComposedObject?

    /// Drops an upload and its parts. An upload that is not there counts as dropped.
    func abort(id: String, key: String) async throws(DeliveryError)

    /// Where people find the object; never a signed URL.
    func location(_ key: String, answered: String?) -> String?
}

extension PartStore {
    func isTaken(_ key: String) async throws(DeliveryError) -> Bool { false }
}

/// A pipeline whose destination takes objects in parts: what such a one leaves there is the same for all of them.
protocol PartPipeline: Pipeline {
    /// The store of one delivery; `notes` are its checkpoint's.
    func store(_ order: DeliveryOrder, _ notes: [String: [UInt8]]) -> any PartStore
}

extension PartPipeline {
    /// The answer to the last complete may have been lost: then what was admitted has arrived, whole.
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
}

/// How a file is cut for a store.
struct PartLimits: Sendable {
    /// Configured, or the smallest; larger where a file would have more than `mostParts`.
    var partSize: Int64
    /// Up to here parts grow on a fast line; `partSize` where that is configured.
    var largestPart: Int64
    var mostParts: Int64
    /// Parts of one file sent at once, at most: the line may carry fewer.
    var parallel: Int
    /// The longest object that the store takes, in bytes.
    var largestObject: Int64
    /// What to do about a longer file; continues a sentence.
    var remedy = "send it to another destination, or in pieces"

    /// Whether the file can be an object there: that need not be learnt from the store after hours.
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
    /// The key as the store knows it.
    var key: String
    /// The presigned URL of part n at index n-1; empty where requests are signed here. They are secrets until they expire.
    var partURLs: [String] = []
}

/// What the store said of the object that it composed; its tag is without quotes.
typealias ComposedObject = (url: String?, etag: String?)

/// Where one slice of a file goes.
protocol SliceTarget: Sendable {
    /// For error texts; without any signature.
    var address: String { get }

    /// Whether a second request would meet the object that the first one made, and be refused for it.
    var isOnce: Bool { get }

    /// The request that carries `body`, made anew for each try, because signatures have a time.
    func request(_ body: HTTPBody, _ sums: SliceSums) throws(DeliveryError) -> HTTPRequest

    /// An answer that is not a success, in the agent's terms.
    func refusal(_ answer: HTTPResponse, _ what: String) -> DeliveryError

    /// The checksum that the store says it has compared; nil where it says nothing.
    func confirmed(_ answer: HTTPResponse) -> Digest?
}

extension SliceTarget {
    var isOnce: Bool { false }

    func confirmed(_ answer: HTTPResponse) -> Digest? { nil }
}

/// How slices are proved to have arrived.
struct SliceProof: Sendable, Equatable {
    enum Kind: Sendable, Equatable {
        /// The ETag is the MD5 of what was read.
        case md5
        /// The store confirms the checksum that came with the bytes; where it is silent, its ETag counts.
        case checksum
        /// There is an ETag.
        case size
    }

    var kind: Kind
    /// What the request must state before its body.
    var ahead: Set<Digest.Algorithm>

    static let md5 = SliceProof(kind: .md5, ahead: [])
    static let size = SliceProof(kind: .size, ahead: [])
}

/// How a file is cut: all parts the same size but the last, as R2 demands, chosen once per file and journaled.
struct PartPlan: Sendable, Equatable, Codable {
    /// Store limits (Cloudflare R2, "Limits" and "Multipart upload"): parts from 5 MiB, below 5 GiB.
    static let smallestSize: Int64 = 5 << 20
    static let largestSize: Int64 = 4 << 30
    /// `part_size: auto`: from the first to the last, in powers of two.
    static let defaultSize: Int64 = 8 << 20
    static let largestAuto: Int64 = 64 << 20
    /// Our own bound for presigned parts: one answer carries a URL for every part.
    static let mostParts: Int64 = 1000

    /// What the key of the part size says (nil is `auto`), and up to where parts may grow on a fast line.
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

    /// The plan for a file of `fileSize` bytes: `configured`, or what keeps it at `mostParts` parts, in whole MiB.
    init(fileSize: Int64, configured: Int64, mostParts: Int64 = Self.mostParts) {
        self.fileSize = fileSize
        let needed = (fileSize + mostParts - 1) / mostParts
        let wholeMiB = (needed + Self.mebibyte - 1) / Self.mebibyte * Self.mebibyte
        partSize = max(configured, wholeMiB)
    }

    /// Every plan that there can be for a file, where its part size follows from the line.
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
