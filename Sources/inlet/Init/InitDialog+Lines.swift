import Foundation
import InletConfig
import InletCore
import InletPipelines
import SystemPackage

/// One line asked for, and asked for again.
extension InitDialog {
    static let ended = InitRefusal(description: "the answers ended before all was said; nothing was written")

    /// What the command line gave, or a person says; never empty.
    func line(_ words: String, _ flag: String, _ given: String?) throws(InitRefusal) -> String {
        if let given { return given }
        guard let person else { throw .missing(flag) }
        while true {
            guard let answer = person.ask(words + " ", false) else { throw Self.ended }
            let trimmed = answer.trimmingCharacters(in: .whitespaces)
            if !trimmed.isEmpty { return trimmed }
            person.say("  This has no default.")
        }
    }

    /// Throws what is wrong with a given answer; of a person's it is said.
    func refuse(_ reason: String, _ flag: String, isGiven: Bool) throws(InitRefusal) {
        guard !isGiven, let person else { throw InitRefusal(description: "\(flag): \(reason)") }
        person.say("  \(reason)")
    }

    /// An answer that the reader takes; nil for an empty one where that is allowed.
    ///
    /// - Parameter around: complete answers with this one among them.
    func text(
        _ words: String, flag: String, _ given: String?, isRequired: Bool = true, _ around: (String) -> InitAnswers
    ) throws(InitRefusal) -> String? {
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

    /// Where a secret is found, or the secret itself.
    func secret(
        _ question: DestinationSetup.Question, _ variable: String, isRequired: Bool, _ given: InitAnswers.Value?,
        _ around: (InitAnswers.Value) -> InitAnswers
    ) throws(InitRefusal) -> InitAnswers.Value? {
        if let given {
            if let objection = rules.objection(to: around(given)) {
                throw InitRefusal(description: "\(question.key): \(objection)")
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
            let value: InitAnswers.Value
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

    /// As the configuration is to have it, which may be in another folder; what begins with `~` stays so.
    func absolute(_ path: String) -> String {
        if path.isEmpty || path == "~" || path.hasPrefix("~/") { return path }
        return rules.defaults.workingDirectory.pushing(FilePath(path)).lexicallyNormalized().string
    }
}
