internal import InletConfig
internal import InletCore
internal import InletLinux
internal import ServiceLifecycle
internal import Synchronization
internal import SystemPackage

/// Takes another configuration while the agent runs, one at a time: first all of it is read and tried, then it is swapped in
/// without touching what runs. One that is wrong changes nothing.
package final class Reload: Service {
    private struct State {
        var config: LoadedConfig
        var loadedAt = WallTime.now
        var isWanted = false
        var asking: [CheckedContinuation<ReloadOutcome, Never>] = []
        var isClosed = false
    }

    private let source: ReloadSource
    private let steps: ReloadSteps
    private let log: EventLog
    private let manager: ManagerNews
    private let state: Mutex<State>
    private let signal = WakeSignal()
    private let isStopping = StopFlag()
    private let pool: BlockingPool

    /// It blocks only on the steps' own pool.
    init(_ source: ReloadSource, _ steps: ReloadSteps, log: EventLog, manager: ManagerNews) {
        self.source = source
        self.steps = steps
        pool = steps.pool
        self.log = log
        self.manager = manager
        state = Mutex(State(config: source.config))
    }

    /// What holds now.
    var config: LoadedConfig { state.withLock(\.config) }

    /// The same, as it may be shown.
    package var shown: ShownConfig {
        let (config, loadedAt) = state.withLock { ($0.config, $0.loadedAt) }
        return ShownConfig(
            file: config.file, text: ConfigPrinter.show(config, types: source.types), loadedAt: loadedAt)
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
            log.emit(
                .configReloaded(
                    file: file, changes: changes.map(\.path), parked: parked, restart: restart,
                    warnings: warnings.map(\.text)))
        case .refused(let errors): log.emit(.configRefused(file: file, errors: errors.map(\.text)))
        case .failed(let reason): log.emit(.configRefused(file: file, errors: [reason]))
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
            let output = try await pool.run { [log] () throws(SystemError) in try log.prepare(next.settings.log) }
            let parked = try await steps.take(next.settings, trial, ReloadScope(changes), output)
            state.withLock { state in
                state.config = next
                state.loadedAt = .now
            }
            return .done(
                changes: changes, parked: parked, warnings: trial.config.warnings.map { ConfigFault($0) })
        } catch {
            return .failed("nothing was changed: \(error)")
        }
    }
}

/// Parks what comes back to the queue for destinations that a reload has taken away. Sleeps while there are none.
struct StrayKeeper: Service {
    let board: DestinationRegistry
    let retire: @Sendable () async throws -> Bool

    private static let pause = Duration.seconds(30)

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var again: ContinuousClock.Instant?
            while !Task.isCancelled {
                await board.strays.wait(until: again)
                // Said while they are looked for: a delivery that ends meanwhile rings again.
                board.hasStrays()
                let isOpen = try? await retire()
                if isOpen == false { board.straysAreParked() }
                // A journal that takes nothing now is asked again.
                again = isOpen == nil ? .now.advanced(by: Self.pause) : nil
            }
        }
    }
}
