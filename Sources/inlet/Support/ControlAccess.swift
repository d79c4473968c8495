import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletJournal
import InletLinux
import InletPipelines
import SystemPackage

/// Reaches an agent over its socket while it runs, and its journal while it does not.
enum ControlAccess {
    /// A starting agent takes the lock before it listens, and a stopping one holds it for a moment longer.
    private static let patience = Duration.seconds(5)

    /// Calls `body` with the API. Without a running agent the journal is opened under its lock, so that an agent cannot
    /// start in between.
    static func use<Value>(
        _ config: LoadedConfig, _ body: (any ControlAPI) async throws -> Value
    ) async throws -> Value {
        let end = ContinuousClock.now.advanced(by: patience)
        while true {
            if let value = try await askAgent(config, body) { return value }
            if let state = try freeState(config, mayWait: ContinuousClock.now < end) {
                return try await useJournal(state, config, body)
            }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// The running agent of this configuration's state directory; nil when none runs. The caller shuts it down.
    static func runningAgent(_ config: LoadedConfig) async throws -> ControlClient? {
        try await runningAgent(at: config.controlSocket)
    }

    /// The same for the agent that listens at `socket`.
    static func runningAgent(at socket: FilePath) async throws -> ControlClient? {
        let client = ControlClient(socket: socket)
        do {
            if try FileLook.look(at: socket) == .missing {
                client.shutdown()
                return nil
            }
            _ = try await client.ask(Endpoints.status)
            return client
        } catch let failure as ControlClient.Failure where failure.isAbsence {
            client.shutdown()
            return nil
        } catch {
            client.shutdown()
            throw ExitStatus.tryLater.saying("\(error)")
        }
    }

    /// Calls `body` with the agent that listens at `socket`. Prints why and exits with 75 when none does, or it does
    /// not answer.
    ///
    /// - Parameter absence: the message where no agent runs.
    static func useRunning<Value>(
        at socket: FilePath, absence: () throws -> String, _ body: (ControlClient) async throws -> Value
    ) async throws -> Value {
        guard let agent = try await runningAgent(at: socket) else { throw ExitStatus.tryLater.saying(try absence()) }
        defer { agent.shutdown() }
        do {
            return try await body(agent)
        } catch let failure as ControlClient.Failure {
            throw ExitStatus.tryLater.saying("\(failure)")
        }
    }

    /// For looks at a disk that may hang.
    private static let looks = BlockingPool(name: "look", threads: 4)

    /// The status of a state directory's agent; nil when none answers within 5 s, or its disk does not.
    static func status(at stateDirectory: FilePath) async -> StatusReport? {
        let socket = StateDirectory.controlSocket(in: stateDirectory)
        let look = await looks.run {
            // Where nothing can be seen, nobody can be asked.
            (try? LoopThread.result(name: "look", within: patience) { () throws(SystemError) -> FileLook in
                try FileLook.look(at: socket)
            }).flatMap(\.self)
        }
        guard let look, look != .missing else { return nil }
        let client = ControlClient(socket: socket)
        defer { client.shutdown() }
        // `runningAgent` tells why there is no answer.
        return try? await client.status(within: .seconds(5))
    }

    /// nil when no agent answers.
    private static func askAgent<Value>(
        _ config: LoadedConfig, _ body: (any ControlAPI) async throws -> Value
    ) async throws -> Value? {
        let socket = config.controlSocket
        let client = ControlClient(socket: socket)
        defer { client.shutdown() }
        do {
            guard try FileLook.look(at: socket) != .missing else { return nil }
            return try await body(client)
        } catch let failure as ControlClient.Failure where failure.isAbsence {
            // A killed agent leaves behind a socket without a listener.
            return nil
        } catch let failure as ControlClient.Failure {
            Console.printError("inlet: \(failure)")
            throw (failure.isRefusal ? ExitStatus.failed : .tryLater).code
        }
    }

    /// nil while another process holds the lock and waiting helps; otherwise prints why not and exits.
    private static func freeState(_ config: LoadedConfig, mayWait: Bool) throws -> StateDirectory? {
        do throws(StateDirectory.Fault) {
            return try StateDirectory(config.settings.stateDirectory)
        } catch {
            guard case .held(let path) = error else { throw AgentSession.refusal(error) }
            if mayWait { return nil }
            throw ExitStatus.tryLater.saying(
                "\(path.display): an inlet has this state_dir and does not answer yet: it starts or stops, or waits "
                    + "for its journal; its log says which")
        }
    }

    private static func useJournal<Value>(
        _ state: consuming StateDirectory, _ config: LoadedConfig, _ body: (any ControlAPI) async throws -> Value
    ) async throws -> Value {
        let journal: Journal
        do {
            journal = try state.openJournal(now: .now)
        } catch {
            throw ExitStatus.configuration.saying("\(error)")
        }
        let value = try await use(journal, config, body)
        // The lock is held until here.
        _ = state.path
        return value
    }

    /// Calls `body` with the API of the journal, where no agent runs and a journal is there; prints nothing.
    ///
    /// - Returns: nil where there is no journal yet.
    /// - Throws: `StateDirectory.Fault` and `JournalError`, beside what `body` throws.
    static func tryJournal<Value>(
        _ config: LoadedConfig, _ body: (any ControlAPI) async throws -> Value
    ) async throws -> Value? {
        let path = config.settings.stateDirectory
        guard try FileLook.look(at: StateDirectory.journal(in: path)) != .missing else { return nil }
        let state = try StateDirectory(path)
        let value = try await use(try state.openJournal(now: .now), config, body)
        // The lock is held until here.
        _ = state.path
        return value
    }

    private static func use<Value>(
        _ journal: Journal, _ config: LoadedConfig, _ body: (any ControlAPI) async throws -> Value
    ) async throws -> Value {
        defer { journal.close() }
        let factory = PipelineFactory.standard(config)
        defer { factory.shutdown() }
        let agent = AgentControl(journal: journal, configured: config.configuredDestinations) { name in
            // Work for a destination that cannot be made waits for an agent, as for a destination that is not
            // configured.
            config.destination(name, factory)
        }
        return try await body(LocalControl(agent))
    }
}

extension ConfigOption {
    /// Calls `body` with the API of this configuration's agent, or of its journal.
    func use<Value>(_ body: (any ControlAPI) async throws -> Value) async throws -> Value {
        try await ControlAccess.use(try load(), body)
    }
}
