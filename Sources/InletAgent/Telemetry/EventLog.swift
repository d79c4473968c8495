package import InletCore
package import InletLinux
internal import Logging
internal import Synchronization

/// Where the agent's services say what happens: to the log, and to whoever listens (the demo, tests, later the page).
package final class EventLog: Sendable {
    private let logger: Logger
    private let listeners = Mutex<[UInt64: @Sendable (AgentEvent) -> Void]>([:])
    private let nextListener = Atomic<UInt64>(0)

    /// A log by the configuration's settings; nil says nothing anywhere but to listeners.
    package init(_ settings: LogSettings?) throws(SystemError) {
        guard let settings else {
            logger = Logger(label: "inlet") { _ in SwiftLogNoOpLogHandler() }
            return
        }
        let sink = try LogSink(settings.output)
        var logger = Logger(label: "inlet") { _ in LineHandler(format: settings.format, sink: sink) }
        logger.logLevel = settings.level.loggerLevel
        self.logger = logger
    }

    package func emit(_ event: AgentEvent) {
        let line = event.line
        if logger.logLevel <= line.level.loggerLevel {
            logger.log(level: line.level.loggerLevel, "\(line.name)", metadata: LineHandler.metadata(line.fields))
        }
        for listener in listeners.withLock({ Array($0.values) }) { listener(event) }
    }

    /// Calls `body` with every event from now on, on the thread that emits: it must be quick.
    /// - Returns: what ends it.
    package func listen(_ body: @escaping @Sendable (AgentEvent) -> Void) -> @Sendable () -> Void {
        let id = nextListener.add(1, ordering: .relaxed).newValue
        listeners.withLock { $0[id] = body }
        return { [weak self] in self?.listeners.withLock { $0[id] = nil } }
    }
}

extension LogSettings.Level {
    var loggerLevel: Logger.Level {
        switch self {
        case .debug: .debug
        case .info: .info
        case .warning: .warning
        case .error: .error
        }
    }
}
