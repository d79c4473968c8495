internal import CCrypto
internal import CHash

/// A hash function with incremental input, by OpenSSL's libcrypto, which uses the processor's instructions. A value:
/// copies continue independently. Allocates nothing until it is asked for its bytes.
package protocol HashFunction: Sendable {
    static var algorithm: Digest.Algorithm { get }
    init()
    mutating func update(_ bytes: UnsafeRawBufferPointer)
    /// Goes on with each of several inputs, faster than one after the other.
    ///
    /// - Parameter pieces: one for each hash.
    static func update(_ hashes: inout [Self], with pieces: [UnsafeRawBufferPointer])
    /// The hash of all input so far; more may follow.
    var bytes: [UInt8] { get }
}

extension HashFunction {
    package var digest: Digest { Digest(Self.algorithm, bytes) }

    package static func update(_ hashes: inout [Self], with pieces: [UnsafeRawBufferPointer]) {
        for index in hashes.indices { hashes[index].update(pieces[index]) }
    }

    /// The same by `function`, which moves libcrypto's contexts on.
    fileprivate static func update<Context>(
        _ hashes: inout [Self], _ context: WritableKeyPath<Self, Context>, with pieces: [UnsafeRawBufferPointer],
        by function: ([inlet_stream]) -> Void
    ) {
        var contexts = hashes.map { $0[keyPath: context] }
        contexts.withUnsafeMutableBufferPointer { contexts in
            guard let first = contexts.baseAddress else { return }
            function(
                pieces.enumerated().map { index, piece in
                    inlet_stream(context: first + index, bytes: piece.baseAddress, length: piece.count)
                })
        }
        for (index, moved) in contexts.enumerated() { hashes[index][keyPath: context] = moved }
    }

    package mutating func update(_ bytes: some Sequence<UInt8>) {
        Array(bytes).withUnsafeBytes { update($0) }
    }

    package static func bytes(of bytes: some Sequence<UInt8>) -> [UInt8] {
        var hash = Self()
        hash.update(bytes)
        return hash.bytes
    }

    package static func digest(of bytes: some Sequence<UInt8>) -> Digest { Digest(algorithm, Self.bytes(of: bytes)) }
}

extension [UInt8] {
    fileprivate init(count: CInt, _ write: (UnsafeMutablePointer<UInt8>?) -> Void) {
        self.init(unsafeUninitializedCapacity: Int(count)) { room, filled in
            write(room.baseAddress)
            filled = Int(count)
        }
    }

    /// Unpredictable bytes (`getrandom(2)`).
    package static func unforeseeable(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in .random(in: .min ... .max, using: &generator) }
    }
}

/// MD5 (RFC 1321): detects damage, not tampering.
package struct MD5: HashFunction {
    package static let algorithm = Digest.Algorithm.md5
    private var context = MD5_CTX()

    package init() { MD5_Init(&context) }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        MD5_Update(&context, bytes.baseAddress, bytes.count)
    }

    package static func update(_ hashes: inout [MD5], with pieces: [UnsafeRawBufferPointer]) {
        update(&hashes, \.context, with: pieces) { inlet_md5_update(0, $0, $0.count) }
    }

    package var bytes: [UInt8] {
        var context = context
        return [UInt8](count: MD5_DIGEST_LENGTH) { MD5_Final($0, &context) }
    }
}

/// SHA-1 (FIPS 180-4): detects damage, not tampering.
package struct SHA1: HashFunction {
    package static let algorithm = Digest.Algorithm.sha1
    private var context = SHA_CTX()

    package init() { SHA1_Init(&context) }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        SHA1_Update(&context, bytes.baseAddress, bytes.count)
    }

    package var bytes: [UInt8] {
        var context = context
        return [UInt8](count: SHA_DIGEST_LENGTH) { SHA1_Final($0, &context) }
    }
}

/// SHA-256 (FIPS 180-4).
package struct SHA256: HashFunction {
    package static let algorithm = Digest.Algorithm.sha256
    private var context = SHA256_CTX()

    package init() { SHA256_Init(&context) }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        SHA256_Update(&context, bytes.baseAddress, bytes.count)
    }

    package static func update(_ hashes: inout [SHA256], with pieces: [UnsafeRawBufferPointer]) {
        update(&hashes, \.context, with: pieces) { inlet_sha256_update(0, $0, $0.count) }
    }

    package var bytes: [UInt8] {
        var context = context
        return [UInt8](count: SHA256_DIGEST_LENGTH) { SHA256_Final($0, &context) }
    }
}

