import Foundation
import InletTestSupport
import SystemPackage
import Testing

@testable import InletCore

struct TextTests {
    @Test(
        arguments: [
            ("512", 512), ("0", 0), ("8MiB", 8 << 20), ("6GB", 6_000_000_000), ("1.5GiB", 1_610_612_736),
            ("64k", 64_000), ("64Ki", 65_536), ("1 mib", 1 << 20), ("10b", 10), ("12 bytes", 12), ("0.0000001kB", 0),
            ("8EiB", nil), ("", nil), ("-1", nil), ("MiB", nil), ("1..5MB", nil), (".5MB", nil), ("1.5", nil),
            ("8 MiB/s", nil), ("9223372036854775808", nil), ("9007199254740992KiB", nil), ("1e3", nil), ("٣MB", nil),
            ("+5", nil),
        ] as [(String, Int64?)])
    func `sizes are read exactly`(text: String, bytes: Int64?) { #expect(ByteText.parse(text) == bytes) }

    @Test(
        arguments: [
            (0, "0 bytes"), (1, "1 byte"), (1023, "1023 bytes"), (1024, "1 KiB"), (1536, "1.5 KiB"),
            (1_048_575, "1 MiB"),
            (6 << 30, "6 GiB"), (4_402_341_478, "4.1 GiB"), (.max, "8 EiB"), (.min, "-8 EiB"), (-2048, "-2 KiB"),
        ] as [(Int64, String)])
    func `sizes are written for people`(bytes: Int64, text: String) { #expect(ByteText.format(bytes) == text) }

    @Test(
        arguments: [
            ("250ms", 250), ("5s", 5000), ("2m", 120_000), ("24h", 86_400_000), ("7d", 604_800_000),
            ("1h30m", 5_400_000), ("1.5s", 1500), ("0", 0), ("1h 30m", 5_400_000), ("5", nil), ("", nil), ("-5s", nil),
            ("5x", nil), ("30m1h", nil), ("1s1s", nil), ("0.5ms", nil), ("40000d", nil), ("99999999999999999999s", nil),
            ("s", nil), ("5s!", nil),
        ] as [(String, Int64?)])
    func `spans of time are read exactly`(text: String, milliseconds: Int64?) {
        #expect(DurationText.parse(text)?.milliseconds == milliseconds)
    }

    @Test func `spans of time come back from their text`() {
        var generator = SeededGenerator(seed: 5)
        for digits in 0..<2000 {
            let milliseconds = Int64.random(in: 0...(1 << Int64(digits % 40)), using: &generator)
            let text = DurationText.format(.milliseconds(milliseconds))
            #expect(DurationText.parse(text) == .milliseconds(milliseconds), "\(text)")
        }
        #expect(DurationText.format(.seconds(86_400)) == "24h")
        #expect(DurationText.format(.seconds(604_800)) == "7d")
        #expect(DurationText.format(.milliseconds(-1500)) == "-1s500ms")
    }

    @Test(
        arguments: [
            ("extention", "extensions"), ("mach", "match"), ("rouets", "routes"), ("OWNER", "owner"), ("zzz", nil),
            ("", nil), ("to", "to"), ("qt", nil),
        ] as [(String, String?)])
    func `a slip of the hand is understood`(word: String, meant: String?) {
        let known = ["extensions", "match", "routes", "owner", "destinations", "to"]
        #expect(Suggestion.nearest(to: word, in: known) == meant)
    }

    @Test func `a secret shows nowhere but where it is asked for`() {
        let secret = Secret("canary")
        var dumped = ""
        dump(["key": secret], to: &dumped)
        for text in ["\(secret)", String(reflecting: secret), "\([secret])", "\(Optional(secret) as Any)", dumped] {
            #expect(!text.contains("canary") && text.contains("***"), "\(text)")
        }
        #expect(secret.reveal() == "canary" && secret == Secret("canary") && Secret("").isEmpty)
    }

    @Test func `paths keep every byte and show none that could harm`() {
        var generator = SeededGenerator(seed: 9)
        for _ in 0..<500 {
            let length = Int.random(in: 1...64, using: &generator)
            let bytes = (0..<length).map { _ in UInt8.random(in: 1...255, using: &generator) }.filter { $0 != 0x2F }
            let path = FilePath(bytes: bytes)
            #expect(path.bytes == bytes)
            #expect(path.display.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control })
        }
        #expect(FilePath(bytes: [0x61, 0, 0x62]).bytes == [0x61])
        let odd = FilePath(bytes: Array("é\u{1B}[31m\n\u{202E}".utf8) + [0xFF, 0xC3])
        #expect(odd.display == "é\\x1B[31m\\x0A\\xE2\\x80\\xAE\\xFF\\xC3")
    }

    @Test func `a path is within what it starts with, name by name`() {
        let paths: [FilePath] = ["", "/", "a", "/a", "/a/b", "/a/bc", "/a/b/c", "a/b", "/ab", "/a/../b"]
        for path in paths {
            for folder in paths { #expect(path.isWithin(folder) == path.starts(with: folder), "\(path) in \(folder)") }
        }
    }

    @Test(arguments: ["\u{61C}", "\u{200B}", "\u{200F}", "\u{2066}", "\u{2064}", "\u{FEFF}", "\u{AD}", "\u{E0041}"])
    func `what is not seen or turns the order of text is shown by its bytes, and is in no key`(mark: String) throws {
        #expect(DisplayText.escape("a\(mark)b") == "a\(mark.utf8.map { "\\x" + [$0].hex.uppercased() }.joined())b")
        #expect(KeySanitizer.key("a\(mark)b") == "a_b")
    }

    @Test func `the joiners of emoji and scripts stay`() {
        for text in ["👨\u{200D}👩\u{200D}👧", "می\u{200C}خواهم"] {
            #expect(DisplayText.escape(text) == text)
            #expect(KeySanitizer.key(text) == text)
        }
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
            (1_795_245_600_000, "2026-11-21T07:20:00.000Z"), (951_782_400_001, "2000-02-29T00:00:00.001Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"), (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"),
        ] as [(Int64, String)])
    func `times are written by RFC 3339`(milliseconds: Int64, text: String) {
        #expect(WallTime(milliseconds: milliseconds).rfc3339 == text)
    }

    @Test func `nanoseconds are rounded down`() {
        #expect(WallTime(nanoseconds: 1_729_446_000_999_999_999).milliseconds == 1_729_446_000_999)
        #expect(WallTime(nanoseconds: -1).milliseconds == -1)
    }

    @Test func `known files compare size and mtime, also at the ends of time`() {
        func identity(_ modified: Int64) -> FileIdentity {
            FileIdentity(size: 1, modified: modified, changed: 0, inode: 1, device: 1)
        }
        #expect(identity(5).isKnown(as: identity(5)) && !identity(5).isKnown(as: identity(6)))
        #expect(identity(5).isKnown(as: identity(2_000_000_005), tolerance: 2_000_000_000))
        #expect(!identity(.min).isKnown(as: identity(.max), tolerance: 2_000_000_000))
        #expect(!identity(.min).isKnown(as: identity(0), tolerance: 2_000_000_000))
    }
}

struct TerminalTextTests {
    private static let pieces = [
        "a", "é", "日", "👩‍👩‍👧", "\"", "\\", "\n", "\t", "\r", "\u{0}", "\u{1B}[2J", "\u{1B}[31m", "\u{7F}", "\u{80}",
        "\u{9B}", "\u{9F}", "\u{A0}", "\u{AD}", "\u{61C}", "\u{180E}", "\u{200D}", "\u{200E}", "\u{202E}", "\u{2028}",
        "\u{2029}", "\u{2066}", "\u{FEFF}", "\u{FFFA}", "\u{E0041}", "\u{F0000}", "\u{E8}", "\u{628}",
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
            let plain = DisplayText.masked(text, keepsColours: false)
            #expect(Self.isHarmless(plain, but: ["\n", "\t"]), "round \(round)")
            let coloured = DisplayText.masked(text, keepsColours: true)
            // By scalars: what comes next may belong to the last letter of a colour.
            let bare = Array(coloured.unicodeScalars).replacing("\u{1B}[31m".unicodeScalars, with: [])
            var rest = String.UnicodeScalarView()
            rest.append(contentsOf: bare)
            #expect(Self.isHarmless(String(rest), but: ["\n", "\t"]), "round \(round)")
            #expect(DisplayText.masked(plain, keepsColours: false) == plain)
        }
        #expect(
            DisplayText.masked("a\u{1B}[2J\u{9B}\u{202E}\r\n", keepsColours: true)
                == "a\\u001b[2J\\u009b\\u202e\\u000d\n")
        #expect(DisplayText.masked("\u{1B}[1mé\u{1B}[0m", keepsColours: true) == "\u{1B}[1mé\u{1B}[0m")
        #expect(DisplayText.masked("\u{1B}[1mé\u{1B}[0m", keepsColours: false) == "\\u001b[1mé\\u001b[0m")
        for text in ["\u{1B}[m", "\u{1B}[123m", "\u{1B}[1J", "\u{1B}]0;m", "\u{1B}", "\u{1B}[1"] {
            #expect(!DisplayText.masked(text, keepsColours: true).contains("\u{1B}"))
        }
    }
}

/// How many columns texts take, and where they are cut.
@Suite struct DisplayWidthTests {
    @Test(arguments: [
        ("", 0), ("abc", 3), ("größe", 5), ("e\u{301}", 1), ("日本語", 6), ("ﾊﾝｶｸ", 4), ("한국", 4),
        ("\u{1112}\u{1161}\u{11AB}", 2),
        ("🎬", 2), ("👩‍👩‍👧", 2), ("🇩🇪", 2), ("❤\u{FE0F}", 2), ("a\u{200B}b", 2), ("█···", 4), ("→ …", 3), ("\u{AD}", 1),
    ])
    func `a text takes its columns`(_ text: String, _ width: Int) { #expect(DisplayWidth.of(text) == width) }

    @Test func `what is cut never takes more than its room, and wide characters are not halved`() {
        #expect(DisplayWidth.cut("abcdef", 6) == "abcdef")
        #expect(DisplayWidth.cut("abcdef", 4) == "abc…")
        #expect(DisplayWidth.cut("日本語", 4) == "日…")
        #expect(DisplayWidth.cut("abc", 0).isEmpty)
        #expect(DisplayWidth.shorten("abcdefghij", 7) == "abc…hij")
        #expect(DisplayWidth.shorten("日本語の動画.mov", 9) == "日本….mov")
        for text in ["日本語の動画.mov", "gigs/2026/🎬🎬🎬.mp4", "plain-name-of-some-length.wav"] {
            for room in 0...30 {
                #expect(DisplayWidth.of(DisplayWidth.cut(text, room)) <= room)
                #expect(DisplayWidth.of(DisplayWidth.shorten(text, room)) <= room)
            }
        }
    }

    @Test func `columns are filled up by width`() {
        #expect(DisplayWidth.pad("日", 4) == "日  " && DisplayWidth.padLeft("7", 3) == "  7")
        #expect(DisplayWidth.pad("日本", 3) == "日本")
    }
}

/// Lines of bytes that come in pieces.
@Suite struct LineSplitterTests {
    private func lines(_ pieces: [String], most: Int = 100) -> (ended: [String], rest: String?) {
        var splitter = LineSplitter(most: most)
        let ended = pieces.flatMap { splitter.take(Array($0.utf8)) }
        return (
            ended.map { String(decoding: $0, as: UTF8.self) },
            splitter.end().map { String(decoding: $0, as: UTF8.self) }
        )
    }

