import Foundation
import InletCore
import Testing

@testable import InletAgent

/// The table of events against what is really written.
@Suite struct LogSchemaTests {
    @Test func `every event is in the table once, and the table has no others`() {
        let names = LogEventSpec.all.map(\.name)
        #expect(Set(names).count == names.count)
        let written = Set(EventLineTests.events.map(\.0.line.name))
        #expect(written.subtracting(names).isEmpty, "not in the table: \(written.subtracting(names))")
        #expect(Set(names).subtracting(written).subtracting(EventLineTests.elsewhere).isEmpty)
    }

    @Test func `every line has the fields that the table says, and no others`() throws {
        for line in EventLineTests.events.map(\.0.line) {
            let spec = try #require(LogEventSpec.all.first { $0.name == line.name })
            #expect(spec.levels.contains(line.level), "\(line.name) \(line.level)")
            for (name, value) in line.fields {
                let field = try #require(spec.fields.first { $0.name == name }, "\(line.name) has \(name)")
                #expect(field.kind == value.kind, "\(line.name) \(name)")
            }
            for field in spec.fields where !field.isOptional {
                #expect(line.fields.contains { $0.0 == field.name }, "\(line.name) lacks \(field.name)")
            }
        }
    }

    @Test func `the schema is JSON, with a rule for each event`() throws {
        let schema = try #require(
            JSONSerialization.jsonObject(with: Data(LogSchema.json.utf8)) as? [String: Any])
        let rules = try #require(schema["allOf"] as? [[String: Any]])
        #expect(rules.count == LogEventSpec.all.count)
        let first = try #require(rules.first?["then"] as? [String: Any])
        #expect(first["required"] as? [String] == ["version", "configuration"])
    }
}

extension EventValue {
    fileprivate var kind: LogEventSpec.Kind {
        switch self {
        case .text: .text
        case .number: .number
        case .list: .list
        case .flag: .flag
        }
    }
}