/// The SHA-512 (FIPS 180-4) behind a C4 identifier.
package struct C4: HashFunction {
    package static let algorithm = Digest.Algorithm.c4
    private var context = SHA512_CTX()

    package init() { SHA512_Init(&context) }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        SHA512_Update(&context, bytes.baseAddress, bytes.count)
    }

    package var bytes: [UInt8] {
        var context = context
        return [UInt8](count: SHA512_DIGEST_LENGTH) { SHA512_Final($0, &context) }
    }
}

/// Authenticates messages with a key: HMAC-SHA-256 (RFC 2104). Hashes the key once, half of the work for a short
/// message.
package struct MessageCode: Sendable {
    private let inner: SHA256
    private let outer: SHA256
    private static let block = 64

    package init(key: some Sequence<UInt8>) {
        var key = Array(key)
        if key.count > Self.block { key = SHA256.bytes(of: key) }
        key += [UInt8](repeating: 0, count: Self.block - key.count)
        (inner, outer) = (Self.begun(key.map { $0 ^ 0x36 }), Self.begun(key.map { $0 ^ 0x5C }))
    }

    private static func begun(_ pad: [UInt8]) -> SHA256 {
        var hash = SHA256()
        hash.update(pad)
        return hash
    }

    package func code(of message: some Sequence<UInt8>) -> [UInt8] {
        var (inner, outer) = (inner, outer)
        inner.update(message)
        outer.update(inner.bytes)
        return outer.bytes
    }

    /// Whether `code` is the code of `message`; compares in constant time.
    package func isCode(_ code: [UInt8], of message: some Sequence<UInt8>) -> Bool {
        Self.areEqual(code, self.code(of: message))
    }

    /// Takes constant time for equal lengths (`CRYPTO_memcmp(3)`); may reveal the lengths.
    package static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
    }
}

/// A checksum with its algorithm.
package struct Digest: Hashable, Sendable, Codable, CustomStringConvertible {
    package enum Algorithm: String, Sendable, Codable {
        case md5
        case sha256
        /// CRC-32C: detects damage, not tampering.
        case crc32c
        /// CRC-64/NVME, big-endian: detects damage, not tampering.
        case crc64nvme
        /// XXH64, big-endian: detects damage, not tampering. Usual for camera offloads.
        case xxh64
        case sha1
        /// XXH3 with 64 bits, big-endian: detects damage, not tampering.
        case xxh3
        /// XXH3 with 128 bits, big-endian: detects damage, not tampering.
        case xxh128
        /// The SHA-512 that a C4 identifier (SMPTE ST 2114) writes to base 58.
        case c4

        /// Whether it is too short to recognise a touched file's content by: of 32 bits, not of 64.
        package var isShort: Bool { self == .crc32c }

        /// The length of its digests in bytes.
        package var length: Int {
            switch self {
            case .crc32c: 4
            case .crc64nvme, .xxh64, .xxh3: 8
            case .md5, .xxh128: 16
            case .sha1: 20
            case .sha256: 32
            case .c4: 64
            }
        }
    }

    package var algorithm: Algorithm
    package var bytes: [UInt8]

    package init(_ algorithm: Algorithm, _ bytes: some Sequence<UInt8>) {
        self.algorithm = algorithm
        self.bytes = Array(bytes)
    }

    /// A digest from its hexadecimal form; nil unless all characters are digits of whole bytes.
    package init?(_ algorithm: Algorithm, hex: String) {
        let digits = hex.compactMap(\.hexDigitValue)
        guard digits.count == hex.count, digits.count.isMultiple(of: 2) else { return nil }
        let bytes: [UInt8] = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
        self.init(algorithm, bytes)
    }

    /// Lower-case hexadecimal.
    package var hex: String { bytes.hex }

    package var description: String { "\(algorithm.rawValue):\(hex)" }
}

extension Sequence<UInt8> {
    /// Lower-case hexadecimal.
    package var hex: String {
        var text: [UInt8] = []
        text.reserveCapacity(2 * underestimatedCount)
        func append(_ digit: UInt8) { text.append(digit + (digit < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10)) }
        for byte in self {
            append(byte >> 4)
            append(byte & 15)
        }
        return String(decoding: text, as: UTF8.self)
    }
}
