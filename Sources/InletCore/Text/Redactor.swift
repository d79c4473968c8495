/// Takes credentials out of words that a server wrote: an answer may repeat what it was sent, in a spelling of its own.
///
/// It finds them as they are, in base64 (also within a longer text, as a login is with its user's name), and with any of
/// their characters percent-encoded or escaped as JSON, HTML or XML do; also one that a cut has left without its end. Words
/// are to pass it before they are shortened.
package struct Redactor: Sendable {
    /// Shorter texts are left alone: they would tear other words apart, and protect nothing.
    package static let shortest = 4
    /// Of the part of a base64 text that is the same whatever stands around it.
    private static let shortestPart = 8
    package static let mask = "***"

    /// The longest first: one credential may begin with another. By characters.
    private var needles: [[[UInt8]]]
    /// Which bytes they begin with.
    private var starts = [Bool](repeating: false, count: 256)

    /// Hides nothing.
    package static let none = Redactor([])

    package init(_ secrets: [Secret]) {
        var found: Set<[UInt8]> = []
        for text in Set(secrets).map({ Array($0.reveal().utf8) }) where text.count >= Self.shortest {
            found.insert(text)
            let encoded = [Base64Text.encode(text)] + Base64Text.parts(text).filter { $0.count >= Self.shortestPart }
            for part in encoded { found.formUnion([part, Base64Text.urlSafe(part)]) }
        }
        needles = found.sorted { $0.count > $1.count }.map { text in
            String(decoding: text, as: UTF8.self).unicodeScalars.map { Array(String($0).utf8) }
        }
        for needle in needles { starts[Int(needle[0][0])] = true }
    }

    package func redacted(_ text: String) -> String {
        needles.isEmpty ? text : String(decoding: redacted(Array(text.utf8)), as: UTF8.self)
    }

    package func redacted(_ text: [UInt8]) -> [UInt8] {
        guard !needles.isEmpty else { return text }
        var result: [UInt8] = []
        result.reserveCapacity(text.count)
        let spelling = RedactorSpelling(text: text)
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

    /// Where the credential ends that begins at `place`; nil when none does.
    private func end(in spelling: RedactorSpelling, from place: Int) -> Int? {
        for needle in needles { if let end = spelling.end(of: needle, from: place) { return end } }
        return nil
    }
}

/// RFC 4648, without the padding.
private enum Base64Text {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var (bits, count) = (0, 0)
        for byte in bytes {
            bits = bits << 8 | Int(byte)
            count += 8
            while count >= 6 {
                count -= 6
                result.append(alphabet[bits >> count & 63])
            }
            bits &= (1 << count) - 1
        }
        if count > 0 { result.append(alphabet[bits << (6 - count) & 63]) }
        return result
    }

    /// What of the base64 of any text with these bytes in it is theirs alone, by where they begin.
    static func parts(_ bytes: [UInt8]) -> [[UInt8]] {
        (0..<3).map { shift in
            let whole = encode(Array(repeating: 0, count: shift) + bytes)
            let first = (shift * 8 + 5) / 6
            return Array(whole[first..<max(first, (shift + bytes.count) * 8 / 6)])
        }
    }

    /// RFC 4648, section 5.
    static func urlSafe(_ text: [UInt8]) -> [UInt8] {
        text.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: "-") : $0 == UInt8(ascii: "/") ? UInt8(ascii: "_") : $0 }
    }
}
