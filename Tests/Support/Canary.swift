package import Foundation

/// A credential whose traces a test looks for, in every spelling in which somebody may have written it.
package struct Canary: Sendable {
    package let text: String
    private let needles: [Data]

    package init(_ text: String) {
        self.text = text
        // Whole, and what base64 makes of it whatever stands before it; a half counts as a trace.
        let coded = (0..<3).map { shift -> String in
            let word = Data((String(repeating: "x", count: shift) + text).utf8).base64EncodedString()
            // Letters of 6 bits, of which the first ones belong to what stands before it.
            let before = (shift * 8 + 5) / 6
            return String(word.dropFirst(before).prefix(10))
        }
        let allowed = CharacterSet.alphanumerics
        let percent = text.addingPercentEncoding(withAllowedCharacters: allowed) ?? text
        let json = String(decoding: (try? JSONEncoder().encode(text)) ?? Data(), as: UTF8.self).dropFirst().dropLast()
        let units = text.utf16.prefix(8).map { "\\u" + String(format: "%04x", $0) }.joined()
        let plain = [String(text.prefix(8)), String(text.suffix(8)), String(percent.prefix(8)), String(json.prefix(8))]
        needles = Set(plain + coded + [units]).map { Data($0.utf8) }
    }

    /// What of it is in there; nil when nothing is.
    package func trace(in content: Data) -> String? {
        needles.first { content.range(of: $0) != nil }.map { String(decoding: $0, as: UTF8.self) }
    }

    package func trace(in content: String) -> String? { trace(in: Data(content.utf8)) }
}
