package import InletCore

/// The JSON Schema (draft 2020-12) of the configuration, for completion and checks in editors.
package enum ConfigSchema {
    /// The schema's text; equal tables give equal text.
    package static func json(types: [DestinationType]) -> String {
        var root = object(ConfigKeys.specs, types)
        root.insert(contentsOf: head, at: 0)
        root.append(("patternProperties", .object([("^\(ConfigKeys.extensionPrefix)", [:])])))
        return JSONText.object(root).text() + "\n"
    }

    private static let head: [(String, JSONText)] = [
        ("$schema", "https://json-schema.org/draft/2020-12/schema"),
        ("title", "Inlet configuration"),
    ]

    /// A mapping with exactly these keys.
    private static func object(_ keys: [KeySpec], _ types: [DestinationType]) -> [(String, JSONText)] {
        var fields: [(String, JSONText)] = [
            ("type", "object"),
            ("properties", .object(keys.map { ($0.name, property($0, types)) })),
            ("additionalProperties", false),
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
        case .secret: [("type", "string"), ("writeOnly", true)]
        case .string, .url, .path: [("type", "string")]
        case .boolean: [("type", "boolean")]
        case .integer(let range):
            [
                ("type", "integer"), ("minimum", .integer(Int64(range.lowerBound))),
                ("maximum", .integer(Int64(range.upperBound))),
            ]
        case .bytes(orWord: "off"): [("anyOf", [.object(size("off")), bareOff])]
        case .bytes(let word): size(word.map { .string($0) } ?? 512)
        case .duration(offAllowed: true):
            [("anyOf", [text, ["enum": [0, false]]]), ("examples", ["250ms", "5s", "24h", "off"])]
        case .duration: [("anyOf", [text, ["enum": [0]]]), ("examples", ["250ms", "5s", "24h"])]
        case .rate: [("anyOf", [text, ["enum": [0, false]]]), ("examples", ["5MiB/s", "20Mbit/s", "0", "off"])]
        case .time:
            [
                ("type", "string"), ("pattern", "^([01]?[0-9]|2[0-3]):[0-5][0-9]$|^24:00$"),
                ("examples", ["08:00", "24:00"]),
            ]
        case .choice(let choices): [("enum", .array(choices.map { .string($0) }))]
        case .list(let item): list(item, types)
        case .section(let keys): object(keys, types)
        case .brief(let single, let keys):
            // A mapping, or the single value that replaces it.
            [
                (
                    "anyOf",
                    [
                        .object(schema(keys.first { $0.name == single }?.kind ?? .string, types)), bareOff,
                        .object(object(keys, types)),
                    ]
                )
            ]
        case .destinations: named(types)
        case .map(let value): [("type", "object"), ("additionalProperties", .object(schema(value, types)))]
        }
    }

    private static let text: JSONText = ["type": "string"]
    /// YAML 1.1 parsers read a bare `off` as false.
    private static let bareOff: JSONText = ["enum": [false]]

    /// - Parameter special: an additional example for a size.
    private static func size(_ special: JSONText) -> [(String, JSONText)] {
        [("type", ["integer", "string"]), ("minimum", 0), ("examples", [special, "8MiB", "6GB"])]
    }

    /// A list; for lists of scalars, a single scalar is allowed too.
    private static func list(_ item: ValueKind, _ types: [DestinationType]) -> [(String, JSONText)] {
        let element = JSONText.object(schema(item, types))
        let array: [(String, JSONText)] = [("type", "array"), ("items", element)]
        return item.isScalar ? [("oneOf", [element, .object(array)])] : array
    }

    /// A mapping of names to sections whose keys depend on their `type`.
    private static func named(_ types: [DestinationType]) -> [(String, JSONText)] {
        let choices = types.map { type in
            var only = [type].typeKey
            only.summary = type.summary
            return JSONText.object(object([only] + type.keys, types))
        }
        return [
            ("type", "object"), ("propertyNames", ["pattern": .string(ValueReader.namePattern)]),
            ("additionalProperties", ["oneOf": .array(choices)]),
        ]
    }
}

/// A JSON document that keeps the order of keys, so that people read the schema in a sensible order. Foundation's
/// coders do not.
private indirect enum JSONText: Sendable {
    case string(String)
    case integer(Int64)
    case boolean(Bool)
    case array([JSONText])
    case object([(String, JSONText)])

    /// The text over several lines; short arrays of scalars stay on one line.
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

extension JSONText: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
    init(stringLiteral text: String) { self = .string(text) }
    init(integerLiteral number: Int64) { self = .integer(number) }
    init(booleanLiteral flag: Bool) { self = .boolean(flag) }
}

extension JSONText: ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral {
    init(arrayLiteral items: JSONText...) { self = .array(items) }
    init(dictionaryLiteral fields: (String, JSONText)...) { self = .object(fields) }
}
