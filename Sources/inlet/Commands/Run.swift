import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletJournal
import InletLinux
import InletPipelines

struct Run: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Watches the configured folders and delivers what is dropped there, until it is stopped.",
        discussion: """
            SIGTERM or Ctrl-C stops taking work, lets running parts end (shutdown_timeout, 30 s) and exits with 0;
            what is left goes on at the next start. A second one stops at once (130).

            With --dry-run the watched folders are listed once, and for each file is said what would be done with it:
            route, why, destinations, key, what becomes of it. Nothing is sent and nothing is written, not even to the
            journal; a running agent is not disturbed. Where a route asks for a checksum or a date, files are read.

            Examples:
              inlet run --config /etc/inlet/inlet.yaml
              inlet run --dry-run
              inlet run --dry-run --json | jq -r 'select(.verdict == "planned") | .key'
              INLET_CONFIG=~/inlet.yaml inlet run 2>> inlet.log
            """)

    @OptionGroup var options: ConfigOption
    @Flag(help: "Say what would be done with the files that are there, and do nothing.") var dryRun = false
    @Flag(help: "With --dry-run: print one JSON object a file.") var json = false

    func validate() throws {
        if json, !dryRun { throw ValidationError("--json is for --dry-run; what 'inlet run' logs is set under 'log'.") }
    }

    func run() async throws {
        let config = try options.load(warns: true)
        try Self.requireWork(config)
        try Self.requireMediaTypes(config)
        if dryRun { return try await Rehearsal.run(config, json: json) }
        ProcessMemory.boundHeap()
        ProcessSetup.ignoreSignals()
        ProcessSetup.raiseDescriptorLimit()
        ProcessSetup.disableCoreDumps()
        let factory = PipelineFactory.standard(config)
        let destinations = try config.makeDestinations(factory)
        let outlets = try config.makeOutlets(factory)
        let state = try AgentSession.takeState(config.settings.stateDirectory)
        do {
            let log = try EventLog(config.settings.log)
            let session = try await AgentSession(
                config.settings, destinations: destinations, factory: factory, log: log, state: state,
                label: config.file.display, outlets: outlets, dashboard: config.settings.dashboard,
                renew: { [options] name in
                    guard let now = try? options.reload() else { return nil }
                    return now.settings.destinations.first { $0.name == name }.flatMap { try? factory.make($0) }
                })
            try await session.run()
        } catch let error as JournalError {
            Console.printError("inlet: \(error)")
            throw ExitStatus.configuration
        } catch let error as SystemError {
            Console.printError("inlet: \(error)")
            throw ExitStatus.configuration
        }
        // The lock is held until the last service has ended.
        _ = state.path
    }

    /// Its files would wait for ever, unseen by whoever has just started it.
    private static func requireMediaTypes(_ config: LoadedConfig) throws {
        guard let trouble = MediaTypeCheck.trouble(config.settings.routes) else { return }
        Console.printError("inlet: media types: \(trouble)")
        throw ExitStatus.configuration
    }

    /// A configuration that loads can still have nothing to do.
    private static func requireWork(_ config: LoadedConfig) throws {
        let settings = config.settings
        let missing = [
            settings.watch.isEmpty ? "watch" : nil, settings.routes.isEmpty ? "routes" : nil,
            settings.destinations.isEmpty ? "destinations" : nil,
        ].compactMap(\.self)
        guard !missing.isEmpty else { return }
        Console.printError(
            "inlet: \(config.file.display) has no \(missing.joined(separator: " and no ")): there is nothing to do")
        throw ExitStatus.configuration
    }
}
