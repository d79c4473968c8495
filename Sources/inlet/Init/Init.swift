import ArgumentParser
import Foundation
import InletAgent
import InletConfig
import InletCore
import InletLinux
import InletPipelines
import SystemPackage

struct Init: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init", abstract: "Write a first configuration from a few questions, or from options.",
        discussion: """
            On a terminal it asks what you have, tests each destination and the watched folder at once, and asks what to
            do with files that are there already. Where systemd has the service, it offers to start it, and prints the
            link to the page.

            Without a terminal, or with --yes, it asks and tests nothing, and a missing answer is an error (64). The
            configuration holds no secrets: it names environment variables or files. A secret that you type goes to a
            file of its own beside it, which only you can read.

            Examples:
              inlet init
            \(examples)
            """)

    /// The last kind comes first: it needs no account.
    private static let examples = DestinationKinds.all.reversed()
        .compactMap { kind in kind.setup.example.map { "  inlet init \($0)" } }.joined(separator: "\n")

    @OptionGroup var options: ConfigOption
    @OptionGroup(title: "Answers") var flags: InitFlags
    @Flag(help: "Replace a configuration that is there.") var force = false
    @Flag(help: "Ask nothing: take the defaults, and create missing folders.") var yes = false
    @Flag(help: "Start the service at the end, and print the link to its page. For root, with the package's service.")
    var start = false

    func run() async throws {
        let file = options.newFile()
        try requireFree(file)
        let environment = ProcessInfo.processInfo.environment
        let service = file == ConfigOption.ofService ? await InitService.find() : nil
        let files = InitFiles(configuration: file, replaces: force)
        let rules = Self.rules(file, environment, hasService: service != nil)
        let isAsked = !yes && ProcessSetup.isTerminal(0) && Console.isTerminal
        let trial = InitTrial(rules: rules, agentUser: Self.isForService(files) ? InitFiles.serviceUser : nil)
        let dialog = InitDialog(rules: rules, person: isAsked ? Self.terminal : nil, trial: isAsked ? trial : nil)
        if start, service == nil {
            Self.refuse(
                "--start needs root, systemd, the package's \(InitService.unit), and its configuration "
                    + "\(ConfigOption.ofService.display)")
            throw ExitCode.validationFailure
        }
        let answers: InitInput
        do {
            answers = try await dialog.answers(try flags.given())
        } catch {
            Self.refuse(error.description)
            throw ExitCode.validationFailure
        }
        do {
            // First, so that a folder that cannot be made leaves no configuration in the way of the next try.
            for folder in try rules.folders(answers) { try makeFolder(folder, files, dialog) }
            try files.write(answers.text, secrets: answers.typed)
            if Self.isForService(files) { try files.giveToService() }
        } catch let error as SystemError {
            Self.refuse("\(error)")
            throw ExitStatus.failed.code
        }
        Console.print("Wrote \(file.display).")
        if let service, try await begin(service, answers, rules, dialog) { return }
        try await next(files, unset: answers.variables.filter { environment[$0]?.isEmpty ?? true }, dialog)
    }

    private static func rules(_ file: FilePath, _ environment: [String: String], hasService: Bool) -> InitRules {
        var rules = InitRules(file: file, environment: environment, defaults: ConfigOption.defaults(environment))
        // Inlet's image names the place of its configuration so.
        let isNamed = !(environment["INLET_CONFIG"] ?? "").isEmpty
        rules.isInImage = isNamed && !hasService && MachineFacts.container != nil
        return rules
    }

    /// Starts the service where that is wanted, and prints the link to its page. - Returns: whether it runs.
    private func begin(
        _ service: InitService, _ answers: InitInput, _ rules: InitRules, _ dialog: InitDialog
    ) async throws -> Bool {
        // Its environment is not this one.
        guard answers.variables.isEmpty else {
            guard start else { return false }
            Self.refuse(
                "not started: the service does not have \(answers.variables.joined(separator: ", ")); set them with "
                    + "'systemctl edit inlet', then: systemctl enable --now inlet")
            throw ExitStatus.failed.code
        }
        guard start || dialog.confirms("Start the service now, and with the machine?") else { return false }
        do {
            try await service.start()
            let settings = try rules.load(answers).settings
            let (link, needs) = try await service.answer(
                at: StateDirectory.controlSocket(in: settings.stateDirectory))
            Console.print("The service runs. Drop files in \(settings.watch.first?.path.display ?? answers.watch).")
            if !needs.isEmpty {
                let lines = needs.map { "  \(DisplayText.escape($0))" }
                Console.print(
                    "It needs you:\n\(lines.joined(separator: "\n"))\n  'sudo inlet doctor' looks for the cause.")
            }
            if let link { Console.print("Its page, for one browser within ten minutes: \(link)") }
            return true
        } catch let refusal as Refusal {
            Self.refuse(refusal.description)
            throw ExitStatus.failed.code
        }
    }

    private func requireFree(_ file: FilePath) throws {
        if force { return }
        do throws(SystemError) {
            if try FileLook.look(at: file) == .missing { return }
        } catch {
            Self.refuse("\(error)")
            throw ExitStatus.failed.code
        }
        Self.refuse("\(file.display) is there already; --force replaces it")
        throw ExitCode.validationFailure
    }

    private func makeFolder(_ folder: FilePath, _ files: InitFiles, _ dialog: InitDialog) throws(SystemError) {
        guard let look = try InitTrial.look({ () throws(SystemError) in try FileLook.look(at: folder) }) else {
            return Console.print("\(folder.display): its disk does not answer. Make the folder when it does.")
        }
        guard look == .missing else { return }
        guard yes || dialog.confirms("\(folder.display) is not there. Make it?") else {
            return Console.print("\(folder.display) is not there yet.")
        }
        guard Self.isForService(files) else {
            try DurableFile.makeDirectories(folder, mode: 0o755)
            return Console.print("Made \(folder.display).")
        }
        try makeShared(folder, files)
    }

    /// Makes a folder that the service and a person can write to: the one who typed sudo owns it.
    private func makeShared(_ folder: FilePath, _ files: InitFiles) throws(SystemError) {
        let person = ProcessSetup.environment("SUDO_UID").flatMap { UInt32($0) }
        var missing: [FilePath] = []
        var place = folder
        while place.lastComponent != nil, try FileLook.look(at: place) == .missing {
            missing.append(place)
            place.removeLastComponent()
        }
        for path in missing.reversed() {
            try DurableFile.makeDirectories(path, mode: 0o700)
            try FileOwner.share(
                path, withGroupOf: files.folder, owner: person, mode: path == folder ? 0o2770 : 0o2750)
        }
        let group = "the group of \(files.folder.display) can write to it"
        guard person == nil else { return Console.print("Made \(folder.display); you and \(group).") }
        let rights =
            missing.dropFirst().reversed().map { ("u:NAME:x", $0) }
            + [("u:NAME:rwx,d:u:NAME:rwx,d:g::rwx", folder)]
        let lines = rights.map { "  setfacl -m \($0) \(DisplayText.shellWord($1.display))" }
        Console.print(
            "Made \(folder.display); \(group). For a person, put in the name of the user:\n"
                + lines.joined(separator: "\n"))
    }

    /// Whether root configures an agent that runs as another user: the folder hands on a group, as /etc/inlet of a
    /// package does.
    private static func isForService(_ files: InitFiles) -> Bool { ProcessSetup.userID == 0 && files.handsGroupOn }

    /// The next step: a check at once, where a person wants one and no variable is missing for it.
    private func next(_ files: InitFiles, unset: [String], _ dialog: InitDialog) async throws {
        let file = files.configuration
        let named = options.isUsual(file) ? "" : " --config \(DisplayText.shellWord(file.display))"
        if !unset.isEmpty {
            Console.print("Set in the environment of the agent before it runs: \(unset.joined(separator: ", "))")
        }
        // A check as root proves nothing about the service's user.
        if Self.isForService(files) {
            let steps = [
                "sudo -u \(InitFiles.serviceUser) inlet check\(named)", "systemctl enable --now inlet",
                "inlet open\(named)",
            ]
            return Console.print("Next:\n" + steps.map { "  \($0)" }.joined(separator: "\n"))
        }
        if unset.isEmpty, dialog.confirms("Check it now?") {
            return try await Check.parse(["--config", file.string]).run()
        }
        let commands = ["check", "run --dry-run", "run", "open"].map { "  inlet \($0)\(named)" }
        Console.print("Next:\n" + commands.joined(separator: "\n"))
    }

    private static func refuse(_ text: String) { Console.printError("inlet: \(text)") }

    private static var terminal: InitDialog.Prompt {
        InitDialog.Prompt(
            ask: { question, isHidden in
                let line = ProcessSetup.typedLine(isHidden: isHidden) { Console.draw(question) }
                // A hidden answer's line ending is hidden too.
                if isHidden || line == nil { Console.draw("\n") }
                return line
            },
            say: { Console.print($0) })
    }
}

