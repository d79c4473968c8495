import ArgumentParser
import InletConfig
import InletCore
import InletDashboard
import InletPipelines

/// One JSON object from a server: printed unchanged for programs, and field by field for people.
struct ServerResponse: Sendable {
    let fields: JSONObject

    /// Another value counts as an object without fields.
    init(_ value: JSONValue) { fields = value.object ?? [:] }

    /// The complete object on one line, its fields sorted.
    var line: String { JSONValue.object(fields).text }

    /// The field for people, with control characters escaped; empty where it is unset, which servers also write as
    /// null, `{}` and `[]`. Of several names with `|` between them, the first that is set counts.
    subscript(_ names: String) -> String {
        for name in names.split(separator: "|") {
            let text = fields[String(name)].map { Self.shown($0) } ?? ""
            if !text.isEmpty { return text }
        }
        return ""
    }

    /// Every field that is set, one a line, with `first` before the others.
    func story(first: [String]) -> String {
        let rest = fields.keys.filter { !first.contains($0) }.sorted()
        let rows = (first + rest).compactMap { name -> [StyledText]? in
            let text = self[name]
            return text.isEmpty ? nil : [StyledText(name), StyledText(text)]
        }
        return Console.table([.text("FIELD"), .whole("VALUE")], rows, hasHeader: !Console.isTerminal, indent: 2)
    }

    private static func shown(_ value: JSONValue) -> String {
        switch value {
        case .null, .object([:]), .array([]): ""
        case .string(let text): DisplayText.escape(text)
        default: DisplayText.escape(value.text)
        }
    }
}

/// A list of answers, for people or for programs.
struct ResponseTable: Sendable {
    /// The fields below the headings, each one name or several with `|` between them.
    private let columns: [(column: Table.Column, field: String)]
    /// The sentence for an empty list.
    private let none: String

    init(_ columns: (Table.Column, String)..., none: String) {
        self.columns = columns.map { (column: $0.0, field: $0.1) }
        self.none = none
    }

    /// - Parameter json: one object a line instead of the table.
    func print(_ values: some Sequence<JSONValue>, json: Bool) {
        let answers = values.map { ServerResponse($0) }
        if json {
            for answer in answers { Console.print(answer.line) }
        } else if answers.isEmpty {
            Console.print(none)
        } else {
            let rows = answers.map { answer in columns.map { StyledText(answer[$0.field]) } }
            Console.print(Console.table(columns.map(\.column), rows))
        }
    }
}

// Text of the command line as the JSON that a server expects.
extension JSONValue {
    /// - Throws: `ValidationError` naming the option.
    static func read(object text: String, _ option: String) throws -> JSONValue {
        do {
            let value = try JSONValue(parsing: text.utf8)
            if value.object != nil { return value }
        } catch {
            throw ValidationError("\(option) is not JSON: \(error)")
        }
        throw ValidationError("\(option) must be a JSON object, such as '{\"floor\": 2}'")
    }

    /// Three finite numbers, `x,y,z`.
    static func read(point text: String, _ option: String) throws -> JSONValue {
        let numbers = text.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) ?? .nan }
        guard numbers.count == 3, numbers.allSatisfy(\.isFinite) else {
            throw ValidationError("\(option) is not a point; write x,y,z in metres, such as 0,1.5,-2")
        }
        return .array(numbers.map { .number("\($0)") })
    }

    /// A moment for the server, in UTC and whole seconds.
    static func read(time text: String, _ option: String) throws -> JSONValue {
        guard let time = WallTime(rfc3339: text) else {
            throw ValidationError("\(option) is no time; write it as 2026-11-21T17:00:00Z")
        }
        return .string(time.rfc3339Seconds)
    }

    /// `#RRGGBB`
    static func read(color text: String) throws -> JSONValue {
        guard text.wholeMatch(of: /#[0-9A-Fa-f]{6}/) != nil else {
            throw ValidationError("--color must be #RRGGBB, such as '#FF8800'")
        }
        return .string(text)
    }

    /// One of `words`.
    static func read(word text: String, _ option: String, _ words: [String]) throws -> JSONValue {
        guard words.contains(text) else {
            let hint = Suggestion.hint(text, in: words)
            throw ValidationError("\(option) must be one of \(words.joined(separator: ", "))\(hint)")
        }
        return .string(text)
    }
}

/// `--destination NAME` and `--config FILE`, for commands about the servers of one type.
struct ServerOption: ParsableArguments {
    @OptionGroup var options: ConfigOption
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("The destination; needed where several are of this type.", valueName: "DEST"))
    var destination: String?

    /// Calls `body` with the API of the one destination of `type`, and prints what failed.
    func use(
        _ type: String, _ body: (LoadedConfig, DestinationSettings, PipelineFactory) async throws -> Void
    ) async throws {
        let config = try options.load()
        let settings = try find(type, in: config)
        let factory = PipelineFactory.standard(config)
        defer { factory.shutdown() }
        do {
            try await body(config, settings, factory)
        } catch let error as DeliveryError {
            throw ExitStatus.of(error).saying("\(error)")
        }
    }

    /// The one destination of `type`, or the named one. Otherwise prints the error and exits.
    private func find(_ type: String, in config: LoadedConfig) throws -> DestinationSettings {
        let all = config.settings.destinations
        let some = all.filter { $0.type == type }
        if let destination {
            if let found = some.first(where: { $0.name == destination }) { return found }
            let other = all.first { $0.name == destination }
            guard let other else {
                throw config.noDestination(destination, Suggestion.hint(destination, in: some.map(\.name)))
            }
            throw ExitStatus.configuration.saying("'\(destination)' is of type \(other.type), not \(type)")
        }
        if some.count == 1 { return some[0] }
        if some.isEmpty {
            throw ExitStatus.configuration.saying("no destination of type \(type) in \(config.file.display)")
        }
        throw ValidationError("choose one with --destination: \(some.map(\.name).joined(separator: ", "))")
    }
}