    @Test func `lines are the same however their bytes come`() {
        let text = "one\n\ntwo\nthree"
        let whole = lines([text])
        #expect(whole.ended == ["one", "", "two"] && whole.rest == "three")
        let single = lines(text.map { String($0) })
        #expect(single.ended == whole.ended && single.rest == whole.rest)
        #expect(lines([]).rest == nil && lines(["a\n"]).rest == nil)
    }

    @Test func `a line without end takes no more room than is allowed`() {
        let found = lines([String(repeating: "x", count: 90), String(repeating: "y", count: 90), "\nnext\n"])
        #expect(found.ended == [String(repeating: "x", count: 90) + String(repeating: "y", count: 10), "next"])
    }
}

struct RedactorTests {
    private static let secrets = [
        "hunter22", "tok/en+\"1\" <é😀>&'%41\\n", "correct horse battery", "eyJhbGciOiJIUzI1NiJ9.e30.x_y-z",
    ]

    /// As programs write a value; each of these is undone by its reader.
    private static func spellings(_ text: String) -> [String] {
        let base = Data(text.utf8).base64EncodedString()
        let json = String(
            decoding: Data((try? JSONEncoder().encode(text)) ?? Data()).dropFirst().dropLast(), as: UTF8.self)
        let percent = text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        let units = text.utf16.map { "\\u" + String(format: "%04X", $0) }.joined()
        let numbers = text.unicodeScalars.map { "&#\($0.value);" }.joined()
        func page(_ text: String) -> String {
            text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing("\"", with: "&quot;")
        }
        let html = page(text)
        return [
            text, base, base.replacing("/", with: "\\/"), base.replacing("+", with: "-").replacing("/", with: "_"),
            json, percent, percent.replacing("%2F", with: "%2f"), percent.replacing("%20", with: "+"),
            percent.replacing("%", with: "%25"),
            units, units.replacing("\\", with: "\\\\"), numbers, numbers.replacing("&", with: "&amp;"), html,
            html.replacing("&", with: "&amp;"), page(json),
            json.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "", page(units),
            json.replacing("\\", with: "\\\\\\"),
        ]
    }

