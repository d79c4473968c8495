package import InletCore
package import InletLinux
internal import Synchronization

/// Where the agent's services say what happens: to the log, and to whoever listens (the demo, tests, later the page).
package final class EventLog: Sendable {
    /// nil says nothing anywhere but to listeners.
    private let output: (settings: LogSettings, sink: LogSink)?
    private let listeners = Mutex<[UInt64: @Sendable (AgentEvent) -> Void]>([:])
    private let nextListener = Atomic<UInt64>(0)

    /// A log by the configuration's settings; nil says nothing anywhere but to listeners.
    package init(_ settings: LogSettings?) throws(SystemError) {
        guard let settings else {
            output = nil
            return
        }
        output = (settings, try LogSink(settings.output))
    }

    package func emit(_ event: AgentEvent) { emit([event]) }

    /// Says several things at once: one write for all their lines.
    package func emit(_ events: [AgentEvent]) {
        if events.isEmpty { return }
        if let output {
            var text: [UInt8] = []
            for event in events {
                let line = event.line
                if line.level >= output.settings.level { text += line.text(output.settings.format, at: .now) }
            }
            if !text.isEmpty { output.sink.write(text) }
        }
        let listeners = listeners.withLock { $0 }
        for listener in listeners.values { for event in events { listener(event) } }
    }

    /// Calls `body` with every event from now on, on the thread that emits: it must be quick.
    /// - Returns: what ends it.
    package func listen(_ body: @escaping @Sendable (AgentEvent) -> Void) -> @Sendable () -> Void {
        let id = nextListener.add(1, ordering: .relaxed).newValue
        listeners.withLock { $0[id] = body }
        return { [weak self] in self?.listeners.withLock { $0[id] = nil } }
    }
}
