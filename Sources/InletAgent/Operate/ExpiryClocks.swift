internal import InletCore
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle

/// Keeps the expiry clocks and warns of long queues. Writes nothing while nothing waits.
struct ExpiryClocks: Service {
    let shared: Shared
    let lanes: Lanes

    private static let interval = Duration.seconds(30)
    /// Between two looks, however much happens.
    private static let shortest = Duration.milliseconds(200)

    /// How many deliveries wait, in the journal or at hand, as far as it matters here; and the destinations whose clocks run,
    /// and end something: not those that are down or paused, nor those of which all waits for its window.
    typealias Waiting = (total: Int, clocks: Set<String>)

    func run() async throws {
        // Only its sleeps throw, when it is asked to stop. What the journal does not answer now is asked at the next pass;
        // the workers, who ask it all the time, say that it fails.
        try? await cancelWhenGracefulShutdown {
            var wasOver = false
            var waiting = try? await self.waiting()
            while !Task.isCancelled {
                // Where no clock runs that ends anything there is none to keep, and no reason to wake up.
                if waiting?.clocks.isEmpty == true {
                    await shared.signals.wait(for: .expirable)
                    try await Task.sleep(for: Self.shortest)
                } else {
                    try await Task.sleep(for: await nextPass())
                }
                // As above.
                waiting = try? await self.waiting()
                if let waiting { wasOver = await pass(waiting, wasOver) }
            }
        }
        for (name, uptime) in shared.destinations.uptimes() where shared.destinations.hasRun(name) {
            // The clock goes on from what was written last: files expire later, none too soon.
            _ = try? await shared.journal.setUptime(name, uptime, at: .now)
        }
    }

    func waiting() async throws(JournalError) -> Waiting {
        let atHand = lanes.waiting
        let running = Set(shared.destinations.runningUptimes().keys)
        let expiring = try await shared.journal.nextExpiries(of: Array(running))
        let total = try await shared.journal.queueLength(of: shared.destinations.names) + atHand.values.reduce(0, +)
        return (total, running.intersection(expiring.keys).union(running.intersection(atHand.keys)))
    }

    /// How many wait indeed, as the journal knows without counting a million rows: the files that are pending.
    private func all(atLeast known: Int) async -> Int {
        // A figure for a warning, which is given in any case.
        max(known, (try? await shared.journal.pending())?.files ?? 0)
    }

    /// Sooner than the interval when something expires sooner.
    private func nextPass() async -> Duration {
        let uptimes = shared.destinations.runningUptimes()
        // Asked again then.
        guard let expiries = try? await shared.journal.nextExpiries(of: Array(uptimes.keys)) else {
            return Self.interval
        }
        let left = expiries.map { Duration.milliseconds($0.value - (uptimes[$0.key] ?? 0)) }.min() ?? Self.interval
        return min(Self.interval, max(left, Self.shortest))
    }

    /// Expires what is over its time, and says whether the queue is long. - Returns: whether more wait than the warning allows.
    func pass(_ waiting: Waiting, _ wasOver: Bool) async -> Bool {
        let uptimes = shared.destinations.runningUptimes()
        for name in waiting.clocks {
            guard let uptime = uptimes[name] else { continue }
            while await expire(name, uptime), !Task.isCancelled {}
        }
        let limit = shared.settings.settings.queueWarning
        let isOver = waiting.total > limit
        if isOver, !wasOver {
            shared.log.emit(.queueWarning(waiting: await all(atLeast: waiting.total), limit: limit))
        }
        if wasOver, !isOver { shared.log.emit(.queueNormal(waiting: waiting.total, limit: limit)) }
        return isOver
    }

    /// - Returns: whether there may be more.
    private func expire(_ name: String, _ uptime: Int64) async -> Bool {
        // What the journal cannot expire now expires at a later pass.
        guard let expired = try? await shared.journal.setUptime(name, uptime, at: .now), !expired.isEmpty else {
            return false
        }
        for file in expired { await tellExpired(file, name) }
        shared.signals.raise(.finishable, .leftover)
        // What expired may have been the last that others waited for.
        shared.signals.raiseDeliverable()
        return expired.count == Journal.expiredAtOnce
    }

    private func tellExpired(_ id: Int64, _ destination: String) async {
        // It has expired, and status says so; only this line of the log is missing.
        guard let file = try? await shared.journal.job(id)?.file else { return }
        shared.log.emit(.expired(file, destination))
    }
}
