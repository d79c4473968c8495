package import InletCore

/// An error in a configuration file, with its position and line. Contains no secrets.
package struct ConfigError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The file as the user named it.
    package var file: String
    /// Both count from 1; columns count characters.
    package var line: Int
    package var column: Int
    /// The problem, and the remedy if it is known.
    package var message: String
    /// The source line and a caret under the position; empty for an empty line.
    package var excerpt: String

    package init(file: String, line: Int, column: Int, message: String, excerpt: String) {
        self.file = file
        self.line = line
        self.column = column
        self.message = message
        self.excerpt = excerpt
    }

    package var position: SourcePosition { SourcePosition(line: line, column: column) }

    /// `inlet.yaml:31:9: unknown key …`, followed by the lines of the excerpt.
    package var description: String {
        let head = "\(file):\(line):\(column): \(message)"
        return excerpt.isEmpty ? head : "\(head)\n\(excerpt)"
    }
}

/// All errors in a configuration file, in the file's order.
package struct ConfigErrors: Error, Sendable, Equatable, CustomStringConvertible {
    package var list: [ConfigError]

    package init(list: [ConfigError]) { self.list = list }

    package var description: String { list.map(\.description).joined(separator: "\n") }
}

/// Turns issues into errors of a file, and keeps credentials out of excerpts.
struct ErrorReport: Sendable {
    let file: String
    let source: SourceText
    let mask: SecretMask
    /// Removes the values of `${…}` from messages.
    var redactor = Redactor.none

    func error(_ problem: ConfigIssue) -> ConfigError {
        let place = source.clamped(problem.position)
        let line = source.lines[place.line - 1]
        var limit = mask.limit(ofLine: place.line)
        if problem.hidesValue {
            let colon = line[(place.column - 1)...].firstIndex(of: ":") ?? place.column - 1
            limit = min(limit ?? .max, colon + 1)
        }
        let excerpt = line.isEmpty ? "" : source.excerpt(at: place, limit: limit)
        return ConfigError(
            file: file, line: place.line, column: place.column, message: redactor.redacted(problem.message),
            excerpt: excerpt)
    }

    /// The errors for `problems` in the file's order, without duplicates.
    func errors(_ problems: [ConfigIssue]) -> ConfigErrors {
        var list: [ConfigError] = []
        for problem in problems.sorted(by: Self.precedes) {
            let error = error(problem)
            if list.last != error { list.append(error) }
        }
        return ConfigErrors(list: list)
    }

    private static func precedes(_ left: ConfigIssue, _ right: ConfigIssue) -> Bool {
        (left.position.line, left.position.column, left.message)
            < (right.position.line, right.position.column, right.message)
    }
}

/// A problem at a position, without the file's name and text.
struct ConfigIssue: Error, Sendable, Equatable {
    var position: SourcePosition
    var message: String
    /// Hides the line after the key, which may hold a credential under a mistyped name.
    var hidesValue = false

    init(_ position: SourcePosition, _ message: String, hidesValue: Bool = false) {
        self.position = position
        self.message = message
        self.hidesValue = hidesValue
    }
}

extension SourcePosition {
    static let start = SourcePosition(line: 1, column: 1)

    static func < (left: SourcePosition, right: SourcePosition) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }
}
