/// A checksum of known algorithm.
package struct Digest: Hashable, Sendable, Codable, CustomStringConvertible {
    package enum Algorithm: String, Sendable, Codable {
        case md5
        case sha256
        /// CRC-32C: tells damage, not intent.
        case crc32c
        /// 64 bits, big-endian: tells damage, not intent. What camera offloads use.
        case xxh64
        case sha1
    }

    package var algorithm: Algorithm
    package var bytes: [UInt8]

    package init(_ algorithm: Algorithm, _ bytes: some Sequence<UInt8>) {
        self.algorithm = algorithm
        self.bytes = Array(bytes)
    }

    /// A digest from its hexadecimal form; nil unless every character is a digit of a whole byte.
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
