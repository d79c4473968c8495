import Glibc
package import SystemPackage

/// A file that text is added to at its end. Others may move it away or delete it meanwhile.
package struct AppendFile: ~Copyable, Sendable {
    /// Which file it is, and how much is in it.
    package struct Standing: Sendable, Hashable {
        package var device: UInt64
        package var inode: UInt64
        /// Bytes.
        package var size: Int64
        /// Not a FIFO, device or socket, which have no size and cannot be set aside.
        package var isRegular: Bool

        init(_ status: stat) {
            device = UInt64(status.st_dev)
            inode = UInt64(status.st_ino)
            size = Int64(status.st_size)
            isRegular = status.st_mode & S_IFMT == S_IFREG
        }

        package func isSame(as other: Standing) -> Bool { device == other.device && inode == other.inode }
    }

    package let path: FilePath
    private let descriptor: Descriptor

    /// Opens the file, or makes it (0640). Symlinks are followed. Blocks.
    package init(_ path: FilePath) throws(SystemError) {
        self.path = path
        descriptor = try Descriptor(opening: path, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY, mode: 0o640)
    }

    /// Adds `bytes`. Blocks.
    ///
    /// - Returns: how many were written, and why not all of them were.
    package func append(_ bytes: [UInt8]) -> (written: Int, error: SystemError?) {
        bytes.withUnsafeBytes { all in
            var rest = all[...]
            while !rest.isEmpty {
                let piece = UnsafeRawBufferPointer(rebasing: rest)
                do throws(SystemError) {
                    let count = try SystemCall.result("write", path) {
                        Glibc.write(descriptor.number, piece.baseAddress, piece.count)
                    }
                    rest = rest.dropFirst(count)
                } catch {
                    return (all.count - rest.count, error)
                }
            }
            return (all.count, nil)
        }
    }

    /// Takes back the last `count` bytes of those that were added just now: what the disk had room for of a line.
    ///
    /// - Returns: whether it could: not when somebody has added something since, or where there are no bytes to take back.
    package func takeBack(_ count: Int) -> Bool { Self.takeBack(count, through: descriptor.number) }

    /// The same for whatever is open as `number`.
    static func takeBack(_ count: Int, through number: CInt) -> Bool {
        var status = stat()
        let end = lseek(number, 0, SEEK_CUR)
        guard end >= off_t(count), fstat(number, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_size == end, ftruncate(number, end - off_t(count)) == 0
        else { return false }
        // A file that was not opened to append to would get a hole there.
        lseek(number, end - off_t(count), SEEK_SET)
        return true
    }

    package func standing() throws(SystemError) -> Standing { Standing(try descriptor.status(path)) }

    /// What is at `path` now, symlinks followed; nil when nothing is.
    package static func standing(at path: FilePath) throws(SystemError) -> Standing? {
        var status = stat()
        do throws(SystemError) {
            _ = try SystemCall.result("stat", path) { path.withPlatformString { fstatat(AT_FDCWD, $0, &status, 0) } }
            return Standing(status)
        } catch {
            if error.isMissing { return nil }
            throw error
        }
    }

    /// Gives a file another name, over what has it. Not durable: a log is not worth the wait for the disk.
    package static func move(_ path: FilePath, over target: FilePath) throws(SystemError) {
        _ = try SystemCall.result("rename", path, target: target) {
            path.withPlatformString { old in target.withPlatformString { rename(old, $0) } }
        }
    }

    /// Removes a file's name, likewise.
    package static func remove(_ path: FilePath) throws(SystemError) {
        _ = try SystemCall.result("unlink", path) { path.withPlatformString { unlink($0) } }
    }

    /// Whether a regular file's last byte ends a line, as that of an empty one does; true where that cannot be read.
    package func endsWithLine() -> Bool {
        guard let standing = try? standing(), standing.isRegular, standing.size > 0,
            let reader = try? Descriptor(readingQuietly: path, O_NONBLOCK)
        else { return true }
        var last: UInt8 = 0
        guard pread(reader.number, &last, 1, off_t(standing.size - 1)) == 1 else { return true }
        return last == UInt8(ascii: "\n")
    }
}
