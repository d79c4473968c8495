package import InletCore
package import InletLinux
internal import InletTransfer

/// Holds a source against what was admitted.
enum SourceGuard {
    /// - Throws: `.sourceGone` when the path names no file, `.sourceChanged` when it names another one or the content may
    ///   differ, and an outage of this machine's when that cannot be known now.
    static func check(_ source: SourceFile, _ order: DeliveryOrder) throws(DeliveryError) {
        let (naming, now) = try DeliveryError.onReading((source.naming(), source.identity()))
        switch naming {
        case .it: break
        case .another:
            throw DeliveryError(
                .sourceChanged, .sourceChanged,
                "\(source.path.display): replaced before it was delivered; the new one is taken when it is quiet")
        case .nothing:
            throw DeliveryError(.sourceGone, .sourceGone, "\(source.path.display): removed before it was delivered")
        }
        guard now.isUntouched(since: order.source) || source.isRenumbered(now, since: order.source) else {
            let change = now.size == order.source.size ? "was modified" : "grew or shrank"
            throw DeliveryError(
                .sourceChanged, .sourceChanged,
                "\(source.path.display): \(change) since it was admitted; its new content is taken when it is quiet")
        }
    }
}

/// Checksums of sources outside a delivery: for keys that contain one, and for files that were touched after theirs.
package enum Fingerprint {
    /// The SHA-256 of the whole file, read on `pool`.
    ///
    /// - Parameter progress: called at every chunk, to show that a long read is alive.
    package static func sha256(
        of source: SourceFile, on pool: BlockingPool, progress: @escaping @Sendable () -> Void = {}
    ) async throws(DeliveryError) -> Digest {
        try await DeliveryError.onTransfer(await Checksum.sha256(of: source, on: pool, progress: progress))
    }

    /// The checksums `algorithms` of the whole file, in one read on `pool`; `progress` as `sha256(of:)` calls it.
    package static func digests(
        _ algorithms: Set<Digest.Algorithm>, of source: SourceFile, on pool: BlockingPool,
        progress: @escaping @Sendable () -> Void = {}
    ) async throws(DeliveryError) -> [Digest] {
        let kinds = algorithms.reduce(into: SumKinds()) { $0.insert(SumKinds($1)) }
        let sums = try await DeliveryError.onTransfer(
            await Checksum.sums(
                kinds, of: source, offset: 0, length: source.opened.size, on: pool, progress: progress))
        return algorithms.compactMap { sums.sum($0) }
    }

    /// Whether the file still has the content that was proved, computed in the way it was proved.
    package static func matches(
        _ content: ContentHash, _ source: SourceFile, on pool: BlockingPool,
        progress: @escaping @Sendable () -> Void = {}
    ) async throws(DeliveryError) -> Bool {
        try await DeliveryError.onTransfer(
            await Checksum.content(like: content, of: source, on: pool, progress: progress)) == content
    }
}