/// The answers as options.
struct InitFlags: ParsableArguments {
    @Option(help: ArgumentHelp("The folder to watch.", valueName: "DIR")) var watch: String?
    @Option(
        help: ArgumentHelp(
            "Where files go: \(DestinationKinds.types.map(\.name).joined(separator: ", ")).", valueName: "TYPE"))
    var to: String?
    @Option(help: InitFlags.storageHelp) var storage: String?
    @Option(help: InitFlags.help("api", "URL")) var api: String?
    @Option(help: InitFlags.help("endpoint", "URL")) var endpoint: String?
    @Option(help: InitFlags.help("bucket", "NAME")) var bucket: String?
    @Option(help: InitFlags.help("region", "NAME")) var region: String?
    @Option(name: .customLong("public-url"), help: InitFlags.help("public_url", "URL")) var publicURL: String?
    @Option(help: InitFlags.help("url", "URL")) var url: String?
    @Option(help: InitFlags.help("user", "NAME")) var user: String?
    @Option(help: InitFlags.help("refresh_token_file", "FILE")) var refreshTokenFile: String?
    @Option(help: InitFlags.help("results", "DIR")) var results: String?
    @Option(help: InitFlags.help("path", "DIR")) var path: String?
    @Option(
        help: ArgumentHelp(
            "The environment variable that holds a secret, such as api_key=STORE_KEY.", valueName: "KEY=VARIABLE"))
    var env: [String] = []
    @Option(help: ArgumentHelp("The file that holds a secret.", valueName: "KEY=FILE")) var secretFile: [String] = []
    @Option(
        help: ArgumentHelp(
            "What to do with files that are there already: deliver, adopt (count them as delivered) or leave.",
            valueName: "WHAT"))
    var existing: String?
    @Option(help: ArgumentHelp("What to do with a delivered file: keep, archive or delete.", valueName: "WHAT"))
    var onSuccess: String?

