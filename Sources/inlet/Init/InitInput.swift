import InletConfig
import InletCore
import InletPipelines
import SystemPackage

/// The answers to `inlet init`, and the configuration made from them.
struct InitInput: Sendable {
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
        /// By key; missing values get the defaults.
        var values: [String: Value] = [:]

        init(_ kind: any DestinationKind) { (self.kind, setup) = (kind, kind.setup) }

        /// Its secrets that the environment holds when the agent runs.
        var variables: [String] {
            setup.questions.compactMap { question in
                if case .variable(let name)? = values[question.key] { name } else { nil }
            }
        }
    }

    /// The watched folder: absolute, or below `~`.
    var watch: String
    var target: Target
    /// The storage for the files of a destination that only registers them.
    var storage: Target?
    /// nil: as the configuration does without the key.
    var existing: WatchSettings.Existing?
    var onSuccess = Route.OnSuccess.keep
    /// Written where the default depends on the agent's user.
    var stateDirectory: String?
    /// Whether the agent runs in Inlet's image: nobody reaches the usual address of the page there.
    var isInImage = false

    private var targets: [Target] { [storage, target].compactMap(\.self) }

    /// Typed secrets, with the names of their files.
    var typed: [(file: String, secret: Secret)] {
        targets.flatMap { target in
            target.values.sorted { $0.key < $1.key }.compactMap { key, value in
                if case .typed(let secret) = value { (Self.fileName(target.setup, key), secret) } else { nil }
            }
        }
    }

    /// All answers.
    var words: [String] {
        [watch]
            + targets.flatMap { target in
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
    var variables: [String] { targets.flatMap(\.variables) }

    /// A person's words for `existing`, the default first.
    static let existingWords: [(word: String, value: WatchSettings.Existing)] = [
        ("deliver", .ingest), ("adopt", .adopt), ("leave", .skip),
    ]

    /// The configuration, with hints at other settings.
    var text: String {
        let blocks = [head, destinations, watched, routes, page + Self.more]
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
        ["# Where files can go. 'inlet check' tries each of these.", "destinations:"]
            + targets.flatMap { lines(of: $0) }
    }

    private func lines(of target: Target) -> [String] {
        let type = target.kind.type
        var lines = ["  \(target.setup.name):", "    type: \(type.name)"]
        if type.namesStorage, let storage { lines.append("    \(DestinationType.storageKey): \(storage.setup.name)") }
        var sections: [(name: String, lines: [String])] = []
        for question in target.setup.questions + [DestinationSetup.publicURL] {
            guard let value = target.values[question.key] else { continue }
            let line = "\(question.key): \(Self.yaml(value, target.setup, question.key))"
            let comment = Self.comment(on: question, type).map { "# \($0)" }
            let both = [comment, line].compactMap(\.self)
            if let name = question.section {
                if sections.last?.name != name { sections.append((name, [])) }
                sections[sections.count - 1].lines += both.map { "      \($0)" }
            } else {
                lines += both.map { "    \($0)" }
            }
        }
        let hints = target.setup.hints.filter { hint in !target.values.keys.contains { hint.hasPrefix("\($0):") } }
        return lines + sections.flatMap { ["    \($0.name):"] + $0.lines } + hints.map { "    # \($0)" }
    }

    /// The first sentence of the manual about a key.
    private static func comment(on question: DestinationSetup.Input, _ type: DestinationType) -> String? {
        var keys = type.keys
        if let name = question.section {
            guard case .section(let inner)? = keys.first(where: { $0.name == name })?.kind else { return nil }
            keys = inner
        }
        guard let summary = keys.first(where: { $0.name == question.key })?.summary else { return nil }
        return summary.firstRange(of: ". ").map { summary[..<$0.lowerBound] + "." } ?? summary
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
        let words = "# files that are there already: ingest | skip | adopt"
        let existing =
            existing.map { "    existing: " + $0.rawValue.padded(21) } ?? "    # existing: ingest             "
        var lines = [
            "# Where files are dropped. Inlet takes a file when it is complete, from its sub-folders too.",
            "watch:", "  - path: \(YAMLText.literal(watch))", existing + words,
            "    # settle: 5s                   # how long a file must be quiet before it counts as complete",
            "    # ignore: [\"*.bak\"]            # besides temporary files, which Inlet never takes",
        ]
        if RootPattern.isPattern(FilePath(watch)), onSuccess != .keep {
            lines.append("    volume_writes: false           # true: archive and delete on these volumes too")
        }
        return lines
    }

    private var routes: [String] {
        let words = "# keep | archive | delete, once every destination has proved the bytes"
        return ["# Which file goes where: the first route that matches takes it.", "routes:", "  - name: dropped"]
            + target.setup.route.map { "    \($0)" }
            + [
                "    to: \(target.setup.name)",
                "    on_success: " + onSuccess.rawValue.padded(18) + " \(words)",
                "    # on_failure: quarantine       # instead of keep: to .inlet/failed, with the reason beside it",
                "    # retry: { attempts: 3, expire: 24h }",
            ]
    }

    private var page: [String] {
        isInImage
            ? [
                "# The page. In a container it needs this address, a published port, and a password or a token.",
                "# dashboard: { listen: \"0.0.0.0:8844\", password: \"${env:INLET_PASSWORD}\", edit: true }",
            ]
            : [
                "# The page, on this machine only. 'inlet open' prints a link that logs a browser in. edit: this file may be",
                "# changed there.",
                "dashboard: { listen: \"127.0.0.1:8844\", login: link, edit: true }",
            ]
    }

    private static let more = [
        "",
        "# notify:                          # receivers",
        "#   - { name: me, webhook: \"https://hooks.example.com/inlet\", on: [failed, rejected, destination_down] }",
    ]
}

/// Judges answers by the rules of the configuration's reader and of the destinations.
struct InitRules: Sendable {
    /// The path of the new configuration.
    let file: FilePath
    let environment: [String: String]
    let defaults: ConfigDefaults
    /// As `InitInput.isInImage`.
    var isInImage = false

    /// Why answers cannot be used.
    struct Objection: Sendable, Equatable {
        let text: String
        /// Where an address belongs that is of another kind of destination.
        var rightful: RightfulKey?
    }

    /// The reader's first objection; nil when the configuration loads and its destinations can be made.
    func objection(to answers: InitInput) -> Objection? {
        if answers.words.contains(where: { $0.unicodeScalars.contains("\u{FFFD}") }) {
            return Objection(text: "it is not valid UTF-8, which a configuration is")
        }
        if let name = answers.variables.first(where: { !Self.canBeVariable($0) }) {
            return Objection(text: "'\(DisplayText.escape(name))' is not a name of an environment variable")
        }
        let config: LoadedConfig
        do throws(ConfigErrors) {
            config = try load(answers)
        } catch {
            return Objection(text: error.list.first?.message ?? "\(error)")
        }
        let factory = PipelineFactory.standard(config)
        defer { factory.shutdown() }
        for destination in config.settings.destinations {
            do {
                _ = try factory.make(destination)
            } catch {
                return Objection(text: "'\(error.key)' \(error.message)", rightful: error.rightful)
            }
        }
        return nil
    }

    /// The warning about the value of `key`, which can be used; nil without one.
    func doubt(about answers: InitInput, _ key: String) -> Objection? {
        // Answers that cannot be read have an objection.
        guard let settings = try? load(answers).settings else { return nil }
        let doubts = settings.destinations.compactMap { DestinationKinds.doubt(about: $0) }
        return doubts.first { $0.key == key }.map {
            Objection(text: "'\($0.key)' perhaps \($0.message)", rightful: $0.rightful)
        }
    }

    /// The configuration as the agent will read it. Unset variables get values here, because they may be set for the
    /// agent only.
    func load(_ answers: InitInput) throws(ConfigErrors) -> LoadedConfig {
        var (answers, environment) = (answers, environment)
        for name in answers.variables where environment[name]?.isEmpty ?? true { environment[name] = "unset" }
        answers.target.hideTyped(in: &environment)
        answers.storage?.hideTyped(in: &environment)
        return try ConfigFile.parse(
            text: answers.text.utf8, file: file, types: DestinationKinds.types, environment: environment,
            defaults: defaults)
    }

    /// The folders that must exist: the watched one, unless it is a pattern, and a folder destination.
    func folders(_ answers: InitInput) throws(ConfigErrors) -> [FilePath] {
        let settings = try load(answers).settings
        let library = settings.destinations.compactMap { destination in
            DestinationKinds.named(destination.type)?.type.folderKey.flatMap { destination.values.string($0) }
        }
        return settings.watch.filter { $0.pattern == nil }.map(\.path) + library.map { FilePath($0) }
    }

    /// Valid answers in the place of unknown ones: any objection is then about the answer to judge.
    static func example(_ kind: any DestinationKind) -> InitInput {
        var answers = InitInput(watch: "/srv/drop", target: filled(kind))
        if kind.type.namesStorage {
            var storage = filled(storages[0])
            let question = DestinationSetup.publicURL
            storage.values[question.key] = .text(question.example)
            answers.storage = storage
        }
        return answers
    }

    /// A destination with all required values.
    static func filled(_ kind: any DestinationKind) -> InitInput.Target {
        var target = InitInput.Target(kind)
        let unlessOthers = target.setup.questions.compactMap { question in
            if case .unless(let other) = question.need { other } else { nil }
        }
        for question in target.setup.questions {
            switch question.need {
            case .always, .insteadOf: break
            case .never, .unless: guard unlessOthers.contains(question.key) else { continue }
            }
            if case .secret(let variable) = question.kind {
                target.values[question.key] = .variable(variable)
            } else {
                target.values[question.key] = .text(question.example)
            }
        }
        return target
    }

    /// Destinations that store files for others.
    static let storages = DestinationKinds.all.filter { $0.type.givesURLs }

    /// Whether an answer is the name of a variable, and no secret: the environment has it, or it looks as people write
    /// such names. Keys of AWS have capitals and digits only.
    func isVariable(_ name: String) -> Bool {
        if environment[name] != nil { return true }
        let capitals = name.utf8.allSatisfy { byte in
            byte == 0x5F || (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte)
        }
        return capitals && Self.canBeVariable(name) && name.utf8.count <= Self.longestName
            && (name.contains("_") || !name.contains(where: \.isNumber))
    }

    private static let longestName = 40

    /// Whether a shell takes it as a name.
    static func canBeVariable(_ name: String) -> Bool {
        let letters = name.utf8.allSatisfy { byte in
            byte == 0x5F || (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte)
                || (0x61...0x7A).contains(byte)
        }
        return letters && !(name.first?.isNumber ?? true)
    }
}

extension InitInput.Target {
    /// Replaces typed secrets without a file by environment variables.
    fileprivate mutating func hideTyped(in environment: inout [String: String]) {
        for (key, value) in values {
            guard case .typed(let secret) = value else { continue }
            let name = "INLET_TYPED_\(kind.type.name)_\(key)"
            environment[name] = secret.reveal()
            values[key] = .variable(name)
        }
    }
}
