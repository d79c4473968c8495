internal import InletCore
internal import InletJournal
internal import InletPipelines

/// When a receiver that could not be told is tried again. Decides only.
///
/// Who does not answer holds up what is in line for him, so that it comes in its order when he is back. A notice that is
/// refused steps aside: those behind it may be wanted. Only who refuses one after the other is left alone for a while.
struct NoticeSchedule: Sendable {
    enum Action: Sendable, Equatable {
        case remove
        case again(at: WallTime, holdsLine: Bool)
        case giveUp
        /// It stays as it is, for the next start.
        case leave
    }

    static let firstDelay = Duration.seconds(5)
    static let longestDelay = Duration.seconds(3600)
    /// From the event on. One that is already as old when it is first tried has its tries all the same.
    static let patience = Duration.seconds(3 * 86_400)
    static let leastTries = 8
    private static let mostRefused = 12

    /// Tries in a row that nobody answered, of whatever notice.
    private(set) var failures = 0
    /// Notices that were refused since one was taken, as many as lengthen the pause.
    private var refused: Set<Int64> = []
    /// Nothing is tried before.
    private(set) var pausedUntil: WallTime?

    /// Whether something was not taken since something was.
    var isFailing: Bool { failures > 0 || !refused.isEmpty }

    /// Takes what came of telling `notice`.
    mutating func event(_ outcome: NoticeOutcome, of notice: Notice, at now: WallTime) -> Action {
        let tries = notice.attempts + 1
        switch outcome {
        case .cancelled: return .leave
        case .taken:
            (failures, refused, pausedUntil) = (0, [], nil)
            return .remove
        case .gone: return .giveUp
        case .unanswered(let after, _):
            failures += 1
            let wait = max(Self.delay(max(tries, failures)), after ?? .zero)
            pausedUntil = now + wait
            return isTooOld(notice, tries, now) ? .giveUp : .again(at: now + wait, holdsLine: true)
        case .refused(_, let most):
            // He answers; and what is wrong with one notice need not be with the next.
            failures = 0
            if refused.count < Self.mostRefused { refused.insert(notice.id) }
            pausedUntil = refused.count > 1 ? now + Self.delay(refused.count - 1) : nil
            if tries >= most ?? .max || isTooOld(notice, tries, now) { return .giveUp }
            return .again(at: now + Self.delay(tries), holdsLine: false)
        }
    }

    private func isTooOld(_ notice: Notice, _ tries: Int, _ now: WallTime) -> Bool {
        tries >= Self.leastTries && now - notice.createdAt >= Self.patience
    }

    /// 5 s, 10 s, 20 s … 1 h.
    static func delay(_ failures: Int) -> Duration {
        failures > 10 ? longestDelay : min(longestDelay, firstDelay * (1 << max(0, failures - 1)))
    }
}
