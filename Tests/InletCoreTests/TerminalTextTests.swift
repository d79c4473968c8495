import Foundation
import InletTestSupport
import Testing

@testable import InletCore

struct TerminalTextTests {
    private static let pieces = [
        "a", "é", "日", "👩‍👩‍👧", "\"", "\\", "\n", "\t", "\r", "\u{0}", "\u{1B}[2J", "\u{1B}[31m", "\u{7F}", "\u{80}",
        "\u{9B}",
        "\u{9F}", "\u{A0}", "\u{AD}", "\u{61C}", "\u{180E}", "\u{200D}", "\u{200E}", "\u{202E}", "\u{2028}", "\u{2029}",
        "\u{2066}", "\u{FEFF}", "\u{FFFA}", "\u{E0041}", "\u{F0000}", "\u{E8}", "\u{628}",
    ]

    private static func text(_ generator: inout SeededGenerator) -> String {
        (0..<Int.random(in: 0...12, using: &generator)).compactMap { _ in pieces.randomElement(using: &generator) }
            .joined()
    }

    private static func isHarmless(_ text: String, but allowed: Set<Unicode.Scalar> = []) -> Bool {
        text.unicodeScalars.allSatisfy {
            allowed.contains($0) || ($0.properties.generalCategory != .control && !$0.isDeceptive)
        }
    }

    @Test func `JSON holds nothing that a terminal obeys, and is the same value`() throws {
        var generator = SeededGenerator(seed: 3)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted]
        for round in 0..<3000 {
            let text = Self.text(&generator)
            let quoted = "[" + JSONString.quote(text) + "]"
            #expect(Self.isHarmless(quoted), "round \(round): \(DisplayText.escape(quoted))")
            #expect(try JSONDecoder().decode([String].self, from: Data(quoted.utf8)) == [text], "round \(round)")
            let other = JSONString.masked(Array(try encoder.encode([text: text])))
            #expect(Self.isHarmless(String(decoding: other, as: UTF8.self), but: ["\n"]), "round \(round)")
            #expect(
                try JSONDecoder().decode([String: String].self, from: Data(other)) == [text: text], "round \(round)")
        }
        #expect(JSONString.quote("\u{9B}\u{2028}\u{E0041}\u{7F}é👩‍👧") == #""\u009b\u2028\udb40\udc41\u007fé👩‍👧""#)
    }

    @Test func `what goes to a terminal is masked, but for lines, tabs and our own colours`() throws {
        var generator = SeededGenerator(seed: 4)
        for round in 0..<3000 {
            let text = Self.text(&generator)
            let plain = TerminalText.masked(text, keepsColours: false)
            #expect(Self.isHarmless(plain, but: ["\n", "\t"]), "round \(round)")
            let coloured = TerminalText.masked(text, keepsColours: true)
            // By scalars: what comes next may belong to the last letter of a colour.
            let bare = Array(coloured.unicodeScalars).replacing("\u{1B}[31m".unicodeScalars, with: [])
            var rest = String.UnicodeScalarView()
            rest.append(contentsOf: bare)
            #expect(Self.isHarmless(String(rest), but: ["\n", "\t"]), "round \(round)")
            #expect(TerminalText.masked(plain, keepsColours: false) == plain)
        }
        #expect(
            TerminalText.masked("a\u{1B}[2J\u{9B}\u{202E}\r\n", keepsColours: true)
                == "a\\u001b[2J\\u009b\\u202e\\u000d\n")
        #expect(TerminalText.masked("\u{1B}[1mé\u{1B}[0m", keepsColours: true) == "\u{1B}[1mé\u{1B}[0m")
        #expect(TerminalText.masked("\u{1B}[1mé\u{1B}[0m", keepsColours: false) == "\\u001b[1mé\\u001b[0m")
        for text in ["\u{1B}[m", "\u{1B}[123m", "\u{1B}[1J", "\u{1B}]0;m", "\u{1B}", "\u{1B}[1"] {
            #expect(!TerminalText.masked(text, keepsColours: true).contains("\u{1B}"))
        }
    }
}
