package import InletCore
package import InletLinux
package import SystemPackage

internal import struct Crypto.SHA256

extension Checksum {
    /// The SHA-256 of what the disk holds, past the page cache. Reads on `pool`; ends within 1 MiB of a cancellation.
    package static func sha256(readingBack path: FilePath, on pool: BlockingPool) async throws(SystemError) -> Digest {
        try await pool.run { () throws(SystemError) in
            var reader = try UncachedReader(path)
            var hash = SHA256()
            while try reader.next({ hash.update(bufferPointer: $0) }) {
                if Task.isCancelled { throw SystemError(call: "read", path: path, code: .canceled) }
            }
            return Digest(.sha256, hash.finalize())
        }
    }

    /// Computes `content` anew from `source`, in the same way it was made.
    package static func content(
        like content: ContentHash, of source: SourceFile, on pool: BlockingPool
    ) async throws(TransferError) -> ContentHash {
        let size = source.opened.size
        switch (content.digest.algorithm, content.partSize) {
        case (.sha256, _):
            return ContentHash(digest: try await sha256(of: source, on: pool), partSize: nil)
        case (.crc32c, _):
            let sums = try await sums(.crc32c, of: source, offset: 0, length: size, on: pool)
            return ContentHash(digest: sums.crc32c ?? content.digest, partSize: nil)
        case (.md5, nil):
            return ContentHash(digest: try await md5(of: source, offset: 0, length: size, on: pool), partSize: nil)
        case (.md5, let partSize?):
            var digests: [UInt8] = []
            var offset: Int64 = 0
            repeat {
                let length = min(partSize, size - offset)
                digests += try await md5(of: source, offset: offset, length: length, on: pool).bytes
                offset += length
            } while offset < size
            return ContentHash(digest: md5(digests), partSize: partSize)
        }
    }
}
