/// What became of one file; every file seen ends in exactly one of the final ones.
package enum FileState: String, Sendable, Codable, CaseIterable {
    case pending
    case delivered
    /// Known already: the same content went to the same place before.
    case duplicate
    /// Did not pass its route's `validate:`.
    case rejected
    case failed
    case expired
    case cancelled
    /// Was no longer there when its turn came.
    case gone
    /// Changed before it was delivered; the changed file is a new arrival.
    case superseded

    package var isFinal: Bool { self != .pending }

    /// The state of a file with these deliveries: pending while any of them is not final, else the worst. A file without
    /// deliveries is pending.
    package static func combined(_ deliveries: [DeliveryState]) -> FileState {
        guard deliveries.allSatisfy(\.isFinal) else { return .pending }
        let worstFirst: [(DeliveryState, FileState)] = [
            (.failed, .failed), (.expired, .expired), (.cancelled, .cancelled), (.superseded, .superseded),
            (.gone, .gone),
            (.delivered, .delivered),
        ]
        return worstFirst.first { deliveries.contains($0.0) }?.1 ?? .pending
    }

    /// The state of files that belong together: the worst, where a file that another content replaced counts only when
    /// there is no other.
    package static func worst(_ states: some Sequence<FileState>) -> FileState {
        let order: [FileState] = [
            .pending, .failed, .rejected, .expired, .cancelled, .gone, .delivered, .duplicate, .superseded,
        ]
        let states = Set(states)
        return order.first { states.contains($0) } ?? .delivered
    }
}

/// Where one delivery of one file stands.
package enum DeliveryState: String, Sendable, Codable, CaseIterable {
    /// Waits for a worker, or for its time.
    case ready
    /// A worker has it.
    case claimed
    case delivered
    case failed
    case expired
    case cancelled
    case gone
    case superseded
    /// Its destination is not configured at present; comes back when it is.
    case parked

    package var isFinal: Bool {
        switch self {
        case .ready, .claimed, .parked: false
        case .delivered, .failed, .expired, .cancelled, .gone, .superseded: true
        }
    }
}
