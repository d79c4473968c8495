internal import FoundationEssentials
package import InletCore
package import InletLinux
package import SystemPackage

/// The file to fetch, and the known facts about it.
package struct Download: Sendable {
    /// The file that it becomes; its folder must exist.
    package var target: FilePath
    /// The target's folder, if it must be this one; nil for the folder of the path.
    package var folder: Folder?
    /// Its checksum, if it is known from elsewhere than the answer.
    package var digest: Digest?
    /// Whether a server's entity tag that looks like an MD5 is the content's, as it is in S3 stores.
    package var tagIsMD5 = false
    /// Why the fetched file is not the requested one; nil if it is. Called when the file is complete.
    package var objection: (@Sendable (DownloadHead) -> String?)?
    /// The longest accepted file, in bytes.
    package var limit: Int64
    /// Whether a file that is at the target goes; otherwise it stays and the download fails.
    package var isReplacing: Bool
    /// Bytes that are there so far, of how many; called on the transfer's thread at every piece.
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

    /// How much of its beginning `objection` sees.
    static let headBytes = 512

    /// Beside the target, so that a rename ends it: `.NAME.inlet-part`, NAME shortened so that a note beside it has a
    /// name, too.
    package var partPath: FilePath {
        guard let name = target.lastComponent else { return target }
        let limit = FilePath.Component.longest - PartFile.noteEnding.utf8.count
        return target.removingLastComponent().appending(
            name.fitting(prefix: ".", suffix: ".inlet-part", limit: limit))
    }

    /// Where all of it is done: the target's folder and name, and the part-file's. Blocks.
    func place() throws(SystemError) -> (folder: Folder, name: FilePath.Component, part: FilePath.Component) {
        guard let name = target.lastComponent, let part = partPath.lastComponent else {
            throw SystemError(call: "create", path: target, code: .isDirectory)
        }
        let opened: Folder
        if let folder { opened = folder } else { opened = try Folder(following: target.removingLastComponent()) }
        return (opened, name, part)
    }
}

/// Shows whether a fetched file is the requested one: its first bytes (at most `Download.headBytes`), and the server's
/// media type in lower case without parameters. Also whether a checksum verified all bytes.
package typealias DownloadHead = (bytes: [UInt8], type: String?, isProved: Bool)

/// A file that was fetched completely, checked and synced. Contains the SHA-256 read back from the file, and the
/// checksum that verified the content; none if only its length was known.
package typealias Downloaded = (path: FilePath, size: Int64, sha256: Digest, checked: [Digest])

/// The server's description of a part-file's content: kept beside it, so that a later process can request the rest of
/// the same content. Decides; `OpenDownload` acts.
struct DownloadTag: Sendable, Equatable, Codable {
    /// A strong entity tag (RFC 9110, section 8.8.3), quotes and all.
    var etag: String?
    /// `Last-Modified`, if it is old enough to be a strong validator (RFC 9110, section 8.8.2.2).
    var modified: String?
    /// Of the whole.
    var length: Int64?
    /// `Content-Type`, in lower case and without parameters.
    var type: String?
    /// Checksums of the whole that the server gave.
    var digests: [Digest] = []
    /// Bytes that are surely on the disk.
    var synced: Int64 = 0
    /// The kernel's boot id when this was written: what another boot wrote without syncing may be missing.
    var boot: String?

    init() {}

    /// The description of a body in its `head`, a 200.
    /// - Parameter tagIsMD5: as `Download` has it.
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

    /// The MD5 in an object's tag. Objects of several parts have none, nor have those encrypted with their own keys:
    /// their tags look like an MD5, but are none (S3, "Common response headers").
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
        // One that is cut or of another version says nothing: the bytes are fetched once more.
        guard let tag = JSON.note(note, as: Self.self) else { return nil }
        self = tag
    }

    /// Empty, as none, should it ever not be written.
    var note: [UInt8] { JSON.note(of: self) }

    /// The condition that makes a request for the rest safe (RFC 9110, section 13.1.5); nil if there is none.
    var validator: String? { etag ?? modified }

    /// How many of `size` bytes in the part-file can be gone on with.
    func trusted(of size: Int64, boot now: String?) -> Int64 {
        guard validator != nil, length.map({ size <= $0 }) ?? true else { return 0 }
        return boot != nil && boot == now ? size : min(size, synced)
    }

    /// The fields that ask for what is missing after `offset` bytes; none for all of it.
    func fields(from offset: Int64) -> HTTPFields {
        guard offset > 0, let validator else { return [] }
        return [("Range", "bytes=\(offset)-"), ("If-Range", validator)]
    }

    enum RangeResponse: Equatable {
        /// All of it follows.
        case whole
        /// The missing rest of `total` bytes follows.
        case rest(total: Int64)
        /// Of no use: what is here does not fit what is there.
        case startAgain
        /// It is not a file.
        case refused
    }

    /// The use of an answer to a request for the rest after `offset` bytes.
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

    /// Checksums of the whole: those of S3 that are not composed of parts', and RFC 9530's `Repr-Digest`.
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
