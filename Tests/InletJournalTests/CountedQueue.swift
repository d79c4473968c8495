import InletCore
import InletJournal

extension Journal {
    /// The same as `queueCounts`, found by looking at every delivery.
    func countedQueue() async throws -> [String: QueueCounts] {
        var counts: [String: QueueCounts] = [:]
        let deliveries = try await jobs(FileFilter(limit: 1_000_000)).flatMap { job in
            job.deliveries.map { ($0, job.file.admittedAt) }
        }
        for (delivery, admittedAt) in deliveries.sorted(by: { $0.0.id < $1.0.id }) {
            counts[delivery.destination, default: QueueCounts()].note(delivery, admittedAt)
        }
        return counts.filter { $0.value != QueueCounts() }
    }
}

extension QueueCounts {
    fileprivate mutating func note(_ delivery: DeliveryRow, _ admittedAt: WallTime) {
        switch delivery.state {
        case .parked: parked += 1
        case .claimed: claimed += 1
        case .ready where delivery.isHeld: held += 1
        case .ready where delivery.isBeingWorkedOn: working += 1
        case .ready:
            waiting += 1
            if delivery.code != nil { retrying += 1 }
            oldest = oldest ?? admittedAt
        default: break
        }
    }
}
