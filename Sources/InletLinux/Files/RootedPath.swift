import Glibc
package import InletCore
package import SystemPackage

/// A file named by a folder that an administrator chose and the path below it. Others may change the lower part at any
/// time: no symlink is followed there.
package struct RootedPath: Sendable, Hashable {
    /// Empty for a file that a person named by its full path, which is resolved as any program would.
    package var root: FilePath
    /// Below `root`.
    package var path: FilePath

    package init(_ root: FilePath, _ path: FilePath) {
        self.root = root
        self.path = path
    }

    /// For people, and for comparing names.
    package var whole: FilePath { root.pushing(path) }

    /// Its open parent folder, and its name there. A missing folder is reported like a missing file. Blocks.
    package func parent() throws(SystemError) -> (folder: Folder, name: FilePath.Component) {
        guard let name = path.lastComponent else {
            throw SystemError(call: "open", path: whole, code: .isDirectory)
        }
        do throws(SystemError) {
            let above = path.removingLastComponent()
            if root.isEmpty { return (try Folder(following: above), name) }
            return (try Folder(root).folder(above), name)
        } catch {
            if !error.isMissing { throw error }
            throw SystemError(call: "stat", path: whole, code: error.code, refusal: error.refusal)
        }
    }

    /// Opens the folder that this names. Blocks.
    package func folder() throws(SystemError) -> Folder { try Folder(root).folder(path) }
}

/// The folders of one tree, each opened once for consecutive questions about its names. Keeps two of them open: call
/// `close` when the turn is over.
package struct FolderCache: Sendable {
    package let root: FilePath
    private var top: Folder?
    private var last: (path: FilePath, folder: Folder)?

    package init(_ root: FilePath) { self.root = root }

    /// The folder at `path` below the root. Blocks.
    package mutating func folder(_ path: FilePath) throws(SystemError) -> Folder {
        if let last, last.path == path { return last.folder }
        let opened: Folder
        if let top { opened = top } else { opened = try Folder(root) }
        top = opened
        if path.isEmpty { return opened }
        let folder = try opened.folder(path)
        last = (path, folder)
        return folder
    }

    /// The file there; anything behind a symlink is missing. Blocks.
    package mutating func look(_ path: FilePath) throws(SystemError) -> FileLook {
        do throws(SystemError) {
            guard !path.isEmpty else { return .directory(try folder("").identity()) }
            let start = path.nameStart
            return try folder(of: path, before: start).look(endOf: path, from: start)
        } catch  where error.isMissing {
            return .missing
        }
    }

    /// Looks for a program that writes to the file there, which was a regular one a moment ago. Blocks.
    ///
    /// - Returns: also the file after that; nil where it cannot be opened.
    package mutating func probe(_ path: FilePath) throws(SystemError) -> (writer: LeaseProbe, file: FileLook?) {
        let start = path.nameStart
        return WriterProbe.look(endOf: path, from: start, in: try folder(of: path, before: start))
    }

    /// The whole content of a regular file that is still what it was: by its name before it is opened, and as it is open
    /// after the reading. Blocks.
    ///
    /// - Parameters:
    ///   - known: its identity; its size is the most that is read.
    ///   - rule: for its owner and names.
    /// - Returns: nil for any other file, and where reading returns more or less than the size. A `SourceFile` tells
    ///   the reason.
    package mutating func content(
        of path: FilePath, known: FileIdentity, _ rule: SourceRule
    ) throws(SystemError) -> [UInt8]? {
        let start = path.nameStart
        return try folder(of: path, before: start).content(endOf: path, from: start, known: known, rule)
    }

    /// The folder of a path whose last name begins at `start`. Neighbours have the one that is open.
    private mutating func folder(of path: FilePath, before start: Int) throws(SystemError) -> Folder {
        if let last, last.path.length == start - 1, path.isWithin(last.path) { return last.folder }
        return try folder(start == 0 ? "" : path.removingLastComponent())
    }

    package mutating func close() { (top, last) = (nil, nil) }
}

