internal import InletCore
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle
internal import Synchronization

/// Tells systemd that the agent is ready, stopping, and alive: `WATCHDOG=1` goes out only when intake, journal and
/// workers have each passed their loop since the last one (sd_notify(3), sd_watchdog_enabled(3)).
struct Watchdog: Service {
    let shared: Shared
    let manager: SystemdNotifier
    /// Raised when the agent can be asked; nil where nobody asks it.
    let door: WakeSignal?

    func run() async throws {
        // Who is told that it is ready may ask it at once.
        if let door { await cancelWhenGracefulShutdown { await door.wait(until: nil) } }
        if !Task.isShuttingDownGracefully {
            let roots = shared.settings.watch.count
            shared.log.emit(.agentReady(roots: roots, destinations: shared.destinations.count))
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
        shared.log.emit(.agentStopping)
        manager.stopping()
    }

    private func watch(_ notify: ServiceNotify, every interval: Duration) async {
        let heartbeat = shared.health.heartbeat
        var last: [Heartbeat.Part: Int] = [:]
        _ = heartbeat.haveAllPassed(since: &last)
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            shared.nudge()
            // A journal that does not answer gives no sign of life, which is what the watchdog is for.
            if (try? await shared.journal.totals()) != nil { heartbeat.beat(.journal) }
            // Ends early only when it is asked to stop.
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: interval) }
            if heartbeat.haveAllPassed(since: &last) { _ = notify.send("WATCHDOG=1") }
        }
    }
}

/// What the service manager is told of the agent's life, in the one order that is true: first that it is ready, last that it
/// stops. A reload is spoken of only in between, because `READY=1` ends it: of one before the start is over nobody hears, and
/// one that ends after the stop has begun does not take that back.
final class SystemdNotifier: Sendable {
    private enum Phase {
        case starting
        case ready
        case reloading
        case stopping
    }

    /// nil: nobody listens.
    let notify: ServiceNotify?
    private let phase = Mutex(Phase.starting)

    init(_ notify: ServiceNotify?) { self.notify = notify }

    func ready() { change(from: [.starting], to: .ready) { $0.send("READY=1") } }
    func reloading() { change(from: [.ready], to: .reloading) { $0.reloading() } }
    func reloaded() { change(from: [.reloading], to: .ready) { $0.send("READY=1") } }
    func stopping() { change(from: [.starting, .ready, .reloading], to: .stopping) { $0.send("STOPPING=1") } }

    /// Sent while the phase is held, so that what two say at a time comes in the order of the phases; sending does not block.
    private func change(from: Set<Phase>, to next: Phase, _ tell: (ServiceNotify) -> Void) {
        phase.withLock { phase in
            guard from.contains(phase) else { return }
            phase = next
            if let notify { tell(notify) }
        }
    }
}
