import CLinux
import Glibc
import InletCore
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
    ///
    /// - Parameters:
    ///   - start: the byte of the path at which the name begins.
    ///   - folder: the open folder that a relative path, or the name, begins at.
    ///   - shown: the path that an error names.
    init(
        opening path: FilePath, from start: Int = 0, in folder: CInt = AT_FDCWD, _ flags: CInt, mode: mode_t = 0,
        call: String = "open", shown: @autoclosure () -> FilePath? = nil
    ) throws(SystemError) {
        number = try SystemCall.result(call, shown() ?? path) {
            path.withPlatformString { inlet_open_at(folder, $0 + start, flags | O_CLOEXEC, mode) }
        }
    }

    /// Opens for reading without touching the access time where that is allowed: `O_NOATIME` is for owners only.
    init(
        readingQuietly path: FilePath, from start: Int = 0, in folder: CInt = AT_FDCWD, _ flags: CInt,
        call: String = "open", shown: @autoclosure () -> FilePath? = nil
    ) throws(SystemError) {
        let flags = flags | O_RDONLY
        do throws(SystemError) {
            self = try Descriptor(
                opening: path, from: start, in: folder, flags | inlet_o_noatime, call: call, shown: shown())
        } catch  where error.code == .notPermitted {
            self = try Descriptor(opening: path, from: start, in: folder, flags, call: call, shown: shown())
        }
    }

    /// Hands the number over to a caller that closes it.
    consuming func release() -> CInt {
        let number = number
        discard self
        return number
    }

    /// `fsync(2)`: returns when the device has the data. Blocks.
    func synchronize(_ path: FilePath?) throws(SystemError) {
        _ = try SystemCall.result("fsync", path) { fsync(number) }
    }

    /// Writes all of `bytes` to the descriptor `number`, at its own offset or at `offset`. Blocks.
    ///
    /// - Returns: how many were written, and why not all of them.
    static func writeAll(
        _ bytes: UnsafeRawBufferPointer, to number: CInt, at offset: Int64? = nil, _ path: FilePath?
    ) -> (written: Int, error: SystemError?) {
        var written = 0
        while written < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
            do throws(SystemError) {
                written += try SystemCall.result("write", path) {
                    guard let offset else { return Glibc.write(number, rest.baseAddress, rest.count) }
                    return pwrite(number, rest.baseAddress, rest.count, off_t(offset) + off_t(written))
                }
            } catch {
                return (written, error)
            }
        }
        return (written, nil)
    }

    /// The same; throws where not all of them could be written.
    static func write(
        _ bytes: UnsafeRawBufferPointer, to number: CInt, at offset: Int64? = nil, _ path: FilePath?
    ) throws(SystemError) {
        if let error = writeAll(bytes, to: number, at: offset, path).error { throw error }
    }

    static func write(_ bytes: [UInt8], to number: CInt, _ path: FilePath?) throws(SystemError) {
        if let error = bytes.withUnsafeBytes({ writeAll($0, to: number, path).error }) { throw error }
    }

    /// `fstat(2)`.
    func status(_ path: @autoclosure () -> FilePath?) throws(SystemError) -> stat {
        var status = stat()
        _ = try SystemCall.result("stat", path()) { fstat(number, &status) }
        return status
    }
}

/// The one place that turns `-1` and `errno` into a thrown error.
enum SystemCall {
    /// Repeats the call while a signal interrupts it, and throws when it answers -1.
    ///
    /// - Parameters: what an error names; paths are made for that alone.
    static func result<Result: SignedInteger>(
        _ call: String, _ path: @autoclosure () -> FilePath? = nil, target: @autoclosure () -> FilePath? = nil,
        _ body: () -> Result
    ) throws(SystemError) -> Result {
        try injected(call, path(), target())
        while true {
            let result = body()
            if result != -1 { return result }
            let code = errno
            if code != EINTR {
                throw SystemError(call: call, path: path(), target: target(), code: Errno(rawValue: code))
            }
        }
    }

    /// Throws where a test makes this call fail; does nothing in release builds.
    @inline(__always)
    static func injected(
        _ call: String, _ path: @autoclosure () -> FilePath?, _ target: @autoclosure () -> FilePath? = nil
    ) throws(SystemError) {
        #if DEBUG
            if let code = KernelFaults.next(call, path()) {
                throw SystemError(call: call, path: path(), target: target(), code: code)
            }
        #endif
    }

    /// The file at `path`: the symlink itself where there is one, unless it is followed (stat(2)).
    static func status(of path: FilePath, following: Bool = false) throws(SystemError) -> stat {
        var status = stat()
        _ = try result("stat", path) {
            path.withPlatformString { fstatat(AT_FDCWD, $0, &status, following ? 0 : AT_SYMLINK_NOFOLLOW) }
        }
        return status
    }

    /// The target text of the symlink `path` (readlinkat(2)).
    ///
    /// - Parameters:
    ///   - folder: the open folder at which a relative path begins, or with an empty path the open symlink itself.
    ///   - shown: the path that an error names.
    static func target(
        ofLink path: FilePath, in folder: CInt = AT_FDCWD, shown: FilePath? = nil
    ) throws(SystemError) -> FilePath {
        let most = Int(PATH_MAX)
        var text = [CChar](repeating: 0, count: most)
        let length = try result("readlink", shown ?? path) {
            path.withPlatformString { readlinkat(folder, $0, &text, most) }
        }
        return FilePath(bytes: text.prefix(length).map(UInt8.init(bitPattern:)))
    }
}
