internal import FoundationEssentials

/// Removes credentials from a server's words: an answer may repeat what we sent, in its own notation.
///
/// Finds them plain and in base64, also within a longer text, such as a login with its user name. Also with any
/// characters percent-encoded or escaped as in JSON, HTML or XML. Also finds a credential whose end was cut off. Redact
/// before shortening.
package struct Redactor: Sendable {
    /// The shortest credential: hiding shorter ones would mutilate other words and protect nothing.
    package static let shortest = 4
    /// The shortest part of a base64 text that does not depend on its neighbours.
    private static let shortestPart = 8
    package static let mask = "***"

    /// As characters, longest first, because one credential may start with another.
    private var needles: [[[UInt8]]]
    /// The first bytes of all needles.
    private var starts = [Bool](repeating: false, count: 256)

    /// Hides nothing.
    package static let none = Redactor([])

    package init(_ secrets: [Secret]) {
        var found: Set<[UInt8]> = []
        for text in Set(secrets).map({ Array($0.reveal().utf8) }) where text.count >= Self.shortest {
            found.insert(text)
            let encoded = [Self.base64(text)] + Self.base64Parts(text).filter { $0.count >= Self.shortestPart }
            for part in encoded { found.formUnion([part, Self.urlSafe(part)]) }
        }
        needles = found.sorted { $0.count > $1.count }.map { text in
            String(decoding: text, as: UTF8.self).unicodeScalars.map { Array(String($0).utf8) }
        }
        for needle in needles { starts[Int(needle[0][0])] = true }
    }

    /// RFC 4648, without padding.
    private static func base64(_ bytes: [UInt8]) -> [UInt8] {
        Array(Data(bytes).base64EncodedData().prefix { $0 != UInt8(ascii: "=") })
    }

    /// The part of the base64 of any text with these bytes that depends only on them, for each possible offset.
    private static func base64Parts(_ bytes: [UInt8]) -> [[UInt8]] {
        (0..<3).map { shift in
            let whole = base64(Array(repeating: 0, count: shift) + bytes)
            let first = (shift * 8 + 5) / 6
            return Array(whole[first..<max(first, (shift + bytes.count) * 8 / 6)])
        }
    }

    /// RFC 4648, section 5.
    private static func urlSafe(_ text: [UInt8]) -> [UInt8] {
        text.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: "-") : $0 == UInt8(ascii: "/") ? UInt8(ascii: "_") : $0 }
    }

    package func redacted(_ text: String) -> String {
        needles.isEmpty ? text : String(decoding: redacted(Array(text.utf8)), as: UTF8.self)
    }

    package func redacted(_ text: [UInt8]) -> [UInt8] {
        guard !needles.isEmpty else { return text }
        var result: [UInt8] = []
        result.reserveCapacity(text.count)
        let spelling = CredentialPattern(text: text)
        var place = 0
        while place < text.count {
            if spelling.mayBegin(at: place, with: starts), let end = end(in: spelling, from: place) {
                result += Self.mask.utf8
                place = end
            } else {
                result.append(text[place])
                place += 1
            }
        }
        return result
    }

    /// The end of a credential that starts at `place`; nil if there is none.
    private func end(in spelling: CredentialPattern, from place: Int) -> Int? {
        for needle in needles { if let end = spelling.end(of: needle, from: place) { return end } }
        return nil
    }
}

/// The forms of a credential in a text: each character plain or escaped, also several times if one format quotes
/// another.
struct CredentialPattern {
    let text: [UInt8]

    /// The deepest nesting of quoted formats.
    private static let deepest = 8
    /// The longest escape, including one whose end was cut off.
    private static let longestEscape = 16

    /// The end of `needle` from `start`; also if the text ends within it.
    func end(of needle: [[UInt8]], from start: Int) -> Int? {
        // A text can be read in several ways: `%25` is one character or three.
        var places = [start]
        for (known, character) in needle.enumerated() {
            let isLongEnough = known >= Redactor.shortest
            if isLongEnough, places.contains(where: { $0 == text.count || isCutEscape(at: $0) }) { return text.count }
            var ends: [Int] = []
            for place in places {
                for end in self.ends(of: character, at: place) where !ends.contains(end) { ends.append(end) }
            }
            places = ends
            if places.isEmpty { return nil }
        }
        return places.max()
    }

    /// Whether something with one of `bytes` first may start at `place`.
    func mayBegin(at place: Int, with bytes: [Bool]) -> Bool {
        bytes[Int(text[place])] || escapes(at: place).contains { bytes[Int($0.bytes[0])] }
    }

    private func isCutEscape(at place: Int) -> Bool {
        "%\\&".utf8.contains(text[place]) && text.count - place < Self.longestEscape
            && !text[place...].contains { "%\\& ;".utf8.contains($0) && $0 != text[place] }
    }

    private func ends(of character: [UInt8], at place: Int) -> [Int] {
        guard place < text.count else { return [] }
        let escaped = escapes(at: place).compactMap { $0.bytes == character ? $0.end : nil }
        return escaped + [bytes(character, at: place)].compactMap(\.self)
    }

