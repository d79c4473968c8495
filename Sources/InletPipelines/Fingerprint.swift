package import InletCore
package import InletLinux
internal import InletTransfer

/// Checksums of sources outside a delivery: for keys that contain one, and for files that were touched after theirs.
package enum Fingerprint {
    /// The SHA-256 of the whole file, read on `pool`.
    ///
    /// - Parameter progress: called at every chunk, to show that a long read is alive.
    package static func sha256(
        of source: SourceFile, on pool: BlockingPool, progress: @escaping @Sendable () -> Void = {}
    ) async throws(DeliveryError) -> Digest {
        do {
            return try await Checksum.sha256(of: source, on: pool, progress: progress)
        } catch {
            throw DeliveryError(error)
        }
    }

    /// Whether the file still has the content that was proved, computed in the way it was proved.
    package static func matches(
        _ content: ContentHash, _ source: SourceFile, on pool: BlockingPool,
        progress: @escaping @Sendable () -> Void = {}
    ) async throws(DeliveryError) -> Bool {
        do {
            return try await Checksum.content(like: content, of: source, on: pool, progress: progress) == content
        } catch {
            throw DeliveryError(error)
        }
    }
}
