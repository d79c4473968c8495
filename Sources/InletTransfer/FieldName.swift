/// Names of header fields, which are looked at for every request: nothing is allocated.
enum FieldName {
    /// Whether `name` is called so, in any case (RFC 9110, 5.1).
    /// - Parameter lower: in lower case, of letters and hyphens.
    static func isSame(_ name: String, _ lower: String) -> Bool {
        name.utf8.count == lower.utf8.count && zip(name.utf8, lower.utf8).allSatisfy { lowercased($0) == $1 }
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }

    /// What names and methods are made of (RFC 9110, 5.6.2).
    static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        case UInt8(ascii: "-"): true
        default: "!#$%&'*+.^_`|~".utf8.contains(byte)
        }
    }

    /// Looks at the bytes of a text where they are; those of one that is not stored as UTF-8 are copied first.
    static func bytes<Answer>(of text: String, _ look: (UnsafeBufferPointer<UInt8>) -> Answer) -> Answer {
        if let answer = text.utf8.withContiguousStorageIfAvailable(look) { return answer }
        return Array(text.utf8).withUnsafeBufferPointer(look)
    }
}
