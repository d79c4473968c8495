import InletTestSupport
import SystemPackage
import Testing

@testable import InletCore

struct TextTests {
    @Test(
        arguments: [
            ("512", 512), ("0", 0), ("8MiB", 8 << 20), ("6GB", 6_000_000_000), ("1.5GiB", 1_610_612_736),
            ("64k", 64_000),
            ("64Ki", 65_536), ("1 mib", 1 << 20), ("10b", 10), ("12 bytes", 12), ("0.0000001kB", 0), ("8EiB", nil),
            ("", nil),
            ("-1", nil), ("MiB", nil), ("1..5MB", nil), (".5MB", nil), ("1.5", nil), ("8 MiB/s", nil),
            ("9223372036854775808", nil),
            ("9007199254740992KiB", nil), ("1e3", nil), ("٣MB", nil), ("+5", nil),
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
            ("1h30m", 5_400_000),
            ("1.5s", 1500), ("0", 0), ("1h 30m", 5_400_000), ("5", nil), ("", nil), ("-5s", nil), ("5x", nil),
            ("30m1h", nil),
            ("1s1s", nil), ("0.5ms", nil), ("40000d", nil), ("99999999999999999999s", nil), ("s", nil), ("5s!", nil),
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
            ("", nil),
            ("to", "to"), ("qt", nil),
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
            (1_795_245_600_000, "2026-11-21T07:20:00.000Z"),
            (951_782_400_001, "2000-02-29T00:00:00.001Z"), (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"),
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
