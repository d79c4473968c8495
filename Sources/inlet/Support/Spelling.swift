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

    /// - Parameter words: of the command line; those before `word` lead to the command that does not know it.
    private static func hint(_ word: String, in words: some Sequence<String>) -> String {
        var commands = names(of: Inlet.configuration)
        for name in words.prefix(while: { $0 != word }) {
            if let next = commands[name] { commands = names(of: next) }
        }
        return Suggestion.hint(word, in: commands.keys.sorted())
    }

    /// The commands below one, as they are typed.
    private static func names(of command: CommandConfiguration) -> [String: CommandConfiguration] {
        var names: [String: CommandConfiguration] = [:]
        for type in command.subcommands where type.configuration.shouldDisplay {
            names[type._commandName] = type.configuration
        }
        return names
    }
}
