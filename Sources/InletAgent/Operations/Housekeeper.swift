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
                if let waiting = try? await waiting(), waiting.clocks.isEmpty {
                    if wasOver { log.emit(.queueCalm(waiting: 0, limit: queueWarning)) }
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

    /// How many deliveries wait, in the journal or at hand, and the destinations of those that can expire.
    private func waiting() async throws(JournalError) -> (total: Int, clocks: Set<String>) {
        let atHand = smallWork.waiting
        let counts = try await journal.queueCounts()
        let total = counts.values.reduce(0) { $0 + $1.waiting } + atHand.values.reduce(0, +)
        return (total, Set(counts.filter(\.value.canExpire).keys).union(atHand.keys))
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
        for name in waiting.clocks {
            guard let uptime = uptimes[name],
                let expired = try? await journal.setUptime(name, uptime, at: .now), !expired.isEmpty
            else { continue }
            for file in expired { await tellExpired(file, name) }
            finisherBell.ring()
            sweeperBell.ring()
            // What expired may have been the last that others waited for.
            bells.ringAll()
        }
        let isOver = waiting.total > queueWarning
        if isOver, !wasOver { log.emit(.queueWarning(waiting: waiting.total, limit: queueWarning)) }
        if wasOver, !isOver { log.emit(.queueCalm(waiting: waiting.total, limit: queueWarning)) }
        return isOver
    }

    private func tellExpired(_ id: Int64, _ destination: String) async {
        guard let file = try? await journal.job(id)?.file else { return }
        log.emit(.expired(file, destination))
    }
}
