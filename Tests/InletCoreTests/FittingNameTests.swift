import InletCore
import InletTestSupport
import SystemPackage
import Testing

struct FittingNameTests {
    private static func name(_ bytes: [UInt8]) -> FilePath.Component? { FilePath(bytes: bytes).lastComponent }
    private static func name(_ text: String) -> FilePath.Component? { name(Array(text.utf8)) }
    private static func many(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }

    @Test(
        arguments: [
            ("a.mov", "_2", "", "a_2.mov"), ("a", "_2", "", "a_2"), (".hidden", "_2", "", ".hidden_2"),
            ("a.mov", "", ".reason.json", "a.mov.reason.json"),
            (many("n", 251) + ".mov", "_2", "", many("n", 249) + "_2.mov"),
            (many("n", 255), "_10", "", many("n", 252) + "_10"),
            (many("n", 251) + ".mov", "", ".reason.json", many("n", 239) + ".mov.reason.json"),
            // 2 bytes each: 249 bytes hold 124 of them.
            (many("é", 125) + "n.mov", "_2", "", many("é", 124) + "_2.mov"),
            (many("😀", 63) + "123", "_2", "", many("😀", 63) + "1_2"),
            // No extension that anybody would know.
            ("a." + many("x", 253), "_2", "", "a." + many("x", 251) + "_2"),
            ("😀." + many("x", 249), "", ".reason.json", "😀." + many("x", 238) + ".reason.json"),
        ] as [(String, String, String, String)])
    func `the stem gives way to what is added`(_ text: String, _ tail: String, _ suffix: String, _ expected: String)
        throws
    {
        let name = try #require(Self.name(text))
        #expect(name.fitting(tail: tail, suffix: suffix) == Self.name(expected))
    }

    @Test func `bytes that are no text are kept as they are`() throws {
        let bytes = [UInt8](repeating: 0xFF, count: 251) + Array(".mov".utf8)
        let fitted = try #require(Self.name(bytes)).fitting(tail: "_2")
        #expect(fitted.bytes == [UInt8](repeating: 0xFF, count: 249) + Array("_2.mov".utf8))
        let stray = [UInt8](repeating: 0x80, count: 255)
        #expect(try #require(Self.name(stray)).fitting(tail: "_2").bytes == Array(stray.prefix(253)) + Array("_2".utf8))
    }

    @Test func `any name fits, keeps what was added, and stays text where it was text`() throws {
        var generator = SeededGenerator(seed: 255)
        let pieces: [[UInt8]] =
            ["a", "é", "日", "😀", ".", ".mov", "_2", "e\u{301}"].map { Array($0.utf8) } + [[0xFF], [0x80]]
        var cut = 0
        for round in 0..<Load.of(5000) {
            let isText = round.isMultiple(of: 2)
            var bytes: [UInt8] = []
            let length = Int.random(in: 1...255, using: &generator)
            while bytes.count < length {
                bytes += pieces[Int.random(in: 0..<(isText ? 8 : 10), using: &generator)]
            }
            if isText, bytes.count > 255 { continue }
            guard let name = Self.name(Array(bytes.prefix(255))), name.kind == .regular else { continue }
            let tail = ["", "_2", "_1234"].randomElement(using: &generator) ?? ""
            let suffix = ["", ".reason.json", ".inlet-part"].randomElement(using: &generator) ?? ""
            let limit = Int.random(in: 64...255, using: &generator)
            let fitted = name.fitting(prefix: ".", tail: tail, suffix: suffix, limit: limit)
            let all = fitted.bytes
            #expect(all.count <= limit && all.starts(with: ".".utf8), "round \(round)")
            #expect(all.suffix(suffix.utf8.count).elementsEqual(suffix.utf8), "round \(round)")
            if isText { #expect(String(validating: all, as: UTF8.self) != nil, "round \(round): \(fitted)") }
            #expect(fitted == name.fitting(prefix: ".", tail: tail, suffix: suffix, limit: limit))
            let whole = 1 + name.bytes.count + tail.utf8.count + suffix.utf8.count
            if whole <= limit { #expect(all.count == whole, "round \(round)") } else { cut += 1 }
            // No more is lost than one letter.
            if whole > limit { #expect(all.count > limit - 4, "round \(round)") }
        }
        #expect(cut > Load.of(500))
    }
}
