internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle

/// Removes what given-up uploads left at their destinations, at start and whenever one is given up; jobs of theirs that run
/// there are cancelled. Only what is in our journal: others share the bucket. A pause holds up new work, not this; and a
/// destination that is down is asked all the same, because a job that nobody wants costs money until it is cancelled.
/// Runs outside the scope that was cancelled.
struct UploadCleaner: Service {
    let shared: Shared

    /// Before a journal that could not be read is asked again.
    private static let journalPause = Duration.seconds(10)
    private static let atOnce = 16
    /// How long one is left alone whose destination is not configured: disks sleep meanwhile.
    private static let unknownPause = Duration.seconds(86_400)

    private var journal: Journal { shared.journal }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var tries: [Int64: Int] = [:]
            await shared.loop(on: .leftover, for: .sweeper, pause: Self.journalPause) { () throws(JournalError) in
                try await sweep(&tries) ? (true, nil) : (false, try await journal.nextLeftover())
            }
        }
    }

    /// - Parameter tries: how often each leftover could not be removed.
    /// - Returns: whether there may be more.
    private func sweep(_ tries: inout [Int64: Int]) async throws(JournalError) -> Bool {
        let leftovers = try await journal.leftovers(at: .now, limit: Self.atOnce)
        var away: Set<String> = []
        var removed = 0
        var failure: JournalError?
        for (file, delivery, checkpoint) in leftovers {
            do throws(JournalError) {
                if try await remove(file, delivery, checkpoint, &away, &tries) { removed += 1 }
            } catch {
                // It is still in the journal; the others have their turn first.
                failure = error
            }
        }
        if let failure { throw failure }
        return removed == Self.atOnce
    }

    /// - Parameter away: the destinations that cannot be asked now. One that hangs is asked once, so that the others have their turn.
    /// - Returns: whether nothing is left over any more.
    private func remove(
        _ file: FileRow, _ delivery: DeliveryRow, _ checkpoint: [String: [UInt8]], _ away: inout Set<String>,
        _ tries: inout [Int64: Int]
    ) async throws(JournalError) -> Bool {
        guard let destination = shared.destinations[delivery.destination] else {
            // Left to the store's own expiry at last, unless it comes back into the configuration.
            try await journal.leftoverRemains(delivery.id, until: .now + Self.unknownPause)
            return false
        }
        if away.contains(delivery.destination) {
            try await journal.postponeLeftover(delivery.id, until: .now + Self.pause(&tries, of: delivery.id))
            return false
        }
        let notes = journal.seal.opened(checkpoint)
        do throws(DeliveryError) {
            let order = try await shared.order(file, delivery, to: destination)
            try await destination.pipeline.abandon(order, checkpoint: notes)
        } catch {
            try await keep(delivery, error, &away, &tries)
            return false
        }
        tries[delivery.id] = nil
        // What a retry can go on with; one that was superseded is never retried.
        Failpoint.abandoned.reached()
        let kept = delivery.state == .superseded ? [:] : destination.pipeline.reusable(notes)
        try await journal.leftoverRemoved(delivery.id, keeping: journal.seal.closed(kept))
        Failpoint.leftoverRemoved.reached()
        shared.log.emit(.uploadAborted(.init(file, delivery)))
        return true
    }

    /// A try that found nobody there is none, and neither is one that found a server in trouble, however it says so: what
    /// it still has may cost money. The others have their turn there, because the trouble may be with this one.
    private func keep(
        _ delivery: DeliveryRow, _ error: DeliveryError, _ away: inout Set<String>, _ tries: inout [Int64: Int]
    ) async throws(JournalError) {
        // The agent is stopping: at the next start it is tried at once.
        if Task.isCancelled { return }
        let next = WallTime.now + Self.pause(&tries, of: delivery.id)
        switch error.verdict {
        case .outage, .credentials:
            try await journal.postponeLeftover(delivery.id, until: next)
            away.insert(delivery.destination)
        case .retry where error.code == .serverError: try await journal.postponeLeftover(delivery.id, until: next)
        default: try await journal.leftoverRemains(delivery.id, until: next)
        }
    }

    /// How long a leftover is left alone after one more try that did not remove it: soon at first, then ever longer.
    static func pause(_ tries: inout [Int64: Int], of delivery: Int64) -> Duration {
        // More leftovers than this begin anew.
        if tries.count >= 10_000 { tries = [:] }
        tries[delivery, default: 0] += 1
        return .backoff(.seconds(10), upTo: .seconds(300), after: tries[delivery] ?? 1)
    }
}
