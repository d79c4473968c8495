import ArgumentParser

/// The command line. One command, one file, below `Commands/`.
@main
struct Inlet: AsyncParsableCommand {
    static let version = "0.1.0"

    static let configuration = CommandConfiguration(
        commandName: "inlet",
        abstract: "Delivers files that are dropped in watched folders: once, whole, even if the power goes.",
        discussion: """
            Start with 'inlet demo': it needs no account and no configuration.
            Then write a configuration (config/inlet.yaml is an annotated example), try it with
            'inlet check --config FILE', and start it with 'inlet run --config FILE'.

            Exit codes: 0 all delivered, 1 some failed, 64 usage, 69 destination unavailable,
            75 try later (another instance is running), 78 configuration.
            """,
        version: version,
        subcommands: [
            Run.self, Check.self, RouteCommand.self, Send.self, Status.self, Tail.self, Queue.self, BatchCommand.self,
            Receipts.self, Verify.self, Report.self, Pause.self, Resume.self, Limit.self, Notify.self, Storage.self,
            Fetch.self,
            GigHive.self,
            VOPI.self,
            Roboscope.self, Demo.self, Config.self, Sandbox.self,
        ])

    static func main() async { await main(NamedFiles.commandLine()) }
}
