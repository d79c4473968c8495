internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle
internal import Synchronization
internal import SystemPackage

/// Sends notifications. A reload replaces the receivers: sending to the old ones is cancelled, and unsent notifications
/// wait in the journal for the new ones.
final class NotificationStage: Service {
    private let notifier: Replaceable<NotificationSender>
    private let restarts: ServiceSupervisor

    init(_ notifier: NotificationSender, _ restarts: ServiceSupervisor) {
        (self.notifier, self.restarts) = (Replaceable(notifier), restarts)
    }

    /// For one caller at a time.
    func replace(by next: NotificationSender) {
        notifier.current.close()
        next.listen()
        notifier.replace(by: next)
    }

    /// Something lasts that was said before: only receivers that came since then hear of it.
    func remind(_ event: AgentEvent) { notifier.current.remind(event) }

    /// A folder counts as quiet no longer, although no file came.
    func withdrawQuiet(_ root: FilePath) { notifier.current.withdrawQuiet(root) }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await self.notifier.run { [restarts = self.restarts] notifier in
                await restarts.keep("sending notifications") { try await notifier.run() }
            }
        }
    }
}

/// Sends each receiver of `notify:` its notifications from the outbox, in order, one at a time, independently of other
/// receivers. Unsent ones stay in the journal. Without receivers it does nothing.
///
/// Fills the outbox from the agent's events; emitting an event never waits for that.
final class NotificationSender: Service {
    /// A pending change of the journal; changes are made in order.
    private enum Post: Sendable {
        /// Puts a notification in the outbox, unless `word` was the last word about its thing. A reply also needs an
        /// earlier word.
        case notify(NotificationEvent, payload: [UInt8], time: WallTime, word: LastWord, isReply: Bool = false)
        /// The thing is well again: the next word about it is news.
        case forget(thing: String)
        /// A volume is no longer done: a message that gathers must not say so.
        case withdraw(thing: String)
        /// The same for a folder that is quiet.
        case withdrawQuiet(FilePath)
    }

    private let journal: Journal
    /// Each receiver, with the signal that its outbox has something.
    private let receivers: [(receiver: NotificationReceiver, signal: WakeSignal)]
    /// The receivers whose good news about volumes gathers.
    private let gathering: [String]
    private let identity: String
    private let log: EventLog
    /// The most rows of the outbox.
    private let limit: Int
    /// Changes that the journal has not taken yet; `signal` announces them.
    private let posts = Mutex<[Post]>([])
    /// The destinations whose state this process has reported or proved.
    private let reported = Mutex<Set<String>>([])
    private let signal = WakeSignal()
    private let endListening = Mutex<(@Sendable () -> Void)?>(nil)

    private static let journalPause = Duration.seconds(10)
    /// While the journal accepts no changes, the oldest beyond this number are dropped.
    private static let mostKept = 1000

    /// Registers the receivers in the journal, which queues notifications for them from then on.
    ///
    /// - Parameter listens: whether it listens at once; otherwise `listen` starts that.
    init(
        _ receivers: [NotificationReceiver], journal: Journal, log: EventLog, limit: Int = 100_000, listens: Bool = true
    ) async throws(JournalError) {
        let sinks = receivers.map {
            NotificationSink(name: $0.settings.name, events: $0.settings.events, routes: $0.settings.routes)
        }
        let change = try await journal.setSinks(sinks, at: .now)
        for (name, count) in change.dropped.sorted(by: { $0.key < $1.key }) {
            log.emit(
                .notificationDropped(sink: name, count: count, reason: "the receiver is no longer in the configuration")
            )
        }
        self.receivers = receivers.map { ($0, WakeSignal()) }
        gathering = receivers.filter(\.isForPeople).map(\.settings.name)
        (self.journal, self.log, self.limit, identity) = (journal, log, limit, change.identity)
        if listens { listen() }
    }

    /// Starts listening to events. Call it once.
    func listen() {
        if receivers.isEmpty { return }
        let end = log.listen { [weak self] in self?.hear($0) }
        endListening.withLock { $0 = end }
    }

    /// Stops listening; earlier events still reach the outbox.
    func close() { endListening.withLock(\.self)?() }

