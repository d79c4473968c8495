import Foundation
import InletAgent
import InletConfig
import InletCore
import InletLinux
import InletPipelines
import SystemPackage

/// A question about a key of a destination, as it is asked now.
struct InitQuestion {
    let input: DestinationSetup.Input
    let isRequired: Bool
    /// The answer of the last time, which an empty line keeps.
    let earlier: InitInput.Value?

    init(_ input: DestinationSetup.Input, isRequired: Bool, earlier: InitInput.Value?) {
        (self.input, self.isRequired, self.earlier) = (input, isRequired, earlier)
    }

    /// Its result.
    enum Answer {
        /// nil: none, where that is allowed.
        case value(InitInput.Value?)
        /// An address that belongs to a key of another kind.
        case misplaced(RightfulKey)
    }
}

extension DestinationSetup.Input {
    /// The option that gives it.
    var flag: String {
        switch kind {
        case .secret: "--env \(key)=VARIABLE"
        case .text, .path: "--" + key.replacing("_", with: "-")
        }
    }
}

/// Asks for one line, again until it is valid.
extension InitDialog {
    static let ended = Refusal("the answers ended too early; nothing was written")
    /// Takes back an earlier answer where none is needed.
    private static let none = "-"

    /// An empty answer means yes; without a person the answer is no.
    func confirms(_ question: String) -> Bool {
        guard let person, let answer = person.ask("\(question) [Y/n] ", false) else { return false }
        return ["", "y", "yes"].contains(answer.lowercased().filter { $0 != " " })
    }

    /// One of some words, or the beginning of one; the first is the default.
    func choice<Value>(_ question: String, _ options: [(word: String, value: Value)]) throws(Refusal) -> Value {
        let names = options.map(\.word).joined(separator: " | ")
        while true {
            guard let said = person?.ask("\(question) \(names) [\(options[0].word)] ", false) else { throw Self.ended }
            let answer = said.trimmingCharacters(in: .whitespaces).lowercased()
            if answer.isEmpty { return options[0].value }
            if let choice = options.first(where: { $0.word.hasPrefix(answer) }) { return choice.value }
            person?.say("  '\(DisplayText.escape(answer))' is not known; choose one of \(names)")
        }
    }

    /// The answer from an option or a person; never empty.
    func line(_ words: String, _ flag: String, _ given: String?, earlier: String? = nil) throws(Refusal) -> String {
        if let given { return given }
        guard let person else { throw Refusal("\(flag) is missing; on a terminal, 'inlet init' asks for it") }
        while true {
            guard let answer = person.ask(Self.question(words, earlier), false) else { throw Self.ended }
            let trimmed = answer.trimmingCharacters(in: .whitespaces)
            if !trimmed.isEmpty { return trimmed }
            if let earlier { return earlier }
            person.say("  This has no default.")
        }
    }

    private static func question(_ words: String, _ earlier: String?) -> String {
        "\(words) " + (earlier.map { "[\(DisplayText.escape($0))] " } ?? "")
    }

    /// Throws the objection to an option's value; shows a person the objection to an answer.
    func refuse(_ reason: String, _ flag: String, isGiven: Bool) throws(Refusal) {
        guard !isGiven, let person else { throw Refusal("\(flag): \(reason)") }
        person.say("  \(reason)")
    }

    /// An answer that the configuration's reader accepts; nil for an empty one where that is allowed.
    ///
    /// - Parameters:
    ///   - earlier: the default.
    ///   - around: complete answers that contain this one.
    func text(
        _ words: String, flag: String, _ given: String?, earlier: String? = nil, isRequired: Bool = true,
        _ around: (String) -> InitInput
    ) throws(Refusal) -> String? {
        if given == nil, !isRequired, person == nil { return nil }
        while true {
            guard let answer = try said(words, flag, given, earlier, isRequired: isRequired) else { return nil }
            guard let objection = rules.objection(to: around(answer)) else { return answer }
            try refuse(objection.text, flag, isGiven: given != nil)
        }
    }

    private func said(
        _ words: String, _ flag: String, _ given: String?, _ earlier: String?, isRequired: Bool
    ) throws(Refusal) -> String? {
        guard given == nil, !isRequired else { return try line(words, flag, given, earlier: earlier) }
        guard let answer = person?.ask(Self.question(words, earlier), false) else { throw Self.ended }
        let trimmed = answer.trimmingCharacters(in: .whitespaces)
        if trimmed == Self.none { return nil }
        return trimmed.isEmpty ? earlier : trimmed
    }

