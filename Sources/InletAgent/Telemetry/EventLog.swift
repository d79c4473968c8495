package import InletCore
package import InletLinux
internal import Synchronization

/// Where the agent's services say what happens: to the log, and to whoever listens (the demo, tests, the page).
package final class EventLog: Sendable {
    private struct Setup: Sendable {
        var settings: LogSettings
        /// What holds now; `settings` has the configuration's.
        var level: LogSettings.Level
        var output: any LogOutput
    }

    /// nil says nothing anywhere but to listeners.
    private let setup: Mutex<Setup?>
    private let limit = Mutex(LogLimit())
    private let listeners = Mutex<[UInt64: @Sendable (AgentEvent) -> Void]>([:])
    private let nextListener = Atomic<UInt64>(0)

    /// A log by the configuration's settings; nil says nothing anywhere but to listeners.
    package init(_ settings: LogSettings?) throws(SystemError) {
        guard let settings else {
            setup = Mutex(nil)
            return
        }
        let output = try LogOutputs.make(settings)
        setup = Mutex(Setup(settings: settings, level: settings.level, output: output))
    }

    package func emit(_ event: AgentEvent) { emit([event]) }

    /// Says several things at once: one write for all their lines.
    package func emit(_ events: [AgentEvent]) { emit(events, isUrgent: false) }

    /// - Parameter isUrgent: whether it is written whatever the level.
    private func emit(_ events: [AgentEvent], isUrgent: Bool) {
        if events.isEmpty { return }
        if let setup = setup.withLock({ $0 }) {
            let lines = events.map(\.line).filter { isUrgent || $0.level >= setup.level }
            let written = limited(
                lines, isLast: events.contains { if case .agentStopping = $0 { true } else { false } })
            if !written.isEmpty { tell(setup.output.write(written, setup.settings.format, at: .now)) }
        }
        let listeners = listeners.withLock { $0 }
        for listener in listeners.values { for event in events { listener(event) } }
    }

    /// The lines that are not too many, behind what was left out before them. Listeners hear of all.
    private func limited(_ lines: [EventLine], isLast: Bool) -> [EventLine] {
        let now = ContinuousClock.now
        return limit.withLock { limit in
            let gaps = limit.gaps(at: now, all: isLast).map { AgentEvent.logSuppressed($0).line }
            return gaps + lines.filter { !$0.mayFlood || limit.takes($0.name, at: now) }
        }
    }

    /// What an output says of itself is an event like others. It is said once, so that this ends.
    private func tell(_ news: LogNews) {
        if let reason = news.trouble { emit(.logTrouble(reason: reason)) }
        if news.lost > 0 { emit(.logLost(lines: news.lost)) }
    }

    /// Calls `body` with every event from now on, on the thread that emits: it must be quick.
    /// - Returns: what ends it.
    package func listen(_ body: @escaping @Sendable (AgentEvent) -> Void) -> @Sendable () -> Void {
        let id = nextListener.add(1, ordering: .relaxed).newValue
        listeners.withLock { $0[id] = body }
        return { [weak self] in self?.listeners.withLock { $0[id] = nil } }
    }
}

extension EventLog {
    /// The least important level that is written now; nil for a log that writes nothing.
    package var level: LogSettings.Level? { setup.withLock { $0?.level } }

    /// The configuration's, which holds again after a reload and at the next start.
    package var configuredLevel: LogSettings.Level? { setup.withLock { $0?.settings.level } }

    /// Writes from now on what is at least as important as `level`, and says who wanted that, whatever the level.
    ///
    /// - Returns: false for a log that writes nothing.
    @discardableResult
    package func setLevel(_ level: LogSettings.Level, by: String) -> Bool {
        let old = setup.withLock { setup -> LogSettings.Level? in
            let old = setup?.level
            setup?.level = level
            return old
        }
        if let old, old != level { emit([.logLevel(level, by: by)], isUrgent: true) }
        return old != nil
    }

    /// An output that is open, for settings that do not hold yet.
    package struct Prepared: Sendable {
        fileprivate var settings: LogSettings
        fileprivate var output: (any LogOutput)?
    }

    /// Opens what a configuration that was read again asks for; nothing is written to it before `take`.
    ///
    /// - Throws: for an output that cannot be opened.
    package func prepare(_ settings: LogSettings) throws(SystemError) -> Prepared {
        guard let known = setup.withLock({ $0 }) else { return Prepared(settings: settings) }
        var same = known.settings
        (same.level, same.format) = (settings.level, settings.format)
        return Prepared(settings: settings, output: same == settings ? known.output : try LogOutputs.make(settings))
    }

    /// The configuration's level holds once more, its output from the next line on. A file is asked for by its name again, even
    /// where nothing has changed.
    package func take(_ prepared: Prepared) {
        guard let output = prepared.output else { return }
        setup.withLock { $0 = Setup(settings: prepared.settings, level: prepared.settings.level, output: output) }
        output.reopen()
    }
}
