package import InletConfig
package import InletCore
internal import InletLinux
package import InletPipelines
internal import ServiceLifecycle
internal import Synchronization
package import SystemPackage

/// Takes another configuration while the agent runs, one at a time: first all of it is read and tried, then it is swapped in
/// without touching what runs. One that is wrong changes nothing.
package final class Reload: Service {
    private struct State {
        var config: LoadedConfig
        var isWanted = false
        var asking: [CheckedContinuation<ReloadOutcome, Never>] = []
        var isClosed = false
    }

    private let source: ReloadSource
    private let plan: ReloadPlan
    private let shared: Shared
    private let manager: SystemdNotifier
    private let state: Mutex<State>
    private let signal = WakeSignal()
    private let isStopping = StopFlag()
    /// The only place where it blocks.
    private var pool: BlockingPool { plan.pool }

    init(_ source: ReloadSource, _ plan: ReloadPlan, _ manager: SystemdNotifier) {
        (self.source, self.plan, self.manager) = (source, plan, manager)
        shared = plan.shared
        state = Mutex(State(config: source.config))
        show(source.config)
    }

    /// What holds now.
    var config: LoadedConfig { state.withLock(\.config) }

    /// Has it shown to whoever asks.
    private func show(_ config: LoadedConfig) {
        let text = ConfigPrinter.show(config, types: source.types)
        shared.settings.show(ShownConfig(file: config.file, text: text, loadedAt: .now))
    }

    /// Asks for a reload and waits for no answer: for a signal.
    package func request() {
        state.withLock { $0.isWanted = true }
        signal.raise()
    }

    /// Reloads. Those that ask while one is under way get the next, all the same one.
    package func reload() async -> ReloadOutcome {
        await withCheckedContinuation { continuation in
            let isClosed = state.withLock { state in
                if !state.isClosed { state.asking.append(continuation) }
                return state.isClosed
            }
            if isClosed { continuation.resume(returning: Self.stopping) } else { signal.raise() }
        }
    }

    private static let stopping = ReloadOutcome.failed("the agent is stopping")

    package func run() async throws {
        await withGracefulShutdownHandler {
            while !isStopping.isSet, !Task.isCancelled {
                await signal.wait(until: nil)
                let (isWanted, asking) = take()
                if !isWanted || isStopping.isSet {
                    answer(asking, Self.stopping)
                    continue
                }
                answer(asking, await reloadNow())
            }
        } onGracefulShutdown: {
            self.isStopping.set()
            self.signal.raise()
        }
        state.withLock { $0.isClosed = true }
        answer(take().asking, Self.stopping)
    }

    private func take() -> (isWanted: Bool, asking: [CheckedContinuation<ReloadOutcome, Never>]) {
        state.withLock { state in
            defer { (state.isWanted, state.asking) = (false, []) }
            return (state.isWanted || !state.asking.isEmpty, state.asking)
        }
    }

    private func answer(_ asking: [CheckedContinuation<ReloadOutcome, Never>], _ outcome: ReloadOutcome) {
        for continuation in asking { continuation.resume(returning: outcome) }
    }

    private func reloadNow() async -> ReloadOutcome {
        manager.reloading()
        defer { manager.reloaded() }
        let outcome = await attempt()
        let file = state.withLock(\.config.file)
        switch outcome {
        case .done(let changes, let parked, let warnings):
            let restart = changes.filter { $0.effect == .restart }.map(\.path)
            shared.log.emit(
                .configReloaded(
                    file: file, changes: changes.map(\.path), parked: parked, restart: restart,
                    warnings: warnings.map(\.text)))
        case .refused(let errors): shared.log.emit(.configRefused(file: file, errors: errors.map(\.text)))
        case .failed(let reason): shared.log.emit(.configRefused(file: file, errors: [reason]))
        }
        return outcome
    }

    private func attempt() async -> ReloadOutcome {
        let trial: ReloadTrial
        do throws(ConfigErrors) {
            trial = try await pool.run { [source] () throws(ConfigErrors) in try source.read() }
        } catch {
            return .refused(error.list.map { ConfigFault($0) })
        }
        let running = state.withLock(\.config)
        let changes = ConfigComparison.changes(from: running, to: trial.config, types: source.types)
        let next = trial.config.taking(over: running)
        do {
            // Opened first, and where that may take its time: it is used only when all else is sure.
            let output = try await pool.run { [log = shared.log] () throws(SystemError) in
                try log.prepare(next.settings.log)
            }
            let parked = try await plan.take(next.settings, trial, ReloadScope(changes), output)
            state.withLock { $0.config = next }
            show(next)
            return .done(
                changes: changes, parked: parked, warnings: trial.config.warnings.map { ConfigFault($0) })
        } catch {
            return .failed("nothing was changed: \(error)")
        }
    }
}

/// Where an agent's configuration comes from, for an agent that can take another one.
package struct ReloadSource: Sendable {
    /// The one that it was started with.
    package var config: LoadedConfig
    /// Those with which it is read.
    package var types: [DestinationType]
    /// Reads it as it is now, and tries all of it, with no effect on what runs. Blocks.
    package var read: @Sendable () throws(ConfigErrors) -> ReloadTrial

    /// Makes a destination anew with the secrets that stand behind the same text now; nil where the text is another, or cannot be
    /// read. Blocks.
    package var renew: @Sendable (_ name: String, _ held: LoadedConfig) -> Destination?

    package init(
        config: LoadedConfig, types: [DestinationType],
        renew: @escaping @Sendable (_ name: String, _ held: LoadedConfig) -> Destination? = { _, _ in nil },
        read: @escaping @Sendable () throws(ConfigErrors) -> ReloadTrial
    ) {
        (self.config, self.types, self.renew, self.read) = (config, types, renew, read)
    }
}

/// A configuration that could be used, with what was made of it.
package struct ReloadTrial: Sendable {
    package var config: LoadedConfig
    package var destinations: [Destination]
    package var outlets: Outlets

    package init(config: LoadedConfig, destinations: [Destination], outlets: Outlets = Outlets()) {
        (self.config, self.destinations, self.outlets) = (config, destinations, outlets)
    }
}

/// What came of a reload.
package enum ReloadOutcome: Sendable, Equatable {
    /// The new configuration holds, but for what needs a restart.
    case done(changes: [ConfigChange], parked: Int, warnings: [ConfigFault] = [])
    /// The old one holds.
    case refused([ConfigFault])
    /// The old one holds, for a reason that is not in the file.
    case failed(String)
}

/// One thing wrong in a configuration file, or unwise, with its place; holds no secrets.
package struct ConfigFault: Codable, Sendable, Equatable {
    package var file: String
    /// Both count from 1.
    package var line: Int
    package var column: Int
    package var message: String
    /// The source line and a caret under the place; empty for an empty line.
    package var excerpt: String
    /// All of it, as `inlet check` prints it.
    package var text: String

    init(_ error: ConfigError) {
        (file, line, column) = (error.file, error.line, error.column)
        (message, excerpt, text) = (error.message, error.excerpt, error.description)
    }
}

/// The configuration of a running agent, as it may be shown.
package struct ShownConfig: Sendable, Equatable {
    package var file: FilePath
    /// As `inlet config show` prints it.
    package var text: String
    package var loadedAt: WallTime
}
