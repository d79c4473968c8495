package import InletCore
internal import InletJournal
package import InletLinux
package import InletPipelines

/// A receiver of notifications, and how Inlet sends to it.
package struct NotificationReceiver: Sendable {
    package let settings: NotifySettings
    private let webhook: Webhook?
    private let service: MessageClient?
    private let pool: BlockingPool

    /// sysexits.h: EX_TEMPFAIL.
    private static let tryAgainLater: Int32 = 75
    /// A program that fails is more often wrong than busy.
    private static let programTries = 5

    /// The receivers of a configuration. Each program has a thread of its own, so that one that hangs delays no other.
    static func all(_ settings: [NotifySettings], _ notificationClients: NotificationClients) -> [NotificationReceiver]
    {
        let pool = BlockingPool(name: "hook", threads: settings.count)
        return settings.map { NotificationReceiver($0, notificationClients, pool: pool) }
    }

    /// - Parameter pool: where Inlet waits for programs, each on a thread of its own.
    package init(_ settings: NotifySettings, _ clients: NotificationClients = NotificationClients(), pool: BlockingPool)
    {
        (self.settings, self.pool) = (settings, pool)
        (webhook, service) = (clients.webhooks[settings.name], clients.services[settings.name])
    }

    /// Whether people read its notifications: several good news are one message.
    var isForPeople: Bool { if case .service = settings.receiver { true } else { false } }

    /// Sends a test notification, once.
    package func test(at now: WallTime) async -> NotificationOutcome {
        let host = ProcessSetup.hostName
        return await send(
            .test(settings.name, host: host, at: now), NotificationEnvironment(), .test(host: host), at: now)
    }

    func send(
        _ text: NotificationText, _ details: NotificationEnvironment,
        _ message: @autoclosure () -> NotificationMessage, at now: WallTime
    ) async -> NotificationOutcome {
        switch settings.receiver {
        case .service:
            guard let service else { return .unanswered(after: nil, reason: "no address") }
            return await service.send(message(), id: text.id, machine: ProcessSetup.hostName, at: now)
        case .webhook:
            guard let webhook else { return .unanswered(after: nil, reason: "no address") }
            return await webhook.post(text.body, id: text.id, at: now)
        case .exec(let words):
            // With a line break: programs that read lines ignore a line without one.
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

/// When a failed notification is sent again. Decides only.
///
/// A receiver that does not answer holds up its queue, so that notifications arrive in order once it is back. A refused
/// notification steps aside: the next ones may be accepted. After several refusals in a row Inlet pauses the receiver.
struct NotificationSchedule: Sendable {
    enum Action: Sendable, Equatable {
        case remove
        case again(at: WallTime, holdsLine: Bool)
        case giveUp
        /// Stays unchanged for the next start.
        case leave
    }

    static let firstDelay = Duration.seconds(5)
    static let longestDelay = Duration.seconds(3600)
    /// Counted from the event. A notification that is older at its first try still gets `leastTries`.
    static let patience = Duration.seconds(3 * 86_400)
    static let leastTries = 8
    private static let mostRefused = 12

    /// Consecutive tries without an answer, of any notification.
    private(set) var failures = 0
    /// Notifications refused since the last accepted one, as many as lengthen the pause.
    private var refused: Set<Int64> = []
    /// No try before then.
    private(set) var pausedUntil: WallTime?

    /// Whether a notification failed since the last accepted one.
    var isFailing: Bool { failures > 0 || !refused.isEmpty }

    /// Takes the outcome of a try.
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
            // The receiver answers: the next notification may be accepted.
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
