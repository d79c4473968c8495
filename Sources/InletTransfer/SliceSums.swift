internal import CISAL
internal import CXXHash
package import InletCore
package import InletLinux

/// Which checksums of a slice are wanted.
package struct SumKinds: OptionSet, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    package static let md5 = SumKinds(rawValue: 1)
    package static let sha256 = SumKinds(rawValue: 2)
    package static let crc32c = SumKinds(rawValue: 4)
    package static let sha1 = SumKinds(rawValue: 8)
    package static let xxh64 = SumKinds(rawValue: 16)
}

/// Checksums of one slice of a file; nil where nobody asked.
package struct SliceSums: Sendable, Equatable {
    package var md5: Digest?
    package var sha256: Digest?
    /// CRC-32C (Castagnoli), 4 bytes, most significant first, as S3 sends it.
    package var crc32c: Digest?
    package var sha1: Digest?
    /// XXH64 with seed 0, 8 bytes, most significant first, as media hash lists write it.
    package var xxh64: Digest?

    package init(
        md5: Digest? = nil, sha256: Digest? = nil, crc32c: Digest? = nil, sha1: Digest? = nil, xxh64: Digest? = nil
    ) {
        self.md5 = md5
        self.sha256 = sha256
        self.crc32c = crc32c
        self.sha1 = sha1
        self.xxh64 = xxh64
    }
}

/// Computes several checksums in one pass.
package struct SliceHasher {
    private var md5: MD5?
    private var sha256: SHA256?
    private var crc32c: UInt32?
    private var sha1: SHA1?
    private var xxh64: inlet_xxh64?

    package init(_ kinds: SumKinds) {
        md5 = kinds.contains(.md5) ? MD5() : nil
        sha256 = kinds.contains(.sha256) ? SHA256() : nil
        crc32c = kinds.contains(.crc32c) ? 0 : nil
        sha1 = kinds.contains(.sha1) ? SHA1() : nil
        xxh64 = kinds.contains(.xxh64) ? inlet_xxh64_begin() : nil
    }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        md5?.update(bytes)
        sha256?.update(bytes)
        sha1?.update(bytes)
        if let start = bytes.baseAddress { xxh64?.update(start, bytes.count) }
        if let crc = crc32c, let start = bytes.baseAddress { crc32c = inlet_crc32c(crc, start, bytes.count) }
    }

    /// The checksums `kinds` of all of `bytes`.
    package static func sums(_ kinds: SumKinds, of bytes: [UInt8]) -> SliceSums {
        var hasher = SliceHasher(kinds)
        bytes.withUnsafeBytes { hasher.update($0) }
        return hasher.finish()
    }

    package func finish() -> SliceSums {
        SliceSums(
            md5: md5?.digest, sha256: sha256?.digest,
            crc32c: crc32c.map { Digest(.crc32c, $0.bigEndianBytes) }, sha1: sha1?.digest,
            xxh64: xxh64.map { Digest(.xxh64, $0.sum.bigEndianBytes) })
    }
}

extension inlet_xxh64 {
    fileprivate mutating func update(_ start: UnsafeRawPointer, _ count: Int) {
        inlet_xxh64_update(&self, start, count)
    }

    fileprivate var sum: UInt64 { withUnsafePointer(to: self) { inlet_xxh64_digest($0) } }
}

extension FixedWidthInteger {
    fileprivate var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }
}

extension SumKinds {
    package init(_ algorithm: Digest.Algorithm) {
        switch algorithm {
        case .md5: self = .md5
        case .sha256: self = .sha256
        case .crc32c: self = .crc32c
        case .sha1: self = .sha1
        case .xxh64: self = .xxh64
        }
    }
}

extension SliceSums {
    /// The checksum of this kind; nil where nobody asked for it.
    package func sum(_ algorithm: Digest.Algorithm) -> Digest? {
        switch algorithm {
        case .md5: md5
        case .sha256: sha256
        case .crc32c: crc32c
        case .sha1: sha1
        case .xxh64: xxh64
        }
    }
}

extension Checksum {
    /// The checksums `kinds` of `length` bytes from `offset`, in one pass over the file; throws as `md5(of:)` does.
    package static func sums(
        _ kinds: SumKinds, of source: SourceFile, offset: Int64, length: Int64, on pool: BlockingPool,
        progress: @escaping @Sendable () -> Void = {}
    ) async throws(TransferError) -> SliceSums {
        // Two changes of thread take longer than such a read. The agent's deliveries run on threads that may block.
        if length <= shortest { return try sums(kinds, source, offset, length, progress) }
        return try await pool.branch(source.opened.device).run { () throws(TransferError) in
            try sums(kinds, source, offset, length, progress)
        }
    }

    private static let shortest: Int64 = 256 << 10

    private static func sums(
        _ kinds: SumKinds, _ source: SourceFile, _ offset: Int64, _ length: Int64, _ progress: () -> Void
    ) throws(TransferError) -> SliceSums {
        var hasher = SliceHasher(kinds)
        try readAll(source, offset: offset, length: length) { piece in
            hasher.update(piece)
            progress()
        }
        return hasher.finish()
    }
}
