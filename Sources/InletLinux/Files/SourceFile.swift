import CLinux
import Glibc
package import InletCore
import Synchronization
package import SystemPackage

/// The one opening of a source file per delivery. Every read, probe and comparison goes through it, so a file swapped
/// in under the same name cannot slip into a transfer.
package final class SourceFile: Sendable {
    package let path: FilePath
    /// The file's identity when it was opened.
    package let opened: FileIdentity
    /// Permission bits (`st_mode & 07777`).
    package let mode: UInt32
    let descriptor: Descriptor
    private let file: RootedPath
    /// Of its disk; nil where nothing bounds how many files are read at once.
    private let turns: DiskTurns?

    /// Opens a regular file for reading, without following a symlink, without waiting for a FIFO's writer and, where
    /// allowed, without changing the access time. Blocks.
    ///
    /// Throws `isNotRegular` for everything else; `EAGAIN` means that another process holds a lease (Samba's oplock).
    package convenience init(opening path: FilePath) throws(SystemError) {
        // The type is checked before opening: opening a device can act on it (a tape rewinds).
        guard try SystemCall.status(of: path).isRegular else { throw Self.notRegular(path) }
        try self.init(RootedPath("", path), { _ in nil }) { () throws(SystemError) in
            try Descriptor(readingQuietly: path, O_NONBLOCK | O_NOCTTY | O_NOFOLLOW)
        }
    }

    /// The same without following a symlink below the root.
    ///
    /// - Parameter turns: those of the file's device; nil where nothing bounds how many files are read at once.
    package convenience init(
        opening file: RootedPath, turns: (_ device: UInt64) -> DiskTurns? = { _ in nil }
    ) throws(SystemError) {
        if file.root.isEmpty {
            try self.init(opening: file.path)
        } else {
            let (folder, name) = try file.parent()
            try self.init(opening: name, in: folder, of: file, turns: turns)
        }
    }

    /// The same in an open folder.
    package convenience init(opening name: FilePath.Component, in folder: Folder) throws(SystemError) {
        try self.init(opening: name, in: folder, of: RootedPath(folder.path, FilePath(root: nil, [name])))
    }

    /// - Parameter file: the same file by name, to check later whether the name still leads to it.
    package convenience init(
        opening name: FilePath.Component, in folder: Folder, of file: RootedPath,
        turns: (_ device: UInt64) -> DiskTurns? = { _ in nil }
    ) throws(SystemError) {
        guard try folder.status(name).isRegular else { throw Self.notRegular(file.whole) }
        try self.init(file, turns) { () throws(SystemError) in try folder.open(name, O_NONBLOCK | O_NOCTTY) }
    }

    private init(
        _ file: RootedPath, _ turns: (UInt64) -> DiskTurns?, _ open: () throws(SystemError) -> Descriptor
    )
        throws(SystemError)
    {
        path = file.whole
        self.file = file
        do throws(SystemError) {
            descriptor = try open()
        } catch  where error.code == .tooManySymbolicLinkLevels || error.code == .noSuchAddressOrDevice {
            throw Self.notRegular(path)
        }
        let status = try descriptor.status(path)
        guard status.isRegular else { throw Self.notRegular(path) }
        opened = status.identity
        self.turns = turns(opened.device)
        mode = status.permissions
    }

    /// Reads at `offset` and returns the number of bytes, 0 at the end; may be fewer than requested. Blocks.
    package func read(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(SystemError) -> Int {
        try SystemCall.result("read", path) {
            pread(descriptor.number, buffer.baseAddress, buffer.count, off_t(offset))
        }
    }

    /// The whole content of a small file. Throws `EFBIG` with `.tooLarge` above `limit` bytes. Blocks.
    package func content(limit: Int) throws(SystemError) -> [UInt8] {
        let bytes = try content(of: limit + 1)
        if bytes.count <= limit { return bytes }
        throw SystemError(call: "read", path: path, code: .fileTooLarge, refusal: .tooLarge(limit: limit))
    }

    /// `length` bytes from `offset` on, or fewer at the end of the file. Blocks.
    package func content(of length: Int, at offset: Int64 = 0) throws(SystemError) -> [UInt8] {
        var failure: SystemError?
        let bytes = [UInt8](unsafeUninitializedCapacity: length) { room, filled in
            do throws(SystemError) {
                while filled < length {
                    let rest = UnsafeMutableRawBufferPointer(
                        rebasing: UnsafeMutableRawBufferPointer(room)[filled..<length])
                    let more = try read(into: rest, at: offset + Int64(filled))
                    if more == 0 { return }
                    filled += more
                }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        // Callers that keep a short content do not keep room for all of `length`.
        return bytes.count < length ? bytes.withUnsafeBytes { Array($0) } : bytes
    }

    /// The opened file's current identity, whatever its name.
    package func identity() throws(SystemError) -> FileIdentity { try descriptor.status(path).identity }

    /// The same, with its owner and its number of names.
    package func look() throws(SystemError) -> FileLook { FileLook(try descriptor.status(path)) }

    /// Whether reading returns more than the size, although nobody appended: a program generates the content as it is
    /// read (`/proc`, FUSE with `direct_io`), and nothing tells where it ends. Blocks.
    package func exceedsItsSize() throws(SystemError) -> Bool {
        let size = try identity().size
        return try withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { (room) throws(SystemError) in
            if try read(into: room, at: size) == 0 { return false }
            return try identity().size == size
        }
    }

    /// The file that its name leads to.
    package enum Naming: Sendable, Hashable {
        /// This very file.
        case it
        case another(FileIdentity)
        /// Not a regular file: nothing, or a symlink, folder, FIFO or device.
        case nothing
    }

    /// The file that the name leads to now, resolved as at its opening. Blocks.
    ///
    /// - Throws: the error that prevented looking: no descriptor, a disk or server that does not answer, an unreadable
    ///   folder. Nothing is known of the file then.
    package func naming() throws(SystemError) -> Naming {
        guard let now = try FileLook.look(at: file).identity else { return .nothing }
        let isIt = now.inode == opened.inode && now.device == opened.device || isRenumbered(now, since: opened)
        return isIt ? .it : .another(now)
    }

    /// Whether `now` and `before` are one file to which its file system has given other numbers (NFS, FUSE, mergerfs, a
    /// remount): no program can set a ctime back. FAT keeps none.
    package func isRenumbered(_ now: FileIdentity, since before: FileIdentity) -> Bool {
        guard now.isKnown(as: before), now.changed == before.changed else { return false }
        return FileSystemKind(of: descriptor.number)?.modifiedTolerance == 0
    }

    /// At most this much is read in one turn: some 50 ms of a disk that turns.
    package static let turnLength: Int64 = 8 << 20

    /// Whether its disk has turns.
    package var hasTurns: Bool { turns != nil }

    /// Reads the range into the page cache in the disk's turn, at most `turnLength` bytes; nothing where the disk has no
    /// turns. Blocks until it is this file's turn, and until it is read.
    package func takeTurn(offset: Int64, length: Int64) {
        guard let turns, length > 0 else { return }
        turns.take {
            withUnsafeTemporaryAllocation(byteCount: 128 << 10, alignment: 4096) { room in
                var (place, end) = (offset, min(offset + min(length, Self.turnLength), opened.size))
                while place < end {
                    let count = pread(descriptor.number, room.baseAddress, room.count, off_t(place))
                    // The reader itself finds out what is wrong.
                    if count <= 0 { end = place }
                    place += Int64(count)
                }
            }
        }
    }

    /// Tells the kernel that the range will be read soon and in order; advice only. Its own read-ahead covers short
    /// ranges.
    package func adviseSequential(offset: Int64, length: Int64) {
        // With turns, reading ahead is part of them.
        guard length > 128 << 10, turns == nil else { return }
        posix_fadvise(descriptor.number, off_t(offset), off_t(length), POSIX_FADV_SEQUENTIAL)
        posix_fadvise(descriptor.number, off_t(offset), off_t(length), POSIX_FADV_WILLNEED)
    }

    /// Releases the range from the page cache, so that a large transfer does not displace other programs' data; advice
    /// only.
    package func dropCache(offset: Int64, length: Int64) {
        posix_fadvise(descriptor.number, off_t(offset), off_t(length), POSIX_FADV_DONTNEED)
    }

    private static func notRegular(_ path: FilePath) -> SystemError {
        SystemError(call: "open", path: path, code: .invalidArgument, refusal: .notRegular)
    }
}

extension SourceFile {
    /// Whether almost nothing of the range is in the page cache: up to a sixteenth may be there from read-ahead.
    ///
    /// Asks mincore(2), which reads nothing and leaves the cache as it is. It answers the file's owner and those who
    /// may write to it (Linux 5.2); to others it reports everything as cached. So does this, and where it cannot be
    /// known.
    package func isUncached(offset: Int64, length: Int64) -> Bool {
        let page = Int64(sysconf(Int32(_SC_PAGESIZE)))
        let start = offset / page * page
        let (size, pages) = (Int(offset + length - start), Int((offset + length - start + page - 1) / page))
        guard size > 0, let place = mmap(nil, size, PROT_READ, MAP_SHARED, descriptor.number, off_t(start)),
            place != MAP_FAILED
        else { return false }
        defer { munmap(place, size) }
        var present = [UInt8](repeating: 0, count: pages)
        guard mincore(place, size, &present) == 0 else { return false }
        return present.count { $0 & 1 == 1 } <= pages / 16
    }
}

/// Small files of one folder, each read at once: six system calls.
extension Folder {
    /// As `FolderCache.content`, of the path's last name, which begins at `start`.
    func content(
        endOf path: FilePath, from start: Int, known: FileIdentity, _ rule: SourceRule
    ) throws(SystemError) -> [UInt8]? {
        guard try look(endOf: path, from: start).identity?.isUntouched(since: known) == true else { return nil }
        let file = try open(endOf: path, from: start, O_NONBLOCK | O_NOCTTY)
        let size = Int(known.size)
        var (count, isWhole) = (0, false)
        // One byte more: a program may generate more than its size says.
        let bytes = [UInt8](unsafeUninitializedCapacity: size + 1) { room, filled in
            while count <= size {
                let more = pread(file.number, room.baseAddress.map { $0 + count }, size + 1 - count, off_t(count))
                if more < 0, errno == EINTR { continue }
                isWhole = more == 0 && count == size
                if more <= 0 { break }
                count += more
            }
            filled = min(count, size)
        }
        guard isWhole else { return nil }
        let look = FileLook(try file.status(shown(endOf: path)))
        return look.identity?.isUntouched(since: known) == true && look.refusal(by: rule) == nil ? bytes : nil
    }
}

/// Reads a file from the disk, past the page cache: to prove what was written, or to read a source a second time. Leaves
/// access times alone where allowed. Not for two threads at once.
package struct UncachedReader: ~Copyable {
    /// The file's identity when it was opened.
    package let opened: FileIdentity
    /// The speed of the reads so far.
    package private(set) var pace = ReadPace()
    /// Whether the reads are direct (`O_DIRECT`). Otherwise the file was synced and its cached pages released before
    /// reading, which the kernel takes as advice.
    package private(set) var isDirect: Bool
    private let path: FilePath
    private let descriptor: Descriptor
    /// Two pieces: the disk fills one while the other is in use.
    private let buffer: UnsafeMutableRawBufferPointer
    private var offset: Int64 = 0
    private var isSecond = false

    private static let pieceLength = 512 << 10

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
        let descriptor = try Self.open(path, &direct)
        let identity = try descriptor.status(path).identity
        if !direct { try Self.dropCache(descriptor, path) }
        opened = identity
        self.path = shown
        isDirect = direct
        self.descriptor = descriptor
        buffer = .allocate(byteCount: 2 * Self.pieceLength, alignment: Self.alignment)
    }

    deinit { buffer.deallocate() }

    /// Passes the next bytes, at most 512 KiB, to `body`; false at the end. The bytes are valid within `body` only.
    /// Blocks.
    package mutating func next(_ body: (UnsafeRawBufferPointer) -> Void) throws(SystemError) -> Bool {
        let piece = try piece()
        if piece.isEmpty { return false }
        body(piece)
        return true
    }

    /// The next bytes, none at the end; valid until the call after the next one. Blocks.
    mutating func piece() throws(SystemError) -> UnsafeRawBufferPointer {
        try SystemCall.injected("read", path)
        if isDirect, offset % Int64(Self.alignment) != 0, offset < opened.size { try leaveDirect() }
        let start = ContinuousClock.now
        var count = read()
        if count < 0, isDirect, errno == EINVAL {
            try leaveDirect()
            count = read()
        }
        if count < 0 { throw SystemError.last("read", path) }
        let piece = UnsafeRawBufferPointer(rebasing: room.prefix(count))
        if count == 0 { return piece }
        pace.add(count, in: .now - start)
        // Nobody reads it from the cache again.
        if !isDirect { posix_fadvise(descriptor.number, off_t(offset), off_t(count), POSIX_FADV_DONTNEED) }
        offset += Int64(count)
        isSecond.toggle()
        return piece
    }

    /// Whether all that the file had when it was opened has been read.
    fileprivate var isAtEnd: Bool { offset >= opened.size }

    private var room: Slice<UnsafeMutableRawBufferPointer> {
        isSecond ? buffer[Self.pieceLength...] : buffer[..<Self.pieceLength]
    }

    private func read() -> Int {
        // At the end of a file whose length is not a multiple of a block, some file systems answer EINVAL instead of 0.
        if isAtEnd, isDirect { return 0 }
        let room = UnsafeMutableRawBufferPointer(rebasing: room)
        while true {
            let count = pread(descriptor.number, room.baseAddress, room.count, off_t(offset))
            if count >= 0 || errno != EINTR { return count }
        }
    }

    private mutating func leaveDirect() throws(SystemError) {
        _ = try SystemCall.result("fcntl", path) { inlet_leave_direct(descriptor.number) }
        isDirect = false
        try Self.dropCache(descriptor, path)
    }

    private static func open(_ path: FilePath, _ direct: inout Bool) throws(SystemError) -> Descriptor {
        let flags = O_NOFOLLOW | O_NONBLOCK
        do throws(SystemError) {
            return try Descriptor(readingQuietly: path, flags | inlet_o_direct)
        } catch  where error.code == .invalidArgument {
            direct = false
            return try Descriptor(readingQuietly: path, flags)
        }
    }

    private static func dropCache(_ descriptor: borrowing Descriptor, _ path: FilePath) throws(SystemError) {
        try descriptor.synchronize(path)
        posix_fadvise(descriptor.number, 0, 0, POSIX_FADV_DONTNEED)
    }
}

/// Reads a file past the page cache, one piece ahead: the disk works while the caller does.
package final class UncachedPieces: Sendable {
    private let reader: Mutex<UncachedReader>
    private let path: FilePath

    /// `@unchecked`: only the caller of `each` looks at the bytes, and the reader writes nothing there meanwhile.
    private struct Piece: @unchecked Sendable {
        let bytes: UnsafeRawBufferPointer
        let isLast: Bool
    }

    /// Opens a regular file; symlinks are not followed. Blocks.
    package init(_ name: FilePath.Component, in folder: Folder) throws(SystemError) {
        path = folder.path.appending(name)
        reader = Mutex(try UncachedReader.open(name, in: folder))
    }

    /// Passes all bytes to `body` on the caller's thread, which may block, and reads the next ones on `pool` meanwhile.
    /// The bytes are valid within `body` only. Ends within two pieces of the task's cancellation.
    package func each(
        on pool: BlockingPool, _ body: (UnsafeRawBufferPointer) -> Void
    ) async throws(SystemError) {
        var piece = try next()
        while !piece.isLast {
            async let following = pool.run { Result { () throws(SystemError) in try next() } }
            body(piece.bytes)
            piece = try await following.get()
        }
        // A short file needs no other thread. Bytes that follow were appended meanwhile.
        while !piece.bytes.isEmpty {
            body(piece.bytes)
            piece = try next()
        }
    }

    private func next() throws(SystemError) -> Piece {
        if Task.isCancelled { throw SystemError(call: "read", path: path, code: .canceled) }
        return try reader.withLock { (reader) throws(SystemError) in
            let bytes = try reader.piece()
            // None also where the file has become shorter.
            return Piece(bytes: bytes, isLast: bytes.isEmpty || reader.isAtEnd)
        }
    }
}