/// The file at a path, examined without opening it and without following a symlink.
package enum FileLook: Sendable, Hashable {
    case missing
    case directory(FileIdentity)
    /// `owner` is a user ID, `links` the number of hard links.
    case regular(FileIdentity, owner: UInt32, links: UInt64)
    case symlink
    /// A FIFO, socket or device.
    case other

    /// Looks by `lstat(2)`. A missing file is an answer, not an error, and so is an impossible name. May block on
    /// network file systems.
    package static func look(at path: FilePath) throws(SystemError) -> FileLook {
        do throws(SystemError) {
            return FileLook(try SystemCall.status(of: path))
        } catch  where error.isMissing || error.isUnnameable {
            return .missing
        }
    }

    /// The same without following a symlink below the root: anything behind one is missing.
    package static func look(at file: RootedPath) throws(SystemError) -> FileLook {
        do throws(SystemError) {
            if file.path.isEmpty { return .directory(try Folder(file.root).identity()) }
            let (folder, name) = try file.parent()
            return try folder.look(name)
        } catch  where error.isMissing || error.isUnnameable {
            return .missing
        }
    }

    init(_ status: stat) {
        self =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .regular(status.identity, owner: status.st_uid, links: UInt64(status.st_nlink))
            case S_IFDIR: .directory(status.identity)
            case S_IFLNK: .symlink
            default: .other
            }
    }

    /// Why `rule` leaves it out; nil for accepted files, and for anything but a regular file.
    package func refusal(by rule: SourceRule) -> SourceRule.Refusal? {
        if rule.isOff { return nil }
        guard case .regular(_, let owner, let links) = self else { return nil }
        return rule.refusal(owner: owner, links: links)
    }

    /// The identity of a regular file; nil for everything else.
    package var identity: FileIdentity? {
        if case .regular(let identity, _, _) = self { identity } else { nil }
    }
}

/// For callers to whom a missing file and an unknown one are the same: no descriptor is left, or a disk or server does
/// not answer. None of them takes that alone for the end of a file.
extension FileLook {
    /// A folder's identity; nil where it is missing or unknown. Blocks.
    package static func folder(at path: FilePath) -> FileIdentity? {
        // Such a folder is not the known one: its files wait, and opening it reports the reason.
        if case .directory(let identity)? = try? look(at: path) { identity } else { nil }
    }

    /// A file's identity; nil where it is missing or unknown. Blocks.
    package static func file(at path: RootedPath) -> FileIdentity? {
        // Opening it later reports the reason.
        (try? look(at: path))?.identity
    }

    /// False only where certainly nothing has the name. Blocks.
    package static func mayBeThere(_ path: RootedPath) -> Bool {
        // An unknown file may be there.
        (try? look(at: path)) != .missing
    }
}

extension FolderCache {
    /// As `FileLook.file(at:)`.
    package mutating func file(at path: FilePath) -> FileIdentity? {
        // Opening it later reports the reason.
        (try? look(path))?.identity
    }
}

extension stat {
    var isRegular: Bool { st_mode & S_IFMT == S_IFREG }
    var isDirectory: Bool { st_mode & S_IFMT == S_IFDIR }
    var isSymlink: Bool { st_mode & S_IFMT == S_IFLNK }
    /// `st_mode & 07777`.
    var permissions: UInt32 { UInt32(st_mode) & 0o7777 }

    var identity: FileIdentity {
        FileIdentity(
            size: Int64(st_size), modified: st_mtim.nanoseconds, changed: st_ctim.nanoseconds, inode: UInt64(st_ino),
            device: UInt64(st_dev))
    }
}

extension timespec {
    /// Nanoseconds since the epoch. Times beyond 64 bits (a damaged file system) wrap.
    var nanoseconds: Int64 { Int64(tv_sec) &* 1_000_000_000 &+ Int64(tv_nsec) }

    init(nanoseconds: Int64) {
        let rest = nanoseconds % 1_000_000_000
        let borrow: Int64 = rest < 0 ? 1 : 0
        self.init(
            tv_sec: time_t(nanoseconds / 1_000_000_000 - borrow), tv_nsec: Int(rest + borrow * 1_000_000_000))
    }
}
