import InletTestSupport
import SystemPackage
import Testing

@testable import InletCore

/// Keys with names as their files have them.
@Suite struct KeptNameTests {
    private func key(_ path: [UInt8], _ form: NameForm, _ template: String = "{dir}/{name}") throws -> String {
        let fields = KeyFields(
            path: FilePath(bytes: path), modified: 0, category: "other", admitted: WallTime(milliseconds: 0))
        return try KeyTemplate(template).key(fields, form)
    }

    private func key(_ path: String, _ form: NameForm, _ template: String = "{dir}/{name}") throws -> String {
        try key(Array(path.utf8), form, template)
    }

    @Test(arguments: [
        "Übung 1 (final).mov", "a/b c/IMG 1.JPG", "100% sure.txt", "a\\b:c*?.mov", " leading and trailing ", "...",
        "..a/b..",
        "tab\tand\nline.txt", "e\u{301}.jpg", "\u{e9}.jpg", "日本/写真 1.jpg", "👩‍👩‍👧.png", "\u{202E}gpj.exe", "a\u{301}/b",
        "~$x", "#1 & 2+3=.mp4",
    ])
    func `a name stays as it is, byte for byte`(name: String) throws {
        for form in [NameForm.folder, .object] {
            let key = try key(name, form)
            #expect(key.utf8.elementsEqual(name.utf8))
            #expect(FilePath(key: key).bytes == Array(name.utf8))
        }
    }

    @Test func `names in both normal forms are two keys`() throws {
        let keys = try ["e\u{301}.jpg", "\u{e9}.jpg"].map { Array(try key($0, .object).utf8) }
        #expect(keys[0] != keys[1])
    }

    @Test func `all fields of a path stay, each by itself`() throws {
        let path = "A b/C d/E f.tar.gz"
        #expect(try key(path, .object, "{folder[2]}/{stem}-{name}.{ext}") == "C d/E f.tar-E f.tar.gz.gz")
        #expect(try key(path, .clean, "{folder[2]}/{stem}.{ext}") == "C_d/E_f.tar.gz")
    }

    @Test func `a name that is not UTF-8 keeps its bytes in a folder, and is encoded for a store`() throws {
        let name = Array("f".utf8) + [0xFC] + Array("r 100% \u{e9}.mov".utf8)
        let folder = try key(name, .folder)
        #expect(FilePath(key: folder).bytes == name)
        #expect(DisplayText.escape(folder) == "f\\xFCr 100% \u{e9}.mov")
        #expect(try key(name, .object) == "f%FCr 100%25 \u{e9}.mov")
        #expect(try key("100%.mov", .object) == "100%.mov")
    }

    @Test func `characters that stand for bytes keep theirs, too`() throws {
        let name = "a\u{EF80}\u{EFFF}.mov"
        #expect(FilePath(key: try key(name, .folder)).bytes == Array(name.utf8))
        #expect(try key(name, .folder) != name)
    }

    @Test func `dots alone are encoded, and empty folders left out`() throws {
        #expect(try key("x", .folder, "../{dir}/./{name}") == "%2E%2E/%2E/x")
        #expect(try key("x", .object, "//{dir}//{name}/") == "x")
    }

    @Test func `a name that is too long keeps its extension and gets its checksum`() throws {
        let long = String(repeating: "ü", count: 130) + ".mov"
        let key = try key("d/" + long, .folder)
        let name = try #require(FilePath(key: key).lastComponent)
        let hash = SHA256.digest(of: long.utf8).hex.prefix(8)
        #expect(name.string.hasSuffix("ü~\(hash).mov") && (250...255).contains(name.string.utf8.count))
        #expect(try self.key("d/" + long, .object) == "d/" + long)
    }

    @Test func `a key that is too long for a store keeps its extension and gets its checksum`() throws {
        let path = (0..<6).map { String(repeating: "\($0)", count: 200) }.joined(separator: "/") + "/a.mov"
        let key = try key(path, .object)
        #expect(key.utf8.count == 1024 && key.hasSuffix("~\(SHA256.digest(of: path.utf8).hex.prefix(8)).mov"))
        #expect(try self.key(path, .folder) == path)
    }

    @Test func `a second file and a companion of a very long path stay in its folder`() throws {
        let folder = (0..<8).map { String(repeating: "\($0)", count: 200) }.joined(separator: "/")
        let key = try key("\(folder)/clip.mp4", .folder)
        #expect(KeyTemplate.disambiguated(key, number: 2) == "\(folder)/clip_2.mp4")
        let companion = Companion(path: "clip.xmp", kind: .sameStem, ending: "xmp")
        #expect(companion.key(beside: key, of: "clip.mp4") == "\(folder)/clip.xmp")
    }

    @Test func `what a file system refuses is encoded, with the percent sign of such a name`() {
        var limits = NameLimits()
        (limits.refused, limits.refusedLast, limits.isText) = (Set(":\\".utf8), Set(". ".utf8), true)
        let held = { KeptName.held($0, limits) }
        #expect(held("a:b\\c 5%/d.mov") == "a%3Ab%5Cc 5%25/d.mov")
        #expect(held("5%.mov") == "5%.mov")
        #expect(held("Vol. 1. ./a .mov ") == "Vol. 1%2E%20%2E/a .mov%20")
        #expect(held(KeptName.text(of: [0x61, 0xFF])) == "a%FF")
        limits.isText = false
        #expect(FilePath(key: KeptName.held(KeptName.text(of: [0x61, 0xFF]), limits)).bytes == [0x61, 0xFF])
    }

    @Test func `no two names have the same key in a folder, and none is longer than it may be`() throws {
        var random = SeededGenerator(seed: UInt64.random(in: 1...UInt64.max))
        var keys: [[UInt8]: [UInt8]] = [:]
        for _ in 0..<Load.of(4000) {
            let count = Int.random(in: 1...300, using: &random)
            let isText = Bool.random(using: &random)
            let bytes = (0..<count).map { _ in
                var byte = UInt8.random(in: (isText ? 32 : 1)...(isText ? 126 : 255), using: &random)
                if byte == UInt8(ascii: "/") { byte = UInt8(ascii: "%") }
                return byte
            }
            let key = FilePath(key: try key(bytes, .folder)).bytes
            #expect(key.count <= 255)
            if bytes.count <= 255, bytes != [46], bytes != [46, 46] { #expect(key == bytes) }
            let twin = keys.updateValue(bytes, forKey: key)
            #expect(twin == nil || twin == bytes)
        }
    }
}
