internal import InletCore
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle

/// Keeps the expiry clocks and warns of long queues. Writes nothing while nothing waits.
struct Housekeeper: Service {
    let journal: Journal
    let board: DestinationBoard
    let smallWork: SmallWork
    let log: EventLog
    let bells: WorkBells
    let finisherBell: Doorbell
    let sweeperBell: Doorbell
    let queueWarning: Int

    private static let interval = Duration.seconds(30)

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            var wasOver = false
            while !Task.isCancelled {
                // Without anything that waits there is no clock to keep, and no reason to wake up.
                if let waiting = try? await waiting(), waiting.isEmpty {
                    wasOver = false
                    await bells.waitForAny()
                } else {
                    try await Task.sleep(for: await nextPass())
                    wasOver = await pass(wasOver)
                }
            }
        }
        for (name, uptime) in board.uptimes() where board.hasRun(name) {
            _ = try? await journal.setUptime(name, uptime, at: .now)
        }
    }

    /// Deliveries that wait, in the journal or at hand, by destination.
    private func waiting() async throws(JournalError) -> [String: Int] {
        let atHand = smallWork.waiting
        return try await journal.waitingCounts().merging(atHand, uniquingKeysWith: +)
    }

    /// Sooner than the interval when something expires sooner.
    private func nextPass() async -> Duration {
        guard let expiries = try? await journal.nextExpiries(), !expiries.isEmpty else { return Self.interval }
        let uptimes = board.runningUptimes()
        let left =
            expiries.filter { uptimes[$0.key] != nil }.map { Duration.milliseconds($0.value - (uptimes[$0.key] ?? 0)) }
            .min() ?? Self.interval
        return min(Self.interval, max(left, .milliseconds(200)))
    }

    /// - Returns: whether more wait than the warning allows.
    func pass(_ wasOver: Bool) async -> Bool {
        guard let waiting = try? await waiting() else { return wasOver }
        let uptimes = board.runningUptimes()
        for name in waiting.keys {
            guard let uptime = uptimes[name],
                let expired = try? await journal.setUptime(name, uptime, at: .now), !expired.isEmpty
            else { continue }
            finisherBell.ring()
            sweeperBell.ring()
            // What expired may have been the last that others waited for.
            bells.ringAll()
        }
        let total = waiting.values.reduce(0, +)
        if total > queueWarning, !wasOver { log.emit(.queueWarning(waiting: total, limit: queueWarning)) }
        return total > queueWarning
    }
}
