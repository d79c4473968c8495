import CLinux
import Glibc
import InletCore
package import SystemPackage

/// A file on its way: written under a name of its own beside its target, by one process at a time, and gone on with after
/// a restart. A note beside it says what its bytes are of.
package final class PartFile: Sendable {
    package let path: FilePath
    private let notePath: FilePath
    private let descriptor: Descriptor

    /// Opens or makes the part-file at `path` (mode 0600) and locks it, as `flock(2)` does. nil when another process, or
    /// another `PartFile` in this one, has it. Blocks.
    package init?(_ path: FilePath) throws(SystemError) {
        let descriptor = try Descriptor(
            opening: path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, mode: 0o600, call: "create")
        do throws(SystemError) {
            _ = try SystemCall.result("flock", path) { inlet_lock(descriptor.number, LOCK_EX | LOCK_NB) }
        } catch {
            guard error.code == .resourceTemporarilyUnavailable else { throw error }
            return nil
        }
        // Whoever had it may have given it its final name since it was opened here.
        let (opened, named) = (try descriptor.status(path), try? SystemCall.status(of: path))
        guard opened.isRegular else {
            throw SystemError(call: "open", path: path, code: .invalidArgument, refusal: .notRegular)
        }
        guard opened.st_ino == named?.st_ino, opened.st_dev == named?.st_dev else { return nil }
        self.path = path
        self.descriptor = descriptor
        notePath = FilePath(bytes: path.bytes + ".tag".utf8)
    }

    package var size: Int64 {
        get throws(SystemError) { Int64(try descriptor.status(path).st_size) }
    }

    /// Writes all of `bytes` at `offset`; durable after `synchronize`.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) {
        var rest = bytes[...]
        var place = offset
        while !rest.isEmpty {
            let piece = UnsafeRawBufferPointer(rebasing: rest)
            let written = try SystemCall.result("write", path) {
                pwrite(descriptor.number, piece.baseAddress, piece.count, off_t(place))
            }
            rest = rest.dropFirst(written)
            place += Int64(written)
        }
    }

    package func truncate(to size: Int64) throws(SystemError) {
        _ = try SystemCall.result("truncate", path) { ftruncate(descriptor.number, off_t(size)) }
    }

    package func synchronize() throws(SystemError) { try descriptor.synchronize(path) }

    /// The note, at most 64 KiB; nil when there is none.
    package func note() -> [UInt8]? { try? DurableFile.read(notePath, limit: 64 << 10) }

    /// Replaces the note. Not synced: after a power cut it may be missing, empty, or newer than the file's bytes; after a
    /// killed process it is missing, empty or whole.
    package func setNote(_ bytes: [UInt8]) throws(SystemError) {
        removeNote()
        let descriptor = try Descriptor(
            opening: notePath, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600, call: "create")
        let number = descriptor.number
        try bytes.span.withUnsafeBytes { (all) throws(SystemError) in try Descriptor.write(all, to: number, notePath) }
    }

    package func removeNote() { try? DurableFile.remove(notePath) }

    /// Gives the synced file its final name and `mode`, durably, and drops the note.
    ///
    /// - Parameter replacing: whether a file that has the name goes; otherwise `isTaken` is thrown for one.
    package func publish(as target: FilePath, mode: UInt32, replacing: Bool) throws(SystemError) {
        _ = try SystemCall.result("chmod", path) { fchmod(descriptor.number, mode_t(mode)) }
        try synchronize()
        if replacing {
            _ = try SystemCall.result("rename", path, target: target) {
                path.withPlatformString { from in target.withPlatformString { Glibc.rename(from, $0) } }
            }
        } else {
            try DurableFile.rename(path, to: target)
        }
        removeNote()
        try DurableFile.syncDirectory(DurableFile.parent(of: target))
    }

    /// Removes the file and its note.
    package func remove() throws(SystemError) {
        removeNote()
        try DurableFile.remove(path)
    }
}
