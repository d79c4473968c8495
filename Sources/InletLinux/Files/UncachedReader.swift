import CLinux
import Glibc
package import SystemPackage

/// Reads a file back from the disk, past the page cache, to prove what was written. Not for two threads at once.
package struct UncachedReader: ~Copyable {
    /// Whether the reads are direct (`O_DIRECT`). Otherwise the file was synced and its cached pages given back before
    /// reading, which the kernel takes as advice.
    package private(set) var isDirect: Bool
    private let path: FilePath
    private let descriptor: Descriptor
    private let buffer: UnsafeMutableRawBufferPointer
    private let size: Int64
    private var offset: Int64 = 0

    // Logical blocks of disks have 512 or 4096 bytes; direct reads need buffer, offset and length in multiples of them.
    private static let alignment = 4096

    /// Opens a regular file; symlinks are not followed. Blocks.
    package init(_ path: FilePath) throws(SystemError) { try self.init(path, shown: path) }

    /// The same in an open folder.
    package static func open(
        _ name: FilePath.Component, in folder: Folder
    ) throws(SystemError) -> UncachedReader {
        let shown = folder.path.appending(name)
        return try folder.at(name) { (path) throws(SystemError) in try UncachedReader(path, shown: shown) }
    }

    private init(_ path: FilePath, shown: FilePath) throws(SystemError) {
        var direct = true
        let opened = try Self.open(path, &direct)
        let length = Int64(try opened.status(path).st_size)
        if !direct { try Self.dropCache(opened, path) }
        size = length
        self.path = shown
        isDirect = direct
        descriptor = opened
        buffer = .allocate(byteCount: 1 << 20, alignment: Self.alignment)
    }

    deinit { buffer.deallocate() }

    /// Hands the next bytes, at most 1 MiB, to `body`; false at the end. The bytes are valid within `body` only. Blocks.
    package mutating func next(_ body: (UnsafeRawBufferPointer) -> Void) throws(SystemError) -> Bool {
        try SystemCall.injected("read", path)
        if isDirect, offset % Int64(Self.alignment) != 0, offset < size { try leaveDirect() }
        var count = read()
        if count < 0, isDirect, errno == EINVAL {
            try leaveDirect()
            count = read()
        }
        if count < 0 { throw SystemError.last("read", path) }
        if count == 0 { return false }
        offset += Int64(count)
        body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        return true
    }

    private func read() -> Int {
        // At the end of a file whose length is no multiple of a block, some file systems answer EINVAL instead of 0.
        if offset >= size, isDirect { return 0 }
        while true {
            let count = pread(descriptor.number, buffer.baseAddress, buffer.count, off_t(offset))
            if count >= 0 || errno != EINTR { return count }
        }
    }

    private mutating func leaveDirect() throws(SystemError) {
        _ = try SystemCall.result("fcntl", path) { inlet_leave_direct(descriptor.number) }
        isDirect = false
        try Self.dropCache(descriptor, path)
    }

    private static func open(_ path: FilePath, _ direct: inout Bool) throws(SystemError) -> Descriptor {
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK
        do throws(SystemError) {
            return try Descriptor(opening: path, flags | inlet_o_direct)
        } catch  where error.code == .invalidArgument {
            direct = false
            return try Descriptor(opening: path, flags)
        }
    }

    private static func dropCache(_ descriptor: borrowing Descriptor, _ path: FilePath) throws(SystemError) {
        try descriptor.synchronize(path)
        posix_fadvise(descriptor.number, 0, 0, POSIX_FADV_DONTNEED)
    }
}
