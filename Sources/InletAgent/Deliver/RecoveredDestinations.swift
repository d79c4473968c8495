internal import InletCore
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle

/// Sends again what failed because a destination was away or full, once it works again. Each file is sent once for
/// each recovery: one that fails anew stays failed until the destination has been away again.
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
            await registry.recovery.loop {
                var again: ContinuousClock.Instant?
                for (name, time) in registry.takeRecovered() {
                    do throws(JournalError) {
                        try await sendAgain(to: name, whatFailedBy: time)
                    } catch {
                        // The lanes, which ask the journal all the time, report its failure.
                        registry.keepRecovered(name, time)
                        again = .now.advanced(by: Self.pause)
                    }
                }
                return again
            }
        }
    }

    /// The time keeps out what fails meanwhile, and `last` what failed again already: this comes to an end.
    private func sendAgain(to name: String, whatFailedBy time: WallTime) async throws(JournalError) {
        var (last, sent): (Int64, Int) = (0, 0)
        defer { if sent > 0 { shared.log.emit(.destinationRecovered(destination: name, files: sent)) } }
        let retry = FileRetry(
            journal: shared.journal, pool: pool, uptimes: shared.destinations.uptimes(),
            scope: RetryScope(destination: name, states: [.failed]))
        // Where it goes down meanwhile, the next recovery does the rest.
        while shared.destinations.state(of: name)?.isOpen == true, !Task.isCancelled {
            let files = try await shared.journal.failedFiles(
                at: name, from: ErrorCode.ofOutages, by: time, after: last, limit: Self.group)
            guard let end = files.last else { return }
            sent += try await retry.run(files).outcomes.count { $0 == .done }
            last = end
            shared.signals.raiseDeliverable()
        }
    }
}
