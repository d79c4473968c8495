import Foundation
import InletAgent
import InletConfig
import InletCore
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import inlet

/// `inlet init` as people and scripts run it.
@Suite struct InitCommandTests {
    private func mode(_ path: FilePath) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path.string)
        return try #require(attributes[.posixPermissions] as? NSNumber).intValue
    }

    private func exists(_ path: FilePath) -> Bool { FileManager.default.fileExists(atPath: path.string) }

    @Test func `flags alone make a configuration that shows, and that a dry run takes files by`() async throws {
        let folder = try TemporaryDirectory()
        let file = folder.path.appending("etc").appending("inlet.yaml")
        let wanted = [
            "--config", file.string, "--watch", "drop", "--to", "folder", "--path", "library", "--on-success",
            "archive",
        ]
        try await InletProcess.run(
            ["init"] + wanted + ["--yes"], in: folder.path, code: 0, says: "inlet run --dry-run --config")
        #expect(try mode(file) == 0o600)
        #expect(exists(folder.path.appending("drop")) && exists(folder.path.appending("library")))
        try await InletProcess.run(
            ["config", "show", "--config", file.string], in: folder.path, code: 0, says: "on_success: archive")
        try folder.write(Data("hello".utf8), to: "drop/hello.txt")
        try await InletProcess.run(
            ["run", "--dry-run", "--config", file.string], in: folder.path, says: "1 file would be sent, 5 bytes")
    }

    @Test func `what is missing is 64 and named, and nothing is written`() async throws {
        let folder = try TemporaryDirectory()
        let file = folder.path.appending("inlet.yaml")
        for (arguments, flag) in [
            (["--to", "folder"], "--watch DIR"), (["--watch", "drop"], "--to TYPE"),
            (["--watch", "drop", "--to", "s3"], "--bucket"), (["--watch", "drop", "--to", "ftp"], "choose one of"),
            (["--watch", "drop", "--to", "folder", "--path", "drop/in"], "drop"),
            (["--watch", "drop", "--to", "folder", "--path", "lib", "--bucket", "x"], "--bucket is not for"),
        ] {
            try await InletProcess.run(
                ["init", "--config", file.string] + arguments, in: folder.path, code: 64, errors: flag)
            #expect(!exists(file))
        }
    }

    @Test func `a configuration that is there stays, unless it is to be replaced`() async throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write("# mine\n".utf8, to: "inlet.yaml")
        let arguments = ["init", "--config", file.string, "--watch", "drop", "--to", "folder", "--path", "library"]
        try await InletProcess.run(arguments, in: folder.path, code: 64, errors: "--force")
        #expect(try String(contentsOfFile: file.string, encoding: .utf8) == "# mine\n")
        try await InletProcess.run(arguments + ["--force"], in: folder.path, code: 0)
        #expect(try String(contentsOfFile: file.string, encoding: .utf8).contains("type: folder"))
        #expect(!exists(folder.path.appending("drop")), "nobody said that it shall be made")
    }

    @Test func `in a folder that hands on its group, the group can read it`() async throws {
        let folder = try TemporaryDirectory()
        try folder.makeDirectory("etc")
        let etc = folder.path.appending("etc")
        #expect(chmod(etc.string, 0o2750) == 0)
        let file = etc.appending("inlet.yaml")
        let made = try await InletProcess.run(
            ["init", "--config", file.string, "--watch", "a/drop", "--to", "folder", "--path", "library", "--yes"],
            in: folder.path, launcher: ["/bin/sh", "-c", "umask 077; exec \"$0\" \"$@\""], code: 0)
        #expect(try mode(file) == 0o640)
        if getuid() == 0 {
            #expect(try mode(folder.path.appending("a").appending("drop")) == 0o2770)
            #expect(try mode(folder.path.appending("a")) == 0o2750 && mode(folder.path.appending("library")) == 0o2770)
            #expect(made.output.contains("sudo -u inlet inlet check"), "\(made.output)")
        }
    }

    @Test func `a folder that cannot be made leaves no configuration in the way`() async throws {
        let folder = try TemporaryDirectory()
        try folder.write("x".utf8, to: "file")
        let file = folder.path.appending("inlet.yaml")
        try await InletProcess.run(
            ["init", "--config", file.string, "--watch", "file/drop", "--to", "folder", "--path", "library", "--yes"],
            in: folder.path, code: 1)
        #expect(!exists(file))
    }

    /// Types each line once its question is there; exits as the program does.
    private static let typist = """
        import os, pty, sys
        lines = sys.argv[2].split("|")
        child, terminal = pty.fork()
        if child == 0:
            os.execv(sys.argv[3], sys.argv[3:])
        seen = b""
        while True:
            try:
                more = os.read(terminal, 4096)
            except OSError:
                break
            if not more:
                break
            os.write(1, more)
            seen += more
            if lines and seen.endswith((b"? ", b"] ", b": ", b"folder ")):
                os.write(terminal, lines.pop(0).encode() + b"\\n")
                seen = b""
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """

    @Test func `on a terminal it asks, keeps a typed secret out of sight, and checks at the end`() async throws {
        let folder = try TemporaryDirectory()
        let script = try folder.write(Self.typist.utf8, to: "typist.py")
        let file = folder.path.appending("inlet.yaml")
        // Folder, where to, address, the key typed, keep, make the folder, no check now.
        let answers = "drop|r2|http://127.0.0.1:9|=|hunter2||y|n"
        let process = try await InletProcess.run(
            ["init", "--config", file.string], in: folder.path, environment: ["TERM": "dumb"],
            launcher: ["/usr/bin/python3", script.string, "typist", answers], code: 0)
        #expect(!process.output.contains("hunter2"))
        #expect(exists(folder.path.appending("drop")))
        let text = try String(contentsOfFile: file.string, encoding: .utf8)
        #expect(!text.contains("hunter2"))
        #expect(text.contains("${file:r2.api_key}"))
        let secret = folder.path.appending("r2.api_key")
        #expect(try String(contentsOfFile: secret.string, encoding: .utf8) == "hunter2\n")
        #expect(try mode(secret) == 0o600 && mode(file) == 0o600)
        try await InletProcess.run(["config", "show", "--config", file.string], in: folder.path, code: 0)
    }

    /// `init` on a terminal, at the question for the secret, whose answer is not shown.
    private func atSecret(
        _ folder: TemporaryDirectory, _ seen: DrawnText
    ) async throws -> InletProcess {
        try folder.makeDirectory("drop")
        let process = try InletProcess(
            ["init", "--config", "inlet.yaml", "--watch", "drop", "--to", "r2", "--api", "http://127.0.0.1:9"],
            in: folder.path, environment: ["TERM": "xterm"], terminal: seen.terminal)
        try await seen.wait("= to type it", process)
        #expect(try seen.terminal.echoes())
        try seen.terminal.press("=\n")
        try await seen.wait("(not shown): ", process)
        #expect(try !seen.terminal.echoes())
        return process
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `a signal at a hidden question ends it with a terminal that shows what is typed`(_ signal: Int32) async throws
    {
        let folder = try TemporaryDirectory()
        let seen = try DrawnText(columns: 120, rows: 30)
        let process = try await atSecret(folder, seen)
        process.signal(signal)
        #expect(try await process.ending() == .signal(signal))
        #expect(try seen.terminal.echoes())
        #expect(!exists(folder.path.appending("inlet.yaml")))
    }

    @Test func `stopped at a hidden question it asks again when it goes on`() async throws {
        let folder = try TemporaryDirectory()
        let seen = try DrawnText(columns: 120, rows: 30)
        let process = try await atSecret(folder, seen)
        process.signal(SIGTSTP)
        try await process.wait("it is stopped") { process.isStopped }
        #expect(try seen.terminal.echoes())
        seen.forget()
        process.signal(SIGCONT)
        try await seen.wait("(not shown): ", process)
        #expect(try !seen.terminal.echoes())
        try seen.terminal.press("hunter2\n")
        try await seen.wait("What should Inlet do with a delivered file", process)
        #expect(try seen.terminal.echoes() && !seen.all.contains("hunter2"))
        try seen.terminal.press("\n")
        try await seen.wait("Check it now?", process)
        try seen.terminal.press("n\n")
        #expect(try await process.ending() == .code(0), "\(process.errors)")
        #expect(try String(contentsOfFile: folder.path.appending("r2.api_key").string, encoding: .utf8) == "hunter2\n")
    }

    @Test func `the version is told with the program's name`() async throws {
        let folder = try TemporaryDirectory()
        let said = try await InletProcess.run(["--version"], in: folder.path, code: 0)
        #expect(said.output.contains(/^inlet \d+\.\d+\.\d+( \([0-9a-f]+\+?, \d{4}-\d\d-\d\d\))?\n$/), "\(said.output)")
    }
}

/// The configurations that `inlet init` makes of answers, judged by the reader.
@Suite struct InitTextTests {
    private static let rules = InitRules(
        file: "/srv/config/inlet.yaml", environment: [:],
        defaults: ConfigDefaults(
            stateDirectory: "/srv/state", home: "/srv/ann", workingDirectory: "/srv/config"))

    private static func example(_ type: String) throws -> InitInput {
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
    ) throws(Refusal) -> (answers: InitInput, said: [String], hidden: [String]) {
        let rest = Mutex(lines[...])
        let said = Mutex([String]())
        let hidden = Mutex([String]())
        let person = InitDialog.Prompt(
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
        #expect(said.contains { $0.contains("choose one of") })
        #expect(said.contains { $0.contains("'api'") })
        #expect(said.contains { $0.contains("'not a name' is not a name of an environment variable") })
        #expect(said.contains { $0.contains("choose one of") })
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
        #expect(throws: Refusal.self) { try Self.ask(InitGiven(), "drop") }
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
