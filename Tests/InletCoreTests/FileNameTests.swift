import InletCore
import InletTestSupport
import SystemPackage
import Testing

struct FileNameSpellingTests {
    private static let composed = Array("caf\u{E9}.jpg".utf8)
    private static let decomposed = Array("cafe\u{301}.jpg".utf8)

    @Test func `a name has the other normal form as its other spelling`() {
        #expect(FileName(bytes: Self.composed).otherSpellings == [Self.decomposed])
        #expect(FileName(bytes: Self.decomposed).otherSpellings == [Self.composed])
    }

    @Test(arguments: [Array("cafe.jpg".utf8), Array("日本.jpg".utf8), [0x63, 0xE9, 0x2E, 0x6A], []] as [[UInt8]])
    func `ASCII, text without forms and bytes that are no text have none`(bytes: [UInt8]) {
        #expect(FileName(bytes: bytes).otherSpellings.isEmpty)
    }

    @Test(arguments: [
        ("a.JPG", "jpg", true), ("a.tar.GZ", "tar.gz", true), ("a.ÄB", "äb", true), (".jpg", "jpg", false),
        ("ajpg", "jpg", false), ("jpg", "jpg", false), ("a.jpg", "peg", false), ("a.jpg", "", false),
    ])
    func `an extension is compared in any case, behind a dot and a name`(name: String, ending: String, isOne: Bool) {
        #expect(FileName(bytes: name.utf8).hasExtension(ending) == isOne)
    }

    @Test func `paths sort by their bytes, and end in their names`() {
        let names: [[UInt8]] = [[0x61], [0x61, 0x2D], [0x61, 0x2F, 0x62], [0x61, 0x2F, 0xFF], [0x62], [0xC3, 0xA4]]
        let paths = names.map { FilePath(bytes: $0) }
        for (place, path) in paths.enumerated() {
            for (other, later) in paths.enumerated() { #expect(path.precedes(later) == (place < other)) }
        }
        #expect(paths.map(\.nameStart) == [0, 0, 2, 2, 0, 0])
        #expect(paths.map { FileName($0).bytes.count } == [1, 2, 1, 1, 1, 2])
    }

    @Test func `a name says which file is being fetched under it`() {
        func part(_ name: String, _ other: String) -> Bool {
            FileName(bytes: name.utf8).isPart(of: FileName(bytes: other.utf8))
        }
        for name in ["a.mov.part", "a.Xy12Zw34.mov.part", "a.mov.PART", "a.mov.crdownload", "a.mov.filepart"] {
            #expect(part(name, "a.mov"), "\(name)")
        }
        #expect(part("a.part", "a"))
        for name in ["b.mov.part", "a.mov", "a.part", "a.b.mov.part", "a.Xy12Zw34.mp4.part", "a.mov.bak", ".part"] {
            #expect(!part(name, "a.mov"), "\(name)")
        }
    }

    @Test func `a name in neither form has both`() {
        // One letter in each form.
        let mixed = Array("\u{E9}e\u{301}".utf8)
        #expect(FileName(bytes: mixed).otherSpellings.count == 2)
    }
}

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

struct RenamesTests {
    private func renamed(_ pairs: (FilePath, FilePath)...) -> Renames {
        var renames = Renames()
        for (cookie, (old, new)) in pairs.enumerated() {
            renames.leaves(old, cookie: UInt32(cookie + 1))
            renames.reaches(new, cookie: UInt32(cookie + 1))
        }
        return renames
    }

    @Test func `two halves with one cookie are a rename`() {
        let renames = renamed(("a", "x/b"))
        #expect(renames.origins(of: "x/b") == ["a"])
        #expect(renames.origins(of: "a").isEmpty && renames.origins(of: "x").isEmpty && !renames.isEmpty)
    }

    @Test func `halves of different renames do not match, nor does one without the other`() {
        var renames = Renames()
        renames.leaves("a", cookie: 1)
        renames.reaches("b", cookie: 2)
        #expect(renames.origins(of: "b").isEmpty)
        renames.reaches("c", cookie: 1)
        #expect(renames.origins(of: "c") == ["a"])
    }

    @Test func `a file below a renamed folder has its old path from it`() {
        let renames = renamed(("2026/old", "2026/new"))
        #expect(renames.origins(of: "2026/new/x/a.jpg") == ["2026/old/x/a.jpg"])
        #expect(renames.origins(of: "2026/newer/a.jpg").isEmpty)
    }