    /// - Parameter around: complete answers that contain this one.
    func value(
        of question: InitQuestion, _ given: InitInput.Value?, _ around: (InitInput.Value) -> InitInput
    ) throws(Refusal) -> InitQuestion.Answer {
        let input = question.input
        if case .secret(let variable) = input.kind {
            return .value(try secret(question, variable, given, around))
        }
        var text: String?
        switch given {
        case .text(let known)?: text = known
        case nil: break
        default: throw Refusal("'\(input.key)' is not a secret; give it with \(input.flag)")
        }
        let isPath = if case .path = input.kind { true } else { false }
        let earlier: String? = if case .text(let known)? = question.earlier { known } else { nil }
        if text == nil, !question.isRequired, person == nil { return .value(nil) }
        while true {
            let answer = try said(input.words, input.flag, text, earlier, isRequired: question.isRequired)
            guard let answer else { return .value(nil) }
            let value = InitInput.Value.text(isPath ? absolute(answer) : answer)
            let objection = rules.objection(to: around(value))
            if let objection { try refuse(objection.text, input.flag, isGiven: text != nil) }
            // A usable option needs no question.
            let doubt = objection ?? (text == nil ? rules.doubt(about: around(value), input.key) : nil)
            if objection == nil, let doubt { person?.say("  \(doubt.text)") }
            if let owner = doubt?.rightful, confirms("Go on with 'type: \(owner.type)' at \(owner.address)?") {
                return .misplaced(owner)
            }
            if objection == nil { return .value(value) }
        }
    }

    /// The place of a secret, or the secret itself.
    private func secret(
        _ question: InitQuestion, _ variable: String, _ given: InitInput.Value?,
        _ around: (InitInput.Value) -> InitInput
    ) throws(Refusal) -> InitInput.Value? {
        let input = question.input
        if let given {
            if let objection = rules.objection(to: around(given)) {
                throw Refusal("\(input.key): \(objection.text)")
            }
            return given
        }
        guard let person else { return question.isRequired ? .variable(variable) : nil }
        let usual = question.earlier ?? (question.isRequired ? .variable(variable) : nil)
        let empty = question.earlier.map { _ in "as before" } ?? (question.isRequired ? variable : "none")
        while true {
            let words = "\(input.words): an environment variable, a file's path, or = to type it [\(empty)] "
            guard let said = person.ask(words, false) else { throw Self.ended }
            let answer = said.trimmingCharacters(in: .whitespaces)
            if !question.isRequired, answer == Self.none || answer.isEmpty && usual == nil { return nil }
            let place = answer.isEmpty ? usual : try self.place(answer, input.words)
            guard let value = place else { continue }
            guard let objection = rules.objection(to: around(value)) else { return value }
            person.say("  \(objection.text)")
        }
    }

    /// The place of a secret by an answer; nil asks again. A secret that was pasted here must not get into the
    /// configuration.
    private func place(_ answer: String, _ words: String) throws(Refusal) -> InitInput.Value? {
        if answer == "=" {
            guard let typed = person?.ask("\(words) (not shown): ", true) else { throw Self.ended }
            return .typed(Secret(typed))
        }
        if isPath(answer) { return .file(absolute(answer)) }
        if rules.isVariable(answer) { return .variable(answer) }
        if confirms("Is that the secret itself?") { return .typed(Secret(answer)) }
        if InitRules.canBeVariable(answer) { return .variable(answer) }
        person?.say("  Name an environment variable or a file, or type = and then the secret.")
        return nil
    }

    /// Whether an answer is a path: many secrets have a slash.
    private func isPath(_ answer: String) -> Bool {
        if ["/", "~/", "./", "../"].contains(where: { answer.hasPrefix($0) }) { return true }
        // If Inlet cannot look, the answer may be a secret.
        guard answer.contains("/"), let look = FileLook.glance(at: FilePath(absolute(answer))) else { return false }
        return look != .missing
    }

    /// The path for the configuration, which may be in another folder. A path that begins with `~` stays unchanged.
    func absolute(_ path: String) -> String {
        if path.isEmpty || path == "~" || path.hasPrefix("~/") { return path }
        return rules.defaults.workingDirectory.pushing(FilePath(path)).lexicallyNormalized().string
    }
}
