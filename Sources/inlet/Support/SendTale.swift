import InletDashboard
import Synchronization

/// The jobs of one `send`, in their order, and what of them has been told.
struct SendTale {
    private(set) var jobs: [Int64] = []
    /// How many of `jobs` have been told of.
    private(set) var told = 0
    private(set) var outcome = Sending.Outcome.delivered
    private var known: Set<Int64> = []
    /// Bytes of the files that were handed in, as far as somebody wants to know, and of those that have been told of.
    private var (bytes, toldBytes): (Int64, Int64) = (0, 0)

    /// Whether all that was handed in has been told of.
    var isOver: Bool { told >= jobs.count }

    /// The first `most` that have not been told of.
    func next(_ most: Int) -> [Int64] { Array(jobs[told...].prefix(most)) }

    /// Files that were handed in. - Returns: why some are not taken.
    ///
    /// - Parameter bytes: of those that were taken.
    mutating func take(_ answers: [CommandReport], bytes: Int64 = 0) -> [String] {
        self.bytes += bytes
        var refusals: [String] = []
        for answer in answers {
            guard let job = answer.job else {
                refusals.append(answer.message)
                if outcome == .delivered { outcome = .failed }
                continue
            }
            if answer.known != true, known.insert(job).inserted { jobs.append(job) }
        }
        return refusals
    }

    /// The next of them have been told of.
    ///
    /// - Parameter bytes: of them all.
    mutating func tell(_ outcomes: [Sending.Outcome], bytes: Int64 = 0) {
        told += outcomes.count
        toldBytes += bytes
        if let last = outcomes.last(where: { $0 != .delivered }) { outcome = last }
    }

    var sum: SendLine.Sum {
        var sum = SendLine.Sum()
        (sum.files, sum.ended, sum.bytes, sum.endedBytes) = (jobs.count, told, bytes, toldBytes)
        return sum
    }

    /// Nothing can be learned of those that are left.
    mutating func giveUp() {
        told = jobs.count
        outcome = .failed
    }
}

/// Carries the outcome out of the session's body.
final class SendResult: Sendable {
    private let value = Mutex<Sending.Outcome?>(nil)

    /// nil while the body has not come to its end.
    var outcome: Sending.Outcome? { value.withLock { $0 } }
    func set(_ outcome: Sending.Outcome) { value.withLock { $0 = outcome } }
}
