package import InletCore
package import InletLinux
internal import Synchronization
internal import SystemPackage

/// Takes events from the agent's services, writes them to the log, and passes them to listeners (the demo, tests, the
/// page). A separate thread writes the lines: `emit` never waits for the output.
package final class EventLog: Sendable {
    /// An open output and its settings.
    package struct Setup: Sendable {
        fileprivate var settings: LogSettings
        /// The level in effect; `settings` holds the configured one.
        fileprivate var level: LogSettings.Level
        fileprivate var style: LineStyle
        fileprivate var writer: LogWriter

        fileprivate init(_ settings: LogSettings, _ writer: LogWriter) {
            (self.settings, self.writer, level) = (settings, writer, settings.level)
            let stream: StandardStream? =
                switch settings.output {
                case "stdout": .output
                // journald's lines go there while the journal accepts none.
                case "stderr", "journald": .errors
                default: nil
                }
            style = LineStyle(settings.format, on: stream)
        }
    }

    /// nil: events go to listeners only.
    private let setup: Mutex<Setup?>
    private let limits = Mutex((floods: LogLimit(), repeats: RepeatedWarnings()))
    private let listeners = Mutex<[UInt64: (hearsRepeats: Bool, body: @Sendable (AgentEvent) -> Void)]>([:])
    private let nextListener = Atomic<UInt64>(0)

    /// - Parameter settings: nil writes no log; events go to listeners only.
    package init(_ settings: LogSettings?) throws(SystemError) {
        setup = Mutex(nil)
        guard let settings else { return }
        let writer = try writer(settings)
        setup.withLock { $0 = Setup(settings, writer) }
    }

    /// A log through a writer of its own.
    init(_ settings: LogSettings, through writer: LogWriter) { setup = Mutex(Setup(settings, writer)) }

    deinit { setup.withLock { $0?.writer.close() } }

    private func writer(_ settings: LogSettings) throws(SystemError) -> LogWriter {
        let output: any LogOutput =
            switch settings.output {
            case "stderr": StreamOutput(.errors)
            case "stdout": StreamOutput(.output)
            case "journald": JournalOutput(JournalSocket.usual)
            default:
                try FileOutput(
                    FilePath(settings.output), LogRotation(maxSize: settings.maxSize, keep: settings.keep))
            }
        return try LogWriter(output) { [weak self] in self?.emit([$0], isOfLog: true) }
    }

    package func emit(_ event: AgentEvent) { emit([event]) }

    /// Emits several events, with one write for all their lines.
    ///
    /// - Parameters:
    ///   - isUrgent: writes the lines whatever the level.
    ///   - isOfLog: the events report on the log itself: their lines are accepted even when the writer's queue is full.
    package func emit(_ events: [AgentEvent], isUrgent: Bool = false, isOfLog: Bool = false) {
        if events.isEmpty { return }
        let setup = setup.withLock { $0 }
        let (news, lines) = limited(events, isUrgent ? .debug : setup?.level)
        if let setup, !lines.isEmpty, !setup.writer.put(lines, setup.style, at: .now, isUrgent: isOfLog) {
            // A warning that was lost has not been written: its next line is the first.
            limits.withLock { limits in lines.compactMap(\.cause).forEach { limits.repeats.forget($0) } }
        }
        let listeners = listeners.withLock { $0 }
        for listener in listeners.values { for event in listener.hearsRepeats ? events : news { listener.body(event) } }
    }

    /// Leaves out repeated warnings, and selects the lines from `level` on that pass the flood limit. Due counts of
    /// left-out lines come first. A nil `level` writes none.
    private func limited(_ events: [AgentEvent], _ level: LogSettings.Level?) -> ([AgentEvent], [EventLine]) {
        let isLast = events.contains { if case .agentStopping = $0 { true } else { false } }
        let now = ContinuousClock.now
        return limits.withLock { limits in
            var (news, lines) = ([AgentEvent](), [EventLine]())
            if let level {
                let floods = limits.floods.gaps(at: now, all: isLast).map { ($0.event, $0.lines) }
                // Lines below the level are not missing.
                let repeats = limits.repeats.gaps(at: now, all: isLast).filter { event, _ in
                    EventTable.named[event].map { $0.levels.contains { $0 >= level } } ?? true
                }
                let gaps = repeats.merging(floods, uniquingKeysWith: +)
                lines = gaps.sorted { $0.key < $1.key }.map { AgentEvent.logSuppressed(($0.key, $0.value)).line }
            }
            for event in events {
                var line = event.line
                if let cause = line.cause {
                    guard let repeats = limits.repeats.repeats(cause, of: line.name, at: now) else { continue }
                    line.repeats = repeats
                }
                news.append(line.repeats > 0 ? .said(line) : event)
                guard let level, line.level >= level else { continue }
                if !line.mayFlood || limits.floods.takes(line.name, at: now) {
                    lines.append(line)
                } else if let cause = line.cause {
                    limits.repeats.forget(cause)
                }
            }
            return (news, lines)
        }
    }

    /// Calls `body` with every event from now on, on the thread that emits: it must be quick.
    ///
    /// - Parameter hearsRepeats: false leaves out the warnings that the log leaves out because they were said before.
    /// - Returns: ends the listening; ignoring it keeps the listener.
    @discardableResult
    package func listen(
        hearsRepeats: Bool = true, _ body: @escaping @Sendable (AgentEvent) -> Void
    ) -> @Sendable () -> Void {
        let id = nextListener.add(1, ordering: .relaxed).newValue
        listeners.withLock { $0[id] = (hearsRepeats, body) }
        return { [weak self] in self?.listeners.withLock { $0[id] = nil } }
    }

    /// The log's current fault; nil when it works.
    package var status: LogStatus? { setup.withLock { $0?.writer }?.status() }

    /// Blocks until everything emitted before is written, for at most `bound`; returns at once when the output is stuck.
    package func flush(within bound: Duration = .seconds(1)) { setup.withLock { $0?.writer }?.flush(within: bound) }

    // MARK: - Changes of level and output

    /// The lowest level that is written; nil for a log that writes nothing.
    package var level: LogSettings.Level? { setup.withLock { $0?.level } }

    /// The configured level, which a reload or a restart restores.
    package var configuredLevel: LogSettings.Level? { setup.withLock { $0?.settings.level } }

    /// Sets the lowest level that is written, and logs who set it, at every level.
    ///
    /// - Returns: false for a log that writes nothing.
    @discardableResult
    package func setLevel(_ level: LogSettings.Level, by: String) -> Bool {
        let old = setup.withLock { setup -> LogSettings.Level? in
            let old = setup?.level
            setup?.level = level
            return old
        }
        // At another level, warnings that were left out before are written once more.
        if let old, old != level {
            limits.withLock { $0.repeats = RepeatedWarnings() }
            emit([.logLevel(level, by: by)], isUrgent: true)
        }
        return old != nil
    }

    /// Opens the output of a new configuration; no line goes there before `take`.
    ///
    /// - Returns: nil for a log that writes nothing.
    /// - Throws: when the output cannot be opened.
    package func prepare(_ settings: LogSettings) throws(SystemError) -> Setup? {
        guard let known = setup.withLock({ $0 }) else { return nil }
        var same = known.settings
        (same.level, same.format) = (settings.level, settings.format)
        let writer = same == settings ? known.writer : try writer(settings)
        return Setup(settings, writer)
    }

    /// Applies the configuration's level and, from the next line on, its output. Looks the log file up by its name
    /// again, even when nothing has changed.
    package func take(_ prepared: Setup?) {
        guard let prepared else { return }
        let former = setup.withLock { setup in
            defer { setup = prepared }
            return setup
        }
        let isNew = former?.writer !== prepared.writer
        // The new output has none of the warnings that were written before, and another level may have left them out.
        if isNew || former?.level != prepared.level { limits.withLock { $0.repeats = RepeatedWarnings() } }
        if isNew { former?.writer.close() }
        prepared.writer.lookAgain()
    }
}
