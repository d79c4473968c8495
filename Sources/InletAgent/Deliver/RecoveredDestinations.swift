internal import InletCore
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle
internal import Synchronization

/// A time in which a destination was away, or refused its credentials, after which failed files are sent again.
struct Outage: Sendable, Equatable {
    /// When it was last known to work. Earlier failures have another cause.
    var since: WallTime
    /// How often it was found away since: a change shows that it is away anew.
    var number = 1
    /// Whether the journal has it, so that a restart forgets nothing.
    var isStored = false
}

/// Sends again what failed because a destination was away or full, once it works again. Each delivery is sent again
/// once: one that fails anew stays failed until a person sends it.
///
/// Only an outage that no file can cause counts: no connection, a failed probe, refused credentials.
struct RecoveredDestinations: Service {
    let shared: Shared
    /// For files that are moved back from quarantine.
    private let pool = BlockingPool(name: "recovery", threads: 1)

    /// Files in one transaction: more would keep deliveries from the journal.
    private static let group = 64
    /// Before a journal that did not answer is asked again.
    private static let pause = Duration.seconds(30)

    init(shared: Shared) { self.shared = shared }

    func run() async throws {
        let registry = shared.destinations
        await cancelWhenGracefulShutdown {
            var hasEndedReturns = false
            await registry.recovery.loop {
                do throws(JournalError) {
                    if !hasEndedReturns {
                        try await InterruptedReturns(journal: shared.journal, pool: pool).end()
                        hasEndedReturns = true
                    }
                    for (name, outage) in registry.outages() { try await care(for: name, outage) }
                    return nil
                } catch {
                    // The lanes, which ask the journal all the time, report its failure.
                    return .now.advanced(by: Self.pause)
                }
            }
        }
    }

    /// A destination that is paused, or goes down meanwhile, keeps its outage.
    private func care(for name: String, _ outage: Outage) async throws(JournalError) {
        if !outage.isStored {
            try await shared.journal.setOutage(of: name, since: outage.since)
            shared.destinations.outageIsStored(name)
        }
        guard try await sendAgain(to: name, outage), shared.destinations.outageIsOver(name, outage) else { return }
        try await shared.journal.setOutage(of: name, since: nil)
    }

    /// The time keeps out what fails meanwhile. - Returns: whether that was all.
    private func sendAgain(to name: String, _ outage: Outage) async throws(JournalError) -> Bool {
        let time = shared.clock.now()
        var (last, sent): (Int64, Int) = (0, 0)
        defer { if sent > 0 { shared.log.emit(.destinationRecovered(destination: name, files: sent)) } }
        let retry = FileRetry(
            journal: shared.journal, pool: pool, uptimes: shared.destinations.uptimes(),
            scope: RetryScope(destination: name, states: [.failed]))
        while shared.destinations.state(of: name)?.isOpen == true, !Task.isCancelled {
            let files = try await shared.journal.failedFiles(
                at: name, from: ErrorCode.ofOutages, since: outage.since, by: time, after: last, limit: Self.group)
            guard let end = files.last else { return true }
            sent += try await retry.run(files).outcomes.count { $0 == .done }
            last = end
            shared.signals.raiseDeliverable()
        }
        return false
    }
}

/// The registry's memory of outages.
extension DestinationRegistry {
    /// The outages that are not dealt with, also of destinations that are still away.
    func outages() -> [(name: String, outage: Outage)] {
        entries.withLock { entries in entries.compactMap { name, entry in entry.outage.map { (name, $0) } } }
            .sorted { $0.name < $1.name }
    }

    func outageIsStored(_ name: String) { entries.withLock { $0[name]?.outage?.isStored = true } }

    /// - Returns: false where the destination has gone away anew since `outage` was read: that is another one, which
    ///   begins no later.
    func outageIsOver(_ name: String, _ outage: Outage) -> Bool {
        entries.withLock { entries in
            guard entries[name]?.outage?.number == outage.number else { return false }
            entries[name]?.outage = nil
            return true
        }
    }
}

extension DestinationState {
    /// Remembers what the event says about outages. An answer to one file, which that file may have caused, begins
    /// none.
    mutating func noteOutage(_ event: CircuitBreaker.Event, _ action: CircuitBreaker.Action, at now: WallTime) {
        switch event {
        case .delivered, .answered: worked = now
        case .outage, .credentials, .probeFailed:
            guard isDown else { return }
            if outage == nil { outage = Outage(since: worked) } else { outage?.number += 1 }
        default: if action == .resume { worked = now }
        }
    }
}
