import Foundation
import InletAgent
import InletConfig
import InletCore
import InletPipelines
import SystemPackage

/// Answers that came as options.
struct InitGiven: Sendable {
    var watch: String?
    var type: String?
    /// The type of the storage destination, for a destination that only registers files.
    var storage: String?
    /// By the destinations' keys.
    var values: [String: InitInput.Value] = [:]
    var onSuccess: Route.OnSuccess?
}

/// Completes the answers: asks a person for those that no option gives. Checks each answer at once, and asks again
/// where the configuration's reader would reject it.
struct InitDialog {
    /// A person at a terminal.
    struct Prompt {
        /// Shows a question, and waits for the line that answers it; nil at the end of the input. The flag hides the
        /// answer.
        let ask: (String, Bool) -> String?
        let say: (String) -> Void
    }

    let rules: InitRules
    /// nil: a missing answer is an error.
    let person: Prompt?

    func answers(_ given: InitGiven) throws(Refusal) -> InitInput {
        let watch = try text("Which folder are files dropped in?", flag: "--watch DIR", given.watch) { text in
            var answers = InitRules.example(DestinationKinds.all[0])
            answers.watch = absolute(text)
            return answers
        }
        if given.type == nil { person?.say(Self.types) }
        let kind = try kind("Where do they go?", "--to TYPE", given.type, among: DestinationKinds.all)
        var known = InitRules.example(kind)
        known.watch = absolute(watch ?? "")
        var answers = known
        var left = given.values
        if kind.type.namesStorage {
            let stored = try self.kind(
                "What stores their files?", "--storage TYPE", given.storage, among: InitRules.storages)
            answers.storage = try target(stored, isStorage: true, &left) { target in
                var answers = known
                answers.storage = target
                return answers
            }
        } else if given.storage != nil {
            throw Refusal("--storage is not for '--to \(kind.type.name)', which stores files itself")
        }
        answers.target = try target(kind, isStorage: false, &left) { target in
            var answers = known
            answers.target = target
            return answers
        }
        if let key = left.keys.min() {
            throw Refusal("\(Self.flag(of: key)) is not for '--to \(kind.type.name)'")
        }
        answers.onSuccess = try onSuccess(given.onSuccess)
        if rules.defaults.stateDirectory == "/var/lib/inlet" { answers.stateDirectory = "/var/lib/inlet" }
        // Valid answers may conflict, such as a library inside the watched folder.
        if let objection = rules.objection(to: answers) { throw Refusal(objection) }
        return answers
    }

    /// An empty answer means yes; without a person the answer is no.
    func confirms(_ question: String) -> Bool {
        guard let person, let answer = person.ask("\(question) [Y/n] ", false) else { return false }
        return ["", "y", "yes"].contains(answer.lowercased().filter { $0 != " " })
    }

    // MARK: - The questions

    private static let types =
        DestinationKinds.types.map { "  \($0.name.padded(10)) \($0.summary)" }.joined(separator: "\n")

    /// The option for a key of some type.
    private static func flag(of key: String) -> String {
        let questions = DestinationKinds.all.flatMap { $0.setup.questions } + [DestinationSetup.publicURL]
        return questions.first { $0.key == key }?.flag ?? "--env \(key)=VARIABLE"
    }

    private func kind(
        _ words: String, _ flag: String, _ given: String?, among kinds: [any DestinationKind]
    ) throws(Refusal) -> any DestinationKind {
        let names = kinds.map { $0.type.name }.joined(separator: " | ")
        while true {
            let answer = try line("\(words) \(names)", flag, given)
            if let kind = kinds.first(where: { $0.type.name == answer }) { return kind }
            try refuse(
                "'\(DisplayText.escape(answer))' is unknown; choose one of \(names)", flag, isGiven: given != nil)
        }
    }

    private func onSuccess(_ given: Route.OnSuccess?) throws(Refusal) -> Route.OnSuccess {
        guard given == nil, let person else { return given ?? .keep }
        let names = Route.OnSuccess.allCases.map(\.rawValue).joined(separator: " | ")
        while true {
            let words = "What should Inlet do with a delivered file? \(names) [keep] "
            guard let answer = person.ask(words, false) else { throw Self.ended }
            if answer.isEmpty { return .keep }
            if let choice = Route.OnSuccess(rawValue: answer) { return choice }
            person.say("  '\(DisplayText.escape(answer))' is not known; choose one of \(names)")
        }
    }

    /// - Parameter around: complete answers that contain this destination.
    private func target(
        _ kind: any DestinationKind, isStorage: Bool, _ left: inout [String: InitInput.Value],
        _ around: (InitInput.Target) -> InitInput
    ) throws(Refusal) -> InitInput.Target {
        let publicURL = DestinationSetup.publicURL
        var filled = InitRules.filled(kind)
        if isStorage { filled.values[publicURL.key] = .text(publicURL.example) }
        var target = InitInput.Target(kind)
        var questions = target.setup.questions
        // Asked only where something needs it.
        if isStorage || kind.type.givesURLs && left[publicURL.key] != nil { questions.append(publicURL) }
        for question in questions {
            let given = left.removeValue(forKey: question.key)
            let other = question.alternative.flatMap { target.values[$0] }
            if given == nil, other != nil, case .insteadOf = question.need { continue }
            let needed = if case .always = question.need { true } else { question.alternative != nil && other == nil }
            let value = try value(of: question, isRequired: needed, given) { value in
                var tried = filled
                // Only one of the two applies.
                for rival in questions where rival.alternative == question.key { tried.values[rival.key] = nil }
                if other == nil, let key = question.alternative { tried.values[key] = nil }
                tried.values[question.key] = value
                return around(tried)
            }
            if let value { target.values[question.key] = value }
        }
        return target
    }