    /// `s3: the bucket.`, for the kinds that have the key.
    private static func help(_ key: String, _ value: String) -> ArgumentHelp {
        let asked = DestinationKinds.all.flatMap { kind in
            let questions = kind.setup.questions + (kind.type.givesURLs ? [DestinationSetup.publicURL] : [])
            return questions.filter { $0.key == key }.map { (kind.type.name, $0.help) }
        }
        let names = asked.map(\.0).joined(separator: ", ")
        return ArgumentHelp("\(names): \(asked.first?.1 ?? "").", valueName: value)
    }

    private static var storageHelp: ArgumentHelp {
        let registering = DestinationKinds.types.filter(\.namesStorage).map(\.name).joined(separator: ", ")
        let storing = InitRules.storages.map { $0.type.name }.joined(separator: " or ")
        return ArgumentHelp("With \(registering): what stores the files, \(storing).", valueName: "TYPE")
    }

    func given() throws(Refusal) -> InitGiven {
        var given = InitGiven(watch: watch, type: to, storage: storage)
        let texts = [
            "api": api, "endpoint": endpoint, "bucket": bucket, "region": region, "public_url": publicURL, "url": url,
            "user": user, "refresh_token_file": refreshTokenFile, "results": results, "path": path,
        ]
        given.values = texts.compactMapValues { $0.map { .text($0) } }
        for word in env { try Self.split(word, "--env KEY=VARIABLE", &given) { .variable($0) } }
        for word in secretFile {
            try Self.split(word, "--secret-file KEY=FILE", &given) { path in
                .file(path.hasPrefix("~") ? path : FilePath.absolute(path).string)
            }
        }
        if let existing {
            guard let choice = InitInput.existingWords.first(where: { $0.word == existing }) else {
                throw Refusal("--existing: '\(DisplayText.escape(existing))' is not deliver, adopt or leave")
            }
            given.existing = choice.value
        }
        if let onSuccess {
            guard let choice = Route.OnSuccess(rawValue: onSuccess) else {
                throw Refusal(
                    "--on-success: '\(DisplayText.escape(onSuccess))' is not keep, archive or delete")
            }
            given.onSuccess = choice
        }
        return given
    }