    @Test func `after several renames each name in between counts, the latest first`() {
        let renames = renamed(("a", "b"), ("b", "c"), ("folder", "other"), ("other/x", "y"))
        #expect(renames.origins(of: "c") == ["b", "a"] && renames.origins(of: "b").isEmpty)
        #expect(renames.origins(of: "y") == ["other/x", "folder/x"])
    }

    @Test func `a folder that is renamed twice tells of both names, and takes along what was renamed in it`() {
        var renames = renamed(("card/a", "card/b"))
        for (cookie, old, new) in [(11, "card", "monday"), (12, "monday", "tuesday")] as [(UInt32, FilePath, FilePath)]
        {
            renames.leaves(old, cookie: cookie)
            renames.reaches(new, cookie: cookie, isFolder: true)
        }
        #expect(renames.origins(of: "tuesday/x") == ["monday/x", "card/x"])
        #expect(renames.origins(of: "tuesday/b") == ["card/a", "monday/b", "card/b"])
        #expect(renames.origins(of: "monday/b").isEmpty && renames.origins(of: "card/b").isEmpty)
    }

    @Test func `no more names are remembered of one file than a journal can be asked for`() {
        var renames = Renames()
        for number in 0..<100 as Range<UInt32> {
            renames.leaves(FilePath("n\(number)"), cookie: number)
            renames.reaches(FilePath("n\(number + 1)"), cookie: number)
        }
        let names = renames.origins(of: "n100")
        #expect(names.count == 8 && names.first == "n99")
    }

    @Test func `a file that is renamed back may be known by the name in between, not by its own`() {
        let renames = renamed(("a", "b"), ("b", "a"))
        #expect(renames.origins(of: "a") == ["b"] && renames.origins(of: "b").isEmpty)
    }

    @Test func `what was moved to where nobody watched yet is known by its name, also below a folder`() {
        var renames = Renames()
        renames.leaves("card/A", cookie: 1)
        renames.leaves("note.txt", cookie: 2)
        #expect(!renames.isEmpty)
        #expect(renames.origins(of: "new/A/sub/x.jpg") == ["card/A/sub/x.jpg"])
        #expect(renames.origins(of: "new/note.txt") == ["note.txt"])
        #expect(renames.origins(of: "new/other.txt").isEmpty && renames.origins(of: "note.txt").isEmpty)
    }

    @Test func `what was asked about, or made anew, is forgotten`() {
        var renames = renamed(("a", "b"))
        renames.forget("b")
        #expect(renames.isEmpty)
    }

    @Test func `a file from outside under a name that was renamed to is not that file`() {
        var renames = renamed(("a", "b"))
        renames.reaches("b", cookie: 77)
        #expect(renames.origins(of: "b").isEmpty)
    }

    @Test func `memory is bounded, and the oldest goes first`() {
        var renames = Renames(capacity: 3)
        for number in 0..<200 as Range<UInt32> {
            renames.leaves(FilePath("lost\(number)"), cookie: 1000 + number)
            renames.leaves(FilePath("a\(number)"), cookie: number)
            renames.reaches(FilePath("b\(number)"), cookie: number)
        }
        #expect((0..<200).filter { !renames.origins(of: FilePath("b\($0)")).isEmpty } == [197, 198, 199])
        renames.reaches("late", cookie: 1000)
        #expect(renames.origins(of: "late").isEmpty)
    }

    @Test(arguments: 0..<30) func `random renames of files agree with a model that follows each`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var renames = Renames()
        // The names that each file had, latest first, by where it is.
        var model: [FilePath: [FilePath]] = [:]
        for number in 0..<8 { model[FilePath("f\(number)")] = [] }
        for cookie in 1...300 as ClosedRange<UInt32> {
            guard let old = model.keys.sorted(by: { $0.string < $1.string }).randomElement(using: &generator) else {
                break
            }
            let new = FilePath("f\(Int.random(in: 0..<20, using: &generator))")
            guard model[new] == nil else { continue }
            renames.leaves(old, cookie: cookie)
            renames.reaches(new, cookie: cookie)
            let names = [old] + (model.removeValue(forKey: old) ?? [])
            var kept: [FilePath] = []
            for name in names where name != new && !kept.contains(name) { kept.append(name) }
            model[new] = Array(kept.prefix(8))
        }
        for (path, names) in model { #expect(renames.origins(of: path) == names, "\(path)") }
    }
}
