import Glibc
package import SystemPackage

/// A file to which text is appended. Others may move it away or delete it meanwhile.
package struct AppendFile: ~Copyable, Sendable {
    /// The file's identity and its size.
    package struct Status: Sendable, Hashable {
        package var device: UInt64
        package var inode: UInt64
        /// Bytes.
        package var size: Int64
        /// Not a FIFO, device or socket: these have no size and cannot be set aside.
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

    /// Opens the file, or creates it (0640). Symlinks are followed. Blocks.
    package init(_ path: FilePath) throws(SystemError) {
        self.path = path
        descriptor = try Descriptor(opening: path, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY, mode: 0o640)
    }

    /// Appends `bytes`. Blocks.
    ///
    /// - Returns: how many were written, and why not all of them.
    package func append(_ bytes: [UInt8]) -> (written: Int, error: SystemError?) {
        bytes.withUnsafeBytes { Descriptor.writeAll($0, to: descriptor.number, path) }
    }

    /// Removes the last `count` bytes appended just now: the part of a line for which the disk had room.
    ///
    /// - Returns: whether that worked: it does not where somebody has appended since, or where there are no bytes to
    ///   remove.
    package func takeBack(_ count: Int) -> Bool { Self.takeBack(count, through: descriptor.number) }

    /// The same for any open file `number`.
    static func takeBack(_ count: Int, through number: CInt) -> Bool {
        var status = stat()
        let end = lseek(number, 0, SEEK_CUR)
        guard end >= off_t(count), fstat(number, &status) == 0, status.isRegular,
            status.st_size == end, ftruncate(number, end - off_t(count)) == 0
        else { return false }
        // In a file that was not opened for appending, this would leave a hole.
        lseek(number, end - off_t(count), SEEK_SET)
        return true
    }

    package func status() throws(SystemError) -> Status { Status(try descriptor.status(path)) }

    /// The file at `path` now, symlinks followed; nil when there is none.
    package static func status(at path: FilePath) throws(SystemError) -> Status? {
        do throws(SystemError) {
            return Status(try SystemCall.status(of: path, following: true))
        } catch  where error.isMissing {
            return nil
        }
    }

    /// Whether a regular file ends with a complete line, as an empty one does; true where that cannot be read.
    package func endsWithLine() -> Bool {
        do throws(SystemError) {
            let status = try status()
            guard status.isRegular, status.size > 0 else { return true }
            let reader = try Descriptor(readingQuietly: path, O_NONBLOCK)
            var last = UInt8(ascii: "\n")
            _ = pread(reader.number, &last, 1, off_t(status.size - 1))
            return last == UInt8(ascii: "\n")
        } catch {
            // Unknown counts as complete.
            return true
        }
    }
}

/// A file that others append to, read as it grows, even when it is rotated or truncated.
package struct FollowedFile: ~Copyable {
    private let path: FilePath
    private var descriptor: Descriptor
    private var offset: Int64
    /// Whether another file is at the path now; the rest of this one comes first.
    private var isLeft = false

    /// The most bytes read at once.
    private static let piece = 64 << 10

    /// Opens it at its last `tail` bytes.
    package init(_ path: FilePath, tail: Int64) throws(SystemError) {
        let opened = try Descriptor(opening: path, O_RDONLY)
        let size = Int64(try opened.status(path).st_size)
        self.path = path
        descriptor = opened
        offset = max(0, size - tail)
    }

    /// Whether reading begins in the middle: the first line may be incomplete.
    package var isCut: Bool { offset > 0 }

    /// The next bytes; none when there are none yet.
    package mutating func next() throws(SystemError) -> [UInt8] {
        while true {
            let bytes = try read()
            if !bytes.isEmpty { return bytes }
            if isLeft {
                // The new file may be gone again.
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

    /// Whether the path leads to another file; a missing one does not count.
    private func isReplaced() throws(SystemError) -> Bool {
        var status = stat()
        guard path.withPlatformString({ fstatat(AT_FDCWD, $0, &status, 0) }) == 0 else { return false }
        let mine = try descriptor.status(path)
        return status.st_ino != mine.st_ino || status.st_dev != mine.st_dev
    }
}
