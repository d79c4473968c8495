import InletCore

/// One request's place in its lane, and the bytes that it got there. Belongs to the thread of its loop.
final class LanePlace {
    typealias Instant = ContinuousClock.Instant

    private let lane: ThrottleLane
    private let isSmall: Bool
    private let wake: @Sendable () -> Void
    /// Told while it waits.
    private let note: HoldNote?
    /// nil until a limit has been met.
    private var flow: BandwidthFlow?
    private var credit: Int64 = 0
    /// Whether the last question was answered with nothing.
    private(set) var isWaiting = false

    /// nil for requests that are not held.
    ///
    /// - Parameter wake: ends the wait of the loop's thread; from any thread.
    init?(_ submission: Submission, waking wake: @escaping @Sendable () -> Void) {
        let (request, length) = (submission.request, submission.request.body.length)
        guard let lane = submission.lane, length > 0, !request.outlivesCancellation else { return nil }
        self.lane = lane
        isSmall = length <= BandwidthShare.smallBody
        self.wake = wake
        note = submission.note
    }

    deinit { leave() }

    /// How many bytes of the body may be read now, of the `left` that it still has; 0 = not yet.
    func allowance(of left: Int64, at now: Instant) -> Int64 {
        guard lane.isLimited else {
            leave()
            return left
        }
        if credit > 0 { return min(credit, left) }
        let flow = self.flow ?? lane.books.join(waking: wake)
        self.flow = flow
        credit = lane.books.ask(flow, of: lane.destination, wanted: left, isSmall: isSmall, at: now)
        wait(credit == 0)
        return min(credit, left)
    }

    /// `count` bytes were read.
    func use(_ count: Int64) { credit = max(0, credit - count) }

    /// When it is worth asking again; nil when only a limit that is raised can help, which wakes the loop.
    func next(at now: Instant) -> Instant? { lane.books.next(at: now) }

    /// Whether `next` says the same for both.
    func sharesBooks(with other: LanePlace?) -> Bool { lane.books === other?.lane.books }

    /// The request has nothing to send any more.
    func leave() {
        wait(false)
        guard let flow else { return }
        lane.books.leave(flow, unused: credit)
        self.flow = nil
        credit = 0
    }

    private func wait(_ waits: Bool) {
        guard waits != isWaiting else { return }
        isWaiting = waits
        if waits { note?.begin() } else { note?.end() }
    }
}