    @Test(arguments: secrets)
    func `a credential is hidden in each of its spellings`(_ secret: String) {
        let redactor = Redactor([Secret(secret), Secret("another one")])
        for spelling in Self.spellings(secret) {
            let said = redactor.redacted("the key '\(spelling)' is unknown")
            #expect(said.hasPrefix("the key '***") && said.hasSuffix("' is unknown"), "\(spelling): \(said)")
            #expect(!said.contains(spelling.dropFirst(2)))
        }
    }

    @Test(arguments: secrets)
    func `a login is hidden in base64 whatever its user is called`(_ password: String) {
        let redactor = Redactor([Secret(password)])
        for user in ["", "u", "up", "ups", "uploader"] {
            let word = Data("\(user):\(password)".utf8).base64EncodedString()
            let left = redactor.redacted("Basic \(word)").dropFirst(6).split(separator: "***").joined()
            // The user's characters, and at each side one that belongs to both.
            #expect(left.count <= (user.utf8.count + 1) * 4 / 3 + 4, "\(left)")
        }
    }

    @Test func `one that a cut has left without its end is hidden too`() {
        let redactor = Redactor([Secret("tok\"en-canary-8813")])
        for spelling in ["tok\"en-canary-8813", "tok\\\"en-canary-8813", "tok%22en%2Dcanary%2D8813"] {
            for count in 0...spelling.count {
                let said = redactor.redacted("key " + spelling.prefix(count))
                #expect(said.count <= 4 + 6, "\(said)")
                #expect(!said.contains("en-c") && !said.contains("en%2"))
            }
        }
    }

