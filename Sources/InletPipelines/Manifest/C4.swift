internal import InletCore

/// C4 identifiers (SMPTE ST 2114): what the chain file of an ASC MHL history names its lists by.
package enum C4 {
    private static let alphabet = Array("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz".utf8)
    private static let digits = 88

    /// `c4` and 88 digits to base 58 of the SHA-512 of `bytes`, taken as one big-endian number.
    package static func id(of bytes: [UInt8]) -> String {
        var number = SHA512.bytes(of: bytes)
        var text = [UInt8](repeating: alphabet[0], count: digits)
        for place in stride(from: digits - 1, through: 0, by: -1) {
            var remainder = 0
            for index in number.indices {
                let value = remainder << 8 | Int(number[index])
                number[index] = UInt8(value / 58)
                remainder = value % 58
            }
            text[place] = alphabet[remainder]
        }
        return "c4" + String(decoding: text, as: UTF8.self)
    }
}
