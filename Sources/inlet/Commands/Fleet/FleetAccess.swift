import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletFleet
import InletJournal
import InletLinux
import SystemPackage

/// The address of the fleet's database for a person: it has more rights than an agent's.
struct FleetURLOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The database's address, with the rights of an administrator.",
            discussion: """
                Other users see a command line, so a password belongs in a file. Without --url and --url-file:
                $INLET_FLEET_ADMIN, then 'fleet.admin_url_file' of the configuration.
                """, valueName: "URL"))
    var url: String?
    @Option(help: ArgumentHelp("A file that holds only this address.", valueName: "FILE"), completion: .file())
    var urlFile: String?

    func validate() throws {
        if url != nil, urlFile != nil { throw ValidationError("give either --url or --url-file") }
    }

    /// The address of the options; nil without them.
    func named(_ options: ConfigOption) throws -> PostgresAddress? {
        guard let source = url.map({ .text(Secret($0)) }) ?? urlFile.map({ FleetSettings.Source.file(.absolute($0)) })
        else { return nil }
        // The options work without a configuration, and beside one that is wrong.
        let settings = options.isFound ? (try? options.reload())?.settings.fleet : nil
        return try PostgresAddress.orExit(source, allowsUnverified: settings?.allowsUnverified ?? false)
    }

    /// The address of the options, the environment or the configuration; nil where none has one.
    func found(_ options: ConfigOption) throws -> PostgresAddress? {
        if let address = try named(options) { return address }
        let settings = options.isFound ? try options.load().settings.fleet : nil
        let variable = ProcessSetup.environment(Self.variable).flatMap { $0.isEmpty ? nil : $0 }
        guard let source = variable.map({ .text(Secret($0)) }) ?? settings?.adminURL else { return nil }
        return try PostgresAddress.orExit(source, allowsUnverified: settings?.allowsUnverified ?? false)
    }

    /// The same. Prints which ways there are and exits with 78 where none has an address.
    func required(_ options: ConfigOption) throws -> PostgresAddress {
        if let address = try found(options) { return address }
        throw ExitStatus.configuration.saying(
            "fleet: this needs an administrator's address of the database: give --url-file FILE, set "
                + "\(Self.variable), or set fleet.admin_url_file in the configuration")
    }

    private static let variable = "INLET_FLEET_ADMIN"
}

extension PostgresAddress {
    /// The address that `source` holds. Prints why it cannot be used and exits with 78.
    static func orExit(_ source: FleetSettings.Source, allowsUnverified: Bool) throws -> PostgresAddress {
        do throws(FleetError) {
            return try PostgresAddress(try source.read(), allowsUnverified: allowsUnverified)
        } catch {
            throw error.exit(at: "the database", as: .configuration)
        }
    }
}

extension FleetError {
    /// Prints the error with its remedy: `throw error.exit(at: address.display)`.
    ///
    /// - Parameter status: nil: the one that belongs to the error's code.
    func exit(at server: String, agent: String = "this agent", as status: ExitStatus? = nil) -> ExitCode {
        let words = sentence(Circumstances(server: server, agent: agent))
        return (status ?? self.status).saying("\(words); \(advice)")
    }

    private var status: ExitStatus {
        switch code {
        case .away: .unavailable
        case .untrusted, .refused, .library, .schema: .configuration
        case .isAlive, .sessionOver, .reportFirst, .wentBack, .nothingGranted, .journal: .tryLater
        case .unknownAgent, .usedTwice, .fenced, .notMember, .argument, .fault: .failed
        }
    }
}

/// One connection to the fleet's database, on a thread of its own: its calls block.
enum FleetConnection {
    private static let pool = BlockingPool(name: "fleet", threads: 1)

    /// Calls `body` with the administration. Prints what fails, with its remedy, and exits.
    static func use<Value: Sendable>(
        _ address: PostgresAddress, _ body: @Sendable (inout FleetAdministration) throws -> Value
    ) async throws -> Value {
        try await run(at: address) {
            var administration = FleetAdministration(try PostgresConnection(address, application: "inlet"))
            return try body(&administration)
        }
    }

    /// Runs blocking calls.
    static func run<Value: Sendable>(
        at address: PostgresAddress, agent: String = "this agent", _ body: @Sendable () throws -> Value
    ) async throws -> Value {
        do {
            return try await pool.run { try body() }
        } catch let error as FleetError {
            throw error.exit(at: address.display, agent: agent)
        }
    }
}

extension LoadedConfig {
    /// The fleet of this configuration; exits with 78 where it has none.
    func requiredFleet() throws -> FleetSettings {
        if let fleet = settings.fleet { return fleet }
        throw ExitStatus.configuration.saying(
            "\(file.display) has no 'fleet:'; add it with the database's address: fleet: { url_file: FILE }")
    }

    /// Calls `body` with the journal, where no agent runs. Exits with 75 while one does.
    func useStoppedJournal<Value>(_ body: (Journal) async throws -> Value) async throws -> Value {
        let state = try await AgentSession.takeState(settings.stateDirectory)
        do {
            let journal = try state.openJournal(now: .now)
            defer { journal.close() }
            let value = try await body(journal)
            // The lock is held until here.
            _ = state.path
            return value
        } catch let error as JournalError {
            throw ExitStatus.configuration.saying("\(error)")
        }
    }
}

extension FleetSettings {
    /// This agent's name in the fleet.
    var agentName: String { name ?? ProcessSetup.hostName }
}

extension ConfigOption {
    /// The running agent's view of the fleet; nil where no agent runs, or there is no configuration.
    func askFleet<Value>(_ body: (ControlClient) async throws -> Value?) async throws -> Value? {
        guard isFound, let agent = try await ControlAccess.runningAgent(at: socket()) else { return nil }
        defer { agent.shutdown() }
        do {
            if let value = try await body(agent) { return value }
        } catch let failure as ControlClient.Failure {
            throw ExitStatus.tryLater.saying("\(failure)")
        }
        throw ExitStatus.configuration.saying(
            "the running agent is in no fleet; add 'fleet:' to its configuration, and restart it")
    }
}

extension Console {
    /// Asks on a terminal whether to go on. Elsewhere an order that is not confirmed is an error (64); a person's no
    /// exits with 1.
    ///
    /// - Parameter words: what the order does, as a sentence without its end.
    static func requireYes(_ isConfirmed: Bool, _ words: String) throws {
        if isConfirmed { return }
        guard ProcessSetup.isTerminal(0), isTerminal else { throw ValidationError("\(words); confirm with --yes") }
        let answer = ProcessSetup.typedLine { draw("\(DisplayText.masked(words, keepsColours: false)). Go on? [y/N] ") }
        guard ["y", "yes"].contains(answer?.lowercased().filter { $0 != " " } ?? "") else {
            throw ExitStatus.failed.saying("nothing was changed")
        }
    }
}
