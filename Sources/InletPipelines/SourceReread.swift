package import InletCore
package import InletLinux
import SystemPackage

/// A second read of a source past the page cache, compared with the checksums of its delivery (`source_check`): whether
/// the card gives the same bytes twice.
package struct SourceReread: Sendable, Hashable {
    package enum Outcome: Sendable, Hashable {
        case same
        /// With the reason, for people.
        case differs(String)
        /// No checksum is known: nothing was read.
        case nothingToCompare
    }

    package var outcome: Outcome
    /// Whether it was read past the cache for certain: elsewhere the kernel was only advised to drop it.
    package var isDirect = false
    /// The slowest second, in bytes per second; nil for shorter reads.
    package var slowest: Int64?
}

extension SourceDigests {
    /// Reads the whole file a second time on `pool`, and compares it with every known checksum.
    ///
    /// - Parameters:
    ///   - known: the identity that was delivered.
    ///   - tolerance: `FileSystemKind.modifiedTolerance` of its volume.
    ///   - digests: of the whole content.
    ///   - contents: of its proofs.
    ///   - progress: called at every chunk, to show that a long read is alive.
    /// - Throws: the error of the read; `ECANCELED` within 1 MiB of the task's cancellation.
    package static func reread(
        _ file: RootedPath, known: FileIdentity, tolerance: Int64, digests: [Digest], contents: [ContentHash],
        on pool: BlockingPool, progress: @escaping @Sendable () -> Void = {}
    ) async throws(SystemError) -> SourceReread {
        let whole = Set(digests + contents.filter { $0.partSize == nil }.map(\.digest))
        let composites = Set(contents.filter { $0.partSize.map { $0 > 0 } == true })
        guard !whole.isEmpty || !composites.isEmpty else { return SourceReread(outcome: .nothingToCompare) }
        return try await pool.branch(known.device).run { () throws(SystemError) in
            let (folder, name) = try file.parent()
            var reader = try UncachedReader.open(name, in: folder)
            guard reader.opened.isKnown(as: known, tolerance: tolerance) else {
                return SourceReread(outcome: .differs("its size or time changed after its delivery"))
            }
            var checks = [ContentCheck(size: known.size, Array(whole), nil)]
            checks += composites.map { ContentCheck(size: known.size, [], $0) }
            while try reader.next({ for index in checks.indices { checks[index].update($0) } }) {
                if Task.isCancelled { throw SystemError(call: "read", path: file.whole, code: .canceled) }
                progress()
            }
            var reread = SourceReread(outcome: .same, isDirect: reader.isDirect, slowest: reader.pace.slowest)
            for index in checks.indices {
                if case .differs(let reason) = checks[index].finish() { reread.outcome = .differs(reason) }
            }
            return reread
        }
    }
}
