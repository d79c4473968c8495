import InletCore
import InletPipelines

/// One JSON object that a server answered with: printed as it is for programs, and read field by field for people.
struct Answer: Sendable {
    let fields: JSONObject

    /// What is no object is read as one without fields.
    init(_ value: JSONValue) { fields = value.object ?? [:] }

    /// The object on one line, its fields sorted, nothing left out.
    var line: String { JSONValue.object(fields).text }

    /// The field as people read it; empty where it is unset, which servers also write as null, `{}` and `[]`. What would
    /// change the terminal is escaped. Of names with `|` between them the first that is set counts.
    subscript(_ names: String) -> String {
        for name in names.split(separator: "|") {
            let text = fields[String(name)].map { Self.shown($0) } ?? ""
            if !text.isEmpty { return text }
        }
        return ""
    }

    /// Every field that is set, a line each, `first` before the others.
    func story(first: [String]) -> String {
        let rest = fields.keys.filter { !first.contains($0) }.sorted()
        let rows = (first + rest).compactMap { name -> [String]? in
            let text = self[name]
            return text.isEmpty ? nil : ["  \(DisplayText.escape(name))", text]
        }
        return Console.table(rows)
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
struct AnswerTable: Sendable {
    struct Column: Sendable {
        let heading: String
        /// The field below it, or several with `|` between them.
        let field: String

        init(_ heading: String, _ field: String) {
            self.heading = heading
            self.field = field
        }
    }

    let columns: [Column]
    /// What is said of an empty list.
    let none: String

    init(_ columns: Column..., none: String) {
        self.columns = columns
        self.none = none
    }

    /// - Parameter json: one object a line instead of the table.
    func print(_ answers: [Answer], json: Bool) {
        if json {
            for answer in answers { Console.print(answer.line) }
        } else if answers.isEmpty {
            Console.print(none)
        } else {
            let head = columns.map { Console.tint($0.heading, .faint) }
            let rows = answers.map { answer in columns.map { Console.tint(answer[$0.field], .plain) } }
            Console.print(Console.table([head] + rows))
        }
    }
}
