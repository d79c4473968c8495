package import InletCore
package import InletLinux
package import SystemPackage

extension Checksum {
    /// The SHA-256 of what the disk holds, past the page cache. Reads on `pool`; ends within 1 MiB of a cancellation.
    package static func sha256(
        readingBack name: FilePath.Component, in folder: Folder, on pool: BlockingPool
    ) async throws(SystemError) -> Digest {
        try await pool.run { () throws(SystemError) in
            let path = folder.path.appending(name)
            var reader = try UncachedReader.open(name, in: folder)
            var hash = SHA256()
            while try reader.next({ hash.update($0) }) {
                if Task.isCancelled { throw SystemError(call: "read", path: path, code: .canceled) }
            }
            return hash.digest
        }
    }

    /// Computes `content` anew from `source`, in the same way it was made.
    package static func content(
        like content: ContentHash, of source: SourceFile, on pool: BlockingPool,
        progress: @escaping @Sendable () -> Void = {}
    ) async throws(TransferError) -> ContentHash {
        let (size, algorithm) = (source.opened.size, content.digest.algorithm)
        func digest(_ offset: Int64, _ length: Int64) async throws(TransferError) -> Digest {
            let sums = try await sums(
                SumKinds(algorithm), of: source, offset: offset, length: length, on: pool, progress: progress)
            return sums.sum(algorithm) ?? Digest(algorithm, [])
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
        var whole = SliceHasher(SumKinds(algorithm))
        digests.withUnsafeBytes { whole.update($0) }
        return ContentHash(digest: whole.finish().sum(algorithm) ?? Digest(algorithm, []), partSize: partSize)
    }
}
