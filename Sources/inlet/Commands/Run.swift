import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletJournal
import InletLinux
import InletPipelines

struct Run: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Watch the configured folders and deliver new files until you stop it.",
        discussion: """
            SIGTERM or Ctrl-C stops new work, waits for running parts (shutdown_timeout, 30 s) and exits with 0. The next
            start continues the rest. A second signal stops at once (130).

            --dry-run lists the watched folders once, and shows the plan for each file: route and reason, destinations,
            key, disposal. It sends and writes nothing, not even to the journal, and leaves a running agent alone. It
            reads files where a route asks for a checksum or a date.

            On a terminal the log is coloured sentences, anywhere else one JSON object per line (log.format).

            Examples:
              inlet run --config /etc/inlet/inlet.yaml
              inlet run --dry-run
              inlet run --dry-run --json | jq -r 'select(.verdict == "planned") | .key'
              INLET_CONFIG=~/inlet.yaml inlet run 2>> inlet.log
            """)

    @OptionGroup var options: ConfigOption
    @Flag(help: "Show the plan for each file, and do nothing.") var dryRun = false
    @Flag(help: "With --dry-run: print one JSON object per file.") var json = false

    @Option(help: "How the log is written: auto, json, text. Overrides log.format.") var logFormat: LogSettings.Format?

    func validate() throws {
        if json, !dryRun {
            throw ValidationError("--json belongs to --dry-run; for the log's format use --log-format json")
        }
    }

    /// Whether a command line asks for JSON lines. A wrong one does not parse, and its error is such a line, too.
    static func asksForJSON(_ arguments: some Collection<String>) -> Bool {
        arguments.first == _commandName && !arguments.contains("--dry-run")
            && (arguments.contains("--log-format=json") || arguments.contains(["--log-format", "json"]))
    }

    /// A dry run keeps its access.
    typealias Prepared = (config: LoadedConfig, confinement: Confinement?)

    /// The preparation runs on the first thread, before there is another one.
    func prepare() throws -> Prepared {
        // An unreadable configuration cannot name the log's file.
        let assumed = LogSettings(format: logFormat ?? .auto)
        Console.logErrors(!dryRun && assumed.isJSONOnStandardError)
        var config = try options.load(warns: dryRun)
        config.settings.log.format = logFormat ?? config.settings.log.format
        Console.logErrors(!dryRun && config.settings.log.isJSONOnStandardError)
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
            throw ExitStatus.tryLater.saying("the agent cannot start: \(missing)")
        }
        return (config, confinement)
    }

    func run() async throws { try await start(prepare()) }

    func start(_ prepared: Prepared) async throws {
        let (config, confinement) = prepared
        // Otherwise its files would wait forever, unnoticed.
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
        // The last lines must be written, but nothing waits for a reader that is stuck.
        defer { log.flush() }
        let start = StartWait(log)
        do {
            let state = try await AgentSession.takeState(config.settings.stateDirectory, start)
            ProcessHost.kept?.whenEnded { log.emit(.agentHelperLost) }
            let session = try await AgentSession(
                config.settings, destinations: destinations, factory: factory, log: log, state: state,
                label: config.file.display, confinement: confinement.report, notificationClients: notificationClients,
                dashboard: config.settings.dashboard,
                source: Source(
                    config: config, options: options, logFormat: logFormat, factory: factory,
                    confinement: confinement),
                start: start)
            // From here on the agent owns them: a reload that removes a destination can close its connections.
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

    /// Opens the log, and logs the configuration's warnings.
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

    /// Logs an event. Prints it too if the log is in a file: standard streams that hold the log hold nothing else.
    private static func say(_ event: AgentEvent, _ text: String, _ log: EventLog, _ config: LoadedConfig) {
        log.emit(event)
        if !LogSettings.streams.contains(config.settings.log.output) { Console.printError(text) }
    }

    /// The agent's exit code; nil for an error that was printed already. It asks the service manager for a restart
    /// where one can succeed although nobody changes anything.
    private static func code(_ error: any Error) -> ExitStatus? {
        switch error {
        case let error as StateDirectory.Fault: AgentSession.exitCode(error)
        case is FleetError: .configuration
        case let error as JournalError: error.isOfDisk ? .tryLater : .configuration
        case let error as SystemError:
            error.isFull || error.isShortage ? .tryLater : .configuration
        default: nil
        }
    }

    /// Reads a new configuration, and renewed secrets of the present one.
    private struct Source: ReloadSource {
        let config: LoadedConfig
        let options: ConfigOption
        let logFormat: LogSettings.Format?
        let factory: PipelineFactory
        let confinement: Confinement
        var types: [DestinationType] { DestinationKinds.types }

        /// The present configuration, checked as at a start.
        func read() throws(ConfigErrors) -> PreparedReload {
            let prepared = try prepare(try options.reload())
            if let reason = restartReason(prepared.config) { throw Self.refusal(of: prepared.config, reason) }
            return prepared
        }

        func check(_ text: [UInt8]) throws(ConfigErrors) -> PreparedReload {
            try prepare(try ConfigOption.parse(text, as: config.file))
        }

        func restartReason(_ config: LoadedConfig) -> String? { confinement.refusal(of: config) }

        private static func refusal(of config: LoadedConfig, _ reason: String) -> ConfigErrors {
            ConfigErrors(list: [config.error(at: SourcePosition(line: 1, column: 1), reason)])
        }

        private func prepare(_ loaded: LoadedConfig) throws(ConfigErrors) -> PreparedReload {
            var config = loaded
            config.settings.log.format = logFormat ?? config.settings.log.format
            if let trouble = Run.workTrouble(config)
                ?? Findings.mediaTypeTrouble(config.settings.routes).map({ "media types: \($0)" })
            {
                throw Self.refusal(of: config, trouble)
            }
            return (
                config: config, destinations: try config.tryDestinations(factory),
                notificationClients: try config.tryNotificationClients(factory)
            )
        }

        func renew(_ name: String, _ held: LoadedConfig) -> Destination? {
            // An invalid file changes nothing; a reload reports why.
            guard let now = try? options.reload() else { return nil }
            let changes = ConfigDiff.changes(from: held.effective, to: now.effective, types: types)
            if changes.contains(where: { $0.keys.starts(with: ["destinations", name]) }) { return nil }
            return now.destination(name, factory)
        }
    }

    /// A configuration that loads may still have nothing to watch.
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
