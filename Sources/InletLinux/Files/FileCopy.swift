import CLinux
import Glibc
import InletCore
package import SystemPackage

/// Why a copy was not made. Nothing is left behind.
package enum FileCopyError: Error, Sendable, Hashable, CustomStringConvertible {
    /// `isCancelled` returned true.
    case cancelled
    /// The source ended before the length it had when it was opened.
    case sourceShort(FilePath, expected: Int64, found: Int64)
    /// The source cannot be read.
    case source(SystemError)
    /// The copy cannot be written; `isFull` means for want of space.
    case target(SystemError)

    package var description: String {
        switch self {
        case .cancelled: "copy cancelled"
        case .sourceShort(let path, let expected, let found):
            "read \(path.display): ends after \(found) of \(expected) bytes; it was changed while it was copied"
        case .source(let error), .target(let error): error.description
        }
    }
}

/// Copies a file into a folder under a temporary name. Its content is on disk before the call returns.
package enum FileCopy {
    /// Copies `source`, at its length when opened, to `.NAME.inlet-XXXXXXXX.tmp` in `directory`. It uses shared extents
    /// where the file system can (`FICLONE`), otherwise the kernel (`copy_file_range`), otherwise a buffer of 1 MiB.
    /// Permissions and mtime are kept, and so are `user.*` attributes and the ACL where the target can hold them.
    /// `progress` receives the bytes copied so far. Blocks.
    ///
    /// Returns the temporary file's path: the caller checks it, then renames or removes it.
    ///
    /// - Parameter draft: the temporary file's name where the caller noted it before, to find it after a crash without
    ///   a search; from `temporaryName`.
    package static func copy(
        _ source: SourceFile, toTemporaryIn directory: FilePath, name: FilePath.Component,
        as draft: FilePath.Component? = nil, isCancelled: () -> Bool, progress: (Int64) -> Void
    ) throws(FileCopyError) -> FilePath {
        let temporary = try onTarget { () throws(SystemError) -> TemporaryFile in
            if let draft { return try TemporaryFile(at: directory.appending(draft)) }
            return try TemporaryFile(in: directory, for: name)
        }
        var target = Target(number: temporary.descriptor.number, path: temporary.path)
        let length = source.opened.size
        var copied: Int64 = 0
        if clone(source, to: target.number) {
            copied = length
            progress(copied)
        }
        while copied < length {
            if isCancelled() { throw .cancelled }
            source.takeTurn(offset: copied, length: length - copied)
            let count = copyInKernel(source, to: target.number, at: copied)
            if count <= 0 { break }
            copied += count
            try onTarget { () throws(SystemError) in try target.advance(to: copied) }
            progress(copied)
        }
        // If the kernel's copy stops for any reason, the plain loop finds out which side is at fault, or succeeds.
        try copyThroughBuffer(source, to: &target, from: copied, isCancelled, progress)
        try onTarget { () throws(SystemError) in try target.finish(like: source) }
        temporary.keep()
        return target.path
    }

    /// A unique name for a copy of `name`.
    package static func temporaryName(for name: FilePath.Component) -> FilePath.Component {
        TemporaryFile.name(for: name).lastComponent ?? name
    }

    /// Whether a copy of `name` may have the temporary name `other`.
    package static func isTemporaryName(_ other: FilePath.Component, for name: FilePath.Component) -> Bool {
        isName(other.bytes, like: TemporaryFile.pattern(for: name))
    }

    private static func isName(_ bytes: [UInt8], like probe: (prefix: [UInt8], length: Int)) -> Bool {
        bytes.starts(with: probe.prefix) && bytes.count == probe.length && bytes.suffix(4).elementsEqual(".tmp".utf8)
    }

    /// The copy being written; its descriptor belongs to a `TemporaryFile`.
    private struct Target {
        let number: CInt
        let path: FilePath
        var synced: Int64 = 0

        /// Keeps the last fsync short, which no cancel can interrupt: at most 64 MiB wait for the device at any time.
        mutating func advance(to copied: Int64) throws(SystemError) {
            guard copied - synced >= 64 << 20 else { return }
            _ = try SystemCall.result("fsync", path) { fdatasync(number) }
            synced = copied
        }

        func finish(like source: SourceFile) throws(SystemError) {
            try FileCopy.copyAttributes(of: source, to: number, path)
            _ = try SystemCall.result("fsync", path) { fsync(number) }
        }
    }

    private static func clone(_ source: SourceFile, to target: CInt) -> Bool {
        guard source.opened.size > 0, inlet_clone(target, source.descriptor.number) == 0 else { return false }
        var status = stat()
        // A clone takes the whole file as it is now; a length that changed since opening uses the plain loop.
        if fstat(target, &status) == 0, Int64(status.st_size) == source.opened.size { return true }
        ftruncate(target, 0)
        return false
    }

    /// At most 8 MiB, so that a slow disk still reports progress and notices a cancel. 0 or less: this method does not
    /// work here.
    private static func copyInKernel(_ source: SourceFile, to target: CInt, at offset: Int64) -> Int64 {
        let count = Int(min(8 << 20, source.opened.size - offset))
        return Int64(inlet_copy_file_range(source.descriptor.number, offset, target, offset, count))
    }

    private static func copyThroughBuffer(
        _ source: SourceFile, to target: inout Target, from start: Int64, _ isCancelled: () -> Bool,
        _ progress: (Int64) -> Void
    ) throws(FileCopyError) {
        let length = source.opened.size
        guard start < length else { return }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        var (copied, nextTurn) = (start, start)
        try onTarget { () throws(SystemError) in
            _ = try SystemCall.result("write", target.path) { lseek(target.number, off_t(copied), SEEK_SET) }
        }
        while copied < length {
            if isCancelled() { throw .cancelled }
            if copied >= nextTurn {
                source.takeTurn(offset: copied, length: length - copied)
                nextTurn = copied + SourceFile.turnLength
            }
            let room = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(min(1 << 20, length - copied))])
            let count: Int
            do { count = try source.read(into: room, at: copied) } catch { throw .source(error) }
            if count == 0 { throw .sourceShort(source.path, expected: length, found: copied) }
            let piece = UnsafeRawBufferPointer(rebasing: room[..<count])
            copied += Int64(count)
            try onTarget { () throws(SystemError) in
                try Descriptor.write(piece, to: target.number, target.path)
                try target.advance(to: copied)
            }
            progress(copied)
        }
    }

    private static func onTarget<Value: ~Copyable>(
        _ body: () throws(SystemError) -> Value
    ) throws(FileCopyError) -> Value {
        do { return try body() } catch { throw .target(error) }
    }

    /// The same copy in an open folder. - Returns: the temporary file's name there.
    package static func copy(
        _ source: SourceFile, toTemporaryIn folder: Folder, name: FilePath.Component,
        as draft: FilePath.Component? = nil, isCancelled: () -> Bool, progress: (Int64) -> Void
    ) throws(FileCopyError) -> FilePath.Component {
        do throws(FileCopyError) {
            let path = try folder.apart { (path) throws(FileCopyError) in
                try copy(
                    source, toTemporaryIn: path, name: name, as: draft, isCancelled: isCancelled, progress: progress)
            }
            return path.lastComponent ?? name
        } catch {
            guard case .target(let cause) = error else { throw error }
            throw .target(folder.named(cause))
        }
    }

    /// The same for an open folder.
    package static func removeLeftovers(of name: FilePath.Component, in folder: Folder) {
        folder.apart { removeLeftovers(of: name, in: $0) }
    }

    /// Removes the temporary files that copies of `name` left in `directory` when their process died. Best effort; the
    /// caller ensures that no such copy runs. Blocks.
    package static func removeLeftovers(of name: FilePath.Component, in directory: FilePath) {
        let probe = TemporaryFile.pattern(for: name)
        do throws(SystemError) {
            var stream = try DirectoryStream(directory)
            while let entry = try stream.next() {
                guard entry.kind == .regular, isName(entry.name.bytes, like: probe) else { continue }
                DurableFile.discard(directory.appending(entry.name))
            }
        } catch {
            // A leftover takes space and is never read; the next copy of that name tries again.
        }
    }
}

