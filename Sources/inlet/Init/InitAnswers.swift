import InletConfig
import InletCore
import InletPipelines
import SystemPackage

/// What a person said to `inlet init`, and the configuration that comes of it.
struct InitAnswers: Sendable {
    /// A destination's key.
    enum Value: Sendable, Equatable {
        case text(String)
        /// A secret that an environment variable holds.
        case variable(String)
        /// A secret that a file holds.
        case file(String)
        /// A secret that a person typed: a file beside the configuration will hold it.
        case typed(Secret)
    }

    struct Target: Sendable {
        let kind: any DestinationKind
        let setup: DestinationSetup
        /// By key; what is missing is left to the defaults.
        var values: [String: Value] = [:]

        init(_ kind: any DestinationKind) { (self.kind, setup) = (kind, kind.setup) }
    }

    /// The watched folder: absolute, or below `~`.
    var watch: String
    var target: Target
    /// Where the files of a destination are stored that only registers them.
    var storage: Target?
    var onSuccess = Route.OnSuccess.keep
    /// Written where the default depends on who starts the agent.
    var stateDirectory: String?

    /// Secrets that were typed, with the names of their files.
    var typed: [(file: String, secret: Secret)] {
        [storage, target].compactMap(\.self).flatMap { target in
            target.values.sorted { $0.key < $1.key }.compactMap { key, value in
                if case .typed(let secret) = value { (Self.fileName(target.setup, key), secret) } else { nil }
            }
        }
    }

    /// All that a person wrote.
    var words: [String] {
        [watch]
            + [storage, target].compactMap(\.self).flatMap { target in
                target.values.values.map { value in
                    switch value {
                    case .text(let text), .variable(let text), .file(let text): text
                    case .typed(let secret): secret.reveal()
                    }
                }
            }
    }

    private static func fileName(_ setup: DestinationSetup, _ key: String) -> String { "\(setup.name).\(key)" }

    /// Secrets that the environment holds when the agent runs.
    var variables: [String] {
        [storage, target].compactMap(\.self).flatMap { target in
            target.setup.questions.compactMap { question in
                if case .variable(let name)? = target.values[question.key] { name } else { nil }
            }
        }
    }

    /// The configuration, with hints at what else there is.
    var text: String {
        let blocks = [head, destinations, watched, routes, Self.more]
        return blocks.map { $0.joined(separator: "\n") + "\n" }.joined(separator: "\n")
    }

    // MARK: - Its sections

    private var head: [String] {
        [
            "# Inlet's configuration, begun by 'inlet init'. Every key is explained in inlet.yaml(5).",
            "# 'inlet check' tries it, 'inlet run --dry-run' shows what would be done, 'inlet run' does it.",
            "#",
            "# \"${env:NAME}\" is filled in from the environment, \"${file:PATH}\" from a file: no secret stands here.",
            "",
            stateDirectory.map { "state_dir: \(YAMLText.literal($0))" }
                ?? "# state_dir: /var/lib/inlet    # journal, lock, receipts; on a local disk; ~/.local/state/inlet without it",
        ]
    }

    private var destinations: [String] {
        ["destinations:"] + [storage, target].compactMap(\.self).flatMap { lines(of: $0) }
    }

    private func lines(of target: Target) -> [String] {
        let type = target.kind.type
        var lines = ["  \(target.setup.name):", "    type: \(type.name)"]
        if type.namesStorage, let storage { lines.append("    \(DestinationType.storageKey): \(storage.setup.name)") }
        var sections: [(name: String, lines: [String])] = []
        for question in target.setup.questions + [DestinationSetup.publicURL] {
            guard let value = target.values[question.key] else { continue }
            let line = "\(question.key): \(Self.yaml(value, target.setup, question.key))"
            if let name = question.section {
                if sections.last?.name != name { sections.append((name, [])) }
                sections[sections.count - 1].lines.append("      \(line)")
            } else {
                lines.append("    \(line)")
            }
        }
        let hints = target.setup.hints.filter { hint in !target.values.keys.contains { hint.hasPrefix("\($0):") } }
        return lines + sections.flatMap { ["    \($0.name):"] + $0.lines } + hints.map { "    # \($0)" }
    }

    private static func yaml(_ value: Value, _ setup: DestinationSetup, _ key: String) -> String {
        switch value {
        case .text(let text): YAMLText.literal(text)
        case .variable(let name): YAMLText.quoted("${env:\(name)}")
        case .file(let path): YAMLText.quoted("${file:\(path)}")
        case .typed: YAMLText.quoted("${file:\(fileName(setup, key))}")
        }
    }

    private var watched: [String] {
        var lines = [
            "watch:", "  - path: \(YAMLText.literal(watch))",
            "    # settle: 5s                   # how long a file must be quiet before it counts as complete",
            "    # existing: ingest             # files that are there already: ingest | skip | adopt",
            "    # ignore: [\"*.bak\"]",
        ]
        if RootPattern.isPattern(FilePath(watch)), onSuccess != .keep {
            lines.append("    volume_writes: false           # true: archive and delete on these volumes too")
        }
        return lines
    }

    private var routes: [String] {
        let words = "# keep | archive | delete, once every destination has proved the bytes"
        return ["routes:                            # the first that matches takes a file", "  - name: dropped"]
            + target.setup.route.map { "    \($0)" }
            + [
                "    to: \(target.setup.name)",
                "    on_success: " + onSuccess.rawValue.padded(18) + " \(words)",
                "    # on_failure: quarantine       # instead of keep: to .inlet/failed, with the reason beside it",
                "    # retry: { attempts: 3, expire: 24h }",
            ]
    }

    private static let more = [
        "# notify:                          # who is told",
        "#   - { name: me, webhook: \"https://hooks.example.com/inlet\", on: [failed, rejected, destination_down] }",
    ]
}
