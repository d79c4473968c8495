package import InletCore

/// What is known of an event before it happens: a row of `EventTable`.
package final class EventSpec: Sendable {
    package typealias Level = LogSettings.Level

    /// The stable name that people's filters rely on.
    package let name: String
    /// What it was called before 0.9. Until 0.10 its lines have that name in `was`, and lines of old log files are understood.
    package let formerName: String?
    /// The level that it usually has, and others that it can have.
    package let levels: [Level]
    /// Each with its kind, as the JSON Schema says it, and whether only some lines have it.
    package let fields: [(name: String, schema: String, isOptional: Bool)]
    /// Its words: `{name}` is a field, and what stands in brackets is left out when one of its fields is not there or empty.
    package let sentence: String
    /// Whether it is what everybody hopes for.
    package let isGood: Bool
    /// What the manual says beyond the names of the fields; in Markdown.
    let note: String
    /// Whether it is about one job.
    let isOfJob: Bool

    private static let marks: [Character: EventValue] = ["#": .number(0), "*": .list([]), "!": .flag(false)]

    init(_ row: String, _ sentence: String, was formerName: String? = nil, isGood: Bool = false, note: String = "") {
        let words = row.split(separator: " ")
        name = String(words[0])
        levels = words[1].split(separator: "/").compactMap { Level(rawValue: String($0)) }
        fields = words[2...].map { word in
            let isOptional = word.hasSuffix("?")
            let word = isOptional ? word.dropLast() : word
            let mark = word.last.flatMap { Self.marks[$0] }
            return (
                name: String(mark == nil ? word : word.dropLast()), schema: (mark ?? .text("")).schema,
                isOptional: isOptional
            )
        }
        isOfJob = fields.contains { $0.name == "job" }
        (self.formerName, self.sentence, self.isGood, self.note) = (formerName, sentence, isGood, note)
    }

    /// A line of the event.
    ///
    /// - Parameters:
    ///   - values: of its fields, in their order; nil for one that this line does not have.
    ///   - level: another than the usual one.
    func line(_ values: (any LoggedValue)?..., level: Level? = nil) -> EventLine { line(values, level: level) }

    func line(_ values: [(any LoggedValue)?], level: Level? = nil) -> EventLine {
        let values = values.map { $0?.logged }
        assert(fits(values), "\(name): its line has not the fields of its row")
        return EventLine(spec: self, level: level ?? levels[0], values: values)
    }

    private func fits(_ values: [EventValue?]) -> Bool {
        values.count == fields.count
            && zip(fields, values).allSatisfy { field, value in
                value.map { $0.schema == field.schema } ?? field.isOptional
            }
    }
}

extension EventTable {
    /// Every event, for the manual's reference page.
    package static var reference: JSONValue { .array(all.map(\.reference)) }

    /// The JSON Schema (draft 2020-12) of a log line, the same for the same table. An event that it does not know may be of a
    /// later version: such a line needs the common fields only.
    package static var schema: String {
        let events = all.map { "    \($0.rule)" }.joined(separator: ",\n")
        let levels = LogSettings.Level.allCases.map { JSONString.quote($0.rawValue) }.joined(separator: ", ")
        return """
            {
              "$schema": "https://json-schema.org/draft/2020-12/schema",
              "title": "Inlet log line",
              "type": "object",
              "properties": {
                "ts": {"type": "string", "format": "date-time", "description": "RFC 3339, milliseconds, UTC"},
                "level": {"enum": [\(levels)]},
                "event": {"type": "string"}
              },
              "required": ["ts", "level", "event"],
              "allOf": [
            \(events)
              ]
            }

            """
    }
}

extension EventSpec {
    /// `{"if": the event's name, "then": what its lines have}`.
    fileprivate var rule: String {
        func list(_ names: [String]) -> String { names.map { JSONString.quote($0) }.joined(separator: ", ") }
        let former = formerName.map { _ in [("was", EventValue.text("").schema)] } ?? []
        let types = (fields.map { ($0.name, $0.schema) } + former).map { "\(JSONString.quote($0)): \($1)" }
        let levels = "\"level\": {\"enum\": [\(list(levels.map(\.rawValue)))]}"
        let properties = (["\"ts\": true", "\"event\": true", levels] + types).joined(separator: ", ")
        return """
            {"if": {"properties": {"event": {"enum": [\(list([name, formerName].compactMap(\.self)))]}}, \
            "required": ["event"]}, "then": {"properties": {\(properties)}, \
            "required": [\(list(fields.filter { !$0.isOptional }.map(\.name)))], "additionalProperties": false}}
            """
    }

    /// Its entry for the manual.
    fileprivate var reference: JSONValue {
        let fields = fields.map { field in
            JSONValue.object([
                "name": .string(field.name), "schema": JSON.value(field.schema.utf8) ?? .null,
                "optional": .boolean(field.isOptional),
            ])
        }
        return .members([
            "name": .string(name), "was": formerName.map { .string($0) },
            "levels": .array(levels.map { .string($0.rawValue) }), "fields": .array(fields),
            "sentence": .string(sentence), "note": note.isEmpty ? nil : .string(note),
        ])
    }
}
