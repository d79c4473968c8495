import ArgumentParser
import InletAgent
import InletCore
import InletDashboard
import InletJournal
import InletLinux
import InletPipelines
import ServiceLifecycle
import Synchronization
import SystemPackage
import UnixSignals

/// An agent of this process: its journal, its services, and the API on it.
struct AgentSession: Sendable {
    let agent: Agent
    let journal: Journal
    let control: LocalControl
    private let factory: PipelineFactory
    private let socket: FilePath
    private let feed: ActivityFeed
    private let door = WakeSignal()
    /// nil where nothing listens on a port.
    private let dashboard: DashboardServer?

    /// Builds everything from settings; nothing runs yet. The caller keeps `state` while the session lives.
    ///
    /// - Parameters:
    ///   - sendRoots: as `Agent` has them.
    ///   - notificationClients: the receivers of notifications.
    ///   - dashboard: where the page and the API listen; nil = nowhere.
    ///   - source: reads another configuration for a reload.
    ///   - start: waits for the journal's disk; nil: its errors are final.
    init(
        _ settings: Settings, destinations: [Destination], factory: PipelineFactory, log: EventLog,
        state: borrowing StateDirectory, label: String, confinement: ConfinementReport? = nil,
        sendRoots: [WatchSettings]? = nil,
        notificationClients: NotificationClients = NotificationClients(), dashboard: DashboardSettings? = nil,
        source: (any ReloadSource)? = nil, start: StartWait? = nil
    ) async throws {
        Failpoint.opening.reached()
        feed = ActivityFeed(log)
        journal = try await Self.openJournal(state, start)
        factory.checksums.use(journal)
        Failpoint.opened.reached()
        let folder = state.path
        let fleet = try settings.fleet.map { try FleetSetup(reading: $0, state: folder, version: Inlet.version) }
        agent = try await Agent(
            settings: settings, destinations: destinations, journal: journal, log: log,
            label: (Inlet.version, label, confinement),
            sendRoots: sendRoots,
            notificationClients: notificationClients, valve: factory.valve, source: source, fleet: fleet,
            door: door
        ) { error in try await start?.waits(after: error, in: settings.stateDirectory) ?? false }
        start?.ends()
        let status = dashboard.map { DashboardStatus(url: DashboardServer.url($0.listen), needsLogin: !$0.isOpen) }
        let control = LocalControl(agent.control, dashboard: status)
        self.control = control
        let feed = feed
        let logins = settings.stateDirectory.appending("logins.json")
        self.dashboard = dashboard.flatMap { settings in
            status.map {
                DashboardServer(settings, control: control, feed: feed, status: $0, log: log, logins: logins)
            }
        }
        self.factory = factory
        socket = state.controlSocket
    }

    private static func openJournal(
        _ state: borrowing StateDirectory, _ start: StartWait?
    ) async throws -> Journal {
        while true {
            do {
                return try state.openJournal(now: .now)
            } catch {
                guard try await start?.waits(after: error, in: state.path) ?? false else { throw error }
            }
        }
    }

    /// A command that reads the journal without an agent holds the lock for a moment.
    private static let patience = Duration.seconds(5)

    /// Takes the state directory. Waits for a command that holds the lock, and as long as needed for a disk without
    /// room.
    ///
    /// - Throws: `StateDirectory.Fault`.
    static func takeState(_ path: FilePath, _ start: StartWait?) async throws -> StateDirectory {
        let end = ContinuousClock.now.advanced(by: patience)
        while ContinuousClock.now < end {
            do throws(StateDirectory.Fault) {
                return try StateDirectory(path)
            } catch {
                if try await start?.waits(after: error, in: path) == true { return try await takeState(path, start) }
                guard case .held = error, await ControlAccess.status(at: path) == nil else { throw error }
            }
            try await Task.sleep(for: .milliseconds(50))
        }
        return try StateDirectory(path)
    }

