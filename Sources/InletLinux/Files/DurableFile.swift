import CLinux
import Glibc
import InletCore
package import SystemPackage

/// Changes to files that are complete on disk, or not made at all, when the call returns. Every call blocks.
package enum DurableFile {
    /// Writes `bytes` to `path`, replacing a file that is there. A reader, or the next start after a power cut, sees
    /// the old content or the new, never a part. Leaves nothing behind on failure.
    ///
    /// - Parameter asFolderOwner: files written by root belong to the folder's owner, so that the owner can write them
    ///   too.
    package static func write(
        _ bytes: [UInt8], to path: FilePath, mode: UInt32, asFolderOwner: Bool = false
    ) throws(SystemError) {
        try put(bytes, at: path, mode, owner: asFolderOwner ? .folder : .we, replacing: true)
    }

    /// Replaces the content of a file that is there, as `write` does; mode, owner and group stay. A symlink stays, too,
    /// and its target is replaced.
    ///
    /// - Throws: before anything is changed: for anything but a regular file, and with `EPERM` where we may not give a
    ///   file that owner.
    package static func replace(_ path: FilePath, with bytes: [UInt8]) throws(SystemError) {
        let real = path.realPath ?? path
        let status = try SystemCall.status(of: real)
        guard status.isRegular else { throw SystemError(call: "replace", path: path, code: .invalidArgument) }
        try put(
            bytes, at: real, status.permissions, owner: .of(user: status.st_uid, group: status.st_gid), replacing: true)
    }

    /// The future owner of a new file.
    private enum Owner {
        case we
        /// Where we are root.
        case folder
        case of(user: uid_t, group: gid_t)

        func take(_ descriptor: CInt, _ path: FilePath, in folder: FilePath) throws(SystemError) {
            switch self {
            case .we: break
            case .folder: FileOwner.give(descriptor, toOwnerOf: folder)
            case .of(let user, let group):
                _ = try SystemCall.result("chown", path) { fchown(descriptor, user, group) }
            }
        }
    }

    /// Writes `bytes` to `path`, where nothing may be yet: completely or not at all. Throws `isTaken` when the name
    /// exists.
    ///
    /// - Parameter asFolderOwner: as for `write`.
    package static func create(
        _ bytes: [UInt8], at path: FilePath, mode: UInt32, asFolderOwner: Bool = false
    ) throws(SystemError) {
        try put(bytes, at: path, mode, owner: asFolderOwner ? .folder : .we, replacing: false)
    }

    /// Renames a finished file to `target`, replacing a file that is there, once its content is on disk. A reader, or
    /// the next start after a power cut, sees the old content or the new. Both names are on one file system.
    package static func place(_ file: FilePath, at target: FilePath) throws(SystemError) {
        let descriptor = try Descriptor(opening: file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        try descriptor.synchronize(file)
        try rename(file, over: target)
        try syncDirectory(parent(of: target))
    }

    /// Creates the folder and missing ones above it, each synced into its parent. `mode` is subject to the umask. An
    /// existing folder stays unchanged.
    ///
    /// - Parameter asFolderOwner: folders created by root belong to the owner of their parent.
    package static func makeDirectories(
        _ path: FilePath, mode: UInt32, asFolderOwner: Bool = false
    ) throws(SystemError) {
        do throws(SystemError) {
            try makeDirectory(path, mode, asFolderOwner)
        } catch  where error.code == .noSuchFileOrDirectory && parent(of: path) != path {
            try makeDirectories(parent(of: path), mode: mode, asFolderOwner: asFolderOwner)
            try makeDirectory(path, mode, asFolderOwner)
        }
    }

    /// Whether names can be created and removed in a folder, as far as the kernel can tell beforehand (`faccessat(2)`).
    /// False without permission, on a read-only file system, and for an immutable folder.
    package static func requireWritable(_ path: FilePath) throws(SystemError) {
        _ = try SystemCall.result("access", path) {
            path.withPlatformString { faccessat(AT_FDCWD, $0, W_OK | X_OK, AT_EACCESS) }
        }
    }

    /// `fsync(2)` of a folder, which makes its names durable. File systems that cannot (`EINVAL`) are excused.
    package static func syncDirectory(_ path: FilePath) throws(SystemError) {
        let descriptor = try Descriptor(opening: path, O_RDONLY | O_DIRECTORY, call: "opendir")
        do throws(SystemError) {
            try descriptor.synchronize(path)
        } catch  where error.code == .invalidArgument || error.code == .notSupported {
            return
        }
    }

    /// Removes a file (not a folder). The removal is durable after `syncDirectory` of its folder.
    package static func remove(_ path: FilePath) throws(SystemError) {
        _ = try SystemCall.result("unlink", path) { path.withPlatformString { unlink($0) } }
    }

    /// The same for a file that is merely in the way: if it stays, the next user replaces or skips it.
    package static func discard(_ path: FilePath) {
        // If there is an error that matters, it is the caller's own.
        try? remove(path)
    }

    /// The content of an optional file, for example one of the kernel's; nil where it cannot be read.
    package static func readIfPossible(_ path: FilePath, limit: Int) -> [UInt8]? {
        // Callers take nil for "unknown", and continue without it.
        try? read(path, limit: limit)
    }

    /// The content of a file, symlinks followed. Throws `EFBIG` with `.tooLarge` above `limit` bytes, and `EAGAIN` for a
    /// FIFO whose writer sends nothing for 5 s.
    package static func read(_ path: FilePath, limit: Int) throws(SystemError) -> [UInt8] {
        let descriptor = try Descriptor(opening: path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
        var content: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = try read(descriptor, into: &chunk, path)
            if count == 0 { return content }
            if content.count + count > limit {
                throw SystemError(call: "read", path: path, code: .fileTooLarge, refusal: .tooLarge(limit: limit))
            }
            content += chunk[..<count]
        }
    }

    /// The parent folder of `path`; `.` for a bare name.
    static func parent(of path: FilePath) -> FilePath {
        let parent = path.removingLastComponent()
        return parent.isEmpty ? "." : parent
    }

    private static func put(
        _ bytes: [UInt8], at path: FilePath, _ mode: UInt32, owner: Owner, replacing: Bool
    ) throws(SystemError) {
        guard let name = path.lastComponent else {
            throw SystemError(call: "create", path: path, code: .isDirectory)
        }
        let folder = parent(of: path)
        if try !putUnnamed(bytes, at: path, name, mode, owner, replacing: replacing) {
            let temporary = try TemporaryFile(in: folder, for: name)
            try owner.take(temporary.descriptor.number, path, in: folder)
            try write(bytes, mode, to: temporary.descriptor, temporary.path)
            if replacing { try rename(temporary.path, over: path) } else { try rename(temporary.path, to: path) }
            temporary.keep()
        }
        try syncDirectory(folder)
    }

    /// The file gets its name only once it is on disk: a process that dies while waiting for that leaves nothing.
    ///
    /// - Returns: false where that is not possible.
    private static func putUnnamed(
        _ bytes: [UInt8], at path: FilePath, _ name: FilePath.Component, _ mode: UInt32, _ owner: Owner,
        replacing: Bool
    ) throws(SystemError) -> Bool {
        let folder = parent(of: path)
        guard let file = try UnnamedFile.make(in: folder) else { return false }
        try owner.take(file.descriptor.number, path, in: folder)
        try write(bytes, mode, to: file.descriptor, path)
        if replacing { return try file.place(at: path, in: folder, for: name) }
        try file.link(as: path)
        return true
    }

    private static func write(
        _ bytes: [UInt8], _ mode: UInt32, to descriptor: borrowing Descriptor, _ path: FilePath
    ) throws(SystemError) {
        let number = descriptor.number
        try Descriptor.write(bytes, to: number, path)
        _ = try SystemCall.result("chmod", path) { fchmod(number, mode_t(mode)) }
        try descriptor.synchronize(path)
    }

    private static func makeDirectory(_ path: FilePath, _ mode: UInt32, _ asFolderOwner: Bool) throws(SystemError) {
        do throws(SystemError) {
            _ = try SystemCall.result("mkdir", path) { path.withPlatformString { mkdir($0, mode_t(mode)) } }
        } catch  where error.isTaken {
            if try SystemCall.status(of: path, following: true).isDirectory { return }
            throw SystemError(call: "mkdir", path: path, code: .notDirectory)
        }
        if asFolderOwner { FileOwner.give(path, toOwnerOf: parent(of: path)) }
        try syncDirectory(parent(of: path))
    }

    private static func read(
        _ descriptor: borrowing Descriptor, into chunk: inout [UInt8], _ path: FilePath
    ) throws(SystemError) -> Int {
        let number = descriptor.number
        do throws(SystemError) {
            return try SystemCall.result("read", path) { Glibc.read(number, &chunk, chunk.count) }
        } catch  where error.code == .resourceTemporarilyUnavailable {
            var request = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
            guard poll(&request, 1, 5000) > 0 else { throw error }
            return try SystemCall.result("read", path) { Glibc.read(number, &chunk, chunk.count) }
        }
    }
}

extension DurableFile {
    /// Renames a file on the same file system, replacing any file of that name. Not durable by itself. Blocks.
    package static func rename(_ file: FilePath, over target: FilePath) throws(SystemError) {
        _ = try SystemCall.result("rename", file, target: target) {
            file.withPlatformString { from in target.withPlatformString { Glibc.rename(from, $0) } }
        }
    }

    /// Renames a file on the same file system and never overwrites: `isTaken` when `target` exists, `EXDEV` when it is
    /// elsewhere. Durable after `syncDirectory` of both folders. Blocks.
    package static func rename(_ path: FilePath, to target: FilePath) throws(SystemError) {
        do throws(SystemError) {
            _ = try SystemCall.result("rename", path, target: target) {
                path.withPlatformString { from in target.withPlatformString { inlet_rename_noreplace(from, $0) } }
            }
        } catch  where error.code == .invalidArgument || error.code == .noFunction {
            // The file system has no RENAME_NOREPLACE (NFS, older FUSE).
            try renameByLink(path, to: target)
        }
    }

    /// `link(2)` refuses an existing name, so a link and an unlink form a rename that never overwrites. A crash in
    /// between leaves both names on one file.
    package static func renameByLink(_ path: FilePath, to target: FilePath) throws(SystemError) {
        do throws(SystemError) {
            _ = try SystemCall.result("rename", path, target: target) {
                path.withPlatformString { from in target.withPlatformString { link(from, $0) } }
            }
        } catch  where error.isLinkless {
            return try renameAfterLook(path, to: target)
        }
        do throws(SystemError) {
            try remove(path)
        } catch {
            // The file then has both names, and the caller the reason.
            discard(target)
            throw error
        }
    }

    /// For file systems without hard links (FAT, some FUSE): a name that appears after the check is overwritten.
    package static func renameAfterLook(_ path: FilePath, to target: FilePath) throws(SystemError) {
        guard case .missing = try FileLook.look(at: target) else {
            throw SystemError(call: "rename", path: path, target: target, code: .fileExists)
        }
        try rename(path, over: target)
    }

    /// Gives a file another name, where nothing may be yet; durable. Blocks.
    package static func addName(_ other: FilePath, to path: FilePath) throws(SystemError) {
        _ = try SystemCall.result("link", path, target: other) {
            path.withPlatformString { from in other.withPlatformString { link(from, $0) } }
        }
        try syncDirectory(parent(of: other))
    }

    /// Creates a symbolic link at `path` to `target`; `isTaken` when the name exists. Not durable. Blocks.
    package static func makeLink(_ path: FilePath, to target: FilePath) throws(SystemError) {
        _ = try SystemCall.result("symlink", path, target: target) {
            target.withPlatformString { target in path.withPlatformString { symlink(target, $0) } }
        }
    }

    /// The target text of the symbolic link at `path`; nil where it cannot be read. Blocks.
    package static func target(ofLink path: FilePath) -> FilePath? {
        do throws(SystemError) { return try SystemCall.target(ofLink: path) } catch { return nil }
    }
}

extension SystemError {
    /// The errors by which `link(2)` reports that the file system, or this kind of file, has no hard links.
    fileprivate var isLinkless: Bool {
        code == .notPermitted || code == .notSupported || code == .noFunction || code == .invalidArgument
            || code == .tooManyLinks
    }
}
