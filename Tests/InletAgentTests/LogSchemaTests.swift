import Foundation
import InletCore
import InletLinux
import Testing

@testable import InletAgent

/// The table of events against what is really written.
@Suite struct LogSchemaTests {
    @Test func `every event is in the table once, and the table has no others`() {
        let names = EventTable.all.map(\.name)
        #expect(Set(names).count == names.count && names.count > 80)
        let written = Set(EventLineTests.events.map(\.0.line.name))
        #expect(written.subtracting(names).isEmpty, "not in the table: \(written.subtracting(names))")
        #expect(Set(names).subtracting(written).subtracting(EventLineTests.elsewhere).isEmpty)
    }

    @Test func `every line has the fields that the table says, and no others`() throws {
        for line in EventLineTests.events.map(\.0.line) {
            let spec = try #require(EventTable.named[line.name])
            #expect(spec.levels.contains(line.level), "\(line.name) \(line.level)")
            for (name, value) in line.fields {
                if name == "was", value == spec.formerName.map({ .text($0) }) { continue }
                let field = try #require(spec.fields.first { $0.name == name }, "\(line.name) has \(name)")
                #expect(field.kind == value.kind, "\(line.name) \(name)")
            }
            for field in spec.fields where !field.isOptional {
                #expect(line.fields.contains { $0.0 == field.name }, "\(line.name) lacks \(field.name)")
            }
        }
    }

    /// Events that had another name before, and that name first.
    private static let renamed = EventTable.all.compactMap { event in event.formerName.map { [$0, event.name] } }

    private static func rules() throws -> [[String: Any]] {
        let schema = try #require(
            JSONSerialization.jsonObject(with: Data(EventTable.schema.utf8)) as? [String: Any])
        return try #require(schema["allOf"] as? [[String: Any]])
    }

    @Test func `the schema is JSON, with a rule for each event`() throws {
        let rules = try Self.rules()
        #expect(rules.count == EventTable.all.count)
        let first = try #require(rules.first?["then"] as? [String: Any])
        #expect(first["required"] as? [String] == ["version", "configuration"])
    }

    @Test func `an old name is that of one event, and of none any more`() {
        let former = EventTable.all.compactMap(\.formerName)
        #expect(Set(former).count == former.count && Set(former).isDisjoint(with: EventTable.all.map(\.name)))
    }

    @Test(arguments: renamed)
    func `who looks for an old name finds the event's lines, in every output`(names: [String]) throws {
        let line = try #require(EventLineTests.events.map(\.0.line).first { $0.name == names[1] })
        #expect(line.fields.filter { $0.0 == "was" }.map(\.1) == [.text(names[0])])
        #expect(line.words.hasPrefix("\(names[1]) ") || line.words == names[1])
        #expect(line.words.hasSuffix(" was=\(names[0])"))
        let json = String(decoding: line.text(.json, at: WallTime(milliseconds: 0)), as: UTF8.self)
        #expect(json.contains(#""event":"\#(names[1])""#) && json.hasSuffix(#""was":"\#(names[0])"}\#n"#))
        let entry = String(decoding: line.journalMessage.bytes, as: UTF8.self).split(separator: "\n")
        #expect(
            entry.filter { $0.hasPrefix("INLET_EVENT=") } == ["INLET_EVENT=\(names[1])", "INLET_EVENT=\(names[0])"])
    }

    @Test(arguments: renamed)
    func `the schema takes lines of a renamed event under both names, with the old one in them and without`(
        names: [String]
    ) throws {
        let rule = try #require(
            Self.rules().first { rule in
                let properties = (rule["if"] as? [String: Any])?["properties"] as? [String: [String: Any]]
                return properties?["event"]?["enum"] as? [String] == [names[1], names[0]]
            })
        let then = try #require(rule["then"] as? [String: Any])
        let was = (then["properties"] as? [String: Any])?["was"] as? [String: String]
        #expect(was == ["type": "string"])
        #expect((then["required"] as? [String])?.contains("was") == false)
    }

    @Test func `an event that kept its name says nothing of an old one`() {
        for line in EventLineTests.events.map(\.0.line) where line.spec.formerName == nil {
            #expect(!line.fields.contains { $0.0 == "was" }, "\(line.name)")
        }
    }

    @Test func `README's table of events has their rows, in order`() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("README.md")
        let chapter = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
            .drop { $0 != "## Log lines" }.dropFirst().prefix { !$0.hasPrefix("## ") }
        let rows = chapter.filter { $0.hasPrefix("| `") }.map(String.init)
        for (row, event) in zip(rows, EventTable.all) { #expect(row == event.manualRow) }
        #expect(rows.count == EventTable.all.count)
    }

    @Test func `each sentence is whole, and names only fields that its event has`() {
        for event in EventTable.all {
            #expect(!event.sentence.isEmpty)
            #expect(event.sentence.count { $0 == "[" } == event.sentence.count { $0 == "]" }, "\(event.name)")
            let names = event.sentence.matches(of: /\{([^}]*)\}/).map { String($0.1) }
            #expect(event.sentence.count { $0 == "{" } == names.count, "\(event.name)")
            #expect(Set(names).isSubset(of: event.fields.map(\.name)), "\(event.name)")
        }
    }
}
