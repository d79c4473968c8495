package import InletCore

/// The JSON Schema (draft 2020-12) of the configuration, for editors that complete and check YAML.
package enum ConfigSchema {
    /// The schema's text, the same for the same tables.
    package static func json(types: [DestinationType]) -> String {
        var root = object(ConfigKeys.all.specs, types)
        root.insert(contentsOf: head, at: 0)
        root.append(("patternProperties", .object([("^\(ConfigKeys.extensionPrefix)", .object([]))])))
        return JSONText.object(root).text() + "\n"
    }

    private static let head: [(String, JSONText)] = [
        ("$schema", .string("https://json-schema.org/draft/2020-12/schema")),
        ("title", .string("Inlet configuration")),
    ]

    private static let text = JSONText.object([("type", .string("string"))])

    /// A mapping with exactly these keys.
    private static func object(_ keys: [KeySpec], _ types: [DestinationType]) -> [(String, JSONText)] {
        var fields: [(String, JSONText)] = [
            ("type", .string("object")),
            ("properties", .object(keys.map { ($0.name, property($0, types)) })),
            ("additionalProperties", .boolean(false)),
        ]
        let required = keys.filter(\.isRequired).map { JSONText.string($0.name) }
        if !required.isEmpty { fields.append(("required", .array(required))) }
        return fields
    }

    private static func property(_ spec: KeySpec, _ types: [DestinationType]) -> JSONText {
        var fields: [(String, JSONText)] = [("description", .string(spec.summary))]
        fields += schema(spec.kind, types)
        if let text = spec.defaultText { fields.append(("default", defaultValue(text, spec.kind))) }
        return .object(fields)
    }

    private static func defaultValue(_ text: String, _ kind: ValueKind) -> JSONText {
        switch kind {
        case .integer: Int64(text).map { .integer($0) } ?? .string(text)
        case .boolean: .boolean(text == "true")
        case .list: .array([.string(text)])
        default: .string(text)
        }
    }

    private static func schema(_ kind: ValueKind, _ types: [DestinationType]) -> [(String, JSONText)] {
        switch kind {
        case .string, .secret, .url, .path: [("type", .string("string"))]
        case .boolean: [("type", .string("boolean"))]
        case .integer(let range):
            [
                ("type", .string("integer")), ("minimum", .integer(Int64(range.lowerBound))),
                ("maximum", .integer(Int64(range.upperBound))),
            ]
        case .bytesOrAuto: size(.string("auto"))
        case .bytes: size(.integer(512))
        // YAML 1.1 readers take a bare `off` for false.
        case .bytesOrOff:
            [("anyOf", .array([.object(size(.string("off"))), .object([("enum", .array([.boolean(false)]))])]))]
        case .duration(let offAllowed):
            // YAML 1.1 readers take a bare `off` for false.
            [
                (
                    "anyOf",
                    .array([text, .object([("enum", .array([.integer(0)] + (offAllowed ? [.boolean(false)] : [])))])])
                ),
                ("examples", .array((["250ms", "5s", "24h"] + (offAllowed ? ["off"] : [])).map { .string($0) })),
            ]
        case .rate: rate
        case .time:
            [
                ("type", .string("string")), ("pattern", .string("^([01]?[0-9]|2[0-3]):[0-5][0-9]$|^24:00$")),
                ("examples", .array([.string("08:00"), .string("24:00")])),
            ]
        case .choice(let choices): [("enum", .array(choices.map { .string($0) }))]
        case .list(let item): list(item, types)
        case .section(let keys): object(keys, types)
        case .brief(let single, let keys): brief(keys.first { $0.name == single }?.kind ?? .string, keys, types)
        case .destinations: named(types)
        case .map(let value):
            [("type", .string("object")), ("additionalProperties", .object(schema(value, types)))]
        }
    }

    /// - Parameter special: an example besides sizes with units.
    private static func size(_ special: JSONText) -> [(String, JSONText)] {
        [
            ("type", .array([.string("integer"), .string("string")])), ("minimum", .integer(0)),
            ("examples", .array([special, .string("8MiB"), .string("6GB")])),
        ]
    }

    /// YAML 1.1 readers take a bare `off` for false.
    private static let rate: [(String, JSONText)] = [
        ("anyOf", .array([text, .object([("enum", .array([.integer(0), .boolean(false)]))])])),
        ("examples", .array(["5MiB/s", "20Mbit/s", "0", "off"].map { .string($0) })),
    ]

    /// A list; of single values, one alone is a list too.
    private static func list(_ item: ValueKind, _ types: [DestinationType]) -> [(String, JSONText)] {
        let element = JSONText.object(schema(item, types))
        let array: [(String, JSONText)] = [("type", .string("array")), ("items", element)]
        return item.isScalar ? [("oneOf", .array([element, .object(array)]))] : array
    }

    /// A mapping, or the one value that stands for it; a bare `off` is false to YAML 1.1 readers.
    private static func brief(_ single: ValueKind, _ keys: [KeySpec], _ types: [DestinationType]) -> [(
        String, JSONText
    )] {
        let alone: [JSONText] = [.object(schema(single, types)), .object([("enum", .array([.boolean(false)]))])]
        return [("anyOf", .array(alone + [.object(object(keys, types))]))]
    }

    /// A mapping of names to sections whose keys follow from their `type`.
    private static func named(_ types: [DestinationType]) -> [(String, JSONText)] {
        let choices = types.map { type in
            var only = [type].typeKey
            only.summary = type.summary
            return JSONText.object(object([only] + type.keys, types))
        }
        return [
            ("type", .string("object")),
            ("propertyNames", .object([("pattern", .string(ValueReader.namePattern))])),
            ("additionalProperties", .object([("oneOf", .array(choices))])),
        ]
    }
}

/// A JSON document whose objects keep the order of their keys, which is the order that people read the schema in; Foundation's
/// coders keep none.
private indirect enum JSONText: Sendable {
    case string(String)
    case integer(Int64)
    case boolean(Bool)
    case array([JSONText])
    case object([(String, JSONText)])

    /// The document over several lines; short arrays of plain values stay on one.
    func text(depth: Int = 0) -> String {
        switch self {
        case .string(let text): JSONString.quote(text)
        case .integer(let number): String(number)
        case .boolean(let flag): flag ? "true" : "false"
        case .array(let items) where items.allSatisfy(\.isPlain):
            "[" + items.map { $0.text() }.joined(separator: ", ") + "]"
        case .array(let items):
            Self.block("[", items.map { $0.text(depth: depth + 1) }, "]", depth: depth)
        case .object(let fields) where fields.isEmpty:
            "{}"
        case .object(let fields):
            Self.block(
                "{", fields.map { "\(JSONString.quote($0.0)): \($0.1.text(depth: depth + 1))" }, "}", depth: depth)
        }
    }

    private var isPlain: Bool {
        switch self {
        case .string, .integer, .boolean: true
        case .array, .object: false
        }
    }

    private static func block(_ open: String, _ lines: [String], _ close: String, depth: Int) -> String {
        let margin = String(repeating: "  ", count: depth)
        return open + "\n" + lines.map { "\(margin)  \($0)" }.joined(separator: ",\n") + "\n\(margin)\(close)"
    }
}
