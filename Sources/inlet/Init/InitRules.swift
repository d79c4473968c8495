import InletConfig
import InletCore
import InletPipelines
import SystemPackage

/// Judges answers by the rules of the configuration's own reader, and of the destinations.
struct InitRules: Sendable {
    /// Where the configuration is to be written.
    let file: FilePath
    let environment: [String: String]
    let defaults: ConfigDefaults

    /// What is wrong, in the reader's words; nil when it loads and its destinations can be made.
    func objection(to answers: InitAnswers) -> String? {
        if answers.words.contains(where: { $0.unicodeScalars.contains("\u{FFFD}") }) {
            return "it is not valid UTF-8, which a configuration is"
        }
        if let name = answers.variables.first(where: { !Self.isVariable($0) }) {
            return "'\(DisplayText.escape(name))' is no name of an environment variable"
        }
        let config: LoadedConfig
        do throws(ConfigErrors) {
            config = try load(answers)
        } catch {
            return error.list.first?.message ?? "\(error)"
        }
        let factory = PipelineFactory.standard(config)
        defer { factory.shutdown() }
        for destination in config.settings.destinations {
            do {
                _ = try factory.make(destination)
            } catch {
                return "'\(error.key)' \(error.message)"
            }
        }
        return nil
    }

    /// The configuration as it will be read, with values for variables that are not set: they may be for the agent only.
    func load(_ answers: InitAnswers) throws(ConfigErrors) -> LoadedConfig {
        var (answers, environment) = (answers, environment)
        for name in answers.variables where environment[name]?.isEmpty ?? true { environment[name] = "unset" }
        answers.target.hideTyped(in: &environment)
        answers.storage?.hideTyped(in: &environment)
        return try ConfigFile.parse(
            text: answers.text, file: file, types: DestinationKinds.types, environment: environment, defaults: defaults)
    }

    /// The folders that must be there: what is watched, unless that is a pattern, and one that files go to.
    func folders(_ answers: InitAnswers) throws(ConfigErrors) -> [FilePath] {
        let settings = try load(answers).settings
        let library = settings.destinations.compactMap { destination in
            DestinationKinds.named(destination.type)?.type.folderKey.flatMap { destination.values.string($0) }
        }
        return settings.watch.filter { $0.pattern == nil }.map(\.path) + library.map { FilePath($0) }
    }

    /// Answers that are right, for what is not known yet: what is wrong with them then is the one that was put among them.
    static func example(_ kind: any DestinationKind) -> InitAnswers {
        var answers = InitAnswers(watch: "/srv/drop", target: filled(kind))
        if kind.type.namesStorage {
            var storage = filled(storages[0])
            let question = DestinationSetup.publicURL
            storage.values[question.key] = .text(question.example)
            answers.storage = storage
        }
        return answers
    }

    /// A destination with all that it needs.
    static func filled(_ kind: any DestinationKind) -> InitAnswers.Target {
        var target = InitAnswers.Target(kind)
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

    /// Those that hold the files of others.
    static let storages = DestinationKinds.all.filter { $0.type.givesURLs }

    private static func isVariable(_ name: String) -> Bool {
        let letters = name.utf8.allSatisfy { byte in
            byte == 0x5F || (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte)
                || (0x61...0x7A).contains(byte)
        }
        return letters && !(name.first?.isNumber ?? true)
    }
}

extension InitAnswers.Target {
    /// Has secrets that no file holds yet read from the environment.
    fileprivate mutating func hideTyped(in environment: inout [String: String]) {
        for (key, value) in values {
            guard case .typed(let secret) = value else { continue }
            let name = "INLET_TYPED_\(kind.type.name)_\(key)"
            environment[name] = secret.reveal()
            values[key] = .variable(name)
        }
    }
}
