internal import InletCore
internal import InletJournal
internal import Synchronization

/// The small files' claims between the journal and the loops: what waits at hand, what runs, and what has ended. The journal
/// calls all of them claimed; only this knows which have not been begun.
final class SmallWork: Sendable {
    struct Ended {
        let claim: Claim
        let settlement: Settlement
        /// nil for what was never begun.
        let report: DeliveryAttempts.Report?
        /// Why the journal refuses it, as it was said last.
        var refusal: String?

        /// Whether it waits in the queue again.
        var isBack: Bool {
            switch settlement {
            case .again, .waiting: true
            case .delivered, .ended, .expired: false
            }
        }

        /// Back to its place in the queue, untried.
        static func back(_ claim: Claim) -> Ended {
            let settlement = Settlement.again(at: claim.delivery.nextAt, countsAttempt: false, code: nil, reason: nil)
            return Ended(claim: claim, settlement: settlement, report: nil)
        }

        static func expired(_ claim: Claim) -> Ended {
            Ended(claim: claim, settlement: .expired, report: nil)
        }
    }

    /// With no more than this under way, each end is written at once.
    static let crowd = 8
    /// With as many ended, the next exchange comes at once.
    static let batch = 128
    /// With fewer claims at hand it comes soon: the loops would run dry while it is written.
    static let reserve = 64

    struct State {
        var stock = ClaimStock()
        var ended: [Ended] = []
        /// What the journal refuses while it takes others, tried again now and then.
        var refused: [Ended] = []
        var refusedUntil = ContinuousClock.now
        var isClosed = false

        /// Claims that the journal does not know the end of.
        var open: Int { stock.count + ended.count + refused.count }
        /// How long the next exchange may wait for more ends: each is a sync of the disk, and writes the pages that it touches.
        /// nil while little is under way, and when enough has ended; longer while the loops have claims at hand.
        var pause: Duration? {
            guard open > SmallWork.crowd, ended.count < SmallWork.batch else { return nil }
            if stock.waitingCount >= reserve { return .milliseconds(10) }
            return ended.count < SmallWork.batch / 4 ? .milliseconds(2) : nil
        }
        /// How many claims at hand are enough: for as many loops as run now.
        var reserve: Int {
            let running = stock.count - stock.waitingCount
            return running == 0 ? SmallWork.reserve : min(SmallWork.reserve, 2 * running)
        }
        /// When the feeder must look again for the sake of what was refused.
        var nextTry: ContinuousClock.Instant? { refused.isEmpty ? nil : refusedUntil }
    }

    let state = Mutex(State())

    /// What was claimed and has not been begun, by destination.
    var waiting: [String: Int] { state.withLock { $0.stock.waiting } }

    func isWaiting(_ delivery: Int64) -> Bool { state.withLock { $0.stock.isWaiting(delivery) } }

    /// Lets go of a delivery that a person cancelled. - Returns: false when it does not wait here.
    func letGo(of delivery: Int64) -> Bool {
        state.withLock { state in
            guard let claim = state.stock.remove(delivery) else { return false }
            state.ended.append(.back(claim))
            return true
        }
    }
}
