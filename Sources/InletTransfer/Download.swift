internal import FoundationEssentials
package import InletCore
package import InletLinux
package import SystemPackage

/// The object to fetch, and the facts known beforehand.
package struct Download: Sendable {
    /// The resulting file; its folder must exist.
    package var target: FilePath
    /// The required folder of the target; nil = wherever the path leads.
    package var folder: Folder?
    /// Its checksum, if known from elsewhere than the answer.
    package var digest: Digest?
    /// Whether a server's entity tag that looks like an MD5 is the content's, as in S3 stores.
    package var tagIsMD5 = false
    /// Why the fetched content is not the wanted one; nil where it is. Called once all of it has arrived.
    package var objection: (@Sendable (DownloadHead) -> String?)?
    /// The largest accepted length in bytes.
    package var limit: Int64
    /// Whether to replace a file at the target; otherwise it stays and the download fails.
    package var isReplacing: Bool
    /// The bytes received so far, and the total; called on the transfer's thread at every piece.
    package var progress: @Sendable (_ done: Int64, _ total: Int64?) -> Void

    package init(
        target: FilePath, in folder: Folder? = nil, digest: Digest? = nil, limit: Int64 = 1 << 50,
        replaces isReplacing: Bool = false,
        progress: @escaping @Sendable (_ done: Int64, _ total: Int64?) -> Void = { _, _ in }
    ) {
        self.target = target
        self.folder = folder
        self.digest = digest
        self.limit = limit
        self.isReplacing = isReplacing
        self.progress = progress
    }

    /// The length of the beginning that `objection` sees.
    static let headBytes = 512

    /// Beside the target, so that a rename completes it: `.NAME.inlet-part`, with NAME shortened to leave room for a
    /// note's name.
    package var partPath: FilePath {
        guard let name = target.lastComponent else { return target }
        let limit = FilePath.Component.longest - PartFile.noteEnding.utf8.count
        return target.removingLastComponent().appending(
            name.fitting(prefix: ".", suffix: ".inlet-part", limit: limit))
    }

    /// The target's folder and name, and the part-file's. Blocks.
    func place() throws(SystemError) -> (folder: Folder, name: FilePath.Component, part: FilePath.Component) {
        guard let name = target.lastComponent, let part = partPath.lastComponent else {
            throw SystemError(call: "create", path: target, code: .isDirectory)
        }
        let opened: Folder
        if let folder { opened = folder } else { opened = try Folder(following: target.removingLastComponent()) }
        return (opened, name, part)
    }
}

/// The facts by which a fetched file is judged. They are its first bytes (at most `Download.headBytes`), the server's
/// media type in lower case without parameters, and whether all bytes were compared with a checksum.
package typealias DownloadHead = (bytes: [UInt8], type: String?, isProved: Bool)

/// A file that was fetched completely, checked and synced. It has the SHA-256 read back from the file, and the checksum
/// it was compared with; none where only its length was known.
package typealias Downloaded = (path: FilePath, size: Int64, sha256: Digest, checked: [Digest])

/// The content of a part-file, as the server described it: kept beside it, so that a later process can ask for the rest
/// of the same thing. Decides; `OpenDownload` acts.
struct DownloadTag: Sendable, Equatable, Codable {
    /// A strong entity tag (RFC 9110, section 8.8.3), with quotes.
    var etag: String?
    /// `Last-Modified`, if it is old enough to be a strong validator (RFC 9110, section 8.8.2.2).
    var modified: String?
    /// Of the whole.
    var length: Int64?
    /// `Content-Type`, in lower case and without parameters.
    var type: String?
    /// The server's checksums of the whole.
    var digests: [Digest] = []
    /// Bytes that are certainly on disk.
    var synced: Int64 = 0
    /// The kernel's boot id at the time of writing: bytes of another boot that were not synced may be missing.
    var boot: String?

    init() {}

    /// The description of the body in `head`, a 200.
    /// - Parameter tagIsMD5: as for `Download`.
    init(_ head: HTTPResponse, tagIsMD5: Bool = false) {
        etag = head.header("ETag").flatMap { $0.hasPrefix("\"") && $0.utf8.count <= 1024 ? $0 : nil }
        if etag == nil, let text = head.header("Last-Modified"), let modified = WallTime(httpDate: text),
            let date = head.date, modified < date
        {
            self.modified = text
        }
        length = head.header("Content-Length").flatMap { Int64($0) }.flatMap { $0 >= 0 ? $0 : nil }
        type = head.header("Content-Type").map { $0.prefix { $0 != ";" && $0 != " " }.lowercased() }
        digests = Self.digests(head)
        if tagIsMD5, let md5 = Self.md5(head) { digests.append(md5) }
    }

