package import InletCore

/// The constant part of an event: a row of `EventTable`.
package final class EventSpec: Sendable {
    package typealias Level = LogSettings.Level

    /// The stable name that filters rely on.
    package let name: String
    /// The name before 0.9. Until 0.10, lines carry it in `was`, and lines of old log files are understood.
    package let formerName: String?
    /// The usual level, then the others that it may have.
    package let levels: [Level]
    package let fields: [Field]
    /// The event in words: `{name}` is a field. A part in brackets is left out when one of its fields is missing or
    /// empty.
    package let sentence: String
    /// Whether it reports a success.
    package let isGood: Bool
    /// Whether the same warning may come again and again: it is then written once, and counted (`RepeatedWarnings`).
    /// Not for changes of a job, a destination or a folder: each of those is written, as is each new attempt of a job.
    let mayRepeat: Bool
    /// The manual's note on the fields, in Markdown.
    let note: String
    /// Whether it is about one job.
    let isOfJob: Bool

    /// A field of the event's lines.
    package struct Field: Sendable {
        package let name: String
        /// Its JSON Schema.
        package let schema: String
        /// Whether only some lines have it.
        package let isOptional: Bool

        /// Whether it is a time or a duration, which differs from line to line.
        var isTime: Bool { name.hasSuffix("_ms") || EventSpec.times.contains(name) }
    }

    /// How many lines with the same cause were left out since the last one.
    static let repeatsField = "repeats"

    private static let marks: [Character: EventValue] = ["#": .number(0), "*": .list([]), "!": .flag(false)]

    init(
        _ row: String, _ sentence: String, was formerName: String? = nil, isGood: Bool = false, mayRepeat: Bool = false,
        note: String = ""
    ) {
        let words = row.split(separator: " ")
        name = String(words[0])
        levels = words[1].split(separator: "/").compactMap { Level(rawValue: String($0)) }
        fields = words[2...].map { word in
            let isOptional = word.hasSuffix("?")
            let word = isOptional ? word.dropLast() : word
            let mark = word.last.flatMap { Self.marks[$0] }
            return Field(
                name: String(mark == nil ? word : word.dropLast()), schema: (mark ?? .text("")).schema,
                isOptional: isOptional)
        }
        isOfJob = fields.contains { $0.name == "job" }
        (self.formerName, self.sentence, self.note) = (formerName, sentence, note)
        (self.isGood, self.mayRepeat) = (isGood, mayRepeat)
    }

    /// A line of the event.
    ///
    /// - Parameters:
    ///   - values: the fields' values in their order; nil leaves a field out.
    ///   - level: a level other than the usual one.
    func line(_ values: (any LoggedValue)?..., level: Level? = nil) -> EventLine { line(values, level: level) }

    func line(_ values: [(any LoggedValue)?], level: Level? = nil) -> EventLine {
        let values = values.map { $0?.logged }
        assert(fits(values), "\(name): its line does not have the fields of its row")
        return EventLine(spec: self, level: level ?? levels[0], values: values)
    }

    /// The event in words; nil when a field outside the brackets is missing.
    ///
    /// - Parameters:
    ///   - zone: the zone of clock times; nil is the system's.
    ///   - value: a field's value, unescaped.
    package func sentence(in zone: String? = nil, _ value: (_ field: String) -> EventValue?) -> String? {
        let text = Self.fill(sentence[...]) { name in value(name).map { Self.shown(name, $0, zone) } }
        guard case .number(let repeats)? = value(Self.repeatsField) else { return text }
        return text.map { "\($0) (said \(repeats) more times since)" }
    }

    private static func fill(_ pattern: Substring, _ text: (String) -> String?) -> String? {
        var (result, rest) = ("", pattern)
        while let character = rest.first {
            switch character {
            case "[":
                let inner = rest.dropFirst().prefix { $0 != "]" }
                result += fill(inner, text) ?? ""
                rest = rest[inner.endIndex...].dropFirst()
            case "{":
                let name = rest.dropFirst().prefix { $0 != "}" }
                guard let text = text(String(name)), !text.isEmpty else { return nil }
                result += text
                rest = rest[name.endIndex...].dropFirst()
            default:
                result.append(character)
                rest = rest.dropFirst()
            }
        }
        return result
    }

    fileprivate static let times: Set = ["until", "next_probe", "next_try"]
    private static let sizes: Set = ["size", "sent", "bytes"]
    /// Places in a configuration, each with its line and a caret below it.
    private static let places: Set = ["errors", "warnings"]

    /// A field as a sentence shows it: escaped, with sizes, times and durations in people's units.
    private static func shown(_ name: String, _ value: EventValue, _ zone: String?) -> String {
        switch value {
        case .number(let number) where name.hasSuffix("_ms"):
            // Milliseconds are noise in durations of minutes.
            DurationText.format(.milliseconds(number < 10_000 ? number : number / 1000 * 1000))
        case .number(let number) where sizes.contains(name): ByteText.format(number)
        case .text(let text) where times.contains(name): DisplayText.escape(WallTime.clock(of: text, in: zone))
        case .list(let items) where places.contains(name):
            items.flatMap { $0.split(separator: "\n") }.map { DisplayText.escape(String($0)) }.joined(separator: "\n")
        case .list(let items): DisplayText.escape(items.joined(separator: ", "))
        default: DisplayText.escape(value.plain)
        }
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

    /// The JSON Schema (draft 2020-12) of a log line; it depends on the table only. A line of an unknown event may come
    /// from a later version, and needs the common fields only.
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
    /// `{"if": the event's name, "then": the fields of its lines}`.
    fileprivate var rule: String {
        func list(_ names: [String]) -> String { names.map { JSONString.quote($0) }.joined(separator: ", ") }
        let common =
            (mayRepeat ? [(Self.repeatsField, EventValue.number(0).schema)] : [])
            + (formerName == nil ? [] : [("was", EventValue.text("").schema)])
        let types = (fields.map { ($0.name, $0.schema) } + common).map { "\(JSONString.quote($0)): \($1)" }
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
