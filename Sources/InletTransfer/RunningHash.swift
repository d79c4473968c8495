package import InletCore
package import InletLinux

internal import struct Crypto.SHA256

/// The SHA-256 of a file from its beginning up to a place that moves on, so that a whole file is hashed in steps beside
/// the sending of its pieces.
package struct RunningHash: Sendable {
    private var hash = SHA256()
    /// How many bytes of the file are in it.
    package private(set) var position: Int64 = 0

    package init() {}

    /// The hash with everything up to `end` in it, read on `pool`; itself when it is that far already.
    ///
    /// - Throws: as `Checksum.sha256(of:)`.
    package func advanced(
        to end: Int64, of source: SourceFile, on pool: BlockingPool
    ) async throws(TransferError) -> RunningHash {
        guard position < end else { return self }
        let start = self
        return try await pool.run { () throws(TransferError) in
            var result = start
            try Checksum.readAll(source, offset: start.position, length: end - start.position) {
                result.hash.update(bufferPointer: $0)
            }
            result.position = end
            return result
        }
    }

    package var digest: Digest { Digest(.sha256, hash.finalize()) }
}
