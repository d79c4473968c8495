import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// The log as text: `name field=value field="a value"`.
@Suite struct EventTextTests {
    /// The fields as a reader takes a line apart; nil where it is no such line.
    private static func fields(_ words: String) -> [(name: String, value: String)]? {
        var rest = words[...]
        guard let space = rest.firstIndex(of: " ") else { return [] }
        rest = rest[space...]
        var fields: [(name: String, value: String)] = []
        while !rest.isEmpty {
            guard rest.removeFirst() == " ", let equals = rest.firstIndex(of: "=") else { return nil }
            let name = String(rest[..<equals])
            rest = rest[rest.index(after: equals)...]
            guard let value = rest.first == "\"" ? quoted(&rest) : plain(&rest) else { return nil }
            fields.append((name, value))
        }
        return fields
    }

    private static func plain(_ rest: inout Substring) -> String? {
        let value = rest.prefix { $0 != " " }
        rest = rest[value.endIndex...]
        return value.contains("\"") ? nil : String(value)
    }

    private static func quoted(_ rest: inout Substring) -> String? {
        rest.removeFirst()
        var value = ""
        while let next = rest.popFirst() {
            if next == "\"" { return value }
            guard next != "\\" else {
                guard let escaped = rest.popFirst() else { return nil }
                value.append(escaped)
                continue
            }
            value.append(next)
        }
        return nil
    }

    private static func expected(_ value: EventValue) -> String { DisplayText.escape(value.plain) }

    @Test func `each line is taken apart into the fields that it was made of, whatever names and servers say`() throws {
        for (event, name) in EventLineTests.events {
            let line = event.line
            let found = try #require(Self.fields(line.words), "\(line.words)")
            #expect(line.words.hasPrefix(name))
            #expect(found.map(\.name) == line.fields.map(\.0), "\(line.words)")
            #expect(found.map(\.value) == line.fields.map { Self.expected($0.1) }, "\(line.words)")
            #expect(!line.words.unicodeScalars.contains { $0.properties.generalCategory == .control })
        }
    }

    @Test(arguments: [
        (#"lost job=9 path="/etc""#, #"reason="lost job=9 path=\"/etc\"""#), (#"x"job=9"#, #"reason="x\"job=9""#),
        ("x\"\u{301} job=9", "reason=\"x\\\"\u{301} job=9\""), (#"a\b"#, #"reason=a\b"#),
        (#"a b\"#, #"reason="a b\\""#), ("", #"reason="""#),
        ("a\u{3000}job=9", "reason=\"a\u{3000}job=9\""), ("a\njob=9", #"reason=a\x0Ajob=9"#),
        ("a\u{9B}2J\u{202E}", #"reason=a\xC2\x9B2J\xE2\x80\xAE"#),
    ])
    func `no value can pass for another field`(_ reason: String, _ shown: String) {
        let words = AgentEvent.watchLost(root: "/in/a", reason: reason).line.words
        #expect(words == "watch.lost path=/in/a \(shown)")
    }
}
