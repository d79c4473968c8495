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
        ("a: 1\n---\nb: 2", "markers.yaml:2:1: a second document begins here; one document is taken"),
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
                    bytes: bytes, file: "a.yaml", types: standInTypes, environment: standInEnvironment,
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
