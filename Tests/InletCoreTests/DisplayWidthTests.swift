import InletCore
import Testing

/// How many columns texts take, and where they are cut.
@Suite struct DisplayWidthTests {
    @Test(arguments: [
        ("", 0), ("abc", 3), ("größe", 5), ("e\u{301}", 1), ("日本語", 6), ("ﾊﾝｶｸ", 4), ("한국", 4),
        ("\u{1112}\u{1161}\u{11AB}", 2),
        ("🎬", 2), ("👩‍👩‍👧", 2), ("🇩🇪", 2), ("❤\u{FE0F}", 2), ("a\u{200B}b", 2), ("█···", 4), ("→ …", 3), ("\u{AD}", 1),
    ])
    func `a text takes its columns`(_ text: String, _ width: Int) {
        #expect(DisplayWidth.of(text) == width)
    }

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
