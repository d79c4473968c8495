import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

struct KeyTemplateTests {
    @Test(arguments: [
        ("", 0, "empty"), ("{name", 0, "not closed"), ("a}b", 1, "'}'"), ("x{captured}", 2, "needs a format"),
        ("{volume:3}", 7, "takes no"), ("{captured:yyyy@Mars}", 15, "time zone"),
        ("{captured:YYYY-MM-dd}", 10, "yyyy"),
        ("{captred:yyyy}", 1, "{captured}"), ("{nmae}", 1, "did you mean '{name}'"), ("{}", 1, "unknown field"),
        ("{extention}", 1, "unknown field"), ("{folder}", 1, "folder[1]"), ("{folder[0]}", 8, "1 to"),
        ("{folder[x]}", 8, "1 to"), ("{sha256:0}", 8, "1 to 64"), ("{sha256:65}", 8, "1 to 64"),
        ("{name:3}", 5, "takes no"),
        ("{mtime}", 1, "needs a format"), ("{mtime:}", 1, "needs a format"),
        ("{now:yyyy@Nowhere/City}", 10, "time zone"),
        ("{mtime:yyyy-bb}", 12, "no date field"), ("{mtime:yyyy 'open}", 12, "not closed"),
        ("{mtime:ddd}", 7, "at most"),
        ("{mtime:YYYY-MM-dd}", 7, "yyyy"), ("{mtime:yyyy-'W'ww}", 7, "YYYY"),
    ])
    func `a template that cannot be filled in is refused where it goes wrong`(text: String, offset: Int, word: String) {
        let error = #expect(throws: PatternError.self) { try KeyTemplate(text) }
        #expect(error?.offset == offset)
        #expect(error?.message.contains(word) == true, "\(error?.message ?? "")")
    }

    @Test(arguments: [
        ("{category}/{owner}/{epoch_ms}_{name}", "images/anna/1729446000000_My_Photo.JPG"),
        ("{stem}-{sha256:12}.{ext}", "My_Photo-abababababab.JPG"), ("{dir}/{seq}", "trips/rome_2024/7"),
        ("{folder[1]}|{folder[2]}|{folder[3]}", "trips|rome_2024|"), ("{{{name}}}", "{My_Photo.JPG}"),
        ("/a//b/./{name}", "a/b/My_Photo.JPG"), ("../{name}", "My_Photo.JPG"), ("a\\b\u{7}c", "a_b_c"),
        ("{mtime:yyyy/MM/dd@UTC}/{name}", "2024/10/20/My_Photo.JPG"),
        ("{now:yyyy-MM-dd'T'HH.mm@Asia/Tokyo}", "2024-10-21T02.40"),
        ("{mtime:HH}", "19"),
    ])
    func `fields are filled in and the result is cleaned`(text: String, key: String) throws {
        #expect(try KeyTemplate(text).key(Self.sample) == key)
    }

    @Test func `an empty field drops its own folder`() throws {
        var fields = KeyFields(path: "README", modified: 0, category: "models", admitted: WallTime(milliseconds: 5))
        #expect(KeyTemplate.standard.key(fields) == "models/5_README")
        #expect(try KeyTemplate("a/{dir}/{stem}.{ext}").key(fields) == "a/README")
        #expect(try KeyTemplate("{owner}").key(fields) == "README")
        #expect(try KeyTemplate("{owner}-{category}/x").key(fields) == "-models/x")
        #expect(try KeyTemplate("x{owner}/{name}").key(fields) == "README")
        fields.owner = ".."
        #expect(KeyTemplate.standard.key(fields) == "models/5_README")
    }

    @Test func `the standard template is what it says`() throws {
        #expect(try KeyTemplate(KeyTemplate.standard.text) == .standard)
        #expect(KeyTemplate.standard.facts.isEmpty)
        #expect(try KeyTemplate("{sha256:8}/{seq}").facts == [.sha256, .sequence])
    }

