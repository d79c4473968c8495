internal import CHash
internal import CISAL
internal import CXXHash
package import InletCore
package import InletLinux
package import SystemPackage

/// Checksums of bytes and of files. Files are read on a blocking thread through one buffer, each file system on its own
/// pool: one that does not answer holds up no other.
package enum Checksum {
    private static let bufferSize = 128 * 1024
    /// The buffer for short slices: smaller than the blocks that the heap maps separately (`ProcessMemory.boundHeap`).
    private static let smallBufferSize = 48 * 1024

    package static func md5(_ bytes: some Sequence<UInt8>) -> Digest { MD5.digest(of: bytes) }

    package static func sha256(_ bytes: some Sequence<UInt8>) -> Digest { SHA256.digest(of: bytes) }

    /// The SHA-256 of the file's content when it was opened, always read on `pool`; throws as `sums` does.
    package static func sha256(
        of source: SourceFile, on pool: BlockingPool, progress: @escaping @Sendable () -> Void = {}
    ) async throws(TransferError) -> Digest {
        try await pool.branch(source.opened.device).run { () throws(TransferError) in
            var hash = SHA256()
            try readAll(source, offset: 0, length: source.opened.size) { piece in
                hash.update(piece)
                progress()
            }
            return hash.digest
        }
    }

    /// Passes the slice to `take`, piece by piece; throws as `sums` does. Blocks.
    static func readAll(
        _ source: SourceFile, offset: Int64, length: Int64, _ take: (UnsafeRawBufferPointer) -> Void
    ) throws(TransferError) {
        let size = Int(min(Int64(length > 1 << 20 ? bufferSize : smallBufferSize), max(length, 1)))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 4096)
        defer { buffer.deallocate() }
        var reader = SliceReader(source, offset: offset, length: length)
        while reader.rest > 0 {
            if Task.isCancelled { throw .hashing(source, .cancelled, "the checksum was cancelled") }
            take(try reader.next(into: buffer))
        }
    }
}

/// Reads a slice of a file from its beginning to its end, in the turns of its disk.
struct SliceReader {
    let source: SourceFile
    private var offset: Int64
    /// The number of bytes to come.
    private(set) var rest: Int64
    /// How many are to come when the next turn begins.
    private var nextTurn: Int64

    init(_ source: SourceFile, offset: Int64, length: Int64) {
        (self.source, self.offset, rest, nextTurn) = (source, offset, length, length)
    }

    /// The next bytes, at most as many as fit into `room`; throws as `Checksum.sums` does. Blocks.
    mutating func next(into room: UnsafeMutableRawBufferPointer) throws(TransferError) -> UnsafeRawBufferPointer {
        if rest <= nextTurn {
            // In one go, so that a disk does not seek between slices that are read side by side.
            source.adviseSequential(offset: offset, length: min(rest, SourceFile.turnLength))
            source.takeTurn(offset: offset, length: rest)
            nextTurn = rest - SourceFile.turnLength
        }
        let room = UnsafeMutableRawBufferPointer(rebasing: room[..<Int(min(rest, Int64(room.count)))])
        let count: Int
        do throws(SystemError) {
            count = try source.read(into: room, at: offset)
        } catch { throw .hashing(source, .sourceUnreadable, "\(error)") }
        guard count > 0 else {
            throw .hashing(source, .sourceChanged, "the file ended at byte \(offset): it was truncated")
        }
        offset += Int64(count)
        rest -= Int64(count)
        return UnsafeRawBufferPointer(rebasing: room[..<count])
    }
}

extension TransferError {
    static func hashing(_ source: SourceFile, _ code: ErrorCode, _ why: String) -> TransferError {
        TransferError(code, "\(source.path.display): \(why)", isOutage: false)
    }
}

/// The SHA-256 of a file from its beginning up to a moving position, so that a whole file is hashed in steps while its
/// pieces are sent.
package struct RunningHash: Sendable {
    private var hash = SHA256()
    /// The number of bytes hashed.
    package private(set) var position: Int64 = 0

    package init() {}

    /// The most that one job of a pool reads: its few threads serve everybody, and a whole file may take minutes.
    package static let piece: Int64 = 16 << 20

    /// The hash of everything up to `end`, read on `pool`; unchanged when it is that far already.
    ///
    /// - Throws: as `Checksum.sha256(of:)`.
    package func advanced(
        to end: Int64, of source: SourceFile, on pool: BlockingPool
    ) async throws(TransferError) -> RunningHash {
        var hash = self
        while hash.position < end {
            // Even when the caller is on the pool itself: the next job gets the thread.
            if hash.position > position { await Task.yield() }
            hash = try await hash.withNextPiece(to: end, of: source, on: pool)
        }
        return hash
    }

    private func withNextPiece(
        to end: Int64, of source: SourceFile, on pool: BlockingPool
    ) async throws(TransferError) -> RunningHash {
        try await pool.branch(source.opened.device).run { () throws(TransferError) in
            var result = self
            let length = min(end - position, Self.piece)
            try Checksum.readAll(source, offset: position, length: length) { result.hash.update($0) }
            result.position += length
            return result
        }
    }

    package var digest: Digest { hash.digest }
}