    /// The character plain, or with percent-encoded bytes.
    private func bytes(_ character: [UInt8], at place: Int) -> Int? {
        var place = place
        for byte in character {
            guard place < text.count else { return nil }
            if text[place] == byte {
                place += 1
            } else if character.count > 1, text[place] == UInt8(ascii: "%"),
                let (found, end) = percent(past("25", from: place + 1)), found == [byte]
            {
                place = end
            } else {
                return nil
            }
        }
        return place
    }

    /// The possible meanings of an escape at `place`, and their ends. JSON may be quoted in a URL or a page, which
    /// escapes its backslash, or the next character, again.
    private func escapes(at place: Int) -> [(bytes: [UInt8], end: Int)] {
        guard place < text.count else { return [] }
        switch text[place] {
        case UInt8(ascii: "+"): return [([0x20], place + 1)]
        case UInt8(ascii: "\\"):
            let end = past("\\", from: place + 1)
            return [([text[place]], end)] + quoted(place + 1) + quoted(end)
        default:
            let found = encoded(at: place)
            return found + found.flatMap { $0.bytes == Array("\\".utf8) ? quoted($0.end) : [] }
        }
    }

    private func encoded(at place: Int) -> [(bytes: [UInt8], end: Int)] {
        guard place < text.count else { return [] }
        switch text[place] {
        case UInt8(ascii: "%"): return places(past: "25", from: place + 1).compactMap(percent)
        case UInt8(ascii: "&"): return places(past: "amp;", from: place + 1).compactMap(entity)
        default: return []
        }
    }

    /// After a backslash.
    private func quoted(_ place: Int) -> [(bytes: [UInt8], end: Int)] {
        encoded(at: place) + [backslash(place)].compactMap(\.self)
    }

    /// After all repetitions of `word`, which the first character of an escape becomes when it is escaped again.
    private func past(_ word: String, from place: Int) -> Int {
        var place = place
        let end = min(text.count, place + 1 << Self.deepest)
        while text[place..<end].starts(with: word.utf8) { place += word.utf8.count }
        return place
    }

    /// `place`, and the positions after each repetition.
    private func places(past word: String, from place: Int) -> [Int] {
        var places = [place]
        while places.count < Self.deepest, let last = places.last, text[last...].starts(with: word.utf8) {
            places.append(last + word.utf8.count)
        }
        return places
    }

    private func percent(_ place: Int) -> ([UInt8], Int)? { number(place, digits: 2).map { ([UInt8($0)], place + 2) } }

    /// RFC 8259, section 7.
    private func backslash(_ place: Int) -> ([UInt8], Int)? {
        guard place < text.count else { return nil }
        switch text[place] {
        case UInt8(ascii: "u"): return unicode(place + 1)
        case UInt8(ascii: "n"): return ([0x0A], place + 1)
        case UInt8(ascii: "r"): return ([0x0D], place + 1)
        case UInt8(ascii: "t"): return ([0x09], place + 1)
        case let other: return ([other], place + 1)
        }
    }

    /// One UTF-16 unit, or two of a surrogate pair.
    private func unicode(_ place: Int) -> ([UInt8], Int)? {
        guard let unit = number(place, digits: 4) else { return nil }
        let end = place + 4
        if let scalar = Unicode.Scalar(unit) { return (Array(String(scalar).utf8), end) }
        guard end < text.count, text[end] == UInt8(ascii: "\\") else { return nil }
        let second = past("\\", from: end)
        guard second < text.count, text[second] == UInt8(ascii: "u"), let low = number(second + 1, digits: 4) else {
            return nil
        }
        return (Array(String(decoding: [UInt16(unit), UInt16(low)], as: UTF16.self).utf8), second + 5)
    }

    /// `amp;`, `#38;`, `#x26;`.
    private func entity(_ place: Int) -> ([UInt8], Int)? {
        let window = text[min(place, text.count)..<min(place + Self.longestEscape, text.count)]
        guard let end = window.firstIndex(of: UInt8(ascii: ";")) else { return nil }
        let name = String(decoding: window[..<end], as: UTF8.self)
        let named = ["amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'"][name]
        if let named { return (Array(named.utf8), end + 1) }
        guard name.hasPrefix("#") else { return nil }
        let digits = name.dropFirst()
        let isHex = digits.first == "x" || digits.first == "X"
        let value = isHex ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
        return value.flatMap(Unicode.Scalar.init).map { (Array(String($0).utf8), end + 1) }
    }

    private func number(_ place: Int, digits: Int) -> UInt32? {
        guard place + digits <= text.count else { return nil }
        let word = text[place..<(place + digits)]
        guard word.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit }) else { return nil }
        return UInt32(String(decoding: word, as: UTF8.self), radix: 16)
    }
}

/// A credential. Prints, reflects and encodes as `***`; its text is available only through `reveal()`, which a review
/// can search for.
package struct Secret: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    private let text: String

    package init(_ text: String) { self.text = text }

    /// The credential itself; call this only where it is sent.
    package func reveal() -> String { text }

    package var isEmpty: Bool { text.isEmpty }
    package var description: String { "***" }
    package var debugDescription: String { "***" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
