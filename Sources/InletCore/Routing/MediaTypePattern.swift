/// A media type (RFC 6838), or many: `video/*`, `image/jpeg`, `application/vnd.*`. A `*` stands for any text on its side of the
/// slash. Case does not count, nor does the `x-` of types that were not registered once: `video/x-matroska` is `video/matroska`.
package struct MediaTypePattern: Sendable, Hashable {
    /// As it was written.
    package let text: String
    private let kind: [UInt8]
    private let subtype: [UInt8]

    package init(_ text: String) throws(PatternError) {
        let halves = text.lowercased().split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2, halves.allSatisfy({ !$0.isEmpty }) else {
            throw PatternError(
                offset: 0, message: "a media type has two parts, as in image/jpeg; write video/* for all videos")
        }
        if let bad = text.utf8.firstIndex(where: { !Self.isAllowed($0) }) {
            throw PatternError(
                offset: text.utf8.distance(from: text.startIndex, to: bad),
                message: "a media type has only letters, digits, '*' and ! # $ & - ^ _ . + in its two parts")
        }
        self.text = text
        kind = Self.registered(halves[0])
        subtype = Self.registered(halves[1])
    }

    package func matches(_ type: String) -> Bool {
        let halves = type.lowercased().split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard halves.count == 2 else { return false }
        return Self.matches(kind[...], Self.registered(halves[0])[...])
            && Self.matches(subtype[...], Self.registered(halves[1])[...])
    }

    private static func registered(_ half: Substring) -> [UInt8] {
        Array(half.hasPrefix("x-") && half != "x-" ? half.dropFirst(2).utf8 : half.utf8)
    }

    /// RFC 6838 section 4.2, the slash, and `*`.
    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$&-^_.+*/".utf8.contains(byte)
        }
    }

    /// Goes back to the last `*` only: that is enough for stars, and never slow.
    private static func matches(_ pattern: ArraySlice<UInt8>, _ text: ArraySlice<UInt8>) -> Bool {
        var (at, place) = (pattern.startIndex, text.startIndex)
        var star: (after: Int, place: Int)?
        while place < text.endIndex {
            if at < pattern.endIndex, pattern[at] == UInt8(ascii: "*") {
                star = (at + 1, place)
                at += 1
            } else if at < pattern.endIndex, pattern[at] == text[place] {
                (at, place) = (at + 1, place + 1)
            } else if let last = star {
                star = (last.after, last.place + 1)
                (at, place) = (last.after, last.place + 1)
            } else {
                return false
            }
        }
        return pattern[at...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}
