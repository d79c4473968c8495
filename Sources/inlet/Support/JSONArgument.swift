import ArgumentParser
import InletCore
import InletPipelines

/// What the command line says in text and a server wants as JSON.
enum JSONArgument {
    /// - Throws: `ValidationError` naming the option.
    static func object(_ text: String, _ option: String) throws -> JSONValue {
        do {
            let value = try JSONValue(parsing: text.utf8)
            if value.object != nil { return value }
        } catch {
            throw ValidationError("\(option) is no JSON: \(error)")
        }
        throw ValidationError("\(option) must be a JSON object, such as '{\"floor\": 2}'")
    }

    /// Three finite numbers, `x,y,z`.
    static func point(_ text: String, _ option: String) throws -> JSONValue {
        let numbers = text.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) ?? .nan }
        guard numbers.count == 3, numbers.allSatisfy(\.isFinite) else {
            throw ValidationError("\(option) is no point; write x,y,z in metres, such as 0,1.5,-2")
        }
        return .array(numbers.map { .number("\($0)") })
    }

    /// A moment, told the server in UTC and whole seconds.
    static func time(_ text: String, _ option: String) throws -> JSONValue {
        guard let time = WallTime(rfc3339: text) else {
            throw ValidationError("\(option) is no time; write it as 2026-11-21T17:00:00Z")
        }
        return .string(time.rfc3339Seconds)
    }

    /// `#RRGGBB`
    static func color(_ text: String) throws -> JSONValue {
        guard text.wholeMatch(of: /#[0-9A-Fa-f]{6}/) != nil else {
            throw ValidationError("--color is no colour; write #RRGGBB, such as '#FF8800'")
        }
        return .string(text)
    }

    /// One of `words`.
    static func word(_ text: String, _ option: String, _ words: [String]) throws -> JSONValue {
        guard words.contains(text) else {
            let hint = Suggestion.nearest(to: text, in: words).map { "; did you mean '\($0)'?" } ?? ""
            throw ValidationError("\(option) must be one of \(words.joined(separator: ", "))\(hint)")
        }
        return .string(text)
    }
}
