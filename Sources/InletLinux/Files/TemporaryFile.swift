import CLinux
import Glibc
import InletCore
import SystemPackage

/// A new file beside the one it will become: created by this process alone (`O_EXCL`, 0600), removed when the value ends
/// unless it was kept.
struct TemporaryFile: ~Copyable {
    let path: FilePath
    let descriptor: Descriptor
    private var isKept = false

    /// Makes a file that has the name already; throws `isTaken` where something has it.
    init(at path: FilePath) throws(SystemError) {
        descriptor = try Self.create(path)
        self.path = path
    }

    /// Makes `.NAME.inlet-XXXXXXXX.tmp` in `directory`; a long NAME is its beginning and a number made of all of it.
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

    /// Ends the ownership of the file: it stays, and the descriptor is closed.
    consuming func keep() { isKept = true }

    /// What every temporary name for `name` begins with, and the length of each, in bytes.
    static func pattern(for name: FilePath.Component) -> (prefix: [UInt8], length: Int) {
        let bytes = name.bytes
        let marker = ".inlet-"
        let rest = randomDigits + ".tmp".utf8.count
        let room = longest - 1 - marker.utf8.count - rest
        // Others that begin with the same letters must not have the same temporary names.
        let number = bytes.count > room ? "~" + KeySanitizer.hash(bytes) : ""
        let head = FilePath.Component.head(of: bytes[...], within: room - number.utf8.count)
        let prefix = [UInt8(ascii: ".")] + head + number.utf8 + marker.utf8
        return (prefix, prefix.count + rest)
    }

    /// Always the same one: what a process left that died between giving it and the last rename is replaced the next time.
    static func fixedName(for name: FilePath.Component) -> FilePath {
        FilePath(
            bytes: pattern(for: name).prefix + [UInt8](repeating: UInt8(ascii: "0"), count: randomDigits) + ".tmp".utf8)
    }

    /// No file system that people use has less room for a name (eCryptfs).
    private static let longest = 143
    private static let randomDigits = 8

    static func name(for name: FilePath.Component) -> FilePath {
        let random = String(UInt64.random(in: 0..<2_821_109_907_456), radix: 36)
        let padded = String(repeating: "0", count: randomDigits - random.count) + random
        return FilePath(bytes: pattern(for: name).prefix + padded.utf8 + ".tmp".utf8)
    }
}
