internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import Synchronization
internal import SystemPackage

/// The states of a card that a person at the reader acts on.
enum CardState: String, Sendable, CaseIterable {
    case inserted, copying, safe, problem, out
}

/// Runs the program of `on_card` at each change of a card's state: for a lamp, a beeper or a home automation.
///
/// The program shows the present. Of each card only its newest state waits while the program runs, and a state that has
/// passed is not told any more. One program runs at a time; no card waits for it.
final class CardHook: Sendable {
    /// The state of a card that its program does not know yet.
    private struct News: Sendable {
        var state: CardState
        var volume: String
        var path: FilePath
        var text: String
        var at: WallTime
        var tries = 0
        /// Not before then.
        var due = ContinuousClock.now
    }

    private let receiver: NotificationReceiver
    private let log: EventLog
    private let delay: @Sendable (Int) -> Duration
    /// By mount point or folder, in the order of arrival.
    private let waiting = Mutex<[News]>([])
    private let signal = WakeSignal()
    private let isFailing = Mutex(false)

    private static let name = "on_card"
    /// More readers than a machine has: the oldest news goes.
    private static let mostWaiting = 64
    private static let mostTries = 5

    /// - Parameters:
    ///   - command: the program's path and its arguments.
    ///   - timeout: for each run; then the program and its children are ended.
    ///   - delay: before another try, by the number of failed ones.
    init(
        _ command: [String], timeout: Duration = NotifyKeys.all.timeout.standard, log: EventLog,
        delay: @escaping @Sendable (Int) -> Duration = NotificationSchedule.delay
    ) {
        let settings = NotifySettings(name: Self.name, receiver: .exec(command), events: [], timeout: timeout)
        receiver = NotificationReceiver(settings, pool: BlockingPool(name: "card hook", threads: 1))
        (self.log, self.delay) = (log, delay)
    }

    /// Passes a state on, and returns at once.
    ///
    /// - Parameters:
    ///   - volume: the card's name.
    ///   - path: its watched folder, or its mount point; it tells cards of one name apart.
    ///   - text: a sentence for people.
    func tell(_ state: CardState, volume: String, path: FilePath, text: String) {
        let news = News(state: state, volume: volume, path: path, text: text, at: .now)
        waiting.withLock { waiting in
            if let place = waiting.firstIndex(where: { $0.path == path }) {
                waiting[place] = news
            } else {
                if waiting.count >= Self.mostWaiting { waiting.removeFirst() }
                waiting.append(news)
            }
        }
        signal.raise()
    }

    /// Runs the programs until the task is cancelled, which ends a running one.
    func run() async {
        await signal.loop {
            let (due, next) = waiting.withLock { waiting in
                let place = waiting.firstIndex { $0.due <= .now }
                return (place.map { waiting.remove(at: $0) }, waiting.map(\.due).min())
            }
            guard let due else { return next }
            await send(due)
            return .now
        }
    }

    private func send(_ news: News) async {
        var fields = JSONLine()
        fields.add("state", news.state.rawValue)
        fields.add("name", DisplayText.escape(news.volume))
        fields.add("path", news.path.display)
        fields.add("text", DisplayText.escape(news.text))
        var details = NotificationEnvironment()
        (details.path, details.volume, details.text) = (Array(news.path.bytes), news.volume, news.text)
        details.cardState = news.state.rawValue
        let text = NotificationText.card(fields, host: ProcessSetup.hostName, at: news.at)
        let message = NotificationMessage(title: news.volume, text: news.text)
        switch await receiver.send(text, details, message, at: .now) {
        case .taken: isFailing.withLock { $0 = false }
        case .cancelled: break
        case .unanswered(_, let reason):
            failed(text, reason)
            again(news)
        case .refused(let reason, _), .gone(let reason): failed(text, reason)
        }
    }

    /// Once until the program succeeds again.
    private func failed(_ text: NotificationText, _ reason: String) {
        let isKnown = isFailing.withLock { exchange(&$0, with: true) }
        if !isKnown {
            log.emit(.notificationFailed(sink: Self.name, notice: text.id, reason: reason, next: nil))
        }
    }

    /// Tells it again later, unless there is newer news of the card.
    private func again(_ news: News) {
        var news = news
        news.tries += 1
        if news.tries >= Self.mostTries { return }
        news.due = .now.advanced(by: delay(news.tries))
        waiting.withLock { waiting in
            if !waiting.contains(where: { $0.path == news.path }) { waiting.append(news) }
        }
    }
}
