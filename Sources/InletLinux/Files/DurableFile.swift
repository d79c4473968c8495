import CLinux
import Glibc
import InletCore
package import SystemPackage

/// Changes to files that are on the disk, whole or not at all, when the call returns. Every call blocks.
package enum DurableFile {
    /// Puts `bytes` at `path`, over a file that is there: a reader, or the next start after a power cut, sees the old
    /// content or the new, never a part. Nothing is left behind on failure.
    ///
    /// - Parameter asFolderOwner: what root writes belongs to the folder's owner, who shall be able to write it as well.
    package static func write(
        _ bytes: [UInt8], to path: FilePath, mode: UInt32, asFolderOwner: Bool = false
    ) throws(SystemError) {
        try put(bytes, at: path, mode, asFolderOwner: asFolderOwner, replacing: true)
    }

    /// Puts `bytes` at `path`, where nothing is yet: whole or not at all. Throws `isTaken` for a name that something has.
    package static func create(_ bytes: [UInt8], at path: FilePath, mode: UInt32) throws(SystemError) {
        try put(bytes, at: path, mode, asFolderOwner: false, replacing: false)
    }

    /// Gives a finished file the name `target`, over a file that is there, once its content is on the disk: a reader, or the
    /// next start after a power cut, sees the old content or the new. Both names are on one file system.
    package static func place(_ file: FilePath, at target: FilePath) throws(SystemError) {
        let descriptor = try Descriptor(opening: file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        try descriptor.synchronize(file)
        try rename(file, over: target)
        try syncDirectory(parent(of: target))
    }

    /// Makes the folder and those above it that are missing, each synced into the one above. `mode` is subject to the
    /// umask. A folder that is there already stays as it is.
    ///
    /// - Parameter asFolderOwner: what root makes belongs to the owner of the folder that it is in.
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

    /// Whether names can be made and removed in a folder, as far as the kernel can tell beforehand (`faccessat(2)`): not with
    /// missing rights, on a read-only file system, or where the folder is immutable.
    package static func requireWritable(_ path: FilePath) throws(SystemError) {
        _ = try SystemCall.result("access", path) {
            path.withPlatformString { faccessat(AT_FDCWD, $0, W_OK | X_OK, AT_EACCESS) }
        }
    }

    /// `fsync(2)` of a folder, which makes the names in it durable. File systems that cannot (`EINVAL`) are let off.
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

    /// The same of a file that is only in the way, or was not to be: what stays is replaced or left out by whoever comes next.
    package static func discard(_ path: FilePath) {
        // The error that counts, where there is one, is the caller's own.
        try? remove(path)
    }

    /// The content of a file that only tells more than has to be known, the kernel's own for example; nil where it cannot be read.
    package static func readIfPossible(_ path: FilePath, limit: Int) -> [UInt8]? {
        // Whoever asks takes nil for "not known", and goes on without it.
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

    /// The folder that `path` is in; `.` for a bare name.
    static func parent(of path: FilePath) -> FilePath {
        let parent = path.removingLastComponent()
        return parent.isEmpty ? "." : parent
    }

    private static func put(
        _ bytes: [UInt8], at path: FilePath, _ mode: UInt32, asFolderOwner: Bool, replacing: Bool
    ) throws(SystemError) {
        guard let name = path.lastComponent else {
            throw SystemError(call: "create", path: path, code: .isDirectory)
        }
        let folder = parent(of: path)
        if try !putUnnamed(bytes, at: path, name, mode, asFolderOwner: asFolderOwner, replacing: replacing) {
            let temporary = try TemporaryFile(in: folder, for: name)
            if asFolderOwner { FileOwner.give(temporary.descriptor.number, toOwnerOf: folder) }
            try write(bytes, mode, to: temporary.descriptor, temporary.path)
            if replacing { try rename(temporary.path, over: path) } else { try rename(temporary.path, to: path) }
            temporary.keep()
        }
        try syncDirectory(folder)
    }

    /// The file has a name only when it is on the disk: a process that dies while it waits for that leaves nothing.
    ///
    /// - Returns: false where that is not possible.
    private static func putUnnamed(
        _ bytes: [UInt8], at path: FilePath, _ name: FilePath.Component, _ mode: UInt32, asFolderOwner: Bool,
        replacing: Bool
    ) throws(SystemError) -> Bool {
        let folder = parent(of: path)
        guard let file = try UnnamedFile.make(in: folder) else { return false }
        if asFolderOwner { FileOwner.give(file.descriptor.number, toOwnerOf: folder) }
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
    /// Gives a file another name on the same file system, over what has it: not durable by itself. Blocks.
    package static func rename(_ file: FilePath, over target: FilePath) throws(SystemError) {
        _ = try SystemCall.result("rename", file, target: target) {
            file.withPlatformString { from in target.withPlatformString { Glibc.rename(from, $0) } }
        }
    }

    /// Gives a file another name on the same file system and never overwrites: `isTaken` when `target` exists,
    /// `EXDEV` when it is elsewhere. The rename is durable after `syncDirectory` of both folders. Blocks.
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

    /// `link(2)` refuses an existing name, so that a link and an unlink are a rename that never overwrites. A crash in
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
            // Then it has both names, and the caller the reason.
            discard(target)
            throw error
        }
    }

    /// For file systems without hard links (FAT, some FUSE): a name that appears after the look is overwritten.
    package static func renameAfterLook(_ path: FilePath, to target: FilePath) throws(SystemError) {
        guard case .missing = try FileLook.look(at: target) else {
            throw SystemError(call: "rename", path: path, target: target, code: .fileExists)
        }
        try rename(path, over: target)
    }

    /// Makes a symbolic link at `path` that leads to `target`; `isTaken` when something is there. Not durable. Blocks.
    package static func makeLink(_ path: FilePath, to target: FilePath) throws(SystemError) {
        _ = try SystemCall.result("symlink", path, target: target) {
            target.withPlatformString { target in path.withPlatformString { symlink(target, $0) } }
        }
    }

    /// Where the symbolic link at `path` leads, as it says so; nil where that cannot be read. Blocks.
    package static func target(ofLink path: FilePath) -> FilePath? {
        do throws(SystemError) { return try SystemCall.target(ofLink: path) } catch { return nil }
    }
}

extension SystemError {
    /// How `link(2)` says that the file system, or the kind of file, has no hard links.
    fileprivate var isLinkless: Bool {
        code == .notPermitted || code == .notSupported || code == .noFunction || code == .invalidArgument
            || code == .tooManyLinks
    }
}