    private func value(
        of question: DestinationSetup.Input, isRequired: Bool, _ given: InitInput.Value?,
        _ around: (InitInput.Value) -> InitInput
    ) throws(Refusal) -> InitInput.Value? {
        if case .secret(let variable) = question.kind {
            return try secret(question, variable, isRequired: isRequired, given, around)
        }
        var text: String?
        switch given {
        case .text(let known)?: text = known
        case nil: break
        default: throw Refusal("'\(question.key)' is not a secret; give it with \(question.flag)")
        }
        let isPath = if case .path = question.kind { true } else { false }
        let said = try self.text(question.words, flag: question.flag, text, isRequired: isRequired) { text in
            around(.text(isPath ? absolute(text) : text))
        }
        return said.map { .text(isPath ? absolute($0) : $0) }
    }
}

extension DestinationSetup.Input {
    /// The option that gives it.
    fileprivate var flag: String {
        switch kind {
        case .secret: "--env \(key)=VARIABLE"
        case .text, .path: "--" + key.replacing("_", with: "-")
        }
    }
}

/// Asks for one line, again until it is valid.
extension InitDialog {
    static let ended = Refusal("the answers ended too early; nothing was written")

    /// The answer from an option or a person; never empty.
    func line(_ words: String, _ flag: String, _ given: String?) throws(Refusal) -> String {
        if let given { return given }
        guard let person else { throw Refusal("\(flag) is missing; on a terminal, 'inlet init' asks for it") }
        while true {
            guard let answer = person.ask(words + " ", false) else { throw Self.ended }
            let trimmed = answer.trimmingCharacters(in: .whitespaces)
            if !trimmed.isEmpty { return trimmed }
            person.say("  This has no default.")
        }
    }

    /// Throws the objection to an option's value; shows a person the objection to an answer.
    func refuse(_ reason: String, _ flag: String, isGiven: Bool) throws(Refusal) {
        guard !isGiven, let person else { throw Refusal("\(flag): \(reason)") }
        person.say("  \(reason)")
    }

    /// An answer that the configuration's reader accepts; nil for an empty one where that is allowed.
    ///
    /// - Parameter around: complete answers that contain this one.
    func text(
        _ words: String, flag: String, _ given: String?, isRequired: Bool = true, _ around: (String) -> InitInput
    ) throws(Refusal) -> String? {
        if given == nil, !isRequired, person == nil { return nil }
        while true {
            let answer: String
            if given == nil, !isRequired {
                guard let said = person?.ask(words + " ", false) else { throw Self.ended }
                answer = said.trimmingCharacters(in: .whitespaces)
                if answer.isEmpty { return nil }
            } else {
                answer = try line(words, flag, given)
            }
            guard let objection = rules.objection(to: around(answer)) else { return answer }
            try refuse(objection, flag, isGiven: given != nil)
        }
    }

    /// The place of a secret, or the secret itself.
    func secret(
        _ question: DestinationSetup.Input, _ variable: String, isRequired: Bool, _ given: InitInput.Value?,
        _ around: (InitInput.Value) -> InitInput
    ) throws(Refusal) -> InitInput.Value? {
        if let given {
            if let objection = rules.objection(to: around(given)) {
                throw Refusal("\(question.key): \(objection)")
            }
            return given
        }
        guard let person else { return isRequired ? .variable(variable) : nil }
        let empty = isRequired ? variable : "none"
        while true {
            let words = "\(question.words): an environment variable, a file's path, or = to type it [\(empty)] "
            guard let said = person.ask(words, false) else { throw Self.ended }
            let answer = said.trimmingCharacters(in: .whitespaces)
            if answer.isEmpty, !isRequired { return nil }
            let value: InitInput.Value
            if answer.isEmpty {
                value = .variable(variable)
            } else if answer == "=" {
                guard let typed = person.ask("\(question.words) (not shown): ", true) else { throw Self.ended }
                value = .typed(Secret(typed))
            } else {
                value = answer.contains("/") ? .file(absolute(answer)) : .variable(answer)
            }
            guard let objection = rules.objection(to: around(value)) else { return value }
            person.say("  \(objection)")
        }
    }

    /// The path for the configuration, which may be in another folder. A path that begins with `~` stays unchanged.
    func absolute(_ path: String) -> String {
        if path.isEmpty || path == "~" || path.hasPrefix("~/") { return path }
        return rules.defaults.workingDirectory.pushing(FilePath(path)).lexicallyNormalized().string
    }
}
