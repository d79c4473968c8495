import CLinux
import Glibc
import InletCore
package import SystemPackage

/// A file being received. It is written under its own name beside its target, by one process at a time, and continued
/// after a restart. A note beside it names the content of its bytes.
package final class PartFile: Sendable {
    /// The suffix that the note's name adds to the file's.
    package static let noteEnding = ".tag"

    private let folder: Folder
    private let name: FilePath.Component
    private let noteName: FilePath.Component
    private let descriptor: Descriptor

    private var path: FilePath { folder.path.appending(name) }

    /// Opens or creates the part-file `name` (mode 0600) and locks it with `flock(2)`. nil when another process, or
    /// another `PartFile` in this one, has it. Blocks.
    package init?(_ name: FilePath.Component, in folder: Folder) throws(SystemError) {
        let path = folder.path.appending(name)
        guard let noteName = FilePath(bytes: name.bytes + Self.noteEnding.utf8).lastComponent else {
            throw SystemError(call: "create", path: path, code: .invalidArgument)
        }
        let descriptor = try folder.at(name) { (path) throws(SystemError) in
            try Descriptor(opening: path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, mode: 0o600, call: "create")
        }
        guard try descriptor.lock(path) else { return nil }
        // Its former holder may have given it its final name since it was opened here; an unreadable name counts as
        // another file.
        let (opened, named) = (try descriptor.status(path), try? folder.status(name))
        guard opened.isRegular else {
            throw SystemError(call: "open", path: path, code: .invalidArgument, refusal: .notRegular)
        }
        guard opened.st_ino == named?.st_ino, opened.st_dev == named?.st_dev else { return nil }
        self.folder = folder
        self.name = name
        self.noteName = noteName
        self.descriptor = descriptor
    }

    /// Its content, for reading.
    package func source() throws(SystemError) -> SourceFile { try SourceFile(opening: name, in: folder) }

    package var size: Int64 {
        get throws(SystemError) { Int64(try descriptor.status(path).st_size) }
    }

    /// Writes all of `bytes` at `offset`; durable after `synchronize`.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) {
        try Descriptor.write(bytes, to: descriptor.number, at: offset, path)
    }

    package func truncate(to size: Int64) throws(SystemError) {
        _ = try SystemCall.result("truncate", path) { ftruncate(descriptor.number, off_t(size)) }
    }

    package func synchronize() throws(SystemError) { try descriptor.synchronize(path) }

    /// The note, at most 64 KiB; nil when there is none.
    package func note() -> [UInt8]? {
        // Without a readable note the bytes are fetched again.
        try? folder.read(noteName, limit: 64 << 10)
    }

    /// Replaces the note. Not synced: after a power cut it may be missing, empty, or newer than the file's bytes; after
    /// a killed process it is missing, empty or complete.
    package func setNote(_ bytes: [UInt8]) throws(SystemError) {
        removeNote()
        let descriptor = try folder.at(noteName) { (path) throws(SystemError) in
            try Descriptor(opening: path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600, call: "create")
        }
        try Descriptor.write(bytes, to: descriptor.number, folder.path.appending(noteName))
    }

    /// Best effort: a note that stays makes the next one fail with that reason, and counts for nothing without its
    /// bytes.
    package func removeNote() { folder.apart { DurableFile.discard($0.appending(noteName)) } }

    /// Gives the synced file its final name in the same folder, and `mode`, durably, and removes the note.
    ///
    /// - Parameter replacing: whether to replace a file of that name; otherwise `isTaken` is thrown for one.
    package func publish(as target: FilePath.Component, mode: UInt32, replacing: Bool) throws(SystemError) {
        _ = try SystemCall.result("chmod", path) { fchmod(descriptor.number, mode_t(mode)) }
        try synchronize()
        if replacing {
            try folder.at(name) { (from) throws(SystemError) in
                try folder.at(target) { (to) throws(SystemError) in try DurableFile.rename(from, over: to) }
            }
        } else {
            try folder.rename(name, to: folder, target)
        }
        removeNote()
        try folder.synchronize()
    }

    /// Removes the file and its note.
    package func remove() throws(SystemError) {
        removeNote()
        try folder.remove(name)
    }
}
