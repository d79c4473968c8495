import Crypto
import InletCore

/// The checksums of a stream, computed as it passes.
struct ContentHash {
    private var md5 = Insecure.MD5()
    private var sha256 = SHA256()
    private(set) var size: Int64 = 0

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        md5.update(bufferPointer: bytes)
        sha256.update(bufferPointer: bytes)
        size += Int64(bytes.count)
    }

    func finish() -> (md5: [UInt8], sha256: [UInt8]) { (Array(md5.finalize()), Array(sha256.finalize())) }

    /// The MD5 of bytes at hand.
    static func md5(_ bytes: [UInt8]) -> [UInt8] { Array(Insecure.MD5.hash(data: bytes)) }
}

/// The MD5 of one part; parts need no more.
struct PartHash {
    private var md5 = Insecure.MD5()

    mutating func update(_ bytes: UnsafeRawBufferPointer) { md5.update(bufferPointer: bytes) }
    func finish() -> [UInt8] { Array(md5.finalize()) }
}
