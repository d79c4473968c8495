package import InletCore
internal import InletJournal

/// What has happened since the agent's start, counted.
package struct MetricsFigures: Sendable {
    /// How a delivery ended.
    package enum Outcome: String, Sendable, CaseIterable {
        case delivered
        /// Not sent: the destination has the content already.
        case duplicate
        case failed
        case expired
        case cancelled
        case gone
        case superseded

        /// nil for a delivery that has not ended.
        init?(_ state: DeliveryState) {
            switch state {
            case .ready, .claimed, .parked: return nil
            case .delivered: self = .delivered
            case .failed: self = .failed
            case .expired: self = .expired
            case .cancelled: self = .cancelled
            case .gone: self = .gone
            case .superseded: self = .superseded
            }
        }
    }

    /// Of one destination.
    package struct Destination: Sendable, Equatable {
        package var ends: [Outcome: Int] = [:]
        /// Of the files that were delivered there.
        package var deliveredBytes: Int64 = 0
        /// How long the attempts took that delivered.
        package var durations = Histogram.ofDeliveries
        /// Attempts that failed and are made again.
        package var retries = 0
        /// Attempts that went on from where an earlier process was.
        package var resumed = 0

        /// Whether nothing has happened there.
        package var isEmpty: Bool { self == Destination() }
    }

    package var destinations: [String: Destination] = [:]
    /// Files that are done with, by route and state.
    package var files: [String: [FileState: Int]] = [:]
    /// The kernel had more news of watched folders than room for it: what was lost is found by a new listing.
    package var overflows = 0
    /// Deliveries that an earlier process was at when it ended, and that were freed at the start.
    package var recovered = 0
    /// What became of the files that waited at the start; nil until all have been tried.
    package var resume: ResumeSummary?
}