    @Test func `names that differ in bad bytes only keep different keys`() throws {
        func key(_ bad: [UInt8]) throws -> String {
            let path = FilePath(bytes: Array("d/caf".utf8) + bad + Array(".jpg".utf8))
            return try KeyTemplate("{name}").key(
                KeyFields(path: path, modified: 0, category: "", admitted: .init(milliseconds: 0)))
        }
        let (first, second) = (try key([0xE9]), try key([0xE8]))
        #expect(
            first.hasPrefix("caf%E9_") && first.hasSuffix(".jpg")
                && first.utf8.count == "caf%E9_01234567.jpg".utf8.count)
        #expect(first.dropFirst(7) != second.dropFirst(7))
        #expect(try key(Array("%E9".utf8)) == "caf%E9.jpg")
    }

    @Test func `text for a destination keeps spaces and slashes`() throws {
        var fields = Self.sample
        fields.owner = "a b\n../c"
        #expect(try KeyTemplate("/{owner} \\ {stem}").text(fields) == "/a b_../c \\ My Photo")
        #expect(try KeyTemplate("{folder[9]}").text(fields) == "")
    }

    @Test func `a number goes before the last extension`() {
        #expect(KeyTemplate.disambiguated("a/b.tar.gz", number: 2) == "a/b.tar_2.gz")
        #expect(KeyTemplate.disambiguated("a.b/c", number: 10) == "a.b/c_10")
        #expect(KeyTemplate.disambiguated(".env", number: 2) == ".env_2")
        let long = KeyTemplate.disambiguated(String(repeating: "é", count: 510) + ".jpg", number: 12345)
        #expect(long.utf8.count <= 1024 && long.hasSuffix("é_12345.jpg"))
        // What is a file's name stays one, for destinations that are folders.
        let name = String(repeating: "é", count: 125) + "n.mov"
        let numbered = KeyTemplate.disambiguated("a/b/" + name, number: 2)
        #expect(numbered == "a/b/" + String(repeating: "é", count: 124) + "_2.mov")
    }

    @Test func `any name gives a key that every store can bear`() throws {
        var generator = SeededGenerator(seed: 7)
        let templates = try ["{name}", "{dir}/{name}", "{owner}/{stem}.{ext}", "{folder[1]}/x/{dir}/{name}"].map(
            KeyTemplate.init)
        let pieces: [[UInt8]] = [
            [0xFF], [0xC3], Array("é".utf8), Array("e\u{301}".utf8), Array("..".utf8), Array("/".utf8),
            Array("\\".utf8), [7], [0x20],
            Array("\u{202E}".utf8), Array("日本".utf8), Array("a".utf8), Array(".jpg".utf8), Array("👩‍👩‍👧".utf8),
            Array("\u{338}".utf8),
            Array(repeating: 0x62, count: 200), Array(repeating: 0x2E, count: 300), Array("\u{1FEF}".utf8),
            Array("ᄀ".utf8), Array("ᅡ".utf8),
        ]
        for round in 0..<250 {
            let bytes = (0..<Int.random(in: 1...14, using: &generator)).flatMap { _ in
                pieces.randomElement(using: &generator) ?? []
            }
            let owner = String(decoding: bytes.reversed(), as: UTF8.self)
            let fields = KeyFields(
                path: FilePath(bytes: bytes), modified: 0, owner: owner, category: "c",
                admitted: WallTime(milliseconds: 1))
            for template in templates {
                let key = template.key(fields)
                #expect(isSound(key), "round \(round): \(DisplayText.escape(key))")
                #expect(key == template.key(fields))
                #expect(isSound(KeyTemplate.disambiguated(key, number: 2)))
            }
        }
    }

    private func isSound(_ key: String) -> Bool {
        let names = key.unicodeScalars.split(separator: "/", omittingEmptySubsequences: false).map { String($0) }
        let isNFC = key.precomposedStringWithCanonicalMapping.utf8.elementsEqual(key.utf8)
        let isClean = key.unicodeScalars.allSatisfy {
            !$0.properties.isWhitespace && $0.properties.generalCategory != .control && $0 != "\\"
        }
        return isNFC && isClean && (1...1024).contains(key.utf8.count)
            && !names.contains { ["", ".", ".."].contains($0) }
    }

    @Test func `a long name is cut at a character and keeps its extension`() throws {
        let name = String(repeating: "日", count: 400) + ".tar.jpeg"
        let fields = KeyFields(path: FilePath(name), modified: 0, category: "", admitted: WallTime(milliseconds: 0))
        let key = try KeyTemplate("{name}").key(fields)
        #expect(key == String(repeating: "日", count: 339) + ".jpeg")
    }

    private static let sample = KeyFields(
        path: "trips/rome 2024/My Photo.JPG", modified: 1_729_446_000_999_999_999, owner: "anna", category: "images",
        sha256: Digest(.sha256, Array(repeating: 0xAB, count: 32)), admitted: WallTime(milliseconds: 1_729_446_000_000),
        sequence: 7, zone: "Europe/Berlin")
}
