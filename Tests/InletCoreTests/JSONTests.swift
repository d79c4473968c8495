import InletCore
import InletTestSupport
import Testing

/// JSON that is kept as it came.
struct JSONTests {
    static let texts: [(String, JSONValue)] = [
        ("null", .null), (" true ", .boolean(true)), ("\tfalse\r\n", .boolean(false)), ("0", .number("0")),
        ("-12.50e+3", .number("-12.50e+3")), (#""""#, .string("")), (#""a\n\"\\\/\u00e4""#, .string("a\n\"\\/ä")),
        (#""\ud83d\ude80""#, .string("🚀")), (#""\ud83d!""#, .string("\u{FFFD}!")), ("[]", .array([])),
        ("{}", .object([:])),
        (#"{"a":[1,{"b":null}]}"#, .object(["a": .array([.number("1"), .object(["b": .null])])])),
        (#"{"a":1,"a":2}"#, .object(["a": .number("2")])), ("\u{FEFF}1", .number("1")), (#""ä日""#, .string("ä日")),
    ]

    @Test(arguments: texts) func `a text is read as what it says`(_ text: String, _ value: JSONValue) throws {
        #expect(try JSONValue(parsing: text.utf8) == value)
    }

    /// Texts without anything to escape are copied eight bytes at a time, and must look as if each was looked at.
    @Test func `a text is quoted as its characters are, wherever in it they stand`() {
        var random = SeededGenerator(seed: 5)
        let odd: [Unicode.Scalar] = ["\u{202E}", "\u{FEFF}", "\u{061C}", "\u{2028}", "日", "🚀", "\u{E0001}"]
        let scalars = (0...0xFF).compactMap(Unicode.Scalar.init) + odd
        /// A single one is too short for that.
        let quoted = scalars.map { JSONString.quote(String(Character($0))).dropFirst().dropLast() }
        let plain = scalars.indices.filter { (0x20...0x7E).contains(scalars[$0].value) && quoted[$0].count == 1 }
        #expect(plain.count == 93)
        for length in 1...20 {
            for position in 0..<length {
                var all = (0..<length).map { _ in plain.randomElement(using: &random) ?? 0 }
                for index in scalars.indices {
                    all[position] = index
                    let text = String(String.UnicodeScalarView(all.map { scalars[$0] }))
                    let slow = "\"" + all.map { quoted[$0] }.joined() + "\""
                    guard JSONString.quote(text) != slow else { continue }
                    Issue.record("\(scalars[index].value) at \(position) of \(length): \(JSONString.quote(text))")
                    return
                }
            }
        }
        #expect(JSONString.quote("") == "\"\"")
    }

    @Test func `what would harm a terminal is escaped in a text of any length`() {
        for length in [1, 7, 8, 9, 16, 20] {
            let text = String(repeating: "a", count: length)
            for (harm, shown) in [("\"", #"\""#), ("\\", #"\\"#), ("\u{1B}", "\\u001b"), ("\u{7F}", "\\u007f")] {
                #expect(JSONString.quote(text + harm).lowercased() == "\"\(text)\(shown)\"")
                #expect(JSONString.quote(harm + text).lowercased() == "\"\(shown)\(text)\"")
            }
        }
    }

    static let broken: [(String, Int, Int)] = [
        ("", 1, 1), ("{", 1, 2), ("[1,]", 1, 4), ("[1 2]", 1, 4), ("{\"a\" 1}", 1, 6), ("{a:1}", 1, 2), ("01", 1, 3),
        ("-", 1, 2), ("1.", 1, 3), ("1e", 1, 3), ("nul", 1, 1), ("\"a", 1, 3), ("\"\\x\"", 1, 4), ("\"\\u12\"", 1, 4),
        ("[\n 1,\n x]", 3, 2), ("1 1", 1, 3), ("\"a\nb\"", 1, 3), ("NaN", 1, 1), ("{\"a\":1,}", 1, 8),
    ]

    @Test(arguments: broken) func `what is no JSON is refused with its place`(
        _ text: String, _ line: Int, _ column: Int
    ) {
        let fault = #expect(throws: JSONFault.self) { try JSONValue(parsing: text.utf8) }
        #expect(fault?.line == line && fault?.column == column, "\(String(describing: fault))")
    }

    @Test func `nesting has a bound`() throws {
        let deep = String(repeating: "[", count: JSONReader.deepest)
        let closed = deep + String(repeating: "]", count: JSONReader.deepest)
        #expect(try JSONValue(parsing: closed.utf8).array?.count == 1)
        #expect(throws: JSONFault.self) { try JSONValue(parsing: ("[" + closed + "]").utf8) }
        #expect(throws: JSONFault.self) { try JSONValue(parsing: String(repeating: "[", count: 100_000).utf8) }
    }

    @Test(arguments: [UInt64(1), 2, 3, 4]) func `every value comes back from its text, in both forms`(_ seed: UInt64)
        throws
    {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let value = Self.random(3, &generator)
            #expect(try JSONValue(parsing: value.text.utf8) == value)
            #expect(try JSONValue(parsing: value.prettyText.utf8) == value)
        }
    }

    @Test(arguments: [UInt64(11), 12]) func `no damage does more than throw`(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            var bytes = Array(Self.random(4, &generator).text.utf8)
            for _ in 0..<Int.random(in: 1...4, using: &generator) where !bytes.isEmpty {
                let index = Int.random(in: 0..<bytes.count, using: &generator)
                if Bool.random(using: &generator) {
                    bytes[index] = UInt8.random(in: 0...255, using: &generator)
                } else {
                    bytes.removeSubrange(index...)
                }
            }
            if let value = try? JSONValue(parsing: bytes) {
                #expect((try? JSONValue(parsing: value.text.utf8)) == value)
            }
        }
    }

    @Test func `numbers and members can be asked for`() throws {
        let value = try JSONValue(parsing: #"{"a":12,"b":-0.5,"c":null,"d":1e999,"e":"x"}"#.utf8)
        #expect(value["a"]?.integer == 12 && value["a"]?.double == 12 && value["b"]?.double == -0.5)
        #expect(value["c"] == nil && value["d"]?.double == nil && value["e"]?.string == "x" && value["f"] == nil)
        #expect(value.text == #"{"a":12,"b":-0.5,"c":null,"d":1e999,"e":"x"}"#)
    }

    @Test func `people get a line for each member, and points on one`() {
        let value = JSONValue.object(["p1": .array([JSONValue(0), JSONValue(1)]), "m": .object([:])])
        #expect(value.prettyText == "{\n  \"m\": {},\n  \"p1\": [0,1]\n}")
    }

    @Test func `a member of another kind makes a message unusable, a missing or unset one does not`() throws {
        let good = [
            #"{"text":"x","number":7,"more":{"a":[null]}}"#, #"{"text":"","number":"8"}"#,
            #"{"text":null,"number":null}"#, #"{"number":7.0}"#, "{}",
        ]
        let read = try good.map { try JSONValue(parsing: $0.utf8) }
        #expect(read.map { $0.text(at: "text") } == [.some("x"), .some(""), .some(nil), .some(nil), .some(nil)])
        #expect(read.map { $0.integer(at: "number") } == [.some(7), .some(8), .some(nil), .some(7), .some(nil)])
        for value in ["7", "[]", "true", "{}"] {
            #expect(try JSONValue(parsing: "{\"text\":\(value)}".utf8).text(at: "text") == .none, "\(value)")
        }
        for value in [#""x""#, #""""#, "[]", "true", "7.5", "1e30"] {
            #expect(try JSONValue(parsing: "{\"number\":\(value)}".utf8).integer(at: "number") == .none, "\(value)")
        }
    }

    @Test func `notes have their members in order, and say nothing where they are damaged`() {
        let note = JSON.note(of: ["b": "/", "a": "ü"])
        #expect(String(decoding: note, as: UTF8.self) == #"{"a":"ü","b":"/"}"#)
        #expect(JSON.note(note) == ["a": "ü", "b": "/"])
        #expect(JSON.note(Array(note.dropLast()), as: [String: String].self) == nil)
        #expect(JSON.note(note, as: [String: Int].self) == nil && JSON.note(nil, as: Int.self) == nil)
    }

    private static func random(_ depth: Int, _ generator: inout SeededGenerator) -> JSONValue {
        switch Int.random(in: 0..<(depth > 0 ? 7 : 5), using: &generator) {
        case 0: return .null
        case 1: return .boolean(Bool.random(using: &generator))
        case 2: return .number(String(Int64.random(in: -1_000_000...1_000_000, using: &generator)))
        case 3: return .number(String(Double.random(in: -1...1, using: &generator)))
        case 4: return .string(text(&generator))
        case 5: return .array((0..<Int.random(in: 0...4, using: &generator)).map { _ in random(depth - 1, &generator) })
        default:
            let members = (0..<Int.random(in: 0...4, using: &generator)).map { _ in
                (text(&generator), random(depth - 1, &generator))
            }
            return .object(Dictionary(members) { $1 })
        }
    }

    private static func text(_ generator: inout SeededGenerator) -> String {
        let pieces = ["a", "\"", "\\", "\n", "\u{0}", "\u{1F}", "ä", "日", "🚀", "/", " ", "\u{7F}"]
        return (0..<Int.random(in: 0...6, using: &generator)).map { _ in
            pieces[Int.random(in: 0..<pieces.count, using: &generator)]
        }.joined()
    }
}
