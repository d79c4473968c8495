import ArgumentParser
import Foundation
import InletConfig
import InletCore
import InletPipelines
import SystemPackage

/// What shells offer where a name of the configuration is wanted: that of `--config` before it on the line, or the usual one.
enum ConfiguredNames {
    static let destinations = completion { $0.destinations.map(\.name) }
    static let routes = completion { $0.routes.map(\.name) }
    static let roots = completion { settings in settings.watch.filter { $0.pattern == nil }.map(\.path.string) }
    static let receivers = completion { $0.notify.map(\.name) }

    private static func completion(_ names: @escaping @Sendable (Settings) -> [String]) -> CompletionKind {
        .custom { words, _, _ in
            var options = ConfigOption()
            options.config = config(words)
            // While somebody types there is nobody to tell what is wrong with it.
            guard let loaded = try? options.reload() else { return [] }
            return names(loaded.settings).filter(isPlain)
        }
    }

    /// Whether a shell takes the name as it is: bash's script expands what it is offered, and a configuration may come from
    /// anybody.
    static func isPlain(_ name: String) -> Bool {
        name.unicodeScalars.allSatisfy { scalar in
            !scalar.properties.isWhitespace && scalar.properties.generalCategory != .control
                && !"$`\\\"'".unicodeScalars.contains(scalar)
        }
    }

    /// The value of `--config` among the words of a command line.
    static func config(_ words: [String]) -> String? {
        for (index, word) in words.enumerated() {
            for name in ["--config", "-c"] {
                if word == name, index + 1 < words.count { return words[index + 1] }
                if word.hasPrefix(name + "=") { return String(word.dropFirst(name.count + 1)) }
            }
        }
        return nil
    }
}
