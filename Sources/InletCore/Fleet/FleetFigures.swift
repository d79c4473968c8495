/// Figures of an agent about its fleet, for `/metrics`; counters since its start.
package struct FleetFigures: Sendable, Equatable {
    /// The calls of one function of the schema.
    package struct Calls: Sendable, Equatable {
        /// By `ok`, or the code of the error: `IN008`, `away`.
        package var results: [String: Int] = [:]
        package var durations = Histogram.ofCalls
    }

    /// Whether a session is live.
    package var isConnected = false
    /// How long the session lasts without another beat; nil without one.
    package var sessionLeft: Duration?
    /// Whether the fleet lost commits, and grants nothing until its agents have reported.
    package var isRecovering = false
    /// By function, `v1_reserve`.
    package private(set) var calls: [String: Calls] = [:]
    /// Keys that were granted.
    package var reserved = 0
    /// Keys that another agent had, so that a file got the next name.
    package var lost = 0
    /// Files that were named with the agent's tag.
    package var tagged = 0
    package var takeovers = 0
    /// Changes that were refused because another agent has the work.
    package var fenced = 0
    package var placesHeld = 0
    /// The shares that this agent watches, by name: whether it lists them now.
    package var places: [String: Bool] = [:]
    /// Receipts of the journal that are not in the fleet yet.
    package var receiptsBehind = 0

    package init() {}

    /// - Parameter code: nil for a call that succeeded.
    package mutating func count(_ function: String, _ code: FleetError.Code?, took duration: Duration) {
        calls[function, default: Calls()].results[code?.rawValue ?? "ok", default: 0] += 1
        calls[function, default: Calls()].durations.add(duration)
    }
}