/// The requested checksums of one slice of a file.
package typealias SliceSums = [Digest.Algorithm: Digest]

/// Computes several checksums in one pass.
package struct SliceHasher: Sendable {
    private var md5: MD5?
    private var sha256: SHA256?
    private var crc32c: UInt32?
    private var crc64nvme: UInt64?
    private var sha1: SHA1?
    private var xxh64: inlet_xxh64?
    /// For 64 and 128 bits.
    private var xxh3: (hash: XXH3, kinds: Set<Digest.Algorithm>)?
    private var c4: C4?

    package init(_ kinds: Set<Digest.Algorithm>) {
        md5 = kinds.contains(.md5) ? MD5() : nil
        sha256 = kinds.contains(.sha256) ? SHA256() : nil
        crc32c = kinds.contains(.crc32c) ? 0 : nil
        crc64nvme = kinds.contains(.crc64nvme) ? 0 : nil
        sha1 = kinds.contains(.sha1) ? SHA1() : nil
        xxh64 = kinds.contains(.xxh64) ? inlet_xxh64_begin() : nil
        let both = kinds.intersection([.xxh3, .xxh128])
        xxh3 = both.isEmpty ? nil : (XXH3(), both)
        c4 = kinds.contains(.c4) ? C4() : nil
    }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        md5?.update(bytes)
        sha256?.update(bytes)
        updateOthers(bytes)
    }

    /// Goes on with several slices at once: their MD5s and SHA-256s side by side, in a fraction of the time.
    ///
    /// - Parameter pieces: the next bytes of each slice.
    static func update(_ slices: inout [SliceHasher], with pieces: [UnsafeRawBufferPointer]) {
        update(&slices, \.md5, with: pieces)
        update(&slices, \.sha256, with: pieces)
        for (index, piece) in pieces.enumerated() { slices[index].updateOthers(piece) }
    }

    private static func update<Hash: HashFunction>(
        _ slices: inout [SliceHasher], _ hash: WritableKeyPath<SliceHasher, Hash?>,
        with pieces: [UnsafeRawBufferPointer]
    ) {
        let wanted = slices.indices.filter { slices[$0][keyPath: hash] != nil }
        var hashes = wanted.compactMap { slices[$0][keyPath: hash] }
        Hash.update(&hashes, with: wanted.map { pieces[$0] })
        for (index, moved) in zip(wanted, hashes) { slices[index][keyPath: hash] = moved }
    }

    private mutating func updateOthers(_ bytes: UnsafeRawBufferPointer) {
        sha1?.update(bytes)
        c4?.update(bytes)
        xxh3?.hash.update(bytes)
        if let start = bytes.baseAddress { xxh64?.update(start, bytes.count) }
        if let crc = crc32c, let start = bytes.baseAddress { crc32c = inlet_crc32c(crc, start, bytes.count) }
        if let crc = crc64nvme { crc64nvme = inlet_crc64nvme(crc, bytes.baseAddress, bytes.count) }
    }

    /// The checksums `kinds` of all of `bytes`.
    package static func sums(_ kinds: Set<Digest.Algorithm>, of bytes: [UInt8]) -> SliceSums {
        var hasher = SliceHasher(kinds)
        bytes.withUnsafeBytes { hasher.update($0) }
        return hasher.finish()
    }

    /// The checksums `kinds` of each of several contents, such as small files, side by side.
    package static func sums(_ kinds: Set<Digest.Algorithm>, ofEach contents: [[UInt8]]) -> [SliceSums] {
        if kinds.isEmpty { return contents.map { _ in [:] } }
        var hashers = contents.map { _ in SliceHasher(kinds) }
        var open: [UnsafeRawBufferPointer] = []
        // Each content's bytes stay in their place while those of the next ones are taken.
        func hash() {
            if open.count == contents.count { return update(&hashers, with: open) }
            contents[open.count].withUnsafeBytes { bytes in
                open.append(bytes)
                hash()
            }
        }
        hash()
        return hashers.map { $0.finish() }
    }

    /// CRC-32C (Castagnoli) and CRC-64/NVME begin with the most significant byte, as in S3; XXH64 and the two of XXH3 as
    /// well, as in media hash lists. All have the seed 0.
    package func finish() -> SliceSums {
        let all =
            [
                md5?.digest, sha256?.digest, crc32c.map { Digest(.crc32c, $0.bigEndianBytes) }, sha1?.digest,
                xxh64.map { Digest(.xxh64, $0.sum.bigEndianBytes) }, c4?.digest,
                crc64nvme.map { Digest(.crc64nvme, $0.bigEndianBytes) },
            ]
            + (xxh3.map { xxh3 in xxh3.kinds.map { xxh3.hash.digest($0) } } ?? [])
        return Dictionary(uniqueKeysWithValues: all.compactMap { $0.map { ($0.algorithm, $0) } })
    }
}

