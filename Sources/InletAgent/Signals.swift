internal import Synchronization

/// How the parts of the agent wake each other. A signal carries nothing: whoever is woken asks the journal, or the destinations,
/// what there is to do. One that is raised while nobody waits for it is kept.
final class Signals: Sendable {
    enum Signal: Hashable, Sendable {
        /// A delivery of this lane may be due, or there may be room for one.
        case deliverable(LaneID)
        /// A destination may have come or gone.
        case lanes
        /// A delivery waits that may expire.
        case expirable
        /// A file has ended, and its source is to be seen to.
        case finishable
        /// A delivery has ended that may have left something at its destination.
        case leftover
        /// A destination went down, asks for time, or shall be asked now.
        case destination
        /// A limit of bandwidth became 0, or is no more.
        case limit
        /// A batch has ended.
        case batch
    }

    /// Of each lane that was waited for or raised: one of two for each destination.
    private let deliverable = Mutex<[LaneID: WakeSignal]>([:])
    private let lanes = WakeSignal()
    private let expirable = WakeSignal()
    private let finishable = WakeSignal()
    private let leftover = WakeSignal()
    private let destination = WakeSignal()
    private let limit = WakeSignal()
    private let batch = WakeSignal()

    subscript(_ signal: Signal) -> WakeSignal {
        switch signal {
        case .deliverable(let lane):
            deliverable.withLock { signals in
                let signal = signals[lane] ?? WakeSignal()
                signals[lane] = signal
                return signal
            }
        case .lanes: lanes
        case .expirable: expirable
        case .finishable: finishable
        case .leftover: leftover
        case .destination: destination
        case .limit: limit
        case .batch: batch
        }
    }

    /// Wakes one who waits for each of them.
    func raise(_ signals: Signal...) {
        for signal in signals {
            self[signal].raise()
            if case .deliverable = signal { expirable.raise() }
        }
    }

    /// Wakes all lanes, and whoever begins them.
    func raiseDeliverable() {
        for signal in deliverable.withLock({ Array($0.values) }) { signal.raise() }
        raise(.lanes, .expirable)
    }

    /// Returns when the signal is raised, at `deadline`, or when the task is cancelled.
    func wait(for signal: Signal, until deadline: ContinuousClock.Instant? = nil) async {
        await self[signal].wait(until: deadline)
    }
}
