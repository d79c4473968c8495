package import InletCore
internal import InletJournal
package import InletLinux
package import InletPipelines

/// A receiver of notifications, and how they are sent to it.
package struct NotificationReceiver: Sendable {
    package let settings: NotifySettings
    private let webhook: Webhook?
    private let pool: BlockingPool

    /// sysexits.h: EX_TEMPFAIL.
    private static let tryAgainLater: Int32 = 75
    /// A program that fails is wrong rather than busy.
    private static let programTries = 5

    /// Those of a configuration. Programs have a thread each, so that one that hangs holds nobody else up.
    static func all(_ settings: [NotifySettings], _ notificationClients: NotificationClients) -> [NotificationReceiver]
    {
        let pool = BlockingPool(name: "hook", threads: settings.count)
        return settings.map { NotificationReceiver($0, webhook: notificationClients.webhooks[$0.name], pool: pool) }
    }

    /// - Parameter pool: where programs are waited for, each on a thread of its own.
    package init(_ settings: NotifySettings, webhook: Webhook?, pool: BlockingPool) {
        (self.settings, self.webhook, self.pool) = (settings, webhook, pool)
    }

    /// Sends a test notification, once.
    package func test(at now: WallTime) async -> NotificationOutcome {
        await send(.test(settings.name, host: ProcessSetup.hostName, at: now), NotificationEnvironment(), at: now)
    }

    func send(_ text: NotificationText, _ details: NotificationEnvironment, at now: WallTime) async
        -> NotificationOutcome
    {
        switch settings.receiver {
        case .webhook:
            guard let webhook else { return .unanswered(after: nil, reason: "no address") }
            return await webhook.post(text.body, id: text.id, at: now)
        case .exec(let words):
            // With an end: programs that read lines ignore one without.
            let child = ChildProcess(
                words, environment: details.environment(text.event), input: text.body + [UInt8(ascii: "\n")],
                timeout: settings.timeout)
            do throws(SystemError) {
                return Self.outcome(try await child.run(on: pool))
            } catch {
                return .unanswered(after: nil, reason: "\(error)")
            }
        }
    }

    static func outcome(_ ended: ChildProcess.Outcome) -> NotificationOutcome {
        switch ended.end {
        case .exited(tryAgainLater): .unanswered(after: nil, reason: "the program asked for a retry\(ended.tail)")
        case .cancelled: .cancelled
        default: ended.failure.map { .refused(reason: $0, tries: programTries) } ?? .taken
        }
    }
}

/// When a notification that failed is sent again. Decides only.
///
/// A receiver that does not answer holds up its line, so that everything comes in order once it is back. A notification that is
/// refused steps aside: those behind it may be accepted. A receiver that refuses one after the other is left alone for a while.
struct NotificationSchedule: Sendable {
    enum Action: Sendable, Equatable {
        case remove
        case again(at: WallTime, holdsLine: Bool)
        case giveUp
        /// It stays as it is, for the next start.
        case leave
    }

    static let firstDelay = Duration.seconds(5)
    static let longestDelay = Duration.seconds(3600)
    /// Counted from the event. One that is already that old at its first try still has `leastTries`.
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
    mutating func event(_ outcome: NotificationOutcome, of notice: QueuedNotification, at now: WallTime) -> Action {
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
            // It answers, and what is wrong with one notification need not be wrong with the next.
            failures = 0
            if refused.count < Self.mostRefused { refused.insert(notice.id) }
            pausedUntil = refused.count > 1 ? now + Self.delay(refused.count - 1) : nil
            if tries >= most ?? .max || isTooOld(notice, tries, now) { return .giveUp }
            return .again(at: now + Self.delay(tries), holdsLine: false)
        }
    }

    private func isTooOld(_ notice: QueuedNotification, _ tries: Int, _ now: WallTime) -> Bool {
        tries >= Self.leastTries && now - notice.createdAt >= Self.patience
    }

    /// 5 s, 10 s, 20 s … 1 h.
    static func delay(_ failures: Int) -> Duration {
        .backoff(firstDelay, upTo: longestDelay, after: failures)
    }
}