    @Test func `other words stay as they are`() {
        let redactor = Redactor([Secret("hunter22"), Secret("abc"), Secret("")])
        for text in ["", "hunter2 abc", "a hunter 22", "%41 \\u0041 &amp; + %", "\\", "&", "%2", "hun"] {
            #expect(redactor.redacted(text) == text)
        }
        #expect(Redactor([]).redacted([0xFF, 0x00]) == [0xFF, 0x00])
        #expect(redactor.redacted([0xFF] + Array("hunter22".utf8) + [0xFE]) == [0xFF, 0x2A, 0x2A, 0x2A, 0xFE])
    }

    @Test func `the longer of two that begin alike is hidden whole`() {
        let redactor = Redactor([Secret("canary"), Secret("canary-and-more")])
        #expect(redactor.redacted("canary-and-more, canary-and") == "***, ***")
    }

    @Test func `no text makes it fail or grow without bound`() {
        var generator = SeededGenerator(seed: 3)
        let redactor = Redactor([Secret("%41%41\\u0041"), Secret("&amp;&#x26;"), Secret("++++")])
        let pieces = ["%", "25", "41", "\\", "u0041", "u", "&", "amp;", "#x26;", "#", ";", "+", "d83d", "\u{FFFD}"]
        for _ in 0..<3000 {
            let count = Int.random(in: 0...40, using: &generator)
            let text = (0..<count).map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
            #expect(redactor.redacted(text).utf8.count <= text.utf8.count)
        }
    }
}

struct LogLimitTests {
    private let start = ContinuousClock.now

    @Test func `some lines at once, then one a second, and the rest is counted`() {
        var limit = LogLimit()
        let first = (0..<500).count { _ in limit.takes("file.error", at: start) }
        #expect(first == LogLimit.burst)
        let later = [900, 1100, 1200].map { limit.takes("file.error", at: start + .milliseconds($0)) }
        #expect(later == [false, true, false])
        let told = [59, 60, 200].map { limit.gaps(at: start + .seconds($0)) }
        #expect(told.map { $0.map(\.event) } == [[], ["file.error"], []] && told[1].map(\.lines) == [402])
    }

    @Test func `one event's flood leaves others alone`() {
        var limit = LogLimit()
        for _ in 0..<1000 { _ = limit.takes("file.error", at: start) }
        let isWritten = limit.takes("watch.lost", at: start)
        let gaps = limit.gaps(at: start, all: true)
        #expect(isWritten)
        #expect(gaps.map(\.event) == ["file.error"] && gaps.map(\.lines) == [900])
    }

    @Test func `after a quiet while everything is written again`() {
        var limit = LogLimit()
        for _ in 0..<200 { _ = limit.takes("a", at: start) }
        let later = start + .seconds(100)
        let written = (0..<200).count { _ in limit.takes("a", at: later) }
        #expect(written == LogLimit.burst)
    }

    @Test(arguments: 0..<8)
    func `every line is written or counted, and no minute has more than it may`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var limit = LogLimit()
        var (now, written, told, said) = (start, [ContinuousClock.Instant](), 0, 0)
        for _ in 0..<5000 {
            now += .milliseconds(Int.random(in: 0...200, using: &random))
            said += 1
            if limit.takes("a", at: now) { written.append(now) }
            told += limit.gaps(at: now).reduce(0) { $0 + $1.lines }
        }
        told += limit.gaps(at: now, all: true).reduce(0) { $0 + $1.lines }
        #expect(written.count + told == said)
        for first in written { #expect(written.count { $0 >= first && $0 < first + .seconds(60) } <= 161) }
    }
}
