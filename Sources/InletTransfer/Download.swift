package import InletCore
package import InletLinux
package import SystemPackage

/// What is to be fetched, and what is known of it beforehand.
package struct Download: Sendable {
    /// The file that it becomes; its folder must exist.
    package var target: FilePath
    /// The folder that the target is in, where it must be this one; nil = the one that the path leads to.
    package var folder: Folder?
    /// Its length in bytes, where something other than the answer says so.
    package var length: Int64?
    /// Its checksum, where something other than the answer says so.
    package var digest: Digest?
    /// Whether a server's entity tag that looks like an MD5 is the content's, as it is in S3 stores.
    package var tagIsMD5 = false
    /// Why what was fetched is not what is wanted; nil where it is. Asked once all of it is here.
    package var objection: (@Sendable (DownloadHead) -> String?)?
    /// What is longer, in bytes, is refused.
    package var limit: Int64
    /// Permission bits of the file.
    package var mode: UInt32
    /// Whether a file that is at the target goes; otherwise it stays and the download fails.
    package var isReplacing: Bool
    /// Bytes that are there so far, of how many; called on the transfer's thread at every piece.
    package var progress: @Sendable (_ done: Int64, _ total: Int64?) -> Void

    package init(
        target: FilePath, in folder: Folder? = nil, length: Int64? = nil, digest: Digest? = nil, limit: Int64 = 1 << 50,
        mode: UInt32 = 0o644,
        replaces isReplacing: Bool = false,
        progress: @escaping @Sendable (_ done: Int64, _ total: Int64?) -> Void = { _, _ in }
    ) {
        self.target = target
        self.folder = folder
        self.length = length
        self.digest = digest
        self.limit = limit
        self.mode = mode
        self.isReplacing = isReplacing
        self.progress = progress
    }

    /// Beside the target, so that a rename ends it: `.NAME.inlet-part`, NAME shortened so that a note beside it has a name, too.
    package var partPath: FilePath {
        guard let name = target.lastComponent else { return target }
        let limit = FilePath.Component.longest - PartFile.noteEnding.utf8.count
        return target.removingLastComponent().appending(
            name.fitting(prefix: ".", suffix: ".inlet-part", limit: limit))
    }

    /// Where all of it is done. Blocks.
    struct Place {
        let folder: Folder
        let name: FilePath.Component
        let part: FilePath.Component
    }

    func place() throws(SystemError) -> Place {
        guard let name = target.lastComponent, let part = partPath.lastComponent else {
            throw SystemError(call: "create", path: target, code: .isDirectory)
        }
        let opened: Folder
        if let folder { opened = folder } else { opened = try Folder(following: target.removingLastComponent()) }
        return Place(folder: opened, name: name, part: part)
    }
}

/// What tells of a fetched file whether it is what was asked for.
package struct DownloadHead: Sendable, Equatable {
    /// How many of them there are at most.
    package static let most = 512

    /// The first bytes.
    package var bytes: [UInt8]
    /// The media type that the server gave, in lower case and without parameters.
    package var type: String?
    /// Whether all bytes were held against a checksum.
    package var isProved: Bool

    package init(bytes: [UInt8], type: String?, isProved: Bool) {
        self.bytes = bytes
        self.type = type
        self.isProved = isProved
    }
}

/// A file that was fetched whole, checked and synced.
package struct Downloaded: Sendable, Equatable {
    package var path: FilePath
    package var size: Int64
    /// The SHA-256 of what was written, read back from the file.
    package var sha256: Digest
    /// What the content was held against; empty where only its length was known.
    package var checked: [Digest]
}

/// How one request for a download ended.
package enum DownloadAnswer: Sendable {
    /// All bytes are in the part-file.
    case whole
    /// The server has other bytes than those that are here already, or will not say which; they were dropped, and the
    /// next request is for all of it.
    case startAgain
    /// An answer that is neither the file nor a part of it, such as an error.
    case refused(HTTPResponse)
}
