import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletJournal
import InletLinux
import InletPipelines

struct Run: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Watch the configured folders and deliver the files dropped there, until it is stopped.",
        discussion: """
            SIGTERM or Ctrl-C takes no new work, lets running parts end (shutdown_timeout, 30 s) and exits with 0.
            The next start continues with the rest. A second signal stops at once (130).

            --dry-run lists the watched folders once, and shows the plan for each file: route, reason, destinations, key,
            and what Inlet does with it afterwards. It sends and writes nothing, not even to the journal, and does not
            disturb a running agent. It reads files where a route needs a checksum or a date.

            Examples:
              inlet run --config /etc/inlet/inlet.yaml
              inlet run --dry-run
              inlet run --dry-run --json | jq -r 'select(.verdict == "planned") | .key'
              INLET_CONFIG=~/inlet.yaml inlet run 2>> inlet.log
            """)

    @OptionGroup var options: ConfigOption
    @Flag(help: "Show the plan for the files in the watched folders, and do nothing.") var dryRun = false
    @Flag(help: "With --dry-run: print one JSON object a file.") var json = false

    func validate() throws {
        if json, !dryRun { throw ValidationError("--json is for --dry-run; what 'inlet run' logs is set under 'log'.") }
    }

    /// Without confinement for a rehearsal, which keeps what it has.
    typealias Prepared = (config: LoadedConfig, confinement: Confinement?)

    /// What is done on the first thread, before there is another one.
    func prepare() throws -> Prepared {
        let config = try options.load(warns: dryRun)
        if let trouble = Self.workTrouble(config) { throw ExitStatus.configuration.saying(trouble) }
        if dryRun { return (config, nil) }
        if let file = config.settings.tlsKeyLog {
            do throws(SystemError) {
                try ProcessSetup.logSessionKeys(to: file)
            } catch {
                throw ExitStatus.configuration.saying("tls_key_log: \(error)")
            }
        }
        let confinement = try Confinement.enter(config)
        ProcessSetup.raiseDescriptorLimit()
        if let missing = StartNeed.missing() {
            throw ExitStatus.tryLater.saying("the agent cannot begin: \(missing)")
        }
        return (config, confinement)
    }

    func run() async throws { try await start(prepare()) }

    func start(_ prepared: Prepared) async throws {
        let (config, confinement) = prepared
        // Its files would wait for ever, unseen by whoever has just started it.
        if let trouble = Findings.mediaTypeTrouble(config.settings.routes) {
            throw ExitStatus.configuration.saying("media types: \(trouble)")
        }
        guard let confinement else { return try await rehearse(config) }
        ProcessMemory.boundHeap()
        ProcessSetup.ignoreSignals()
        let factory = PipelineFactory.standard(config)
        var destinations = try config.makeDestinations(factory)
        let notificationClients = try config.makeNotificationClients(factory)
        let log = try Self.openLog(config)
        // What was said last shall be read; a reader that stands still is not waited for.
        defer { log.flush() }
        let start = StartWait(log)
        do {
            let state = try await AgentSession.takeState(config.settings.stateDirectory, start)
            ProcessHost.current?.whenEnded { log.emit(.agentHelperLost) }
            let session = try await AgentSession(
                config.settings, destinations: destinations, factory: factory, log: log, state: state,
                label: config.file.display, confinement: confinement.report, notificationClients: notificationClients,
                dashboard: config.settings.dashboard,
                source: Source(config: config, options: options, factory: factory, confinement: confinement),
                start: start)
            // From here on the agent has them: the connections of one that a reload takes away end.
            destinations = []
            try await session.run()
            // The lock is held until the last service has ended.
            _ = state.path
        } catch {
            guard let code = Self.code(error) else { throw error }
            Self.say(.agentFailed(reason: "\(error)"), "inlet: \(error)", log, config)
            throw code.code
        }
    }

    /// The log, and in it what should be changed in the configuration.
    private static func openLog(_ config: LoadedConfig) throws -> EventLog {
        do throws(SystemError) {
            let log = try EventLog(config.settings.log)
            for warning in config.warnings {
                let place = "\(warning.file):\(warning.line):\(warning.column)"
                say(
                    .configWarning(file: config.file, warning: "\(place): \(warning.message)"), "warning: \(warning)",
                    log,
                    config)
            }
            return log
        } catch {
            throw ExitStatus.configuration.saying("\(error)")
        }
    }

    /// To the log, and where that is elsewhere to whoever has started us: a stream of JSON has nothing else in it.
    private static func say(_ event: AgentEvent, _ text: String, _ log: EventLog, _ config: LoadedConfig) {
        log.emit(event)
        if !LogSettings.streams.contains(config.settings.log.output) { Console.printError(text) }
    }

    /// What the agent ends with; nil for an error that has been told. Where another start may do with nothing changed but the
    /// machine, the service manager shall make one.
    private static func code(_ error: any Error) -> ExitStatus? {
        switch error {
        case let error as StateDirectory.Fault: AgentSession.exitCode(error)
        case let error as JournalError: error.isOfDisk ? .tryLater : .configuration
        case let error as SystemError:
            error.isFull || error.isShortage ? .tryLater : .configuration
        default: nil
        }
    }

    /// Where another configuration comes from, and fresh secrets of the one that holds.
    private struct Source: ReloadSource {
        let config: LoadedConfig
        let options: ConfigOption
        let factory: PipelineFactory
        let confinement: Confinement
        var types: [DestinationType] { DestinationKinds.types }

        /// The configuration as it is now, with everything tried that a start would try.
        func read() throws(ConfigErrors) -> PreparedReload {
            let config = try options.reload()
            if let trouble = Run.workTrouble(config) ?? confinement.refusal(of: config)
                ?? Findings.mediaTypeTrouble(config.settings.routes).map({ "media types: \($0)" })
            {
                throw ConfigErrors(list: [config.error(at: SourcePosition(line: 1, column: 1), trouble)])
            }
            return (
                config: config, destinations: try config.tryDestinations(factory),
                notificationClients: try config.tryNotificationClients(factory)
            )
        }

        func renew(_ name: String, _ held: LoadedConfig) -> Destination? {
            // One that is wrong now changes nothing, until a reload says why.
            guard let now = try? options.reload() else { return nil }
            let changes = ConfigDiff.changes(from: held.effective, to: now.effective, types: types)
            if changes.contains(where: { $0.keys.starts(with: ["destinations", name]) }) { return nil }
            return now.destination(name, factory)
        }
    }

    /// A configuration that loads can still have nothing to do.
    private static func workTrouble(_ config: LoadedConfig) -> String? {
        let settings = config.settings
        let missing = [
            settings.watch.isEmpty ? "watch" : nil, settings.routes.isEmpty ? "routes" : nil,
            settings.destinations.isEmpty ? "destinations" : nil,
        ].compactMap(\.self)
        if missing.isEmpty { return nil }
        return "\(config.file.display) has no \(missing.joined(separator: " and no ")): there is nothing to do"
    }
}
