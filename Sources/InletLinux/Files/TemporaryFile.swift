import CLinux
import Glibc
import InletCore
import SystemPackage

/// A new file beside the one it will become: created exclusively (`O_EXCL`, 0600), and removed when the value ends
/// unless it was kept.
struct TemporaryFile: ~Copyable {
    let path: FilePath
    let descriptor: Descriptor
    private var isKept = false

    /// Creates a file that already has its final name; throws `isTaken` where the name exists.
    init(at path: FilePath) throws(SystemError) {
        descriptor = try Self.create(path)
        self.path = path
    }

    /// Creates `.NAME.inlet-XXXXXXXX.tmp` in `directory`; a long NAME becomes its beginning and a number computed from
    /// all of it.
    init(in directory: FilePath, for name: FilePath.Component) throws(SystemError) {
        var tries = 0
        while true {
            let path = directory.pushing(Self.name(for: name))
            do throws(SystemError) {
                descriptor = try Self.create(path)
                self.path = path
                return
            } catch {
                tries += 1
                if !error.isTaken || tries == 100 { throw error }
            }
        }
    }

    deinit { if !isKept { _ = path.withPlatformString { unlink($0) } } }

    private static func create(_ path: FilePath) throws(SystemError) -> Descriptor {
        try Descriptor(opening: path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600, call: "create")
    }

    /// Gives up ownership of the file: it stays, and the descriptor is closed.
    consuming func keep() { isKept = true }

    /// The common start of every temporary name for `name`, and the length of each, in bytes.
    static func pattern(for name: FilePath.Component) -> (prefix: [UInt8], length: Int) {
        let bytes = name.bytes
        let marker = ".inlet-"
        let rest = randomDigits + ".tmp".utf8.count
        let room = longest - 1 - marker.utf8.count - rest
        // Names that begin with the same letters must not share temporary names.
        let number = bytes.count > room ? "~" + KeySanitizer.hash(bytes) : ""
        let head = FilePath.Component.head(of: bytes[...], within: room - number.utf8.count)
        let prefix = [UInt8(ascii: ".")] + head + number.utf8 + marker.utf8
        return (prefix, prefix.count + rest)
    }

    /// Always the same: the next call replaces the file of a process that died between naming it and the last rename.
    static func fixedName(for name: FilePath.Component) -> FilePath {
        FilePath(
            bytes: pattern(for: name).prefix + [UInt8](repeating: UInt8(ascii: "0"), count: randomDigits) + ".tmp".utf8)
    }

    /// No file system in common use has less room for a name (eCryptfs).
    private static let longest = 143
    private static let randomDigits = 8

    static func name(for name: FilePath.Component) -> FilePath {
        let random = String(UInt64.random(in: 0..<2_821_109_907_456), radix: 36)
        let padded = String(repeating: "0", count: randomDigits - random.count) + random
        return FilePath(bytes: pattern(for: name).prefix + padded.utf8 + ".tmp".utf8)
    }
}

/// A new file without a name (open(2), `O_TMPFILE`), 0600: nothing is left of it when its process dies.
struct UnnamedFile: ~Copyable {
    let descriptor: Descriptor

    private init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

    /// nil where the kernel or the file system of `directory` has no such files, or `/proc` is missing to name them by.
    static func make(in directory: FilePath) throws(SystemError) -> UnnamedFile? {
        do throws(SystemError) {
            let file = UnnamedFile(
                try Descriptor(opening: directory, inlet_o_tmpfile | O_RDWR, mode: 0o600, call: "create"))
            if access(place(of: file.descriptor.number), F_OK) != 0 { return nil }
            return file
        } catch {
            // Kernels before 3.11 take the flag for a folder that is opened for writing.
            let unknown: [Errno] = [.notSupported, .isDirectory, .invalidArgument]
            if unknown.contains(error.code) { return nil }
            throw error
        }
    }

    /// Gives it its first name. Throws `isTaken` where the name exists.
    func link(as path: FilePath) throws(SystemError) {
        _ = try SystemCall.result("link", path) {
            path.withPlatformString {
                linkat(AT_FDCWD, Self.place(of: descriptor.number), AT_FDCWD, $0, AT_SYMLINK_FOLLOW)
            }
        }
    }

    /// Gives it the name `path`, replacing a file that is there.
    ///
    /// - Returns: false when another process that writes the same file took the name away meanwhile: this file can no
    ///   longer be named.
    func place(at path: FilePath, in folder: FilePath, for name: FilePath.Component) throws(SystemError) -> Bool {
        let draft = folder.pushing(TemporaryFile.fixedName(for: name))
        do throws(SystemError) {
            try link(replacing: draft)
            try DurableFile.rename(draft, over: path)
            return true
        } catch {
            DurableFile.discard(draft)
            if error.isMissing { return false }
            throw error
        }
    }

    /// The file there is left from a process that died, or belongs to another that will notice.
    private func link(replacing draft: FilePath) throws(SystemError) {
        var tries = 0
        while true {
            do throws(SystemError) {
                return try link(as: draft)
            } catch {
                tries += 1
                if !error.isTaken || tries == 100 { throw error }
                // If it stays, the next attempt reports the reason.
                DurableFile.discard(draft)
            }
        }
    }

    private static func place(of number: CInt) -> String { "/proc/self/fd/\(number)" }
}
