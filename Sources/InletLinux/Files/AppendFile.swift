import Glibc
package import SystemPackage

/// A file that text is added to at its end. Others may move it away or delete it meanwhile.
package struct AppendFile: ~Copyable, Sendable {
    /// Which file it is, and how much is in it.
    package struct Status: Sendable, Hashable {
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
            isRegular = status.isRegular
        }

        package func isSame(as other: Status) -> Bool { device == other.device && inode == other.inode }
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
        bytes.withUnsafeBytes { Descriptor.writeAll($0, to: descriptor.number, path) }
    }

    /// Takes back the last `count` bytes of those that were added just now: what the disk had room for of a line.
    ///
    /// - Returns: whether it could: not when somebody has added something since, or where there are no bytes to take back.
    package func takeBack(_ count: Int) -> Bool { Self.takeBack(count, through: descriptor.number) }

    /// The same for whatever is open as `number`.
    static func takeBack(_ count: Int, through number: CInt) -> Bool {
        var status = stat()
        let end = lseek(number, 0, SEEK_CUR)
        guard end >= off_t(count), fstat(number, &status) == 0, status.isRegular,
            status.st_size == end, ftruncate(number, end - off_t(count)) == 0
        else { return false }
        // A file that was not opened to append to would get a hole there.
        lseek(number, end - off_t(count), SEEK_SET)
        return true
    }

    package func status() throws(SystemError) -> Status { Status(try descriptor.status(path)) }

    /// What is at `path` now, symlinks followed; nil when nothing is.
    package static func status(at path: FilePath) throws(SystemError) -> Status? {
        do throws(SystemError) {
            return Status(try SystemCall.status(of: path, following: true))
        } catch  where error.isMissing {
            return nil
        }
    }

    /// Whether a regular file's last byte ends a line, as that of an empty one does; true where that cannot be read.
    package func endsWithLine() -> Bool {
        do throws(SystemError) {
            let status = try status()
            guard status.isRegular, status.size > 0 else { return true }
            let reader = try Descriptor(readingQuietly: path, O_NONBLOCK)
            var last = UInt8(ascii: "\n")
            _ = pread(reader.number, &last, 1, off_t(status.size - 1))
            return last == UInt8(ascii: "\n")
        } catch {
            // It is not known to end within a line.
            return true
        }
    }
}

/// A file that others append to, read as it grows: also when it is renamed and begun anew (rotation), or cut to nothing.
package struct FollowedFile: ~Copyable {
    private let path: FilePath
    private var descriptor: Descriptor
    private var offset: Int64
    /// Whether another file is at the path now; what was still written to this one comes first.
    private var isLeft = false

    /// At most so many bytes are read at once.
    private static let piece = 64 << 10

    /// Opens it where its last `tail` bytes begin.
    package init(_ path: FilePath, tail: Int64) throws(SystemError) {
        let opened = try Descriptor(opening: path, O_RDONLY)
        let size = Int64(try opened.status(path).st_size)
        self.path = path
        descriptor = opened
        offset = max(0, size - tail)
    }

    /// Whether reading begins in the middle: the first line may be the end of one.
    package var isCut: Bool { offset > 0 }

    /// The next bytes; none when there are none yet.
    package mutating func next() throws(SystemError) -> [UInt8] {
        while true {
            let bytes = try read()
            if !bytes.isEmpty { return bytes }
            if isLeft {
                // The new one may have gone again meanwhile.
                guard let next = try? Descriptor(opening: path, O_RDONLY) else { return [] }
                descriptor = next
                (offset, isLeft) = (0, false)
            } else if Int64(try descriptor.status(path).st_size) < offset {
                offset = 0
            } else {
                isLeft = try isReplaced()
                if !isLeft { return [] }
            }
        }
    }

    private mutating func read() throws(SystemError) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: Self.piece)
        let count = try SystemCall.result("read", path) {
            pread(descriptor.number, &buffer, buffer.count, off_t(offset))
        }
        offset += Int64(count)
        return Array(buffer.prefix(count))
    }

    /// Whether the path leads to another file; nothing there is none.
    private func isReplaced() throws(SystemError) -> Bool {
        var status = stat()
        guard path.withPlatformString({ fstatat(AT_FDCWD, $0, &status, 0) }) == 0 else { return false }
        let mine = try descriptor.status(path)
        return status.st_ino != mine.st_ino || status.st_dev != mine.st_dev
    }
}
