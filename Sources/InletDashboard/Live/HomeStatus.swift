internal import InletAgent
internal import InletCore
internal import InletLinux
internal import Synchronization

/// The status behind `GET home`, from memory. It is renewed only while somebody asks, by one query of the
/// journal at a time. A journal that is slow, or does not answer, holds up no answer for long.
final class HomeStatus: Sendable {
    private struct State {
        /// The newest report, and when it was asked for.
        var known: (report: StatusReport, at: ContinuousClock.Instant)?
        /// Whether a server renews it.
        var isKept = false
        /// Requests that wait for the next report.
        var waiting: [WakeSignal] = []
    }

    /// A newer report is not renewed.
    private let fresh: Duration
    /// An older one is given only when the next does not come within `patience`.
    private static let stale = Duration.seconds(10)
    private static let patience = Duration.milliseconds(250)
    /// For the first report.
    private static let firstPatience = Duration.seconds(10)

    private let state = Mutex(State())
    private let wanted = WakeSignal()

    init(fresh: Duration = .seconds(2)) { self.fresh = fresh }

    /// Renews the report whenever it is wanted; a server runs it as long as it serves.
    func keep(_ ask: () async throws -> StatusReport) async {
        state.withLock { $0.isKept = true }
        defer { state.withLock { $0.isKept = false } }
        await wanted.loop {
            let now = ContinuousClock.now
            if state.withLock({ ($0.known?.at).map { $0.duration(to: now) < fresh } ?? false }) { return nil }
            // Other parts report a journal that does not answer; the last report stays.
            let report = try? await ask()
            let waiting = state.withLock { state in
                if let report { state.known = (report, now) }
                defer { state.waiting = [] }
                return state.waiting
            }
            for signal in waiting { signal.raise() }
            return nil
        }
    }

    /// The report to answer with.
    ///
    /// - Parameter ask: used where no server renews it.
    func current(_ ask: () async throws -> StatusReport) async throws -> StatusReport {
        let now = ContinuousClock.now
        let (isKept, age, signal) = state.withLock { state -> (Bool, Duration?, WakeSignal?) in
            let age = (state.known?.at).map { $0.duration(to: now) }
            if let age, age <= Self.stale { return (state.isKept, age, nil) }
            let signal = WakeSignal()
            if state.isKept { state.waiting.append(signal) }
            return (state.isKept, age, signal)
        }
        if !isKept { return try await ask() }
        if age.map({ $0 >= fresh }) ?? true { wanted.raise() }
        if let signal {
            await signal.wait(until: now.advanced(by: age == nil ? Self.firstPatience : Self.patience))
            state.withLock { $0.waiting.removeAll { $0 === signal } }
        }
        if let report = state.withLock({ $0.known?.report }) { return report }
        throw APIFault(503, "journal", "the journal does not answer yet; ask again", wait: .seconds(10))
    }
}

extension StatusReport {
    /// The same, with what is in memory as it is now.
    func renewed(by live: AgentControl.Running?) -> StatusReport {
        guard let live else { return self }
        var report = self
        report.roots = live.roots.map(Self.root)
        report.last_file = live.newest.map { LastFile($0) }
        report.journal_reason = live.journalTrouble
        report.journal_failing = report.journal_reason != nil
        // A sentence for the present state.
        report.health = nil
        return report
    }
}
