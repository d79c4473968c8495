package import InletCore
package import InletLinux

/// The SHA-256 of a file from its beginning up to a place that moves on, so that a whole file is hashed in steps beside
/// the sending of its pieces.
package struct RunningHash: Sendable {
    private var hash = SHA256()
    /// How many bytes of the file are in it.
    package private(set) var position: Int64 = 0

    package init() {}

    /// What one job of a pool reads: its few threads serve everybody, and a whole file may take minutes.
    package static let piece: Int64 = 16 << 20

    /// The hash with everything up to `end` in it, read on `pool`; itself when it is that far already.
    ///
    /// - Throws: as `Checksum.sha256(of:)`.
    package func advanced(
        to end: Int64, of source: SourceFile, on pool: BlockingPool
    ) async throws(TransferError) -> RunningHash {
        var hash = self
        while hash.position < end {
            // Also where the caller is on the pool itself: whoever waits for the thread is next.
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
