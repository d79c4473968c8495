import Foundation
import InletAgent
import InletConfig
import InletCore
import InletDashboard
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
    var existing: WatchSettings.Existing?
    var onSuccess: Route.OnSuccess?
}

/// Completes the answers: asks a person for those that no option gives. Checks each answer at once, and asks again
/// where the configuration's reader would reject it. Then tries what the answers lead to.
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
    /// nil: answers are not tried.
    var trial: InitTrial?

    func answers(_ given: InitGiven) async throws(Refusal) -> InitInput {
        // An option is judged by itself first, and without a person the options are missed in their order.
        if given.watch != nil || person == nil { _ = try folder(given.watch, Self.anywhere(DestinationKinds.all[0])) }
        let kind = try place(given.type)
        var left = given.values
        var answers = try await destinations(kind, given, &left)
        if let key = left.keys.min() {
            throw Refusal("\(Self.flag(of: key)) is not for '--to \(answers.target.kind.type.name)'")
        }
        answers.existing = given.existing
        try await watch(given, &answers)
        answers.onSuccess = try onSuccess(given.onSuccess)
        if rules.defaults.stateDirectory == "/var/lib/inlet" { answers.stateDirectory = "/var/lib/inlet" }
        answers.isInImage = rules.isInImage
        // Valid answers may conflict, such as a pattern whose files are to be moved.
        if let objection = rules.objection(to: answers) { throw Refusal(objection.text) }
        return answers
    }

    /// The destination, and the storage that it may need; the watched folder is still an example.
    private func destinations(
        _ kind: any DestinationKind, _ given: InitGiven, _ left: inout [String: InitInput.Value]
    ) async throws(Refusal) -> InitInput {
        var known = Self.anywhere(kind)
        if let watch = given.watch { known.watch = absolute(watch) }
        if kind.type.namesStorage {
            let stored = try storage(given.storage)
            known.storage = try await target(stored, isStorage: true, &left) { [known] target in
                var answers = known
                answers.storage = target
                return answers
            }
        } else if given.storage != nil {
            throw Refusal("--storage is not for '--to \(kind.type.name)', which stores files itself")
        }
        known.target = try await target(kind, isStorage: false, &left) { [known] target in
            var answers = known
            answers.target = target
            return answers
        }
        return known
    }

    /// An example whose watched folder conflicts with no answer.
    private static func anywhere(_ kind: any DestinationKind) -> InitInput {
        var answers = InitRules.example(kind)
        answers.watch = "/nonexistent/drop"
        return answers
    }

    // MARK: - The questions

    /// The option for a key of some type.
    private static func flag(of key: String) -> String {
        let questions = DestinationKinds.all.flatMap { $0.setup.questions } + [DestinationSetup.publicURL]
        return questions.first { $0.key == key }?.flag ?? "--env \(key)=VARIABLE"
    }

    /// The place that a person has for files. An option names the type.
    private func place(_ given: String?) throws(Refusal) -> any DestinationKind {
        let kinds = DestinationKinds.offered
        if let given {
            if let kind = DestinationKinds.named(given) { return kind }
            throw Refusal("--to TYPE: '\(DisplayText.escape(given))' is unknown; choose one of \(Self.names(kinds))")
        }
        let list = kinds.enumerated().map { "  \($0 + 1)  \($1.setup.place)" }
        person?.say((["What do you have for your files to go to?"] + list).joined(separator: "\n"))
        while true {
            let answer = try line("A number, or a word of it?", "--to TYPE", nil)
            let found = Self.kinds(named: answer, among: kinds)
            if found.count == 1 { return found[0] }
            let meant = found.isEmpty ? kinds : found
            let options = kinds.enumerated().filter { kind in meant.contains { $0.type.name == kind.1.type.name } }
                .map { String($0.0 + 1) }.joined(separator: ", ")
            let why = found.isEmpty ? "is not in the list" : "is more than one of these"
            person?.say("  '\(DisplayText.escape(answer))' \(why); choose one of \(options)")
        }
    }

    /// The kinds that an answer may mean: by number, by type, or by all its words.
    static func kinds(named answer: String, among kinds: [any DestinationKind]) -> [any DestinationKind] {
        if let number = Int(answer) { return kinds.indices.contains(number - 1) ? [kinds[number - 1]] : [] }
        if let kind = kinds.first(where: { $0.type.name == answer.lowercased() }) { return [kind] }
        let said = words(answer)
        return said.isEmpty ? [] : kinds.filter { said.isSubset(of: words($0.setup.place).union($0.setup.words)) }
    }

    /// Without the small ones, which say nothing.
    private static func words(_ text: String) -> Set<String> {
        let small: Set = ["a", "an", "the", "or", "is", "that", "here", "my", "of", "through"]
        let words = text.lowercased().split { !$0.isLetter && !$0.isNumber }.map(String.init)
        return Set(words).subtracting(small)
    }

    private static func names(_ kinds: [any DestinationKind]) -> String {
        kinds.map { $0.type.name }.joined(separator: " | ")
    }

    private func storage(_ given: String?) throws(Refusal) -> any DestinationKind {
        let names = Self.names(InitRules.storages)
        while true {
            let answer = try line("What stores their files? \(names)", "--storage TYPE", given)
            if let kind = InitRules.storages.first(where: { $0.type.name == answer }) { return kind }
            try refuse(
                "'\(DisplayText.escape(answer))' is unknown; choose one of \(names)", "--storage TYPE",
                isGiven: given != nil)
        }
    }

    private func onSuccess(_ given: Route.OnSuccess?) throws(Refusal) -> Route.OnSuccess {
        guard given == nil, person != nil else { return given ?? .keep }
        return try choice(
            "What should Inlet do with a delivered file?", Route.OnSuccess.allCases.map { ($0.rawValue, $0) })
    }

    // MARK: - The watched folder

    /// The folder, and what happens to its files: a person sees how it is watched, and how many files it holds.
    private func watch(_ given: InitGiven, _ answers: inout InitInput) async throws(Refusal) {
        var (option, earlier) = (given.watch, String?.none)
        while true {
            answers.watch = try folder(option, answers, earlier: earlier)
            guard let trial, person != nil else { return }
            let named = answers
            var files = FileCount()
            let isKept = try await isKept {
                let look = await trial.folder(of: named)
                files = look.files
                return look.findings
            }
            if isKept { return answers.existing = try existing(given.existing, files) }
            (option, earlier) = (nil, answers.watch)
        }
    }

    /// - Parameter answers: the others, so far.
    private func folder(_ option: String?, _ answers: InitInput, earlier: String? = nil) throws(Refusal) -> String {
        let path = try text("Which folder are files dropped in?", flag: "--watch DIR", option, earlier: earlier) {
            var tried = answers
            tried.watch = absolute($0)
            return tried
        }
        return absolute(path ?? "")
    }

    /// The way of files that are there already; nil leaves the default.
    private func existing(
        _ given: WatchSettings.Existing?, _ files: FileCount
    ) throws(Refusal) -> WatchSettings.Existing? {
        guard given == nil, files.count > 0 else { return given }
        person?.say(
            """
            It holds \(files.text) already.
              deliver  sends them
              adopt    counts them as delivered, and sends nothing
              leave    never touches them
            """)
        return try choice("What should Inlet do with them?", InitInput.existingWords)
    }

    // MARK: - A destination

    /// A destination whose answers the reader accepts and, where a person is asked, that was tried.
    ///
    /// - Parameter around: complete answers that contain this destination.
    private func target(
        _ kind: any DestinationKind, isStorage: Bool, _ left: inout [String: InitInput.Value],
        _ around: (InitInput.Target) -> InitInput
    ) async throws(Refusal) -> InitInput.Target {
        var (kind, earlier) = (kind, [String: InitInput.Value]())
        while true {
            let target: InitInput.Target
            switch try answered(kind, isStorage: isStorage, &left, earlier, around) {
            case .complete(let answers): target = answers
            case .misplaced(let other, let owner):
                (kind, earlier) = (other, [:])
                left[owner.key] = .text(owner.address)
                continue
            }
            guard let trial, person != nil else { return target }
            let answers = around(target)
            person?.say("Testing '\(target.setup.name)'…")
            if try await isKept({ await trial.destination(target, in: answers) }) { return target }
            earlier = target.values
        }
    }

    private enum Answered {
        case complete(InitInput.Target)
        /// A person typed an address of another kind, and goes on with that one.
        case misplaced(any DestinationKind, RightfulKey)
    }

    private func answered(
        _ kind: any DestinationKind, isStorage: Bool, _ left: inout [String: InitInput.Value],
        _ earlier: [String: InitInput.Value], _ around: (InitInput.Target) -> InitInput
    ) throws(Refusal) -> Answered {
        let publicURL = DestinationSetup.publicURL
        var filled = InitRules.filled(kind)
        if isStorage { filled.values[publicURL.key] = .text(publicURL.example) }
        var target = InitInput.Target(kind)
        var questions = target.setup.questions
        // Asked only where something needs it.
        if isStorage || kind.type.givesURLs && (left[publicURL.key] ?? earlier[publicURL.key]) != nil {
            questions.append(publicURL)
        }
        for question in questions {
            let given = left.removeValue(forKey: question.key)
            let other = question.alternative.flatMap { target.values[$0] }
            if given == nil, other != nil, case .insteadOf = question.need { continue }
            let needed = if case .always = question.need { true } else { question.alternative != nil && other == nil }
            let wanted = InitQuestion(question, isRequired: needed, earlier: earlier[question.key])
            let said = try value(of: wanted, given) { value in
                var tried = filled
                // Only one of the two applies.
                for rival in questions where rival.alternative == question.key { tried.values[rival.key] = nil }
                if other == nil, let key = question.alternative { tried.values[key] = nil }
                tried.values[question.key] = value
                return around(tried)
            }
            switch said {
            case .value(let value): target.values[question.key] = value
            case .misplaced(let owner):
                if let kind = DestinationKinds.named(owner.type) { return .misplaced(kind, owner) }
            }
        }
        return .complete(target)
    }

    // MARK: - Trying it

    /// Shows what a test finds, until it finds no fault or a person keeps the answers. False: they are to be changed.
    private func isKept(_ test: () async -> [CheckReport.Finding]) async throws(Refusal) -> Bool {
        while true {
            let findings = await test()
            for finding in findings { person?.say(Findings.line(finding, isNamed: false)) }
            guard findings.contains(where: { $0.grade.rank > CheckReport.Grade.warning.rank }) else { return true }
            let options: [(word: String, value: Next)] = [("change", .change), ("try", .again), ("keep", .keep)]
            let next = try choice("Try again, change it, or keep it as it is?", options)
            if next != .again { return next == .keep }
        }
    }

    private enum Next { case again, change, keep }
}
