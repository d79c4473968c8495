import InletConfig
import InletCore
import InletTestSupport
import SystemPackage
import Testing

struct SidecarMetadataTests {
    private func fields(_ text: String) throws(ConfigErrors) -> [String: String] {
        try SidecarMetadata.parse(Array(text.utf8), file: "song.mp4.yaml").fields
    }

    /// The places and texts of what is wrong, without excerpts; an empty list when nothing is.
    private func complaints(_ bytes: [UInt8]) -> [String] {
        do throws(ConfigErrors) {
            _ = try SidecarMetadata.parse(bytes, file: "song.mp4.yaml")
            return []
        } catch {
            return error.list.map { "\($0.line):\($0.column): \($0.message)" }
        }
    }

    @Test func `a mapping called labels holds the file's labels, and any other mapping is refused`() throws {
        let text = "title: Live\nlabels:\n  project: Roxy\n  title: x\n  empty:\nyear: 2026\n"
        let sidecar = try SidecarMetadata.parse(Array(text.utf8), file: "song.mp4.yaml")
        #expect(
            sidecar == Sidecar(fields: ["title": "Live", "year": "2026"], labels: ["project": "Roxy", "title": "x"]))
        #expect(try fields("labels: [a, b]") == ["labels": "a, b"])
        #expect(complaints(Array("labels: { a: { b: c } }".utf8)).count == 1)
        #expect(complaints(Array("labels: { a: b, a: c }".utf8)).count == 1)
    }

    @Test func `a unit's marker gives labels if it has any, and may hold anything else`() throws {
        func labels(_ text: String) throws(ConfigErrors) -> [String: String] {
            try SidecarMetadata.unitLabels(Array(text.utf8), file: "DONE", isMarker: true)
        }
        #expect(try labels("labels: { project: Roxy }") == ["project": "Roxy"])
        #expect(try labels("") == [:])
        #expect(try labels("copied 17 files: [ok\n") == [:])
        #expect(throws: ConfigErrors.self) { try labels("labels: { project: [ }") }
    }

    @Test(
        arguments: [
            ("label: Live at the Roxy", ["label": "Live at the Roxy"]),
            ("event_date: 2026-11-21", ["event_date": "2026-11-21"]),
            ("rating: 5\nnotes: 'it''s on'", ["rating": "5", "notes": "it's on"]),
            ("keywords: [rock, 2026, \"a, b\"]", ["keywords": "rock, 2026, a, b"]),
            ("participants:\n  - Ann\n  - Bob", ["participants": "Ann, Bob"]),
            ("keywords: [a, ~, b, null]", ["keywords": "a, b"]),
            ("keywords: []", ["keywords": ""]), ("label: ''", ["label": ""]),
            ("a: yes\nb: 0x10", ["a": "yes", "b": "0x10"]),
            ("label:\nnotes: ~\nrating: null", [:]), ("label: 'null'", ["label": "null"]),
            ("notes: |\n  one\n  two\n", ["notes": "one\ntwo\n"]), ("{\"label\": \"x\"}", ["label": "x"]),
            ("# a comment\n", [:]), ("", [:]), ("~", [:]), ("---\n", [:]), ("\u{FEFF}label: x", ["label": "x"]),
            ("label: x\r\nnotes: y\r\n", ["label": "x", "notes": "y"]),
        ] as [(String, [String: String])])
    func `a flat mapping is read as it is written`(text: String, expected: [String: String]) throws {
        #expect(try fields(text) == expected)
    }

    @Test(arguments: [
        ("label: \"${env:SPIRAL_KEY}\"", "${env:SPIRAL_KEY}"), ("label: ${file:/etc/shadow}", "${file:/etc/shadow}"),
        ("label: \"$${env:HOME}\"", "$${env:HOME}"), ("label: [\"${env:SPIRAL_KEY}\"]", "${env:SPIRAL_KEY}"),
        ("label: '{stem} {{'", "{stem} {{"),
    ])
    func `who may drop a file can read no secret`(text: String, expected: String) throws {
        #expect(try fields(text) == ["label": expected])
    }

    @Test(
        arguments: [
            ("label: a\nlabel: b", ["2:1: field 'label' is given twice; it is already on line 1"]),
            ("label: { en: a }", ["1:8: fields of a sidecar hold texts or lists of texts, not mappings"]),
            ("k: [a, [b]]", ["1:8: a list of a sidecar holds texts, not lists or mappings"]),
            (
                "k: [{a: b}, c]\nk: d",
                [
                    "1:5: a list of a sidecar holds texts, not lists or mappings",
                    "2:1: field 'k' is given twice; it is already on line 1",
                ]
            ),
            ("k: &a x", ["1:4: anchors are not supported in a sidecar; put text that begins with '&' in quotes"]),
            ("k: *a", ["1:4: aliases are not supported in a sidecar; put text that begins with '*' in quotes"]),
            ("k: [*a]", ["1:5: aliases are not supported in a sidecar; put text that begins with '*' in quotes"]),
            (
                "<<: { a: b }",
                [
                    "1:1: merge keys ('<<') are not supported in a sidecar",
                    "1:5: fields of a sidecar hold texts or lists of texts, not mappings",
                ]
            ),
            ("k: !!str 5", ["1:4: tags such as !!str are not supported; quote text instead"]),
            ("[a]: b", ["1:1: a field's name must be a plain word"]),
            ("a b: c", ["1:1: 'a b' is no field's name: letters, digits, '_' and '-', at most 64"]),
            ("\"\": c", ["1:1: '' is no field's name: letters, digits, '_' and '-', at most 64"]),
            ("- a", ["1:1: a sidecar is a mapping of fields, as in 'label: Live at the Roxy'"]),
            ("just text", ["1:1: a sidecar is a mapping of fields, as in 'label: Live at the Roxy'"]),
            ("a: b\n---\nc: d", ["2:1: a second document begins here; a sidecar is one document"]),
            ("a: \"open", ["1:4: the quote that opens here is never closed"]),
            ("a:\n\tb: c", ["2:1: a tab cannot indent here; use spaces"]),
        ] as [(String, [String])])
    func `what a sidecar may not hold is refused where it stands`(text: String, expected: [String]) {
        #expect(complaints(Array(text.utf8)) == expected)
    }

    @Test func `an error names the file and shows the line`() {
        let error = #expect(throws: ConfigErrors.self) { try fields("label: { a: b }") }
        #expect(
            error?.description
                == "song.mp4.yaml:1:8: fields of a sidecar hold texts or lists of texts, not mappings\n"
                + "label: { a: b }\n       ^")
    }

    @Test func `a sidecar is small`() throws {
        let comment = String(repeating: "#", count: SidecarMetadata.maximumBytes - 9)
        #expect(try fields("label: x\n" + comment) == ["label": "x"])
        #expect(complaints(Array(("label: x\n#" + comment).utf8)) == ["1:1: the sidecar is larger than 64 KiB"])
    }

    @Test func `text that is not UTF-8 is refused at its first bad byte`() {
        #expect(
            complaints(Array("a: b\nc: ".utf8) + [0xFF]) == [
                "2:4: the text is not valid UTF-8 here; save the file as UTF-8"
            ])
    }

    @Test func `deep nesting ends the reading`() {
        let deep = "a: " + String(repeating: "[", count: 60_000)
        #expect(complaints(Array(deep.utf8)).contains { $0.hasSuffix("nested deeper than 64 levels") })
    }

    @Test(arguments: 0..<8)
    func `a damaged sidecar gives fields or errors inside of it`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let sound = Array("label: \"x\"\nkeywords: [a, 'b', c]\nnotes: |\n  one\n  two\n# end\nrating: 5\n".utf8)
        let pieces: [[UInt8]] =
            [
                "\"", "'", "[", "]", "{", "}", ": ", "\n", "\t", "&a ", "*a", "<<: ", "- ", "#", "|", "!t ", "---\n",
                "? ",
            ]
            .map { Array($0.utf8) } + [[0xFF], [0], [0xC3], [0xEF, 0xBB, 0xBF]]
        for _ in 0..<300 {
            var bytes = sound
            for _ in 0..<Int.random(in: 1...5, using: &random) {
                let place = Int.random(in: 0...bytes.count, using: &random)
                let end = min(bytes.count, place + Int.random(in: 0...9, using: &random))
                bytes.replaceSubrange(place..<end, with: pieces.randomElement(using: &random) ?? [])
            }
            do throws(ConfigErrors) {
                let fields = try SidecarMetadata.parse(bytes, file: "s.yaml").fields
                #expect(fields.keys.allSatisfy { (1...64).contains($0.utf8.count) })
            } catch {
                let last =
                    String(decoding: bytes, as: UTF8.self).unicodeScalars.count { $0.properties.isWhitespace } + 1
                #expect(!error.list.isEmpty)
                #expect(error.list.allSatisfy { (1...last).contains($0.line) && $0.column >= 1 }, "\(error)")
            }
        }
    }
}
