internal import InletCore

/// The shape of a value of the API, as far as OpenAPI can express it.
indirect enum Schema: Sendable {
    case text
    /// One of these words.
    case word([String])
    /// RFC 3339.
    case time
    case integer
    /// An integer within bounds; nil = the type's own.
    case from(Int, to: Int?)
    /// A text that a regular expression (ECMA-262) matches as a whole.
    case pattern(String)
    case number
    case flag
    /// A flag in a query, which is a text.
    case wordOfFlag
    case list(Schema)
    /// Values under names that are not known beforehand.
    case map(Schema)
    /// `more`: the shape of other keys' values; nil = there are none.
    case object([Field], more: Schema? = nil)
    /// Described under its own name.
    case named(any NamedSchema.Type)
    /// The value, or null.
    case orNull(Schema)
    case anything

    struct Field: Sendable {
        var name: String
        var schema: Schema
        /// Optional keys are left out where they have nothing to say.
        var isRequired: Bool
        var note: String?

        fileprivate var json: JSONValue {
            // Readers ignore everything beside a $ref.
            guard let note, case .object(var keys) = schema.json, keys["$ref"] == nil else { return schema.json }
            keys["description"] = .string(note)
            return .object(keys)
        }
    }

    /// As in the document.
    var json: JSONValue {
        func type(_ name: String, _ more: [String: JSONValue?] = [:]) -> JSONValue {
            .members(more.merging(["type": .string(name)]) { $1 })
        }
        return switch self {
        case .text: type("string")
        case .word(let words): type("string", ["enum": .array(words.map { .string($0) })])
        case .time: type("string", ["format": .string("date-time")])
        case .integer: type("integer", ["format": .string("int64")])
        case .from(let least, let most):
            type(
                "integer",
                ["format": .string("int64"), "minimum": JSONValue(least), "maximum": most.map { JSONValue($0) }])
        case .pattern(let pattern): type("string", ["pattern": .string("^(\(pattern))$")])
        case .number: type("number")
        case .flag: type("boolean")
        case .wordOfFlag: Self.word(Self.flags.keys.sorted()).json
        case .list(let item): type("array", ["items": item.json])
        case .map(let value): type("object", ["additionalProperties": value.json])
        case .object(let fields, let more):
            type(
                "object",
                [
                    "properties": .object(Dictionary(fields.map { ($0.name, $0.json) }) { $1 }),
                    "required": fields.contains(where: \.isRequired)
                        ? .array(fields.filter(\.isRequired).map { .string($0.name) }) : nil,
                    "additionalProperties": more?.json,
                ])
        case .named(let type): .object(["$ref": .string("#/components/schemas/\(type.schemaName)")])
        case .orNull(let value): .members((value.json.object ?? [:]).merging(["nullable": .boolean(true)]) { $1 })
        case .anything: .object([:])
        }
    }

    /// The words of a flag; in either case, as scripts write them.
    static let flags = ["true": true, "1": true, "yes": true, "false": false, "0": false, "no": false]

    /// The expected form of a query's text, for the end of a sentence; nil where the text is fine, or its endpoint
    /// judges it.
    func wanted(insteadOf text: String) -> String? {
        switch self {
        case .word(let words): words.contains(text) ? nil : "one of \(words.joined(separator: ", "))"
        case .wordOfFlag:
            Self.flags[text.lowercased()] != nil ? nil : "true, 1 or yes, or else false, 0 or no"
        case .integer: Int64(text) != nil ? nil : "a number"
        case .from(let least, let most):
            Int(text).map { $0 >= least && $0 <= most ?? .max } ?? false
                ? nil : "a number from \(least)" + (most.map { " to \($0)" } ?? "")
        default: nil
        }
    }

    /// A query's number, clamped to its bounds; other texts unchanged.
    func clamped(_ text: String) -> String {
        guard case .from(let least, let most) = self, let number = Int(text) else { return text }
        return String(min(max(number, least), most ?? .max))
    }

    /// An object's keys, where no others are allowed; nil for other shapes.
    var names: [String]? {
        switch self {
        case .object(let fields, more: nil): fields.map(\.name)
        case .named(let type): type.schema.names
        default: nil
        }
    }

    /// The types that it names, and those that these name.
    func collect(_ found: inout [String: any NamedSchema.Type]) {
        switch self {
        case .text, .word, .time, .integer, .from, .pattern, .number, .flag, .wordOfFlag, .anything: break
        case .list(let inner), .map(let inner), .orNull(let inner): inner.collect(&found)
        case .object(let fields, let more):
            for field in fields { field.schema.collect(&found) }
            more?.collect(&found)
        case .named(let type):
            guard found[type.schemaName] == nil else { return }
            found[type.schemaName] = type
            type.schema.collect(&found)
        }
    }
}

extension Schema.Field {
    static func must(_ name: String, _ schema: Schema, _ note: String? = nil) -> Schema.Field {
        Schema.Field(name: name, schema: schema, isRequired: true, note: note)
    }

    static func may(_ name: String, _ schema: Schema, _ note: String? = nil) -> Schema.Field {
        Schema.Field(name: name, schema: schema, isRequired: false, note: note)
    }
}

/// A type of the API that the document describes under its own name. Its members and their types are those that it
/// decodes; `notes` adds what these do not tell.
protocol NamedSchema: Sendable {
    static var schemaName: String { get }
    static var schema: Schema { get }
    /// By the name of a member.
    static var notes: [String: SchemaDescription] { get }
}

extension NamedSchema {
    /// The type's name, without the ending `Report`.
    static var schemaName: String {
        let name = String(describing: Self.self)
        return name.hasSuffix("Report") ? String(name.dropLast("Report".count)) : name
    }

    static var notes: [String: SchemaDescription] { [:] }
}

extension NamedSchema where Self: Decodable {
    static var schema: Schema { SchemaReader.members(of: Self.self, notes) }
}

/// The document's addition to a member's type: a sentence, a narrower schema, or both.
struct SchemaDescription: Sendable, ExpressibleByStringLiteral {
    var schema: Schema?
    var text: String?

    init(stringLiteral text: String) { self.text = text }

    private init(_ schema: Schema, _ text: String?) { (self.schema, self.text) = (schema, text) }

    static let time = SchemaDescription(.time, nil)

    static func time(_ text: String) -> SchemaDescription { SchemaDescription(.time, text) }

    static func schema(_ schema: Schema, _ text: String? = nil) -> SchemaDescription { SchemaDescription(schema, text) }
}
