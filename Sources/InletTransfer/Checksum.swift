package import InletCore
package import InletLinux

/// Checksums of bytes and of files. Files are read on a blocking thread through one buffer, each
/// file system on its own: one that does not answer holds up no other's.
package enum Checksum {
    private static let bufferSize = 128 * 1024
    /// For short slices: less than what the heap maps anew each time (`ProcessMemory.boundHeap`).
    private static let smallBufferSize = 48 * 1024

    package static func md5(_ bytes: some Sequence<UInt8>) -> Digest { MD5.digest(of: bytes) }

    package static func sha256(_ bytes: some Sequence<UInt8>) -> Digest { SHA256.digest(of: bytes) }

    /// The MD5 of `length` bytes from `offset`.
    ///
    /// - Parameter progress: called after each buffer, to show that a long read is alive.
    /// - Throws: `.sourceChanged` when the file ends before, `.sourceUnreadable`, `.cancelled` within one buffer of the
    ///   task's cancellation.
    package static func md5(
        of source: SourceFile, offset: Int64, length: Int64, on pool: BlockingPool,
        progress: @escaping @Sendable () -> Void = {}
    ) async throws(TransferError) -> Digest {
        try await pool.branch(source.opened.device).run { () throws(TransferError) in
            try read(MD5(), source, offset, length, progress)
        }
    }

    /// The SHA-256 of all that the file held when it was opened; throws as `md5(of:)` does.
    package static func sha256(
        of source: SourceFile, on pool: BlockingPool, progress: @escaping @Sendable () -> Void = {}
    ) async throws(TransferError) -> Digest {
        try await pool.branch(source.opened.device).run { () throws(TransferError) in
            try read(SHA256(), source, 0, source.opened.size, progress)
        }
    }

    private static func read(
        _ hash: some HashFunction, _ source: SourceFile, _ offset: Int64, _ length: Int64,
        _ progress: () -> Void
    ) throws(TransferError) -> Digest {
        var hash = hash
        try readAll(source, offset: offset, length: length) { piece in
            hash.update(piece)
            progress()
        }
        return hash.digest
    }

    /// Gives `take` the slice, piece by piece; throws as `md5(of:)` does. Blocks.
    static func readAll(
        _ source: SourceFile, offset: Int64, length: Int64, _ take: (UnsafeRawBufferPointer) -> Void
    ) throws(TransferError) {
        var rest = length
        let size = Int(min(Int64(length > 1 << 20 ? bufferSize : smallBufferSize), max(length, 1)))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 4096)
        defer { buffer.deallocate() }
        source.adviseSequential(offset: offset, length: min(length, 16 << 20))
        while rest > 0 {
            if Task.isCancelled { throw error(.cancelled, source, "the checksum was cancelled") }
            let room = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(min(rest, Int64(size)))])
            let count = try fill(room, from: source, at: offset + length - rest)
            take(UnsafeRawBufferPointer(rebasing: room[..<count]))
            rest -= Int64(count)
        }
    }

    private static func fill(
        _ room: UnsafeMutableRawBufferPointer, from source: SourceFile, at offset: Int64
    ) throws(TransferError) -> Int {
        let count: Int
        do throws(SystemError) {
            count = try source.read(into: room, at: offset)
        } catch { throw Self.error(.sourceUnreadable, source, "\(error)") }
        guard count > 0 else {
            throw error(.sourceChanged, source, "the file ended at byte \(offset): it has been cut")
        }
        return count
    }

    private static func error(_ code: ErrorCode, _ source: SourceFile, _ why: String) -> TransferError {
        TransferError(code, "\(source.path.display): \(why)", isOutage: false)
    }
}
