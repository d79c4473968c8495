import ArgumentParser
import InletCore

/// "Did you mean" for commands. Options have it from the library.
enum Spelling {
    /// The message about an unknown word, with the command that is spelt nearly like it.
    static func correct(_ message: String) -> String {
        guard let found = message.firstMatch(of: /nexpected arguments?:? '([^']*)'/) else { return message }
        var corrected = message
        corrected.insert(
            contentsOf: hint(String(found.1), in: CommandLine.arguments.dropFirst()), at: found.range.upperBound)
        return corrected
    }

    /// - Parameter words: of the command line; those before `word` lead to the command that it is no part of.
    private static func hint(_ word: String, in words: some Sequence<String>) -> String {
        var command: any ParsableCommand.Type = Inlet.self
        for name in words.prefix(while: { $0 != word }) {
            command = command.visible.first { $0.name == name } ?? command
        }
        return Suggestion.hint(word, in: command.visible.map(\.name))
    }
}

extension ParsableCommand {
    fileprivate static var visible: [any ParsableCommand.Type] {
        configuration.subcommands.filter { $0.configuration.shouldDisplay }
    }

    /// As it is typed.
    fileprivate static var name: String { _commandName }
}
