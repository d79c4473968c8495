/// The state of a file; every file seen ends in exactly one final state.
package enum FileState: String, Sendable, Codable, CaseIterable {
    case pending
    case delivered
    /// Already known: the same content was delivered to the same destination before.
    case duplicate
    /// Failed its route's `validate:`.
    case rejected
    case failed
    case expired
    case cancelled
    /// Missing when its turn came.
    case gone
    /// Changed before it was delivered; the changed file counts as new.
    case superseded

    package var isFinal: Bool { self != .pending }

    /// The state of a file with these deliveries: pending until all are final, then the worst. A file without
    /// deliveries is pending.
    package static func combined(_ deliveries: [DeliveryState]) -> FileState {
        guard deliveries.allSatisfy(\.isFinal) else { return .pending }
        let worstFirst: [DeliveryState] = [.failed, .expired, .cancelled, .superseded, .gone, .delivered]
        // A file's state has the same name as its delivery's.
        return worstFirst.first { deliveries.contains($0) }.flatMap { Self(rawValue: $0.rawValue) } ?? .pending
    }

    /// The worst state of files that belong together; a superseded file counts only if there is no other.
    package static func worst(_ states: some Sequence<FileState>) -> FileState {
        let order: [FileState] = [
            .pending, .failed, .rejected, .expired, .cancelled, .gone, .delivered, .duplicate, .superseded,
        ]
        let states = Set(states)
        return order.first { states.contains($0) } ?? .delivered
    }
}

/// The state of one delivery of a file.
package enum DeliveryState: String, Sendable, Codable, CaseIterable {
    /// Waits for a worker, or for its next attempt.
    case ready
    /// A worker has it.
    case claimed
    case delivered
    case failed
    case expired
    case cancelled
    case gone
    case superseded
    /// Its destination is not configured at present; continues when it is again.
    case parked

    package var isFinal: Bool {
        switch self {
        case .ready, .claimed, .parked: false
        case .delivered, .failed, .expired, .cancelled, .gone, .superseded: true
        }
    }
}

/// The deliveries of a file, each after the one it waits for.
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
    ///   - destinations: the destinations of the route.
    ///   - storages: the storage of each destination that only registers files. A storage that the route names too gets
    ///     the file once.
    package init(_ destinations: [String], storages: [String: String] = [:]) {
        var steps: [Step] = []
        func add(_ step: Step) {
            if !steps.contains(where: { $0.destination == step.destination }) { steps.append(step) }
        }
        for destination in destinations {
            // A destination with a storage cannot be a storage itself.
            let storage = storages[destination].flatMap { storages[$0] == nil ? $0 : nil }
            if let storage { add(Step(storage)) }
            add(Step(destination, after: storage))
        }
        self.steps = steps
    }

    /// All destinations that get a delivery.
    package var destinations: [String] { steps.map(\.destination) }
    /// The destinations that can start at once.
    package var first: [String] { steps.filter { $0.after == nil }.map(\.destination) }
}

/// Progress beyond bytes: the destination processes the file, or something made from it.
package struct StepProgress: Sendable, Hashable {
    /// 0 to 100, of the whole delivery.
    package var percent: Double
    /// The current step in a few words; may contain text from the destination.
    package var step: String

    package init(percent: Double, step: String) {
        self.percent = min(max(percent, 0), 100)
        self.step = step
    }
}
