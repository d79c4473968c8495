internal import InletCore
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle

/// Tells systemd that the agent is ready, stopping, and alive: `WATCHDOG=1` goes out only when intake, journal and
/// workers have each passed their loop since the last one (sd_notify(3), sd_watchdog_enabled(3)).
struct Watchdog: Service {
    let manager: ManagerNews
    let heartbeat: Heartbeat
    let journal: Journal
    let log: EventLog
    let ready: AgentEvent
    /// Raised when the agent can be asked; nil where nobody asks it.
    let door: WakeSignal?
    /// Makes sleeping loops pass once.
    let nudge: @Sendable () -> Void

    func run() async throws {
        // Who is told that it is ready may ask it at once.
        if let door { await cancelWhenGracefulShutdown { await door.wait(until: nil) } }
        if !Task.isShuttingDownGracefully {
            log.emit(ready)
            manager.ready()
        }
        ProcessMemory.releaseColdPages()
        if let notify = manager.notify, let interval = notify.watchdogInterval {
            await watch(notify, every: interval / 3)
        } else {
            // Ends when the agent stops, or the task is cancelled; both are an end.
            try? await gracefulShutdown()
        }
        // Stopping runs what has not been run before.
        ProcessMemory.releaseColdPages()
        log.emit(.agentStopping)
        manager.stopping()
    }

    private func watch(_ notify: ServiceNotify, every interval: Duration) async {
        var last: [Heartbeat.Part: Int] = [:]
        _ = heartbeat.haveAllPassed(since: &last)
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            nudge()
            // A journal that does not answer gives no sign of life, which is what the watchdog is for.
            if (try? await journal.totals()) != nil { heartbeat.beat(.journal) }
            // Ends early only when it is asked to stop.
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: interval) }
            if heartbeat.haveAllPassed(since: &last) { _ = notify.send("WATCHDOG=1") }
        }
    }
}
