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
        let worstFirst: [DeliveryState] = [.failed, .expired, .cancelled, .superseded, .gone, .delivered]
        // A file's state is called as that of its delivery.
        return worstFirst.first { deliveries.contains($0) }.flatMap { Self(rawValue: $0.rawValue) } ?? .pending
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

/// The deliveries of one file, in an order in which each comes after what it waits for.
package struct DeliverySteps: Sendable, Equatable {
    package struct Step: Sendable, Equatable {
        package var destination: String
        /// The destination that must have the file first.
        package var after: String?

        package init(_ destination: String, after: String? = nil) {
            self.destination = destination
            self.after = after
        }
    }

    package let steps: [Step]

    /// - Parameters:
    ///   - destinations: those that a route names.
    ///   - storages: for those that only register the file, where it is stored. A storage that a route names too is
    ///     delivered to once.
    package init(_ destinations: [String], storages: [String: String] = [:]) {
        var steps: [Step] = []
        func add(_ step: Step) {
            if !steps.contains(where: { $0.destination == step.destination }) { steps.append(step) }
        }
        for destination in destinations {
            // What is stored elsewhere itself stores nothing.
            let storage = storages[destination].flatMap { storages[$0] == nil ? $0 : nil }
            if let storage { add(Step(storage)) }
            add(Step(destination, after: storage))
        }
        self.steps = steps
    }

    /// Every destination that gets a delivery.
    package var destinations: [String] { steps.map(\.destination) }
    /// Those that can begin at once.
    package var first: [String] { steps.filter { $0.after == nil }.map(\.destination) }
}

/// How far a delivery is whose progress is more than bytes: the destination works on it, or on something made from it.
package struct StepProgress: Sendable, Hashable {
    /// 0 to 100, of the whole delivery.
    package var percent: Double
    /// What is being done, in a few words; may hold text of the destination's own.
    package var step: String

    package init(percent: Double, step: String) {
        self.percent = min(max(percent, 0), 100)
        self.step = step
    }
}
