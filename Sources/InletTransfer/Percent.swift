/// Percent-encoding of RFC 3986, section 2.1.
package enum Percent {
    /// `text` with every UTF-8 byte but the unreserved ones and those of `kept` as `%HH`.
    package static func encode(_ text: Substring, keeping kept: String = "") -> String {
        func isPlain(_ byte: UInt8) -> Bool { unreserved[Int(byte)] || kept.utf8.contains(byte) }
        // Most texts stay as they are, and a whole one then costs nothing.
        if text.utf8.allSatisfy(isPlain) { return String(text) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count + 32)
        for byte in text.utf8 {
            if isPlain(byte) {
                bytes.append(byte)
            } else {
                let digits = String(byte, radix: 16, uppercase: true)
                bytes += ((byte < 16 ? "%0" : "%") + digits).utf8
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static let unreserved: [Bool] = {
        let plain = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8)
        return (UInt8.min...UInt8.max).map { plain.contains($0) }
    }()

    /// `text` with every `%HH` as its byte; what is no such triplet stays, bytes that are not UTF-8 become U+FFFD.
    package static func decode(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let high = digit(rest.first), let low = digit(rest.dropFirst().first) {
                bytes.append(high << 4 | low)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8?) -> UInt8? {
        byte.flatMap { Character(UnicodeScalar($0)).hexDigitValue }.map { UInt8($0) }
    }
}