extension FileCopy {
    /// Copies permissions, extended attributes and mtime onto the descriptor `target`.
    ///
    /// Set-user-ID and set-group-ID are dropped: the copy belongs to the agent's user, and would lend its rights.
    private static func copyAttributes(
        of source: SourceFile, to target: CInt, _ path: FilePath
    ) throws(SystemError) {
        for name in extendedNames(source.descriptor.number) { copyExtended(name, source.descriptor.number, target) }
        _ = try SystemCall.result("chmod", path) { fchmod(target, mode_t(source.mode & 0o777)) }
        let times = [
            timespec(tv_sec: 0, tv_nsec: inlet_utime_omit), timespec(nanoseconds: source.opened.modified),
        ]
        _ = try SystemCall.result("utimensat", path) { futimens(target, times) }
    }

    /// `security.*` and `trusted.*` carry rights or belong to their file system, so they stay behind.
    private static func extendedNames(_ descriptor: CInt) -> [[CChar]] {
        let length = flistxattr(descriptor, nil, 0)
        guard length > 0 else { return [] }
        var list = [CChar](repeating: 0, count: length)
        let filled = flistxattr(descriptor, &list, list.count)
        guard filled > 0 else { return [] }
        return list[..<filled].split(separator: 0).map { $0 + [0] }.filter { name in
            let text = String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
            return text.hasPrefix("user.") || text == "system.posix_acl_access"
        }
    }

    // Best effort: many targets (FAT, NFS, a full attribute block on ext4) cannot hold the source's attributes, and the
    // content is what matters.
    private static func copyExtended(_ name: [CChar], _ source: CInt, _ target: CInt) {
        let length = fgetxattr(source, name, nil, 0)
        guard length >= 0 else { return }
        var value = [UInt8](repeating: 0, count: length)
        let filled = fgetxattr(source, name, &value, value.count)
        if filled >= 0 { _ = fsetxattr(target, name, value, filled, 0) }
    }
}
