package import InletCore
internal import InletLinux
internal import InletTransfer
internal import Synchronization
internal import SystemPackage

/// A destination that can be asked whether it still has a delivered object, for `inlet verify`.
package protocol DeliveryVerifying: Sendable {
    /// Compares the destination's object with the proof in the journal. Changes nothing.
    ///
    /// - Throws: when the destination cannot be asked now; its answer about the object is a `Verification`.
    func verify(_ order: VerifyOrder) async throws(DeliveryError) -> Verification

    /// Whether it finds objects by key alone, whoever sent them. A service that finds them by its own numbers knows
    /// nothing of other programs' uploads.
    var findsByKey: Bool { get }
}

extension DeliveryVerifying {
    package var findsByKey: Bool { true }
}

package struct VerifyOrder: Sendable {
    package var proof: Proof
    /// Checksums of the whole content that were computed besides the proof's.
    package var digests: [Digest]
    /// Whether to read every byte; otherwise the destination's word counts.
    package var readsBytes: Bool
    /// Whether a file is removed on this answer: it must come from the store itself, never from a cache before it.
    package var isForRemoval: Bool

    package init(proof: Proof, digests: [Digest] = [], readsBytes: Bool = false, isForRemoval: Bool = false) {
        self.proof = proof
        self.digests = digests
        self.readsBytes = readsBytes
        self.isForRemoval = isForRemoval
    }

    /// Whether reading proves more than looking: there is a checksum to compare with.
    var comparesBytes: Bool { readsBytes && (proof.content != nil || !digests.isEmpty) }

    /// The verdict on a length and a tag, without reading the object.
    ///
    /// - Parameter etag: the destination's current tag; nil where it has none.
    func compare(size: Int64, etag: String?) -> Verification {
        guard size == proof.size else { return .differs("it has \(size) bytes, not \(proof.size)") }
        guard let was = proof.etag.map({ ETagVerifier.bare($0) }), !was.isEmpty,
            let now = etag.map({ ETagVerifier.bare($0) }), !now.isEmpty
        else { return .same("length") }
        if was == now { return .same("length, tag", ofContent: true) }
        // A store whose tag differs at composition may still keep S3's afterwards.
        if let content = proof.content, content.partSize != nil, now.hasPrefix(content.digest.hex + "-") {
            return .same("length, tag", ofContent: true)
        }
        // Some stores, such as rclone's, later give a composed object a tag of another kind.
        if was.contains("-"), !now.contains("-") {
            return .cannotTell(
                "this store changed its tag, from \(was) to \(DisplayText.escape(now)); --read compares its bytes")
        }
        return .differs(
            "its tag is \(DisplayText.escape(now)), not \(was): it was written anew; --read compares its bytes")
    }
}

/// The present state of a delivered object.
package enum Verification: Sendable, Equatable {
    /// It is there; the text names the comparison. `ofContent`: whether that was one of the content, by a checksum or by a
    /// tag that the object has had since it was proved.
    case same(String, ofContent: Bool = false)
    /// Something else is there, or not all of it.
    case differs(String)
    case missing(String)
    /// This destination cannot tell.
    case cannotTell(String)

    /// An error for one file while the folder itself is there: it says nothing about the other files.
    init(_ error: SystemError) throws(DeliveryError) {
        // A bad sector loses only the data on it.
        if error.isDeviceFault {
            self = .differs("cannot be read: \(error)")
        } else if error.isPermission || error.isLinked {
            // A symlink's target was not delivered, nor does it prove that the file is gone.
            self = .cannotTell("\(error)")
        } else if error.isMissing {
            // It vanished between the look and the read.
            self = .missing("\(error)")
        } else if error.isNotRegular {
            self = .differs("\(error)")
        } else {
            if error.code == .canceled { throw DeliveryError(.cancelled, .cancelled, "\(error)") }
            throw DeliveryError(
                .retry(after: nil), error.isShortage ? .outOfResources : .destinationUnwritable, "\(error)")
        }
    }
}

/// Compares an object's bytes, as they arrive, with the known facts: length, checksums of the whole, and the checksum
/// over parts that a multipart upload has.
struct ContentCheck {
    private let size: Int64
    /// Of the whole.
    private let wanted: [Digest]
    /// Over parts.
    private let composite: ContentHash?
    private var count: Int64 = 0
    private var whole: SliceHasher
    private var part: SliceHasher
    private var partDigests: [UInt8] = []

    init(_ order: VerifyOrder) { self.init(size: order.proof.size, order.digests, order.proof.content) }

    init(size: Int64, _ digests: [Digest], _ content: ContentHash?) {
        self.size = size
        composite = content.flatMap { $0.partSize.map { $0 > 0 } == true ? $0 : nil }
        wanted = digests + (content.map { $0.partSize == nil ? [$0.digest] : [] } ?? [])
        whole = SliceHasher(Set(wanted.map(\.algorithm)))
        part = Self.hasher(composite)
    }

    private static func hasher(_ composite: ContentHash?) -> SliceHasher {
        SliceHasher(composite.map { [$0.digest.algorithm] } ?? [])
    }