    /// The MD5 in an object's tag. nil for objects of several parts, and for objects encrypted with their own keys,
    /// whose tags look alike but are not MD5s (S3, "Common response headers").
    private static func md5(_ head: HTTPResponse) -> Digest? {
        guard let tag = head.header("ETag"), tag.utf8.count == 34, tag.hasPrefix("\""), tag.hasSuffix("\""),
            let md5 = Digest(.md5, hex: tag.dropFirst().dropLast().lowercased())
        else { return nil }
        let isEncrypted =
            head.header("x-amz-server-side-encryption")?.hasPrefix("aws:kms") == true
            || head.header("x-amz-server-side-encryption-customer-algorithm") != nil
        return isEncrypted ? nil : md5
    }

    init?(_ note: [UInt8]?) {
        // A truncated note, or one of another version, is ignored: the bytes are fetched again.
        guard let tag = JSON.note(note, as: Self.self) else { return nil }
        self = tag
    }

    /// Empty, which counts as none, if it cannot be written.
    var note: [UInt8] { JSON.note(of: self) }

    /// The validator that makes a request for the rest safe (RFC 9110, section 13.1.5); nil when there is none.
    var validator: String? { etag ?? modified }

    /// The number of bytes, of `size` in the part-file, from which to continue.
    func trusted(of size: Int64, boot now: String?) -> Int64 {
        guard validator != nil, length.map({ size <= $0 }) ?? true else { return 0 }
        return boot != nil && boot == now ? size : min(size, synced)
    }

    /// The fields that ask for the rest after `offset` bytes; none for all of it.
    func fields(from offset: Int64) -> HTTPFields {
        guard offset > 0, let validator else { return [] }
        return [("Range", "bytes=\(offset)-"), ("If-Range", validator)]
    }

    enum RangeResponse: Equatable {
        /// All of it follows.
        case whole
        /// The missing rest of `total` bytes follows.
        case rest(total: Int64)
        /// Useless: our bytes do not fit the server's object.
        case startAgain
        /// Not a file.
        case refused
    }

    /// The meaning of an answer to a request for the rest after `offset` bytes.
    func judge(_ head: HTTPResponse, offset: Int64) -> RangeResponse {
        switch head.status {
        case 200: return .whole
        case 206 where offset > 0:
            guard let range = Self.range(head.header("Content-Range")), range.first == offset,
                range.last == range.total - 1, length == nil || length == range.total,
                etag == nil || head.header("ETag").map({ $0 == etag }) ?? true
            else { return .startAgain }
            return .rest(total: range.total)
        case 206, 416: return offset > 0 ? .startAgain : .refused
        default: return .refused
        }
    }

    /// Checksums of the whole: S3's, unless they are composed of parts', and RFC 9530's `Repr-Digest`.
    private static func digests(_ head: HTTPResponse) -> [Digest] {
        func bytes(_ text: String?, _ count: Int) -> [UInt8]? {
            text.flatMap { Data(base64Encoded: $0) }.flatMap { $0.count == count ? Array($0) : nil }
        }
        var digests: [Digest] = []
        let field = head.header("Repr-Digest")?.split(separator: ",").lazy
            .map { $0.drop { $0 == " " } }.first { $0.hasPrefix("sha-256=:") }
        let stated = field.map { String($0.dropFirst("sha-256=:".count).prefix { $0 != ":" }) }
        if let sum = bytes(stated ?? head.header("x-amz-checksum-sha256"), 32) { digests.append(Digest(.sha256, sum)) }
        if let sum = bytes(head.header("x-amz-checksum-crc32c"), 4) { digests.append(Digest(.crc32c, sum)) }
        if let sum = bytes(head.header("x-amz-checksum-crc64nvme"), 8) { digests.append(Digest(.crc64nvme, sum)) }
        if let sum = bytes(head.header("Content-MD5"), 16) { digests.append(Digest(.md5, sum)) }
        return digests
    }
}

extension DownloadTag {
    /// `Content-Range: bytes 5-9/10` (RFC 9110, section 14.4) with all three numbers known.
    static func range(_ text: String?) -> (first: Int64, last: Int64, total: Int64)? {
        guard let text, text.lowercased().hasPrefix("bytes ") else { return nil }
        let numbers = text.dropFirst(6).split(omittingEmptySubsequences: false) { "-/".contains($0) }
        guard numbers.count == 3, numbers.allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }),
            let first = Int64(numbers[0]), let last = Int64(numbers[1]), let total = Int64(numbers[2]),
            first <= last, last < total
        else { return nil }
        return (first, last, total)
    }
}
