internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle

/// Removes the remains of abandoned uploads at their destinations, at the start and after each abandoned upload, and
/// cancels their jobs there. Only uploads in the agent's own journal: others share the bucket. A pause does not stop
/// this, and a destination that is down is asked too, because an unwanted job costs money until it is cancelled. Runs
/// outside the scope that was cancelled.
struct UploadCleaner: Service {
    let shared: Shared

    /// The pause before an unreadable journal is asked again.
    private static let journalPause = Duration.seconds(10)
    private static let atOnce = 16
    /// The pause for an upload whose destination is not configured: disks sleep meanwhile.
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

    /// - Parameter tries: failed tries per leftover.
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
                // It stays in the journal; the others come first.
                failure = error
            }
        }
        if let failure { throw failure }
        return removed == Self.atOnce
    }

    /// - Parameter away: unreachable destinations. One that hangs is asked once, so that the others have their turn.
    /// - Returns: whether nothing is left over.
    private func remove(
        _ file: FileRow, _ delivery: DeliveryRow, _ checkpoint: [String: [UInt8]], _ away: inout Set<String>,
        _ tries: inout [Int64: Int]
    ) async throws(JournalError) -> Bool {
        guard let destination = shared.destinations[delivery.destination] else {
            // After that the store's own expiry removes it, unless its destination returns to the configuration.
            try await journal.leftoverRemains(delivery.id, until: .now + Self.unknownPause)
            return false
        }
        // Another agent may continue the upload. If none does, the store's own expiry removes it.
        if !shared.fleet.places.maySend(file) {
            try await journal.leftoverRemains(delivery.id, until: .now + Self.pause(&tries, of: delivery.id))
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
        // The notes that a retry can continue; a superseded file is never retried.
        Failpoint.abandoned.reached()
        let kept = delivery.state == .superseded ? [:] : destination.pipeline.reusable(notes)
        try await journal.leftoverRemoved(delivery.id, keeping: journal.seal.closed(kept))
        Failpoint.leftoverRemoved.reached()
        shared.log.emit(.uploadAborted(.init(file, delivery)))
        return true
    }

    /// A try that found no server, or one in trouble, does not count: the remains may cost money. The others have their
    /// turn, because the trouble may be with this upload.
    private func keep(
        _ delivery: DeliveryRow, _ error: DeliveryError, _ away: inout Set<String>, _ tries: inout [Int64: Int]
    ) async throws(JournalError) {
        // The agent is stopping: the next start tries it at once.
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

    /// The pause for a leftover after a failed try: short at first, then longer and longer.
    static func pause(_ tries: inout [Int64: Int], of delivery: Int64) -> Duration {
        // More leftovers than this begin anew.
        if tries.count >= 10_000 { tries = [:] }
        tries[delivery, default: 0] += 1
        return .backoff(.seconds(10), upTo: .seconds(300), after: tries[delivery] ?? 1)
    }
}
