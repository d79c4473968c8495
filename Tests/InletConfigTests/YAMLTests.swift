import InletConfig
import InletCore
import InletTestSupport
import SystemPackage
import Testing

/// What no file may do to the reader, whatever stands in it.
struct YAMLTests {
    @Test func `a file over 1 MiB is refused`() {
        let text = String(repeating: "# all comment\n", count: 80_000)
        #expect(complaints(text).hasPrefix("inlet.yaml:1:1: the file is larger than 1 MiB"))
    }

    @Test func `nesting is bounded`() {
        let flow = String(repeating: "[", count: 100_000)
        #expect(complaints(flow).hasPrefix("inlet.yaml:1:65: values are nested deeper than 64 levels"))
        var block = ""
        for depth in 0..<80 { block += String(repeating: " ", count: depth) + "a:\n" }
        #expect(complaints(block).contains("nested deeper"))
    }

    @Test func `an alias bomb is refused at the alias that would burst it`() {
        var text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        for (name, last) in zip("bcdefgh", "abcdefg") {
            let aliases = Array(repeating: "*\(last)", count: 10).joined(separator: ", ")
            text += "\(name): &\(name) [\(aliases)]\n"
        }
        #expect(complaints(text).hasPrefix("inlet.yaml:4:36: "))
        #expect(complaints(text).contains("more than 10000 values"))
    }

    @Test func `merge keys do not escape the bound`() {
        var text = "a: &a { x: 1, y: 2 }\n"
        for (name, last) in zip("bcdefghijklmnop", "abcdefghijklmno") {
            text += "\(name): &\(name) { p: *\(last), q: *\(last), <<: *\(last) }\n"
        }
        #expect(complaints(text).contains("more than 10000 values"))
    }

    @Test func `a byte order mark does not move positions`() {
        #expect(complaints("\u{FEFF}workers: x").hasPrefix("inlet.yaml:1:10: 'x' is not a whole number"))
    }

    @Test(arguments: ["\n", "\r\n", "\r", "\u{2028}"])
    func `lines are counted as libyaml counts them`(lineBreak: String) {
        let text = ["log:", "  level: info", "workers: x", "limits: {}"].joined(separator: lineBreak)
        let head = "inlet.yaml:3:10: 'x' is not a whole number from 1 to 64\nworkers: x\n         ^"
        #expect(complaints(text) == head)
    }

    @Test func `an own key wins over a merged one, an earlier merge over a later`() throws {
        let config = try parse(
            """
            x-one: &one { workers: 2, shutdown_timeout: 1s }
            x-two: &two { workers: 3, shutdown_timeout: 2s, state_dir: /two }
            <<: [*one, *two]
            workers: 5
            """)
        #expect(config.settings.workers == 5)
        #expect(config.settings.shutdownGrace == .seconds(1))
        #expect(config.settings.stateDirectory == "/two")
    }

    @Test func `a long line is cut around the caret`() {
        let text = "log: { output: \"" + String(repeating: "x", count: 5000) + "\", level: loud }"
        let lines = complaints(text).split(separator: "\n")
        #expect(lines.count == 3)
        #expect(lines[1].count == 160)
        #expect(lines[1].hasSuffix("level: loud }"))
        let caret = lines[2].count
        #expect(lines[1].dropFirst(caret - 1).hasPrefix("loud"))
    }

    @Test func `terminal controls in the source do not reach the terminal`() {
        let text = complaints("workers: \"\u{202E}65\" # \u{9B}2J")
        #expect(text.unicodeScalars.allSatisfy { $0 == "\n" || !(0..<0x20).contains($0.value) })
        #expect(!text.contains("\u{202E}") && !text.contains("\u{9B}"))
    }
}