    /// The same for a command: prints why not and exits.
    static func takeState(_ path: FilePath) async throws -> StateDirectory {
        do {
            return try await takeState(path, nil)
        } catch let fault as StateDirectory.Fault {
            throw refusal(fault)
        }
    }

    /// Prints why a command cannot have the state directory.
    static func refusal(_ fault: StateDirectory.Fault) -> ExitCode { exitCode(fault).saying("\(fault)") }

    static func exitCode(_ fault: StateDirectory.Fault) -> ExitStatus {
        switch fault {
        case .held: .tryLater
        case .network, .tooLong, .system: .configuration
        }
    }

    /// Runs until a signal; then stops in order. A second signal ends the process at once (130). With a configuration
    /// file, SIGHUP reloads it.
    func run() async throws { try await serve(until: nil) }

    /// Runs until a signal or until `body` returns. - Returns: what that returned; nil where a signal came first.
    func run<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value? {
        let value = Mutex<Value?>(nil)
        try await serve {
            let made = try await body()
            value.withLock { $0 = made }
        }
        return value.withLock { $0 }
    }

    private func serve(until body: (@Sendable () async throws -> Void)?) async throws {
        let server = ControlServer(path: socket, control: control, feed: feed) { [door] in door.raise() }
        let group = ServiceGroup(quietly: agent.services + [server] + (dashboard.map { [$0] } ?? []))
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        let hangups = agent.reload == nil ? nil : await UnixSignalsSequence(trapping: .sighup)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            tasks.addTask {
                var isFirst = true
                for await _ in signals {
                    if !isFirst { ProcessSetup.exitNow(130) }
                    isFirst = false
                    await group.triggerGracefulShutdown()
                }
            }
            if let hangups, let reload = agent.reload {
                tasks.addTask {
                    for await _ in hangups { reload.request() }
                    try await Task.sleep(for: .seconds(86_400))
                }
            }
            if let body {
                tasks.addTask {
                    try await body()
                    await group.triggerGracefulShutdown()
                    try await Task.sleep(for: .seconds(86_400))
                }
            }
            try await tasks.endWithFirst()
        }
        factory.shutdown()
        journal.close()
    }
}

/// The start retries the state directory while its disk has no room or another program has locked the journal. It logs
/// the same lines as a running agent. SIGTERM and Ctrl-C end the wait.
final class StartWait: Sendable {
    private let health: JournalHealth
    private let manager = SystemdSocket()
    /// Ends the waiting; nil until there is some.
    private let state = Mutex((refusals: 0, leaving: ExitSignals?.none))

    /// The time that the service manager gives the start after each try.
    private static let grace = Duration.seconds(60)

    init(_ log: EventLog) { health = JournalHealth(log: log) }

    /// Waits after an error that may pass, longer each time.
    ///
    /// - Returns: false for another error.
    func waits(after error: any Error, in directory: FilePath) async throws -> Bool {
        guard let trouble = Self.passing(error, directory) else { return false }
        health.fails(trouble)
        let pause = state.withLock { state in
            defer { state.refusals += 1 }
            state.leaving = state.leaving ?? ExitSignals()
            return Duration.seconds(1 << min(state.refusals, 3))
        }
        let extended = Self.grace.components.seconds * 1_000_000
        manager?.send("EXTEND_TIMEOUT_USEC=\(extended)\nSTATUS=waiting: \(DisplayText.escape("\(trouble)"))")
        try await Task.sleep(for: pause)
        return true
    }

    /// The state directory and the journal are usable.
    func ends() {
        guard state.withLock({ $0.leaving.take() }) != nil else { return }
        health.works()
        manager?.send("STATUS=")
    }

    /// nil for an error that does not pass without help.
    static func passing(_ error: any Error, _ directory: FilePath) -> JournalError? {
        switch error {
        case let error as JournalError: error.isPassing ? error : nil
        case StateDirectory.Fault.system(let error): error.isFull ? .full(directory) : nil
        case let error as SystemError: error.isFull ? .full(directory) : nil
        default: nil
        }
    }
}