    func run() async throws {
        if receivers.isEmpty { return await Task.waitForStop() }
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask {
                    await self.signal.loop { await self.flush() ? nil : .now.advanced(by: Self.journalPause) }
                }
                for (receiver, signal) in self.receivers {
                    group.addTask { await self.serve(receiver, signal) }
                }
            }
        }
        // Changes of destinations during the stop are sent after the next start.
        _ = await flush()
    }

    // MARK: - From events to the outbox

    func hear(_ event: AgentEvent) {
        switch event {
        case .jobFinished, .batchEnded: wake()
        case .destinationDown(let name, let reason, let probe):
            reported.withLock { _ = $0.insert(name) }
            let payload = NotificationText.destination(name, state: "down", reason: reason, nextProbe: probe)
            add(
                .notify(
                    .destinationDown, payload: payload, time: .now,
                    word: (Journal.thing(destination: name), Journal.down)))
        case .destinationUp(let name): isUp(name, isReply: false)
        case .jobDelivered(let ref, _, _):
            // An earlier process may have reported it as down.
            if reported.withLock({ $0.insert(ref.destination).inserted }) { isUp(ref.destination, isReply: true) }
        case .volumeDone(let end) where end.isSafe:
            add(.notify(.volumeDone, payload: NotificationText.volume(end), time: .now, word: end.word))
        case .volumeDone(let end):
            if !gathering.isEmpty { add(.withdraw(thing: end.word.thing)) }
            guard end.needsSomebody else { return }
            add(.notify(.volumeProblem, payload: NotificationText.volume(end), time: .now, word: end.word))
        case .watchPaused(let root, let reason):
            let payload = NotificationText.pausedRoot(root, reason: reason)
            add(.notify(.rootPaused, payload: payload, time: .now, word: (Journal.thing(folder: root), reason)))
        case .rootQuiet(let root, let since, let expect):
            let payload = NotificationText.quietRoot(root, since: since, expect: expect)
            let word = (Journal.thing(arrivalsIn: root), "quiet since \(since.rfc3339)")
            add(.notify(.rootQuiet, payload: payload, time: .now, word: word))
        case .rootRecovered(let root, let since):
            let payload = NotificationText.quietRoot(root, since: since, expect: nil)
            let word = (Journal.thing(arrivalsIn: root), "recovered")
            add(.notify(.rootRecovered, payload: payload, time: .now, word: word, isReply: true))
        case .fleetSilent(let name, let since):
            let payload = NotificationText.silentAgent(name, since: since)
            let word = (Journal.thing(agent: name), "silent since \(since)")
            add(.notify(.agentSilent, payload: payload, time: .now, word: word))
        case .watchAdded(let root, _, _): add(.forget(thing: Journal.thing(folder: root)))
        default: break
        }
    }

    /// Says it to receivers that do not know it: the last word about a thing is not repeated.
    func remind(_ event: AgentEvent) { if !receivers.isEmpty { hear(event) } }

    func withdrawQuiet(_ root: FilePath) { if !receivers.isEmpty { add(.withdrawQuiet(root)) } }

    private func wake() { for (_, signal) in receivers { signal.raise() } }

    private func isUp(_ destination: String, isReply: Bool) {
        let payload = NotificationText.destination(destination, state: "up", reason: nil, nextProbe: nil)
        let word = (Journal.thing(destination: destination), "up")
        add(.notify(.destinationUp, payload: payload, time: .now, word: word, isReply: isReply))
    }

    private func add(_ post: Post) {
        posts.withLock { posts in
            if posts.count >= Self.mostKept { posts.removeFirst() }
            posts.append(post)
        }
        signal.raise()
    }

    /// Writes the pending changes. - Returns: false when the journal accepts none now.
    func flush() async -> Bool {
        while let post = posts.withLock({ $0.first }) {
            do throws(JournalError) {
                switch post {
                case .notify(let event, let payload, let time, let word, let isReply):
                    Failpoint.posting.reached()
                    try await journal.post(event, payload, at: time, once: word, isReply: isReply)
                    Failpoint.posted.reached()
                case .forget(let thing): try await journal.forgetLastWord(of: thing)
                case .withdraw(let thing): try await journal.withdrawDone(of: thing, from: gathering)
                case .withdrawQuiet(let root): try await journal.withdrawQuiet(root)
                }
            } catch {
                // It stays pending until the next event or the next try.
                return false
            }
            posts.withLock { if !$0.isEmpty { $0.removeFirst() } }
            wake()
        }
        return true
    }

    // MARK: - From the outbox to a receiver

    private func serve(_ receiver: NotificationReceiver, _ signal: WakeSignal) async {
        var schedule = NotificationSchedule()
        await signal.loop {
            // A receiver's pause is never shortened: new notifications wait.
            if let pause = schedule.pausedUntil, pause > .now {
                await Task.rest(for: pause - .now)
                return .now
            }
            do {
                switch try await journal.nextNotice(
                    receiver.settings.name, gathers: receiver.isForPeople, at: .now)
                {
                case .due(let notice):
                    try await tell(notice, receiver, &schedule)
                    return .now
                case .blocked(let time):
                    await Task.rest(for: max(time - .now, .milliseconds(10)))
                    return .now
                case .later(let time): return .now.advanced(by: max(time - .now, .milliseconds(10)))
                case .none: return nil
                }
            } catch {
                // Other services report a failing journal; notifications wait in it.
                await Task.rest(for: Self.journalPause)
                return .now
            }
        }
    }

    private func tell(
        _ notice: QueuedNotification, _ receiver: NotificationReceiver, _ schedule: inout NotificationSchedule
    )
        async throws
    {
        // If the journal does not answer now, the next notification asks again.
        if let dropped = try? await journal.boundOutbox(to: limit), dropped > 0 {
            log.emit(.notificationDropped(sink: "", count: dropped, reason: "more than \(limit) notifications wait"))
        }
        guard let (notice, details) = try await complete(notice) else {
            return try await journal.removeNotices([notice.id])
        }
        let isGathered = receiver.isForPeople && notice.event.isOfVolume
        let notices = isGathered ? try await journal.gathered(with: notice) : [notice]
        let text = NotificationText(notice, identity: identity, host: ProcessSetup.hostName)
        let outcome = await receiver.send(text, details, Self.message(notices), at: .now)
        let wasFailing = schedule.isFailing
        let action = schedule.event(outcome, of: notice, at: .now)
        let reason = outcome.reason
        switch action {
        case .leave: return
        case .remove:
            Failpoint.noticeTaken.reached()
            try await journal.removeNotices(notices.map(\.id))
            log.emit(
                .notificationSent(sink: notice.sink, notice: text.id, event: text.event, tries: notice.attempts + 1))
            Failpoint.noticeRemoved.reached()
        case .again(let time, let holdsLine):
            // Logged once until the receiver accepts a notification.
            if !wasFailing {
                log.emit(.notificationFailed(sink: notice.sink, notice: text.id, reason: reason, next: time))
            }
            try await journal.noticesFailed(
                notices.map(\.id), again: time, holdsLine: holdsLine, reason: reason)
        case .giveUp:
            log.emit(.notificationFailed(sink: notice.sink, notice: text.id, reason: reason, next: nil))
            try await journal.noticesGivenUp(notices.map(\.id), reason: reason)
        }
    }

    /// Of each volume the newest verdict: an earlier one no longer holds.
    private static func message(_ notices: [QueuedNotification]) -> NotificationMessage {
        let host = ProcessSetup.hostName
        if notices.count == 1 { return NotificationMessage(notices[0].event, notices[0].payload, host: host) }
        var words: [QueuedNotification] = []
        for notice in notices {
            if let volume = notice.subject { words.removeAll { $0.subject == volume } }
            words.append(notice)
        }
        return NotificationMessage(cards: words.map { ($0.event, $0.payload) }, host: host)
    }

    /// The notification with its whole content; nil when it is out of date.
    private func complete(_ notice: QueuedNotification) async throws(JournalError) -> (
        QueuedNotification, NotificationEnvironment
    )? {
        switch notice.event {
        case .delivered, .failed, .rejected:
            let job = if let file = notice.subject { try await journal.job(file) } else { nil as Job? }
            return (notice, job.map { NotificationEnvironment($0) } ?? NotificationEnvironment())
        case .destinationDown, .destinationUp, .volumeDone, .volumeProblem, .rootPaused, .rootQuiet, .rootRecovered,
            .agentSilent:
            return (notice, NotificationEnvironment(notice.event, notice.payload))
        case .batchDone:
            guard let id = notice.subject,
                let (batch, jobs) = try await journal.endedBatch(id, limit: NotificationText.mostFiles)
            else { return notice.payload.isEmpty ? nil : (notice, NotificationEnvironment()) }
            var notice = notice
            if notice.payload.isEmpty {
                notice.payload = NotificationText.batch(batch, jobs)
                try await journal.keepPayload(notice.payload, of: notice.id)
            }
            return (notice, NotificationEnvironment(batch))
        }
    }
}

extension NotificationOutcome {
    /// Why it failed.
    fileprivate var reason: String {
        switch self {
        case .taken, .cancelled: ""
        case .unanswered(_, let reason), .refused(let reason, _), .gone(let reason): reason
        }
    }
}
