internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle
internal import Synchronization

/// Sends notifications. A reload replaces the receivers: sending to the old ones is cancelled, and what is not sent yet waits in
/// the journal for the new ones.
final class NotificationStage: Service {
    private let notifier: Replaceable<NotificationSender>
    private let restarts: ServiceSupervisor

    init(_ notifier: NotificationSender, _ restarts: ServiceSupervisor) {
        (self.notifier, self.restarts) = (Replaceable(notifier), restarts)
    }

    /// By one at a time.
    func replace(by next: NotificationSender) {
        notifier.current.close()
        next.listen()
        notifier.replace(by: next)
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await self.notifier.run { [restarts = self.restarts] notifier in
                await restarts.keep("sending notifications") { try await notifier.run() }
            }
        }
    }
}

/// Sends the receivers of `notify:` what the outbox holds for each: in order, one at a time, none held up by another. What could not
/// be sent stays in the journal; without receivers there is nothing to do.
///
/// It puts there what it hears of the agent's events; whoever emits one never waits for it.
final class NotificationSender: Service {
    /// What is to be done in the journal, in this order.
    private enum Post: Sendable {
        /// Puts a notification in the outbox, unless `word` was said last; a reply also only if something was said.
        case notify(NotificationEvent, payload: [UInt8], time: WallTime, word: LastWord, isReply: Bool = false)
        /// The thing is as it should be: what is said next about it is news.
        case forget(thing: String)
    }

    private let journal: Journal
    /// Each with what is raised when something was put in the outbox.
    private let receivers: [(receiver: NotificationReceiver, signal: WakeSignal)]
    private let identity: String
    private let log: EventLog
    /// Rows of the outbox.
    private let limit: Int
    /// What is to be put in the outbox; `signal` says that there is something.
    private let posts = Mutex<[Post]>([])
    /// The destinations whose state this process has reported or proved.
    private let reported = Mutex<Set<String>>([])
    private let signal = WakeSignal()
    private let endListening = Mutex<(@Sendable () -> Void)?>(nil)

    private static let journalPause = Duration.seconds(10)
    /// While the journal takes nothing, the oldest are forgotten beyond this.
    private static let mostKept = 1000

    /// Registers the receivers in the journal, which keeps notices for them from then on.
    ///
    /// - Parameter listens: whether it hears at once what happens; otherwise from `listen` on.
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
        (self.journal, self.log, self.limit, identity) = (journal, log, limit, change.identity)
        if listens { listen() }
    }

    /// Hears what happens from now on. Once.
    func listen() {
        if receivers.isEmpty { return }
        let end = log.listen { [weak self] in self?.hear($0) }
        endListening.withLock { $0 = end }
    }

    /// Stops listening; what was heard before is still put in the outbox.
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
        // What went down or came up meanwhile is told after the next start.
        _ = await flush()
    }

    // MARK: - From what happens to the outbox

    func hear(_ event: AgentEvent) {
        switch event {
        case .jobFinished, .batchEnded: wake()
        case .destinationDown(let name, let reason, let probe):
            reported.withLock { _ = $0.insert(name) }
            let payload = NotificationText.destination(name, state: "down", reason: reason, nextProbe: probe)
            add(
                .notify(
                    .destinationDown, payload: payload, time: .now, word: (Journal.thing(destination: name), "down")))
        case .destinationUp(let name): isUp(name, isReply: false)
        case .jobDelivered(let ref, _, _):
            // It may have been reported as down by an earlier process.
            if reported.withLock({ $0.insert(ref.destination).inserted }) { isUp(ref.destination, isReply: true) }
        case .volumeDone(let end) where end.isDone:
            add(.notify(.volumeDone, payload: NotificationText.volume(end), time: .now, word: end.word))
        case .watchPaused(let root, let reason):
            let payload = NotificationText.pausedRoot(root, reason: reason)
            add(.notify(.rootPaused, payload: payload, time: .now, word: (Journal.thing(folder: root), reason)))
        case .watchAdded(let root, _, _): add(.forget(thing: Journal.thing(folder: root)))
        default: break
        }
    }

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

    /// Puts what is kept in the outbox. - Returns: false when the journal takes nothing now.
    func flush() async -> Bool {
        while let post = posts.withLock({ $0.first }) {
            do throws(JournalError) {
                switch post {
                case .notify(let event, let payload, let time, let word, let isReply):
                    Failpoint.posting.reached()
                    try await journal.post(event, payload, at: time, once: word, isReply: isReply)
                    Failpoint.posted.reached()
                case .forget(let thing): try await journal.forgetLastWord(of: thing)
                }
            } catch {
                // It stays, and is posted with the next one or at the next look.
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
            // Nothing shortens the pauses of a receiver: whatever comes meanwhile waits.
            if let pause = schedule.pausedUntil, pause > .now {
                await Task.rest(for: pause - .now)
                return .now
            }
            do {
                switch try await journal.nextNotice(receiver.settings.name, at: .now) {
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
                // That the journal fails is said by those who work with it all the time; notices wait in it.
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
        // A journal that does not answer now is asked at the next notice.
        if let dropped = try? await journal.boundOutbox(to: limit), dropped > 0 {
            log.emit(.notificationDropped(sink: "", count: dropped, reason: "more than \(limit) notifications wait"))
        }
        guard let (notice, details) = try await complete(notice) else {
            return try await journal.removeNotice(notice.id)
        }
        let text = NotificationText(notice, identity: identity, host: ProcessSetup.hostName)
        let outcome = await receiver.send(text, details, at: .now)
        let wasFailing = schedule.isFailing
        let action = schedule.event(outcome, of: notice, at: .now)
        let reason = outcome.reason
        switch action {
        case .leave: return
        case .remove:
            Failpoint.noticeTaken.reached()
            log.emit(
                .notificationSent(sink: notice.sink, notice: text.id, event: text.event, tries: notice.attempts + 1))
            try await journal.removeNotice(notice.id)
            Failpoint.noticeRemoved.reached()
        case .again(let time, let holdsLine):
            // Said once, until the receiver has taken something again.
            if !wasFailing {
                log.emit(.notificationFailed(sink: notice.sink, notice: text.id, reason: reason, next: time))
            }
            try await journal.noticeFailed(notice.id, again: time, holdsLine: holdsLine, reason: reason)
        case .giveUp:
            log.emit(.notificationFailed(sink: notice.sink, notice: text.id, reason: reason, next: nil))
            try await journal.noticeGivenUp(notice.id, reason: reason)
        }
    }

    /// The notification with its whole content; nil when it is no longer true.
    private func complete(_ notice: QueuedNotification) async throws(JournalError) -> (
        QueuedNotification, NotificationEnvironment
    )? {
        switch notice.event {
        case .delivered, .failed, .rejected:
            let job = if let file = notice.subject { try await journal.job(file) } else { nil as Job? }
            return (notice, job.map { NotificationEnvironment($0) } ?? NotificationEnvironment())
        case .destinationDown, .destinationUp, .volumeDone, .rootPaused:
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
    /// Why it was not taken.
    fileprivate var reason: String {
        switch self {
        case .taken, .cancelled: ""
        case .unanswered(_, let reason), .refused(let reason, _), .gone(let reason): reason
        }
    }
}