extension inlet_xxh64 {
    fileprivate mutating func update(_ start: UnsafeRawPointer, _ count: Int) {
        inlet_xxh64_update(&self, start, count)
    }

    fileprivate var sum: UInt64 { withUnsafePointer(to: self) { inlet_xxh64_digest($0) } }
}

/// XXH3 with seed 0. A value: copies continue independently.
private struct XXH3: Sendable {
    /// Only ever changed while it has one owner.
    private final class State: @unchecked Sendable {
        let pointer: UnsafeMutableRawPointer

        init(like other: State? = nil) {
            // It allocates less than a kilobyte.
            guard let made = inlet_xxh3_begin() else { preconditionFailure("no memory for a checksum") }
            pointer = made
            if let other { inlet_xxh3_copy(pointer, other.pointer) }
        }

        deinit { inlet_xxh3_end(pointer) }
    }

    private var state = State()

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        if !isKnownUniquelyReferenced(&state) { state = State(like: state) }
        inlet_xxh3_update(state.pointer, start, bytes.count)
    }

    func digest(_ kind: Digest.Algorithm) -> Digest {
        guard kind == .xxh128 else { return Digest(.xxh3, inlet_xxh3_digest(state.pointer).bigEndianBytes) }
        let bytes = [UInt8](unsafeUninitializedCapacity: Digest.Algorithm.xxh128.length) { room, filled in
            if let start = room.baseAddress { inlet_xxh128_digest(state.pointer, start) }
            filled = room.count
        }
        return Digest(.xxh128, bytes)
    }
}

extension Checksum {
    /// The checksums `kinds` of `length` bytes from `offset`, in one pass over the file.
    ///
    /// - Parameter progress: called after each buffer, to show that a long read is alive.
    /// - Throws: `.sourceChanged` when the file ends early, `.sourceUnreadable`, and `.cancelled` within one buffer of
    ///   the task's cancellation.
    package static func sums(
        _ kinds: Set<Digest.Algorithm>, of source: SourceFile, offset: Int64, length: Int64, on pool: BlockingPool,
        progress: @escaping @Sendable () -> Void = {}
    ) async throws(TransferError) -> SliceSums {
        // Two thread switches take longer than such a read. The agent's deliveries run on threads that may block.
        if length <= shortest { return try sums(kinds, source, offset, length, progress) }
        return try await pool.branch(source.opened.device).run { () throws(TransferError) in
            try sums(kinds, source, offset, length, progress)
        }
    }

    static let shortest: Int64 = 256 << 10

    static func sums(
        _ kinds: Set<Digest.Algorithm>, _ source: SourceFile, _ offset: Int64, _ length: Int64, _ progress: () -> Void
    ) throws(TransferError) -> SliceSums {
        var hasher = SliceHasher(kinds)
        try readAll(source, offset: offset, length: length) { piece in
            hasher.update(piece)
            progress()
        }
        return hasher.finish()
    }
}

extension Checksum {
    /// The SHA-256 of the content on disk, past the page cache. For a thread that may block: it hashes there, and reads
    /// on `pool` meanwhile. Ends within 1 MiB of a cancellation.
    package static func sha256(
        readingBack name: FilePath.Component, in folder: Folder, on pool: BlockingPool
    ) async throws(SystemError) -> Digest {
        var hash = SHA256()
        try await UncachedPieces(name, in: folder).each(on: pool) { hash.update($0) }
        return hash.digest
    }

    /// Computes `content` again from `source`, in the same way.
    package static func content(
        like content: ContentHash, of source: SourceFile, on pool: BlockingPool,
        progress: @escaping @Sendable () -> Void = {}
    ) async throws(TransferError) -> ContentHash {
        let (size, algorithm) = (source.opened.size, content.digest.algorithm)
        func digest(_ offset: Int64, _ length: Int64) async throws(TransferError) -> Digest {
            let sums = try await sums(
                [algorithm], of: source, offset: offset, length: length, on: pool, progress: progress)
            return sums[algorithm] ?? Digest(algorithm, [])
        }
        guard let partSize = content.partSize else {
            return ContentHash(digest: try await digest(0, size), partSize: nil)
        }
        var digests: [UInt8] = []
        var offset: Int64 = 0
        repeat {
            let length = min(partSize, size - offset)
            digests += try await digest(offset, length).bytes
            offset += length
        } while offset < size
        let whole = SliceHasher.sums([algorithm], of: digests)[algorithm]
        return ContentHash(digest: whole ?? Digest(algorithm, []), partSize: partSize)
    }
}