    /// Whether more bytes arrived than belong there.
    var isTooLong: Bool { count > size }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        whole.update(bytes)
        guard let composite, let partSize = composite.partSize else {
            count += Int64(bytes.count)
            return
        }
        var rest = bytes[...]
        while !rest.isEmpty {
            let room = partSize - count % partSize
            let piece = rest.prefix(Int(min(room, Int64(rest.count))))
            part.update(UnsafeRawBufferPointer(rebasing: piece))
            rest = rest.dropFirst(piece.count)
            count += Int64(piece.count)
            if count % partSize == 0 { endPart(composite) }
        }
    }

    private mutating func endPart(_ composite: ContentHash) {
        partDigests += part.finish()[composite.digest.algorithm]?.bytes ?? []
        part = Self.hasher(composite)
    }

    /// The verdict, once all bytes have arrived.
    mutating func finish() -> Verification {
        guard count == size else { return .differs("it has \(count) bytes, not \(size)") }
        let sums = whole.finish()
        var compared = ["length"]
        for digest in wanted {
            let (found, name) = (sums[digest.algorithm], digest.algorithm.rawValue)
            if found != digest { return .differs("its \(name) is \(found?.hex ?? "unknown"), not \(digest.hex)") }
            if !compared.contains(name) { compared.append(name) }
        }
        if let composite {
            if let partSize = composite.partSize, count % partSize != 0 || count == 0 { endPart(composite) }
            let (digest, name) = (composite.digest, "\(composite.digest.algorithm.rawValue) over parts")
            let found = SliceHasher.sums([digest.algorithm], of: partDigests)[digest.algorithm]
            guard found == digest else {
                return .differs("its \(name) is \(found?.hex ?? "unknown"), not \(digest.hex)")
            }
            compared.append(name)
        }
        // Reading alone compares nothing.
        return .same("all bytes read: " + compared.joined(separator: ", "), ofContent: compared.count > 1)
    }
}

/// Checks an answer's body as it arrives. It hashes on the transfer's thread, where pieces of this size take a fraction
/// of a millisecond each: a verification has its own connections.
final class CheckingSink: ResponseSink {
    private let state: Mutex<ContentCheck>

    init(_ order: VerifyOrder) { state = Mutex(ContentCheck(order)) }

    func begins(_ head: HTTPResponse) throws(TransferError) -> Bool { head.status == 200 }

    func take(_ piece: UnsafeRawBufferPointer) throws(TransferError) {
        let isTooLong = state.withLock { state in
            state.update(piece)
            return state.isTooLong
        }
        // The rest cannot change the verdict, and may be endless.
        if isTooLong { throw TransferError(.answerTooLarge, "more bytes arrived than belong there", isOutage: false) }
    }

    /// Whether it cut the answer short because it was too long.
    var isTooLong: Bool { state.withLock { $0.isTooLong } }

    func finish() -> Verification { state.withLock { $0.finish() } }
}

extension HTTPClient {
    /// Reads the whole answer to `request`, a GET, and compares it; nil where the answer is not an object's.
    func check(
        _ request: HTTPRequest, _ order: VerifyOrder
    ) async throws(DeliveryError) -> (verification: Verification?, answer: HTTPResponse) {
        var request = request
        // As long as bytes arrive, and no more than expected.
        request.answerDeadline = .seconds(365 * 86_400)
        let sink = CheckingSink(order)
        do {
            let answer = try await send(request, into: sink)
            return (answer.status == 200 ? sink.finish() : nil, answer)
        } catch {
            if sink.isTooLong {
                return (.differs("it has more than \(order.proof.size) bytes"), HTTPResponse(status: 200))
            }
            throw DeliveryError(error)
        }
    }
}

/// The objects of a destination below the common folder of some keys, from its own list: for many files, that is some
/// requests instead of one for each.
package struct ListedKeys: Sendable {
    /// By the bytes of their keys: Strings are also equal where only their normal forms differ.
    private let objects: [[UInt8]: ListedObject]

    private struct TooMany: Error {}

    /// - Parameters:
    ///   - first: the smallest key.
    ///   - last: the biggest key.
    ///   - expected: how many keys there are.
    /// - Returns: nil where the list has many more objects than these, so that asking for each is cheaper.
    /// - Throws: when the destination does not answer.
    package init?(of storage: any ObjectListing, from first: String, to last: String, expected: Int) async throws {
        let found = Mutex<[[UInt8]: ListedObject]>([:])
        let most = expected * 4 + 5000
        do {
            try await storage.list(prefix: Self.folder(first, last)) { page in
                let count = found.withLock { objects in
                    for object in page { objects[Array(object.key.utf8)] = object }
                    return objects.count
                }
                if count > most { throw TooMany() }
            }
        } catch is TooMany {
            return nil
        }
        objects = found.withLock(\.self)
    }

    /// The folder that all keys between two keys have in common.
    static func folder(_ first: String, _ last: String) -> String {
        let common = String(decoding: zip(first.utf8, last.utf8).prefix { $0 == $1 }.map(\.0), as: UTF8.self)
        guard let slash = common.lastIndex(of: "/") else { return "" }
        return String(common[...slash])
    }

    /// Compares the list with a proof, as a look at the object itself would.
    package func verification(of proof: Proof) -> Verification {
        guard let object = objects[Array(proof.key.utf8)] else {
            return .missing("it is not in the destination's list")
        }
        return VerifyOrder(proof: proof).compare(size: object.size, etag: object.etag)
    }
}
