package import InletCore

/// What each event's log line has: one table for the JSON schema and for the test that holds real lines against it.
package struct LogEventSpec: Sendable {
    package enum Kind: String, Sendable {
        case text
        case number
        case list
        case flag
    }

    package struct Field: Sendable {
        package var name: String
        package var kind: Kind
        /// Whether only some lines of the event have it.
        package var isOptional: Bool
    }

    package var name: String
    /// The level, or the levels that it can have.
    package var levels: [LogSettings.Level]
    package var fields: [Field]

    /// - Parameter fields: names with what is not text marked: `size#` a number, `notes*` a list, `resumed!` a flag; `?` at
    ///   the end for what only some lines have.
    init(_ name: String, _ levels: LogSettings.Level..., fields: String = "") {
        self.name = name
        self.levels = levels
        self.fields = fields.split(separator: " ").map { word in
            var word = word
            let isOptional = word.hasSuffix("?")
            if isOptional { word = word.dropLast() }
            let kind: Kind =
                switch word.last {
                case "#": .number
                case "*": .list
                case "!": .flag
                default: .text
                }
            return Field(name: String(kind == .text ? word : word.dropLast()), kind: kind, isOptional: isOptional)
        }
    }
}

/// The JSON Schema (draft 2020-12) of a log line.
package enum LogSchema {
    /// The schema's text, the same for the same table. An event that it does not know may be of a later version: such a line
    /// needs the common fields only.
    package static var json: String {
        let events = LogEventSpec.all.map { event in "    \(conditional(event))" }.joined(separator: ",\n")
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

    /// `{"if": the event's name, "then": what its lines have}`.
    private static func conditional(_ event: LogEventSpec) -> String {
        let levels = event.levels.map { JSONString.quote($0.rawValue) }.joined(separator: ", ")
        let fields = event.fields.map { "\(JSONString.quote($0.name)): \(type($0.kind))" }
        let properties = (["\"ts\": true", "\"event\": true", "\"level\": {\"enum\": [\(levels)]}"] + fields)
            .joined(separator: ", ")
        let required = event.fields.filter { !$0.isOptional }.map { JSONString.quote($0.name) }.joined(separator: ", ")
        let name = JSONString.quote(event.name)
        return """
            {"if": {"properties": {"event": {"const": \(name)}}, "required": ["event"]}, \
            "then": {"properties": {\(properties)}, "required": [\(required)], "additionalProperties": false}}
            """
    }

    private static func type(_ kind: LogEventSpec.Kind) -> String {
        switch kind {
        case .text: #"{"type": "string"}"#
        case .number: #"{"type": "integer"}"#
        case .flag: #"{"type": "boolean"}"#
        case .list: #"{"type": "array", "items": {"type": "string"}}"#
        }
    }
}
