internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle
internal import Synchronization

/// Tells the receivers of `notify:` what the outbox holds for them: each in its order, one notice at a time, none held up by
/// another. What could not be told stays in the journal; without receivers there is nothing to do.
struct Notifier: Service {
    private let journal: Journal
    private let outlets: [NoticeOutlet]
    private let desk: NoticeDesk
    private let identity: String
    private let log: EventLog
    /// Rows of the outbox.
    private let limit: Int
    private let ear = Ear()

    private static let journalPause = Duration.seconds(10)

    /// Writes down who is told of what: from then on the journal keeps notices for them.
    ///
    /// - Parameter listens: whether it hears at once what happens; otherwise from `listen` on.
    init(
        _ outlets: [NoticeOutlet], journal: Journal, log: EventLog, limit: Int = 100_000, listens: Bool = true
    ) async throws(JournalError) {
        let sinks = outlets.map {
            NoticeSink(name: $0.settings.name, events: $0.settings.events, routes: $0.settings.routes)
        }
        let change = try await journal.setSinks(sinks, at: .now)
        for (name, count) in change.dropped.sorted(by: { $0.key < $1.key }) {
            log.emit(.notificationDropped(sink: name, count: count, reason: "it is no longer in the configuration"))
        }
        let desk = NoticeDesk(receivers: outlets.count)
        (self.journal, self.outlets, self.desk, self.log, self.limit) = (journal, outlets, desk, log, limit)
        identity = change.identity
        if listens { listen() }
    }

    /// Hears what happens from now on.
    func listen() {
        if !outlets.isEmpty { ear.end = log.listen { [desk] in desk.hear($0) } }
    }

    /// Hears nothing any more; what it has heard is still put in the outbox.
    func close() { ear.end = nil }

    func run() async throws {
        guard !outlets.isEmpty else {
            // Ends when the agent stops, or the task is cancelled; both are an end.
            try? await gracefulShutdown()
            return
        }
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask { await keepOutbox() }
                for (outlet, signal) in zip(outlets, desk.signals) { group.addTask { await serve(outlet, signal) } }
            }
        }
        // What went down or came up meanwhile is told after the next start.
        _ = await desk.flush(journal)
    }

    private func keepOutbox() async {
        while !Task.isCancelled {
            let isDone = await desk.flush(journal)
            await desk.signal.wait(until: isDone ? nil : .now.advanced(by: Self.journalPause))
        }
    }

    private func serve(_ outlet: NoticeOutlet, _ signal: WakeSignal) async {
        var schedule = NoticeSchedule()
        while !Task.isCancelled {
            if let pause = schedule.pausedUntil, pause > .now {
                // Ends early only when the task is cancelled. Not by the signal: whatever comes has to wait.
                try? await Task.sleep(for: pause - .now)
                continue
            }
            do {
                switch try await journal.nextNotice(outlet.settings.name, at: .now) {
                case .due(let notice): try await tell(notice, outlet, &schedule)
                // As above.
                case .blocked(let time): try? await Task.sleep(for: max(time - .now, .milliseconds(10)))
                case .later(let time): await signal.wait(until: .now.advanced(by: max(time - .now, .milliseconds(10))))
                case .none: await signal.wait(until: nil)
                }
            } catch {
                // That the journal fails is said by those who work with it all the time; notices wait in it.
                try? await Task.sleep(for: Self.journalPause)
            }
        }
    }

    private func tell(_ notice: Notice, _ outlet: NoticeOutlet, _ schedule: inout NoticeSchedule) async throws {
        await bound()
        guard let (notice, details) = try await complete(notice) else {
            return try await journal.removeNotice(notice.id)
        }
        let text = NoticeText(notice, identity: identity, host: ProcessSetup.hostName)
        let outcome = await outlet.send(text, details, at: .now)
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

    private func bound() async {
        // A journal that does not answer now is asked at the next notice.
        guard let dropped = try? await journal.boundOutbox(to: limit), dropped > 0 else { return }
        log.emit(.notificationDropped(sink: "", count: dropped, reason: "more than \(limit) notices wait"))
    }

    /// The notice with all that it says; nil when it is no longer so.
    private func complete(_ notice: Notice) async throws(JournalError) -> (Notice, NoticeDetails)? {
        switch notice.event {
        case .delivered, .failed, .rejected:
            let job = if let file = notice.subject { try await journal.job(file) } else { nil as Job? }
            return (notice, job.map { NoticeDetails($0) } ?? NoticeDetails())
        case .destinationDown, .destinationUp: return (notice, NoticeDetails(destination: notice.payload))
        case .volumeDone: return (notice, NoticeDetails(volume: notice.payload))
        case .rootPaused: return (notice, NoticeDetails(folder: notice.payload))
        case .batchDone:
            guard let id = notice.subject,
                let (batch, jobs) = try await journal.endedBatch(id, limit: NoticeText.mostFiles)
            else { return notice.payload.isEmpty ? nil : (notice, NoticeDetails()) }
            var notice = notice
            if notice.payload.isEmpty {
                notice.payload = NoticeText.batch(batch, jobs)
                try await journal.keepPayload(notice.payload, of: notice.id)
            }
            return (notice, NoticeDetails(batch))
        }
    }
}

/// What a notifier listens by.
private final class Ear: Sendable {
    private let ending = Mutex<(@Sendable () -> Void)?>(nil)

    /// Setting it ends what was.
    var end: (@Sendable () -> Void)? {
        get { ending.withLock(\.self) }
        set {
            let old = ending.withLock { ending in
                defer { ending = newValue }
                return ending
            }
            old?()
        }
    }
}

extension NoticeOutcome {
    /// Why it was not taken.
    fileprivate var reason: String {
        switch self {
        case .taken, .cancelled: ""
        case .unanswered(_, let reason), .refused(let reason, _), .gone(let reason): reason
        }
    }
}
