import ArgumentParser
import Foundation
import InletCore

/// One JSON object that a server answered with: printed as it is for programs, and read field by field for people.
struct Answer {
    /// The object on one line, its keys sorted, nothing left out.
    let line: String
    private let fields: [String: Any]

    /// - Throws: when `json` is no JSON object.
    init(_ json: some Sequence<UInt8>) throws {
        let value = try JSONSerialization.jsonObject(with: Data(json))
        guard let fields = value as? [String: Any] else { throw CocoaError(.coderReadCorrupt) }
        self.init(fields: fields)
    }

    init(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .iso8601
        try self.init(encoder.encode(value))
    }

    private init(fields: [String: Any]) {
        self.fields = fields
        line = Self.text(fields)
    }

    /// The field as people read it; empty where it is unset, which servers also write as null, `{}` and `[]`. What
    /// would change the terminal is escaped.
    subscript(_ path: String) -> String {
        var value: Any? = fields
        for name in path.split(separator: ".") { value = (value as? [String: Any])?[String(name)] }
        return value.map { Self.shown($0) } ?? ""
    }

    /// The objects of a field that is a list.
    func list(_ name: String) -> [Answer] {
        (fields[name] as? [[String: Any]] ?? []).map { Answer(fields: $0) }
    }

    /// Every field that is set, `first` before the others.
    func story(first: [String]) -> String {
        let rest = fields.keys.filter { !first.contains($0) }.sorted()
        let rows = (first + rest).compactMap { name -> [String]? in
            let text = self[name]
            return text.isEmpty ? nil : ["  \(DisplayText.escape(name))", text]
        }
        return Console.table(rows)
    }

    private static func shown(_ value: Any) -> String {
        switch value {
        case is NSNull: ""
        case let text as String: DisplayText.escape(text)
        case let list as [Any] where list.isEmpty: ""
        case let object as [String: Any] where object.isEmpty: ""
        default: DisplayText.escape(text(value))
        }
    }

    private static func text(_ value: Any) -> String {
        let data = try? JSONSerialization.data(
            withJSONObject: value, options: [.sortedKeys, .withoutEscapingSlashes, .fragmentsAllowed])
        return data.map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
}

/// A list of answers, for people or for programs.
struct AnswerTable {
    /// Headings, and which field stands below each; the last one is free in its length.
    let columns: [(heading: String, field: String)]
    /// What is said of an empty list.
    let none: String

    /// - Parameter json: one object a line instead of the table.
    func print(_ answers: [Answer], json: Bool) {
        if json {
            for answer in answers { Console.print(answer.line) }
        } else if answers.isEmpty {
            Console.print(none)
        } else {
            let head = columns.map { Console.tint($0.heading, .faint) }
            let rows = answers.map { answer in
                columns.enumerated().map { index, column in
                    // Both are tinted, so that escape codes do not shift the columns.
                    index == columns.count - 1 ? answer[column.field] : Console.tint(answer[column.field], .plain)
                }
            }
            Console.print(Console.table([head] + rows))
        }
    }
}

/// Text of the command line that must be JSON or a time.
enum Argument {
    /// - Throws: `ValidationError` naming the option.
    static func object(_ text: String, _ option: String) throws -> [String: Any] {
        guard let object = try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] else {
            throw ValidationError("\(option) is no JSON object: \(DisplayText.escape(text))")
        }
        return object
    }

    /// Three finite numbers, `x,y,z`.
    static func point(_ text: String, _ option: String) throws -> [Double] {
        let numbers = text.split(separator: ",", omittingEmptySubsequences: false)
            .map { Double($0.trimmingCharacters(in: .whitespaces)) ?? .nan }
        guard numbers.count == 3, numbers.allSatisfy(\.isFinite) else {
            throw ValidationError("\(option) is no point: write it as x,y,z, in metres")
        }
        return numbers
    }
}
