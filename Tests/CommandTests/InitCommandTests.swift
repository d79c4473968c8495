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
            (["--watch", "drop", "--to", "folder", "--path", "lib", "--existing", "sell"], "adopt or leave"),
            (["--watch", "drop", "--to", "folder", "--path", "lib", "--start"], "--start needs root, systemd"),
            (
                ["--watch", "drop", "--to", "r2", "--api", "https://acc.r2.cloudflarestorage.com"],
                "--api: 'api' is Cloudflare R2's own S3 address; use 'type: s3' with 'endpoint: https://acc"
            ),
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
            #expect(made.output.contains("setfacl -m u:NAME:rwx,d:u:NAME:rwx,d:g::rwx"), "\(made.output)")
        }
    }

    @Test(.enabled(if: getuid() == 0, "needs root"))
    func `who typed sudo owns the folders that are made, so that files can be dropped there`() async throws {
        let folder = try TemporaryDirectory()
        try folder.makeDirectory("etc")
        let etc = folder.path.appending("etc")
        #expect(chmod(etc.string, 0o2750) == 0)
        let made = try await InletProcess.run(
            [
                "init", "--config", etc.appending("inlet.yaml").string, "--watch", "a/drop", "--to", "folder", "--path",
                "library", "--yes",
            ], in: folder.path, environment: ["SUDO_UID": "4321"], code: 0)
        for (name, mode) in [("a", 0o2750), ("a/drop", 0o2770)] {
            let attributes = try FileManager.default.attributesOfItem(
                atPath: folder.path.pushing(FilePath(name)).string)
            #expect((attributes[.ownerAccountID] as? NSNumber)?.intValue == 4321, "\(name)")
            #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == mode, "\(name)")
        }
        #expect(!made.output.contains("setfacl"), "\(made.output)")
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
        // Nothing listens there.
        try await seen.wait("Try again, change it, or keep it as it is?", process)
        try seen.terminal.press("keep\n")
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
        let loaded = try Self.rules.load(answers)
        let settings = loaded.settings
        #expect(loaded.warnings.isEmpty, "\(loaded.warnings)")
        #expect(settings.destinations.last?.type == type)
        #expect(settings.routes.map(\.onSuccess) == [onSuccess])
        #expect(settings.routes.first?.to == settings.destinations.suffix(1).map(\.name))
        #expect(settings.watch.map(\.path) == ["/srv/drop"])
    }

    @Test(arguments: DestinationKinds.types.map(\.name))
    func `what is written holds the answers, each below a comment`(type: String) throws {
        var answers = try Self.example(type)
        let text = answers.text
        let written = try #require(try Self.rules.load(answers).settings.destinations.last).values
        let lines = text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        for (key, value) in answers.target.values {
            let place = try #require(lines.firstIndex { $0.hasPrefix("\(key): ") }, "\(key): \(text)")
            #expect(lines[place - 1].hasPrefix("# "), "\(key): \(text)")
            let question = answers.target.setup.questions.first { $0.key == key }
            guard case .text(let given) = value, question?.section == nil else { continue }
            #expect(written.string(key) == given, "\(key)")
        }
        for choice in InitInput.existingWords {
            answers.existing = choice.value
            #expect(try Self.rules.load(answers).settings.watch.map(\.existing) == [choice.value])
        }
        #expect(text.split(separator: "\n").allSatisfy { $0.count <= 120 }, "\(text)")
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
        #expect(Self.rules.objection(to: answers)?.text.contains("api_key") == true)
    }

    @Test func `what cannot be text is refused`() throws {
        var answers = try Self.example("folder")
        answers.watch = "/srv/\u{FFFD}"
        #expect(Self.rules.objection(to: answers)?.text.contains("UTF-8") == true)
        answers = try Self.example("r2")
        answers.target.values["api_key"] = .variable("A KEY")
        #expect(Self.rules.objection(to: answers)?.text.contains("'A KEY'") == true)
    }

    @Test(arguments: ["sk-live-9f31", "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCY", "hunter2"])
    func `a secret that is pasted where its place is asked for stays out of the configuration`(
        _ secret: String
    ) async throws {
        let given = InitGiven(
            watch: "/srv/drop", type: "r2", values: ["api": .text("https://storage.example.com")], onSuccess: .keep)
        let (answers, said, _) = try await Self.ask(given, secret, "")
        #expect(answers.target.values["api_key"] == .typed(Secret(secret)))
        #expect(!answers.text.contains(secret) && !said.contains { $0.contains(secret) }, "\(said)")
    }

    @Test(arguments: [("SPIRAL_KEY", []), ("KEY", []), ("PRESENT9", []), ("my_key", ["n"])] as [(String, [String])])
    func `the name of a variable is taken as one`(_ name: String, _ more: [String]) async throws {
        let rules = InitRules(file: Self.rules.file, environment: ["PRESENT9": "k"], defaults: Self.rules.defaults)
        let rest = Mutex(([name] + more)[...])
        let person = InitDialog.Prompt(ask: { _, _ in rest.withLock { $0.popFirst() } }, say: { _ in })
        let given = InitGiven(
            watch: "/srv/drop", type: "r2", values: ["api": .text("https://storage.example.com")], onSuccess: .keep)
        let answers = try await InitDialog(rules: rules, person: person).answers(given)
        #expect(answers.target.values["api_key"] == .variable(name))
    }

    @Test func `in Inlet's image the page is left to a person, with what it needs there`() throws {
        var answers = try Self.example("folder")
        answers.isInImage = true
        #expect(try Self.rules.load(answers).settings.dashboard == nil)
        #expect(answers.text.contains("# dashboard: { listen: \"0.0.0.0:8844\", password: "), "\(answers.text)")
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
    ) async throws(Refusal) -> (answers: InitInput, said: [String], hidden: [String]) {
        let rest = Mutex(lines[...])
        let said = Mutex([String]())
        let hidden = Mutex([String]())
        let person = InitDialog.Prompt(
            ask: { question, isHidden in
                if isHidden { hidden.withLock { $0.append(question) } }
                return rest.withLock { $0.popFirst() }
            }, say: { line in said.withLock { $0.append(line) } })
        let answers = try await InitDialog(rules: rules, person: person).answers(given)
        return (answers, said.withLock { $0 }, hidden.withLock { $0 })
    }

    @Test func `an answer that the reader would not take is asked for again, in the reader's words`()
        async throws
    {
        let (answers, said, hidden) = try await Self.ask(
            InitGiven(), "ftp", "r2", "storage.example.com", "https://storage.example.com", "not a name", "n", "=",
            "hunter2", "drop", "sell", "archive")
        #expect(answers.watch == "/srv/config/drop")
        #expect(answers.target.kind.type.name == "r2" && answers.onSuccess == .archive)
        #expect(answers.target.values["api"] == .text("https://storage.example.com"))
        #expect(answers.target.values["api_key"] == .typed(Secret("hunter2")))
        #expect(hidden.count == 1)
        #expect(said.contains { $0.contains("choose one of") })
        #expect(said.contains { $0.contains("'api'") })
        #expect(said.contains { $0.contains("Name an environment variable or a file") })
    }

    @Test(
        arguments: [
            ("1", "folder"), ("nas share", "folder"), ("USB", "folder"), ("2", "s3"), ("MinIO", "s3"),
            ("a bucket", "s3"),
            ("3", "r2"), ("spiral", "r2"), ("r2", "r2"), ("GigHive", "gighive"), ("vopi server", "vopi"),
            ("roboscope", "roboscope"), ("cloudflare", nil), ("server", nil), ("7", nil), ("0", nil), ("a", nil),
        ] as [(String, String?)])
    func `a number, a type or a word says what a person has, where only one place fits`(answer: String, type: String?) {
        let found = InitDialog.kinds(named: answer, among: DestinationKinds.offered)
        #expect(found.count == 1 ? found[0].type.name == type : type == nil, "\(found.map(\.type.name))")
    }

    @Test func `what people have comes in the order of how many have it, and a word for two places is asked again`()
        async throws
    {
        let (answers, said, _) = try await Self.ask(InitGiven(), "cloudflare", "1", "library", "drop", "")
        let list = try #require(said.first)
        #expect(list.contains("1  A folder, or a NAS share") && list.contains("2  A bucket: "))
        #expect(said.contains { $0.contains("'cloudflare' is more than one of these; choose one of 2, 3") })
        #expect(answers.target.kind.type.name == "folder")
    }

    @Test func `an R2 endpoint typed for the Spiral API goes on as the endpoint of a bucket`() async throws {
        let address = "https://acc.r2.cloudflarestorage.com"
        let (answers, said, _) = try await Self.ask(
            InitGiven(), "spiral", address, "y", "media", "", "", "", "drop", "")
        #expect(said.contains { $0.contains("Cloudflare R2's own S3 address") })
        #expect(answers.target.kind.type.name == "s3" && answers.target.values["endpoint"] == .text(address))
        #expect(Self.rules.objection(to: answers) == nil)
        let (other, _, _) = try await Self.ask(
            InitGiven(), "spiral", address, "n", "https://storage.example.com", "", "drop", "")
        #expect(other.target.values["api"] == .text("https://storage.example.com"))
    }

    @Test func `an address that looks like a call of the Spiral API is asked about, and kept where it is right`()
        async throws
    {
        let address = "https://gw.example/v1/objects"
        let (answers, said, _) = try await Self.ask(
            InitGiven(), "bucket", address, "n", "media", "", "", "", "drop", "")
        #expect(said.contains { $0.contains("perhaps is a call of the Spiral Storage API") }, "\(said)")
        #expect(answers.target.kind.type.name == "s3" && answers.target.values["endpoint"] == .text(address))
        let (other, _, _) = try await Self.ask(InitGiven(), "bucket", address, "y", "", "drop", "")
        #expect(other.target.values["api"] == .text("https://gw.example"))
        // Options are not asked about.
        var given = InitGiven(watch: "/srv/drop", type: "s3", onSuccess: .keep)
        given.values = ["endpoint": .text(address), "bucket": .text("media")]
        let flagged = try await InitDialog(rules: Self.rules, person: nil).answers(given)
        #expect(flagged.target.values["endpoint"] == .text(address))
    }

    @Test func `files that are there are counted up to a bound, and others than those that Inlet ignores`() throws {
        let folder = try TemporaryDirectory()
        for name in ["a.jpg", "b.jpg", "c.jpg.part", "in/c.jpg", ".inlet/lock"] {
            try folder.write("x".utf8, to: FilePath(name))
        }
        var all = FileCount()
        all.add(folder.path, until: .now.advanced(by: .seconds(60)))
        #expect(all == FileCount(count: 3) && all.text == "3 files")
        var some = FileCount()
        some.add(folder.path, until: .now.advanced(by: .seconds(60)), most: 2)
        #expect(some == FileCount(count: 2, isMore: true) && some.text == "more than 2 files")
        var late = FileCount()
        late.add(folder.path, until: .now)
        #expect(late == FileCount(isMore: true))
        // Folders count, too: a share of many empty ones ends as well.
        try folder.makeDirectory("empty/folder")
        var empty = FileCount()
        empty.add(folder.path.appending("empty"), until: .now)
        #expect(empty.isMore)
        #expect(FileCount(count: 100_000, isMore: true).text == "more than 100,000 files")
    }

    @Test func `AWS is found by its region, which is asked until there is one`() async throws {
        var given = InitGiven(watch: "/srv/drop", type: "s3", onSuccess: .keep)
        given.values = ["bucket": .text("media")]
        let (answers, said, _) = try await Self.ask(given, "", "", "auto", "eu-central-1", "", "")
        #expect(answers.target.values["region"] == .text("eu-central-1"))
        #expect(answers.target.values["endpoint"] == nil && Self.rules.objection(to: answers) == nil)
        #expect(said.contains { $0.contains("'region' for AWS") })
    }

    @Test func `a library may be anywhere but in the folder that is watched, whichever is named first`() async throws {
        // The reader's own example is no folder of a person.
        let (answers, said, _) = try await Self.ask(
            InitGiven(type: "folder", onSuccess: .keep), "/srv/drop/out", "/srv/drop", "/srv/in")
        #expect(answers.target.values["path"] == .text("/srv/drop/out") && answers.watch == "/srv/in")
        #expect(said.contains { $0.contains("/srv/drop") }, "\(said)")
        await #expect(throws: Refusal.self) {
            try await Self.ask(InitGiven(watch: "/srv/drop", type: "folder", onSuccess: .keep), "/srv/drop/out")
        }
    }

    @Test func `only what was not given is asked for`() async throws {
        var given = InitGiven(watch: "/srv/drop", type: "roboscope", storage: "s3", onSuccess: .keep)
        given.values = ["bucket": .text("media"), "url": .text("https://roboscope.example/api/v1")]
        let (answers, _, _) = try await Self.ask(
            given, "https://s3.example.com", "", "KEY_A", "", "https://cdn.example.com", "")
        #expect(answers.storage?.values["access_key"] == .variable("KEY_A"))
        #expect(answers.storage?.values["secret_key"] == .variable("S3_SECRET_KEY"))
        #expect(answers.storage?.values["public_url"] == .text("https://cdn.example.com"))
        #expect(answers.target.values["token"] == nil)
        #expect(Self.rules.objection(to: answers) == nil)
    }

    @Test func `the end of the input ends it`() async {
        await #expect(throws: Refusal.self) { try await Self.ask(InitGiven(), "folder") }
    }

    @Test(arguments: [
        ("--watch", InitGiven()), ("--to", InitGiven(watch: "/srv/drop")),
        ("--api", InitGiven(watch: "/srv/drop", type: "r2")), ("--bucket", InitGiven(watch: "/srv/drop", type: "s3")),
        ("--url", InitGiven(watch: "/srv/drop", type: "gighive")),
        ("--path", InitGiven(watch: "/srv/drop", type: "folder")),
        ("--results", InitGiven(watch: "/srv/drop", type: "vopi", values: ["url": .text("https://vopi.example")])),
        ("--storage", InitGiven(watch: "/srv/drop", type: "roboscope")),
    ])
    func `without a person what is missing is named by its flag`(flag: String, given: InitGiven) async {
        await #expect {
            _ = try await InitDialog(rules: Self.rules, person: nil).answers(given)
        } throws: { error in
            "\(error)".hasPrefix(flag + " ") && "\(error)".contains("is missing")
        }
    }
}
