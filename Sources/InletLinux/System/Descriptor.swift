import CLinux
import Glibc
import SystemPackage

/// The owner of one open file descriptor: closed when the value ends, never before, never twice.
package struct Descriptor: ~Copyable, Sendable {
    /// The number; valid as long as this value lives.
    let number: CInt

    /// Takes over an open descriptor.
    init(owning number: CInt) { self.number = number }

    // close(2) on Linux has released the number even when it answers EINTR: a second close could hit another thread's.
    deinit { close(number) }

    /// Opens `path` with `O_CLOEXEC` added to `flags`. May block on network file systems.
    init(
        opening path: FilePath, _ flags: CInt, mode: mode_t = 0, call: String = "open"
    ) throws(SystemError) {
        number = try SystemCall.result(call, path) {
            path.withPlatformString { inlet_open($0, flags | O_CLOEXEC, mode) }
        }
    }

    /// Opens for reading without touching the access time where that is allowed: `O_NOATIME` is for owners only.
    init(readingQuietly path: FilePath, _ flags: CInt, call: String = "open") throws(SystemError) {
        do throws(SystemError) {
            self = try Descriptor(opening: path, flags | O_RDONLY | inlet_o_noatime, call: call)
        } catch  where error.code == .notPermitted {
            self = try Descriptor(opening: path, flags | O_RDONLY, call: call)
        }
    }

    /// The same of a name in an open folder; `path` is for the error.
    init(
        opening name: FilePath, in folder: CInt, _ flags: CInt, mode: mode_t = 0, call: String = "open",
        _ path: FilePath
    ) throws(SystemError) {
        number = try SystemCall.result(call, path) {
            name.withPlatformString { inlet_open_at(folder, $0, flags | O_CLOEXEC, mode) }
        }
    }

    /// `fsync(2)`: returns when the device has the data. Blocks.
    func synchronize(_ path: FilePath?) throws(SystemError) {
        _ = try SystemCall.result("fsync", path) { fsync(number) }
    }

    /// Writes all of `bytes` at the current offset of the descriptor `number`. Blocks.
    static func write(_ bytes: UnsafeRawBufferPointer, to number: CInt, _ path: FilePath?) throws(SystemError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = UnsafeRawBufferPointer(rebasing: rest)
            let written = try SystemCall.result("write", path) { Glibc.write(number, piece.baseAddress, piece.count) }
            rest = rest.dropFirst(written)
        }
    }

    /// `fstat(2)`.
    func status(_ path: FilePath?) throws(SystemError) -> stat {
        var status = stat()
        _ = try SystemCall.result("stat", path) { fstat(number, &status) }
        return status
    }
}

/// The one place that turns `-1` and `errno` into a thrown error.
enum SystemCall {
    /// Makes the call again while a signal interrupts it, and throws when it answers -1.
    static func result<Result: SignedInteger>(
        _ call: String, _ path: FilePath? = nil, target: FilePath? = nil, _ body: () -> Result
    ) throws(SystemError) -> Result {
        try injected(call, path, target)
        while true {
            let result = body()
            if result != -1 { return result }
            if errno != EINTR { throw SystemError.last(call, path, target: target) }
        }
    }

    /// Throws where a test lets this call fail; does nothing in release builds.
    @inline(__always)
    static func injected(_ call: String, _ path: FilePath?, _ target: FilePath? = nil) throws(SystemError) {
        #if DEBUG
            if let code = KernelFaults.next(call, path) {
                throw SystemError(call: call, path: path, target: target, code: code)
            }
        #endif
    }

    /// `lstat(2)`: what is at `path` itself, symlinks not followed.
    static func status(of path: FilePath) throws(SystemError) -> stat {
        var status = stat()
        _ = try result("stat", path) {
            path.withPlatformString { fstatat(AT_FDCWD, $0, &status, AT_SYMLINK_NOFOLLOW) }
        }
        return status
    }
}
