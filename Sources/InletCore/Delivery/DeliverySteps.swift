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
