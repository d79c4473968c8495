import InletConfig
import InletCore
import InletPipelines
import Synchronization
import SystemPackage
import Testing

@testable import inlet

/// The configurations that `inlet init` makes of answers, judged by the reader.
@Suite struct InitTextTests {
    private static let rules = InitRules(
        file: "/srv/config/inlet.yaml", environment: [:],
        defaults: ConfigDefaults(
            stateDirectory: "/srv/state", home: "/srv/ann", workingDirectory: "/srv/config"))

    private static func example(_ type: String) throws -> InitAnswers {
        InitRules.example(try #require(DestinationKinds.named(type)))
    }

    @Test func `every key that a kind asks for is one that its settings have`() {
        for kind in DestinationKinds.all {
            for question in kind.setup.questions {
                let keys = kind.type.keys.flatMap { spec in
                    guard let section = question.section else { return [spec.name] }
                    guard spec.name == section, case .section(let inner) = spec.kind else { return [] }
                    return inner.map(\.name)
                }
                #expect(keys.contains(question.key), "\(kind.type.name): \(question.key)")
            }
        }
    }

    @Test(arguments: DestinationKinds.types.map(\.name), Route.OnSuccess.allCases)
    func `what is written for a type loads, with whatever becomes of its files`(
        type: String, onSuccess: Route.OnSuccess
    ) throws {
        var answers = try Self.example(type)
        answers.onSuccess = onSuccess
        answers.stateDirectory = "/srv/state"
        #expect(Self.rules.objection(to: answers) == nil, "\(answers.text)")
        let settings = try Self.rules.load(answers).settings
        #expect(settings.destinations.last?.type == type)
        #expect(settings.routes.map(\.onSuccess) == [onSuccess])
        #expect(settings.routes.first?.to == settings.destinations.suffix(1).map(\.name))
        #expect(settings.watch.map(\.path) == ["/srv/drop"])
    }

    @Test(arguments: [
        "/srv/a b", "/srv/it's", "/srv/\"quoted\"", "/srv/back\\slash", "/srv/line\nbreak", "/srv/#comment",
        "/srv/a: b",
        "/srv/${env:HOME}", "/srv/$${x}", "/srv/{a,b}", "/srv/tab\tand\u{1B}escape", "/srv/Übung 日本", "/srv/- x",
        "/srv/%20",
        "/srv/\u{FEFF}bom", "/srv/\u{2028}line",
    ])
    func `a folder is watched under the name that it has, however that looks in YAML`(path: String) throws {
        var answers = try Self.example("folder")
        answers.watch = path
        answers.target.values["path"] = .text("/srv/library of " + path.dropFirst(5))
        #expect(Self.rules.objection(to: answers) == nil, "\(answers.text)")
        let settings = try Self.rules.load(answers).settings
        #expect(settings.watch.map(\.path.string) == [path])
        #expect(settings.destinations.first?.values.string("path") == "/srv/library of " + path.dropFirst(5))
    }

    @Test func `a pattern is left as it is where files would be moved`() throws {
        var answers = try Self.example("folder")
        answers.watch = "/media/*/DCIM"
        answers.onSuccess = .archive
        #expect(Self.rules.objection(to: answers) == nil)
        let watch = try #require(try Self.rules.load(answers).settings.watch.first)
        #expect(watch.pattern != nil && !watch.volumeWrites)
    }

    @Test func `a secret that was typed is not in the text, nor in what is said of it`() throws {
        var answers = try Self.example("r2")
        answers.target.values["api_key"] = .typed(Secret("hunter2"))
        #expect(Self.rules.objection(to: answers) == nil)
        #expect(!answers.text.contains("hunter2"))
        #expect(answers.text.contains("api_key: \"${file:r2.api_key}\""))
        #expect(answers.typed.map(\.file) == ["r2.api_key"])
        answers.target.values["api_key"] = .typed(Secret(""))
        #expect(Self.rules.objection(to: answers)?.contains("api_key") == true)
    }

    @Test func `what cannot be text is refused`() throws {
        var answers = try Self.example("folder")
        answers.watch = "/srv/\u{FFFD}"
        #expect(Self.rules.objection(to: answers)?.contains("UTF-8") == true)
        answers = try Self.example("r2")
        answers.target.values["api_key"] = .variable("A KEY")
        #expect(Self.rules.objection(to: answers)?.contains("'A KEY'") == true)
    }

    @Test func `for VOPI the four kinds of pictures are named, and that they cost`() throws {
        let text = try Self.example("vopi").text
        for kind in VOPIJobConfig.versions { #expect(text.contains(kind), "\(kind)") }
        #expect(text.contains("a job costs 1 credit or more"), "\(text)")
    }

    // MARK: - The questions

    /// Runs the dialog with a person who gives these answers. - Returns: also what that person was told.
    private static func ask(
        _ given: InitGiven, _ lines: String...
    ) throws(InitRefusal) -> (answers: InitAnswers, said: [String], hidden: [String]) {
        let rest = Mutex(lines[...])
        let said = Mutex([String]())
        let hidden = Mutex([String]())
        let person = InitDialog.Person(
            ask: { question, isHidden in
                if isHidden { hidden.withLock { $0.append(question) } }
                return rest.withLock { $0.popFirst() }
            }, say: { line in said.withLock { $0.append(line) } })
        let answers = try InitDialog(rules: rules, person: person).answers(given)
        return (answers, said.withLock { $0 }, hidden.withLock { $0 })
    }

    @Test func `an answer that the reader would not take is asked for again, in the reader's words`() throws {
        let (answers, said, hidden) = try Self.ask(
            InitGiven(), "drop", "ftp", "r2", "storage.example.com", "https://storage.example.com", "not a name", "=",
            "hunter2", "sell", "archive")
        #expect(answers.watch == "/srv/config/drop")
        #expect(answers.target.kind.type.name == "r2" && answers.onSuccess == .archive)
        #expect(answers.target.values["api"] == .text("https://storage.example.com"))
        #expect(answers.target.values["api_key"] == .typed(Secret("hunter2")))
        #expect(hidden.count == 1)
        #expect(said.contains { $0.contains("'ftp' is none of") })
        #expect(said.contains { $0.contains("'api'") })
        #expect(said.contains { $0.contains("'not a name' is no name of an environment variable") })
        #expect(said.contains { $0.contains("'sell' is none of") })
    }

    @Test func `AWS is found by its region, which is asked until there is one`() throws {
        var given = InitGiven(watch: "/srv/drop", type: "s3", onSuccess: .keep)
        given.values = ["bucket": .text("media")]
        let (answers, said, _) = try Self.ask(given, "", "", "auto", "eu-central-1", "", "")
        #expect(answers.target.values["region"] == .text("eu-central-1"))
        #expect(answers.target.values["endpoint"] == nil && Self.rules.objection(to: answers) == nil)
        #expect(said.contains { $0.contains("'region' for AWS") })
    }

    @Test func `only what was not given is asked for`() throws {
        var given = InitGiven(watch: "/srv/drop", type: "roboscope", storage: "s3", onSuccess: .keep)
        given.values = ["bucket": .text("media"), "url": .text("https://roboscope.example/api/v1")]
        let (answers, _, _) = try Self.ask(
            given, "https://s3.example.com", "", "KEY_A", "", "https://cdn.example.com", "")
        #expect(answers.storage?.values["access_key"] == .variable("KEY_A"))
        #expect(answers.storage?.values["secret_key"] == .variable("S3_SECRET_KEY"))
        #expect(answers.storage?.values["public_url"] == .text("https://cdn.example.com"))
        #expect(answers.target.values["token"] == nil)
        #expect(Self.rules.objection(to: answers) == nil)
    }

    @Test func `the end of the input ends it`() {
        #expect(throws: InitRefusal.self) { try Self.ask(InitGiven(), "drop") }
    }

    @Test(arguments: [
        ("--watch", InitGiven()), ("--to", InitGiven(watch: "/srv/drop")),
        ("--api", InitGiven(watch: "/srv/drop", type: "r2")), ("--bucket", InitGiven(watch: "/srv/drop", type: "s3")),
        ("--url", InitGiven(watch: "/srv/drop", type: "gighive")),
        ("--path", InitGiven(watch: "/srv/drop", type: "folder")),
        ("--results", InitGiven(watch: "/srv/drop", type: "vopi", values: ["url": .text("https://vopi.example")])),
        ("--storage", InitGiven(watch: "/srv/drop", type: "roboscope")),
    ])
    func `without a person what is missing is named by its flag`(flag: String, given: InitGiven) {
        #expect {
            _ = try InitDialog(rules: Self.rules, person: nil).answers(given)
        } throws: { error in
            "\(error)".hasPrefix(flag + " ") && "\(error)".contains("is missing")
        }
    }
}