    private static func split(
        _ word: String, _ flag: String, _ given: inout InitGiven, _ value: (String) -> InitInput.Value
    ) throws(Refusal) {
        let parts = word.split(separator: "=", maxSplits: 1)
        guard parts.count == 2 else {
            throw Refusal(
                "\(flag): '\(DisplayText.escape(word))' has no KEY and value with = between them")
        }
        given.values[String(parts[0])] = value(String(parts[1]))
    }
}

/// Writes the files of `inlet init`: complete, private, and over no other file.
struct InitFiles {
    /// The package's user.
    static let serviceUser = "inlet"

    let configuration: FilePath
    /// Whether an existing configuration may be replaced.
    let replaces: Bool

    var folder: FilePath { configuration.removingLastComponent() }

    /// Writes the configuration after the files of typed secrets. If it throws, it leaves none of these in the way of
    /// the next try, unless it may replace them.
    func write(_ text: String, secrets: [(file: String, secret: Secret)]) throws(SystemError) {
        try DurableFile.makeDirectories(folder, mode: 0o755)
        let mode = mode
        var made: [FilePath] = []
        do throws(SystemError) {
            for (name, secret) in secrets {
                try put(Array((secret.reveal() + "\n").utf8), folder.appending(name), mode)
                made.append(folder.appending(name))
            }
            try put(Array(text.utf8), configuration, mode)
        } catch {
            if !replaces { for file in made { DurableFile.discard(file) } }
            throw error
        }
    }

    /// The page may then change the configuration (`dashboard.edit`): who replaces a file must be able to keep its owner.
    func giveToService() throws(SystemError) {
        guard case .found(let user) = FileOwner.user(named: Self.serviceUser) else { return }
        try FileOwner.set(configuration, user: user)
    }

    /// In a folder that hands on its group, as /etc/inlet of a package does, the agent's group can read the files.
    private var mode: UInt32 { handsGroupOn ? 0o640 : 0o600 }

    var handsGroupOn: Bool {
        do {
            let descriptor = try FileDescriptor.open(folder, .readOnly, options: [.directory, .closeOnExec])
            return try descriptor.closeAfter { try descriptor.stat().permissions.contains(.setGroupID) }
        } catch {
            // A folder that cannot be opened hands on no group; writing there reports why.
            return false
        }
    }

    private func put(_ bytes: [UInt8], _ path: FilePath, _ mode: UInt32) throws(SystemError) {
        if replaces {
            try DurableFile.write(bytes, to: path, mode: mode)
        } else {
            // Fails for an existing name, even a very new one.
            try DurableFile.create(bytes, at: path, mode: mode)
        }
    }
}
