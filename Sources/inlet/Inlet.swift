import ArgumentParser
import CBuild
import InletCore
import InletDashboard
import InletLinux

/// The command line. Each command has a file below `Commands/`; the commands of one kind of destination share a folder.
@main
struct Inlet: AsyncParsableCommand {
    /// The only place of the version; the package's changelog begins with it.
    static let version = "0.9.0"
    /// `inlet 0.9.0 (ca79110, 2026-11-22)`: with the commit and its day, where the build was told them (packaging/lib.sh).
    static let release: String = {
        let commit = inlet_build_commit().map { String(cString: $0) } ?? ""
        return "inlet \(version)" + (commit.isEmpty ? "" : " (\(commit))")
    }()

    static let configuration = CommandConfiguration(
        commandName: "inlet",
        abstract: "Deliver files from watched folders: once, complete, even if the power fails.",
        discussion: """
            Start with 'inlet demo': it needs no account and no configuration. Then write a configuration with 'inlet
            init', try it with 'inlet check' and 'inlet run --dry-run', and start it with 'inlet run'.

            Exit codes: 0 all delivered, 1 some failed, 64 usage, 69 destination unavailable,
            75 try later (another instance is running), 78 configuration.

            Examples:
              inlet demo
              inlet init --watch ~/Drop --to folder --path ~/Library
              inlet run --dry-run
              inlet run
            """,
        version: release,
        subcommands: [
            Init.self, Run.self, Check.self, Doctor.self, SupportCommand.self, RouteCommand.self, Send.self,
            Status.self, Tail.self,
            Queue.self,
            BatchCommand.self, Receipts.self, ReloadCommand.self, Verify.self, Report.self, Pause.self, Resume.self,
            Limit.self, Logs.self, Notify.self, Storage.self, Cards.self, Open.self,
            Fetch.self,
            GigHive.self,
            VOPI.self,
            Roboscope.self,
            FleetCommands.self,
            Demo.self, Config.self, Sandbox.self, Reference.self, Logs.Former.self,
        ])

    /// The JSON of every command that has `--json`: the manual prints `CommandOutput.document(Inlet.outputs)`.
    static let outputs =
        CommandOutput.all
        + configuration.subcommands.compactMap { $0 as? any ServerCommand.Type }.flatMap { $0.outputs }

    /// `inlet` alone: what to do next.
    func run() async throws {
        var options = ConfigOption()
        // The library reads only what was parsed or set.
        options.config = nil
        Console.print(await NextStep.text(options))
    }

    /// Stays on the first thread, with no other one, until `Run` has given up its access.
    @MainActor static func main() async {
        StartNeed.openStandardStreams()
        ProcessSetup.protectMemory()
        Console.logErrors(Run.asksForJSON(CommandLine.arguments.dropFirst()))
        do {
            var command = try parseAsRoot(NamedFiles.commandLine())
            if let run = command as? Run {
                let prepared = try run.prepare()
                StartNeed.beginDeadline()
                await begin()
                return try await run.start(prepared)
            }
            if var command = command as? any AsyncParsableCommand {
                StartNeed.beginDeadline()
                await begin()
                try await command.run()
            } else {
                try command.run()
            }
        } catch {
            leave(error)
        }
    }

    /// Runs on a thread of the runtime's pool, as everything after it does.
    private static func begin() async { StartNeed.endDeadline() }

    /// As in the library, but its messages repeat typed words and names from scripts, so `Console` masks them.
    private static func leave(_ error: any Error) -> Never {
        let code = exitCode(for: error)
        if code == .success { exit(withError: error) }
        var text = Spelling.correct(fullMessage(for: error))
        // A line break in a name would look like one of Inlet's own.
        for word in CommandLine.arguments where word != DisplayText.escape(word) {
            text = text.replacing(word, with: DisplayText.escape(word))
        }
        if !text.isEmpty { Console.printError(text) }
        exit(withError: code)
    }
}

/// A command whose subcommands print the objects of a server.
protocol ServerCommand {
    static var outputs: [CommandOutput] { get }
}
