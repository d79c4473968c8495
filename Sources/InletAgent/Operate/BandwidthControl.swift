internal import InletCore
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle
internal import Synchronization

/// Sets the rates at which may be sent: those that hold at the start, others at each edge of the timetable, and what a person
/// says meanwhile. Without a timetable it sleeps until somebody says something.
final class BandwidthControl: Service {
    private let book: Mutex<BandwidthBook>
    private let valve: BandwidthValve
    private let shared: Shared
    private let signal = WakeSignal()

    /// The clock on the wall may be set, and the machine may sleep: with a timetable it is looked at as often as this.
    private static let longest = Duration.seconds(60)

    /// The rates hold when it returns. Folders have no limits.
    init(_ shared: Shared, _ valve: BandwidthValve) {
        let names = shared.destinations.names.filter { shared.destinations[$0]?.folder == nil }
        book = Mutex(BandwidthBook(shared.settings.settings.bandwidth, destinations: names))
        (self.shared, self.valve) = (shared, valve)
        look(cause: .start)
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await self.signal.loop { self.look(cause: .schedule) }
        }
    }

    /// Looks now: for tests that turn the clock.
    func lookNow() { signal.raise() }

    /// - Returns: when to look again; nil: only when somebody asks for it.
    @discardableResult
    private func look(cause: LimitCause) -> ContinuousClock.Instant? {
        let now = shared.clock.now()
        let (changes, hasSchedule, next) = book.withLock { book in
            (set(&book, at: now), book.hasSchedule, book.nextChange(after: now))
        }
        tell(changes, cause)
        guard hasSchedule else { return nil }
        // A little later than the edge, so that it has passed by every clock.
        let wait = next.map { max($0 - now, .zero) + .milliseconds(10) } ?? Self.longest
        return .now.advanced(by: min(wait, Self.longest))
    }

    /// Under the lock, so that of two that look at once the later one has the last word.
    private func set(_ book: inout BandwidthBook, at now: WallTime) -> [BandwidthBook.Standing] {
        let changes = book.changes(at: now)
        if changes.isEmpty { return [] }
        for change in changes { valve.set(change.rate, change.destination) }
        shut(book, at: now)
        return changes
    }

    /// Nothing begins where the limit is 0.
    private func shut(_ book: BandwidthBook, at now: WallTime) {
        shared.destinations.setShut(Set(book.standings(at: now).filter { $0.rate == 0 }.map(\.destination)))
        shared.signals.raiseDeliverable()
        shared.signals.raise(.limit)
    }

    private func tell(_ changes: [BandwidthBook.Standing], _ cause: LimitCause) {
        shared.log.emit(
            changes.map {
                .limitChanged(destination: $0.destination, rate: $0.rate, cause: cause, until: $0.until)
            })
    }

    /// Takes a person's word, for one destination or all together. - Returns: what holds there now; nil for an unknown one.
    func take(_ order: BandwidthBook.Order, for destination: String?) -> BandwidthBook.Standing? {
        let now = shared.clock.now()
        let (isKnown, changes) = book.withLock { book -> (Bool, [BandwidthBook.Standing]) in
            guard book.take(order, for: destination) else { return (false, []) }
            return (true, set(&book, at: now))
        }
        guard isKnown else { return nil }
        tell(changes, .command)
        signal.raise()
        return standings().first { $0.destination == destination }
    }

    /// Takes the limits of another configuration, for these destinations. What a person has said goes on holding.
    func replace(_ limits: BandwidthLimits, destinations: [String]) {
        let now = shared.clock.now()
        let changes = book.withLock { book in
            // Who goes has its limit lifted: it would hold whoever comes back under its name, unseen.
            for name in book.replace(limits, destinations: destinations) { valve.set(nil, name) }
            let changes = set(&book, at: now)
            // Those that are new have not been told.
            shut(book, at: now)
            return changes
        }
        tell(changes, .reload)
        signal.raise()
    }

    /// What holds, all together first.
    func standings() -> [BandwidthBook.Standing] {
        let now = shared.clock.now()
        return book.withLock { $0.standings(at: now) }
    }
}

/// Why a limit is another than before, in log lines.
package enum LimitCause: String, Sendable {
    case start
    case schedule
    case command
    case reload
}
