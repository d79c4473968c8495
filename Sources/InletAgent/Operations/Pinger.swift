internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle

/// Tells the service behind `ping_url` that the agent is well, for as long as it is: every loop passes and the journal takes
/// what it is given. Somebody who hears nothing for a while knows that something is wrong.
struct Pinger: Service {
    /// nil: nobody listens.
    let ping: DeadManPing?
    let interval: Duration
    let heartbeat: Heartbeat
    let journal: Journal
    let isJournalFailing: @Sendable () -> Bool
    let log: EventLog
    /// Makes sleeping loops pass once.
    let nudge: @Sendable () -> Void
    /// How long a loop may be busy with one thing.
    var patience = Duration.seconds(300)

    /// The first word comes soon: who has just started the agent wants to see that it works.
    private static let firstPause = Duration.seconds(10)

    func run() async throws {
        guard let ping else {
            // Ends when the agent stops, or the task is cancelled; both are an end.
            try? await gracefulShutdown()
            return
        }
        await cancelWhenGracefulShutdown {
            var story = Story()
            await tell(ping, .start, &story)
            var pulse = Pulse(heartbeat)
            var pause = min(interval, Self.firstPause)
            while !Task.isCancelled {
                nudge()
                // It throws when it is asked to stop.
                do { try await Task.sleep(for: pause) } catch { return }
                pause = interval
                await tell(ping, await state(&pulse), &story)
            }
        }
    }

    private func state(_ pulse: inout Pulse) async -> DeadManPing.Signal {
        if isJournalFailing() { return .fail("the journal cannot be written") }
        // Said to the receiver.
        guard (try? await journal.totals()) != nil else { return .fail("the journal cannot be read") }
        heartbeat.beat(.journal)
        return pulse.age(heartbeat, at: .now) > max(patience, interval)
            ? .fail("a part of the agent stands still") : .success
    }

    /// Nothing is kept for later; what goes wrong is said once, until it goes well again.
    private func tell(_ ping: DeadManPing, _ signal: DeadManPing.Signal, _ story: inout Story) async {
        if signal != .success, story.knowsOnlySuccess { return }
        switch await ping.send(signal) {
        case .taken: story.hasFailed = false
        case .unknown: story.knowsOnlySuccess = true
        case .cancelled: break
        case .failed(let reason):
            if !story.hasFailed {
                log.emit(.notificationFailed(sink: "ping_url", notice: "", reason: reason, next: nil))
            }
            story.hasFailed = true
        }
    }

    private struct Story {
        var hasFailed = false
        /// The service has no address for a start or a failure; it hears of trouble by hearing nothing.
        var knowsOnlySuccess = false
    }

    /// When all loops were last seen to pass.
    private struct Pulse {
        private var last: [Heartbeat.Part: Int] = [:]
        private var seen = ContinuousClock.now

        init(_ heartbeat: Heartbeat) { _ = heartbeat.haveAllPassed(since: &last) }

        mutating func age(_ heartbeat: Heartbeat, at now: ContinuousClock.Instant) -> Duration {
            if heartbeat.haveAllPassed(since: &last) { seen = now }
            return seen.duration(to: now)
        }
    }
}
