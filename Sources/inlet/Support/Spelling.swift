import ArgumentParser
import InletCore

/// "Did you mean" for commands. The library does the same for options.
enum Spelling {
    /// The message about an unknown word, with the command of a similar name.
    static func correct(_ message: String) -> String {
        guard let found = message.firstMatch(of: /nexpected arguments?:? '([^']*)'/) else { return message }
        var corrected = message
        corrected.insert(
            contentsOf: hint(String(found.1), in: CommandLine.arguments.dropFirst()), at: found.range.upperBound)
        return corrected
    }

    /// - Parameter words: the words of the command line; those before `word` lead to the command that does not know it.
    private static func hint(_ word: String, in words: some Sequence<String>) -> String {
        var commands = names(of: Inlet.configuration)
        for name in words.prefix(while: { $0 != word }) {
            if let next = commands[name] { commands = names(of: next) }
        }
        return Suggestion.hint(word, in: commands.keys.sorted())
    }

    /// The subcommands of one command, by name.
    private static func names(of command: CommandConfiguration) -> [String: CommandConfiguration] {
        var names: [String: CommandConfiguration] = [:]
        for type in command.subcommands where type.configuration.shouldDisplay {
            names[type._commandName] = type.configuration
        }
        return names
    }
}
