import Glibc
package import SystemPackage

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
