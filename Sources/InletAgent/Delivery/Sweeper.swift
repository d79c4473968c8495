internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle

/// Removes what given-up uploads left at their destinations, at start and whenever one is given up. Only uploads whose
/// ids are in our journal: others share the bucket. Runs outside the scope that was cancelled.
struct Sweeper: Service {
    let journal: Journal
    let board: DestinationBoard
    let orders: OrderDesk
    let log: EventLog
    let bell: Doorbell

    private static let retryAfter = Duration.seconds(300)

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                let mayHaveMore = await sweep()
                if !mayHaveMore { await bell.wait(until: await nextTry()) }
            }
        }
    }

    private func sweep() async -> Bool {
        guard let leftovers = try? await journal.leftovers(at: .now, limit: 16) else { return false }
        var removed = 0
        for leftover in leftovers where await remove(leftover) { removed += 1 }
        return removed == 16
    }

    private func nextTry() async -> ContinuousClock.Instant? {
        guard let next = try? await journal.nextLeftover() else { return nil }
        return .now.advanced(by: max(next - .now, .seconds(1)))
    }

    /// - Returns: whether it is gone.
    private func remove(_ leftover: Leftover) async -> Bool {
        let delivery = leftover.delivery
        do {
            guard let destination = board[delivery.destination], board.isUp(delivery.destination) else {
                try await journal.postponeLeftover(delivery.id, until: .now + Self.retryAfter)
                return false
            }
            let order = try await orders.order(leftover.file, delivery, to: destination)
            do {
                try await destination.pipeline.abandon(order, checkpoint: leftover.checkpoint)
            } catch {
                try await journal.leftoverRemains(delivery.id, until: .now + Self.retryAfter)
                return false
            }
            try await journal.leftoverRemoved(delivery.id)
            let file = leftover.file
            log.emit(
                .uploadAborted(
                    AgentEvent.JobRef(
                        job: file.id, delivery: delivery.id, path: file.fullPath, route: file.route ?? "",
                        destination: delivery.destination)))
            return true
        } catch {
            // The journal cannot be written now; the leftover is still in it.
            return false
        }
    }
}
