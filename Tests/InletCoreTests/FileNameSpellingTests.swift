import InletCore
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
