import InletCore

/// The checksums of a stream, computed as it passes; CRC-32C only where it is asked for.
struct ContentHash {
    private var md5 = MD5()
    private var sha256 = SHA256()
    private(set) var crc32c: CRC32C?
    private(set) var size: Int64 = 0

    init(withCRC32C: Bool = false) { crc32c = withCRC32C ? CRC32C() : nil }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        md5.update(bytes)
        sha256.update(bytes)
        crc32c?.update(bytes)
        size += Int64(bytes.count)
    }

    func finish() -> (md5: [UInt8], sha256: [UInt8]) { (md5.bytes, sha256.bytes) }

    /// The MD5 of bytes at hand.
    static func md5(_ bytes: [UInt8]) -> [UInt8] { MD5.bytes(of: bytes) }
}

/// The MD5 of one part; parts need no more.
struct PartHash {
    private var md5 = MD5()

    mutating func update(_ bytes: UnsafeRawBufferPointer) { md5.update(bytes) }
    func finish() -> [UInt8] { md5.bytes }
}

/// CRC-32C (Castagnoli, RFC 3720 appendix B.4), as `x-amz-checksum-crc32c` has it.
struct CRC32C {
    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0x82F6_3B78 ^ (value >> 1) : value >> 1 }
    }

    private var state = UInt32.max

    /// Big-endian, as it goes on the wire in base 64.
    var bytes: [UInt8] { withUnsafeBytes(of: (~state).bigEndian) { Array($0) } }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        state = Self.table.withUnsafeBufferPointer { table in
            bytes.reduce(state) { table[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] ^ ($0 >> 8) }
        }
    }
}