/// YAML data as JSON.
struct YAMLAsJSONTests {
    static let texts: [(String, String)] = [
        ("", "null"), ("# nothing\n", "null"), ("a: 1", #"{"a":1}"#), ("[]", "[]"), ("{}", "{}"),
        ("- [0, -1.5, 2e3]\n- [1, 2, 3]", "[[0,-1.5,2e3],[1,2,3]]"),
        (
            "a: yes\nb: true\nc: ~\nd:\ne: 'true'\nf: \"1\"",
            #"{"a":"yes","b":true,"c":null,"d":null,"e":"true","f":"1"}"#
        ),
        ("a: +7\nb: 007\nc: .5\nd: 1.\ne: 0x1F\nf: 0o17", #"{"a":7,"b":7,"c":0.5,"d":1.0,"e":31,"f":15}"#),
        ("a: .inf\nb: .nan\nc: 1.2.3\nd: 1e\ne: '-'", #"{"a":".inf","b":".nan","c":"1.2.3","d":"1e","e":"-"}"#),
        ("a: 2026-11-21", #"{"a":"2026-11-21"}"#), ("color: '#FF0000'", ##"{"color":"#FF0000"}"##),
        ("a: |\n  one\n  two\nb: \"\\u00e4 \\\"x\\\"\"", #"{"a":"one\ntwo\n","b":"ä \"x\""}"#),
        ("\u{FEFF}a: b", #"{"a":"b"}"#), ("a: {b: [{c: d}]}", #"{"a":{"b":[{"c":"d"}]}}"#),
        ("a: ${env:HOME}", #"{"a":"${env:HOME}"}"#),
        ("a: 123456789012345678901234567890", #"{"a":123456789012345678901234567890}"#),
    ]

    @Test(arguments: texts) func `YAML becomes the JSON that says the same`(_ yaml: String, _ json: String) throws {
        let converted = try YAMLAsJSON.convert(Array(yaml.utf8), file: "markers.yaml")
        #expect(String(decoding: converted, as: UTF8.self) == json)
    }

    static let refused: [(String, String)] = [
        ("a: 1\na: 2", "markers.yaml:2:1: key 'a' is given twice; it is already on line 1"),
        ("a: *x", "markers.yaml:1:4: aliases are not supported here; put text that begins with '*' in quotes"),
        ("a: &x 1", "markers.yaml:1:4: anchors are not supported here; put text that begins with '&' in quotes"),
        ("a: !!str 1", "markers.yaml:1:4: tags such as !!str are not supported; quote text instead"),
        ("<<: {a: 1}", "markers.yaml:1:1: merge keys ('<<') are not supported here"),
        ("[a]: 1", "markers.yaml:1:1: a key must be a plain word"),
        ("a: 1\n---\nb: 2", "markers.yaml:2:1: a second document starts here; the file may have only one"),
        (String(repeating: "[", count: 65), "markers.yaml:1:65: values are nested deeper than 64 levels"),
    ]

    @Test(arguments: refused) func `what is not supported is refused with its place`(_ yaml: String, _ message: String)
    {
        let error = #expect(throws: ConfigError.self) {
            try YAMLAsJSON.convert(Array(yaml.utf8), file: "markers.yaml")
        }
        #expect(error?.description == message)
    }

    @Test func `bytes that are no text are refused`() {
        let error = #expect(throws: ConfigError.self) {
            try YAMLAsJSON.convert([0x61, 0x3A, 0x20, 0xFF], file: "markers.yaml")
        }
        #expect(error?.line == 1 && error?.message.contains("UTF-8") == true)
    }

    @Test func `a long list is as good as a short one`() throws {
        let yaml = (0..<20_000).map { "- [\($0), 0.25, -1]\n" }.joined()
        let json = try YAMLAsJSON.convert(Array(yaml.utf8), file: "markers.yaml")
        #expect(json.count { $0 == UInt8(ascii: "[") } == 20_001)
    }
}

/// Random damage to a good file: never a crash, and every error stands inside the file.
struct MutationTests {
    @Test(arguments: 0..<8)
    func `a damaged file gives errors inside the file or none`(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let names = FixtureTests.good
        for round in 0..<100 {
            var bytes = try FixtureTests.content("good/\(names[round % names.count]).yaml")
            for _ in 0..<Int.random(in: 1...6, using: &random) { Self.damage(&bytes, &random) }
            do throws(ConfigErrors) {
                let config = try ConfigFile.parse(
                    text: bytes, file: "a.yaml", types: standInTypes, environment: standInEnvironment,
                    defaults: standInDefaults)
                _ = ConfigPrinter.show(config, types: standInTypes)
            } catch {
                #expect(!error.list.isEmpty)
                let lines = Self.lines(bytes)
                for error in error.list {
                    #expect((1...lines.count).contains(error.line), "seed \(seed), round \(round): \(error)")
                    guard lines.indices.contains(error.line - 1) else { continue }
                    #expect((1...lines[error.line - 1] + 1).contains(error.column), "seed \(seed), round \(round)")
                }
            }
        }
    }

    private static let pieces: [[UInt8]] =
        ["\"", "'", "[", "}", ": ", "\n", "\t", "&a ", "*a", "<<", "- ", "#", "|", "\r", "日"]
        .map { Array($0.utf8) } + [[0xFF], [0], [0xC3], [0xEF, 0xBB, 0xBF]]

    private static func damage(_ bytes: inout [UInt8], _ random: inout SeededGenerator) {
        let place = Int.random(in: 0...bytes.count, using: &random)
        let length = Int.random(in: 0...min(40, bytes.count - place), using: &random)
        switch Int.random(in: 0..<5, using: &random) {
        case 0: bytes.removeSubrange(place..<place + length)
        case 1:
            bytes.insert(
                contentsOf: Array(bytes[place..<place + length]), at: Int.random(in: 0...bytes.count, using: &random))
        case 2: bytes.insert(contentsOf: pieces.randomElement(using: &random) ?? [], at: place)
        case 3: if place < bytes.count { bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random) }
        default: bytes.removeSubrange(place...)
        }
    }

    /// The number of characters on each line; an upper bound where bytes are not text.
    private static func lines(_ bytes: [UInt8]) -> [Int] {
        var counts = [0]
        var previous: Unicode.Scalar = " "
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
            if ["\n", "\r", "\u{85}", "\u{2028}", "\u{2029}"].contains(scalar) {
                if !(scalar == "\n" && previous == "\r") { counts.append(0) }
            } else {
                counts[counts.count - 1] += 1
            }
            previous = scalar
        }
        return counts
    }
}

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
            ("label: { en: a }", ["1:8: a field of a sidecar must be a text or a list of texts, not a mapping"]),
            ("k: [a, [b]]", ["1:8: a list in a sidecar must hold texts, not lists or mappings"]),
            (
                "k: [{a: b}, c]\nk: d",
                [
                    "1:5: a list in a sidecar must hold texts, not lists or mappings",
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
                    "1:5: a field of a sidecar must be a text or a list of texts, not a mapping",
                ]
            ),
            ("k: !!str 5", ["1:4: tags such as !!str are not supported; quote text instead"]),
            ("[a]: b", ["1:1: a field's name must be a plain word"]),
            ("a b: c", ["1:1: 'a b' is not a field's name; use up to 64 letters, digits, '_' and '-'"]),
            ("\"\": c", ["1:1: '' is not a field's name; use up to 64 letters, digits, '_' and '-'"]),
            ("- a", ["1:1: a sidecar must be a mapping of fields, as in 'label: Live at the Roxy'"]),
            ("just text", ["1:1: a sidecar must be a mapping of fields, as in 'label: Live at the Roxy'"]),
            ("a: b\n---\nc: d", ["2:1: a second document starts here; a sidecar has only one"]),
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
                == "song.mp4.yaml:1:8: a field of a sidecar must be a text or a list of texts, not a mapping\n"
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
