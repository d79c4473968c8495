internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle
internal import Synchronization

/// Something that is done every so often, whatever else happens. It handles its own errors.
protocol ScheduledJob: Sendable {
    /// Called once, before anything else. - Returns: how long nothing is to be done.
    mutating func begin() async -> Duration
    /// Does it. - Returns: how long nothing is to be done after it.
    mutating func perform() async -> Duration
}

/// Runs one thing until a reload puts another in its place: what the former is at is cancelled, and the new one begins.
final class Replaceable<Value: Sendable>: Sendable {
    private let value: Mutex<Value>
    private let replaced = WakeSignal()

    init(_ value: Value) { self.value = Mutex(value) }

    var current: Value { value.withLock(\.self) }

    func replace(by next: Value) {
        value.withLock { $0 = next }
        replaced.raise()
    }

    /// Until the task is cancelled.
    func run(_ serve: @escaping @Sendable (Value) async -> Void) async {
        while !Task.isCancelled {
            let value = current
            await withDiscardingTaskGroup { group in
                group.addTask { await serve(value) }
                await replaced.wait(until: nil)
                group.cancelAll()
            }
        }
    }
}

/// Does what is to be done every so often. A reload replaces jobs.
final class Scheduler: Service {
    enum ScheduleSlot: Hashable, Sendable, CaseIterable {
        case backup
        case history
        case ping
        case keepAlive
    }

    private let jobs: [ScheduleSlot: Replaceable<(any ScheduledJob)?>]

    init(_ jobs: [ScheduleSlot: (any ScheduledJob)?]) {
        self.jobs = Dictionary(uniqueKeysWithValues: ScheduleSlot.allCases.map { ($0, Replaceable(jobs[$0] ?? nil)) })
    }

    /// - Parameter ping: who is told that the agent is well; nil = nobody.
    convenience init(_ shared: Shared, ping: HealthPing?) {
        let settings = shared.settings.settings
        self.init([
            .backup: BackupJob(shared.journal, settings.journalBackup, shared.log),
            .history: HistoryPruner(shared, settings.historyAfter), .ping: Pinger(shared, ping, settings.ping),
            .keepAlive: KeepAlive(shared),
        ])
    }

    /// - Parameter job: nil where nothing is to be done.
    func replace(_ slot: ScheduleSlot, by job: (any ScheduledJob)?) { jobs[slot]?.replace(by: job) }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                for job in self.jobs.values {
                    group.addTask { await job.run { if let job = $0 { await Self.serve(job) } } }
                }
            }
        }
    }

    private static func serve(_ job: any ScheduledJob) async {
        var job = job
        var pause = await job.begin()
        while !Task.isCancelled {
            // Cancelled when the job is replaced, or the agent stops.
            guard await Task.rest(for: pause) else { return }
            pause = await job.perform()
        }
    }
}

/// Moves files that ended long ago to the journal's history, as `journal_history` says. Looks into the journal only when
/// something may be old enough, at most once a day for ages of days: while it waits, nothing is read or written.
struct HistoryPruner: ScheduledJob {
    private let shared: Shared
    /// How long after its end a file goes.
    private let age: Duration
    /// How it leaves the journal to others for so long; ends early with an error when it is to stop.
    private let rest: @Sendable (Duration) async throws -> Void

    /// After a pass that failed.
    private static let soon = Duration.seconds(3600)

    /// nil where all stay.
    init?(
        _ shared: Shared, _ age: Duration?,
        rest: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    ) {
        guard let age else { return nil }
        (self.shared, self.age, self.rest) = (shared, age, rest)
    }

    /// Not at once: a start has enough to do.
    func begin() -> Duration { min(age, .seconds(60)) }

    /// Moves all that is old enough, with breaks for everybody else.
    func perform() async -> Duration {
        let clock = shared.clock
        let start = clock.instant()
        var (files, youngest, place) = (0, nil as WallTime?, (0, 0) as HistoryPlace?)
        do {
            let time = clock.now() + (.zero - age)
            while let from = place, !Task.isCancelled {
                let begin = clock.instant()
                let step = try await shared.journal.moveToHistory(finishedBy: time, from: from)
                (files, place) = (files + step.files, step.next)
                youngest = [youngest, step.youngest].compactMap(\.self).min()
                // Also after a step that found only what has to stay: it held the journal all the same.
                try await rest(begin.duration(to: clock.instant()))
            }
        } catch {
            tell(files, start.duration(to: clock.instant()))
            if !Task.isCancelled {
                let reason = "cannot move old files to the journal's history: \(error)"
                shared.log.emit(.agentError(reason: reason))
            }
            return Self.soon
        }
        tell(files, start.duration(to: clock.instant()))
        return untilNext(youngest, now: clock.now())
    }

    /// What finishes from now on is old enough in `age` at the soonest; what has finished is so earlier. Those of a day go
    /// together.
    private func untilNext(_ youngest: WallTime?, now: WallTime) -> Duration {
        let pause = min(.seconds(86_400), max(.seconds(60), age / 10))
        let due = youngest.map { Duration.milliseconds($0.milliseconds - now.milliseconds) + age } ?? age
        return max(pause, due)
    }

    private func tell(_ files: Int, _ duration: Duration) {
        if files > 0 { shared.log.emit(.journalPruned(files: files, duration: duration)) }
    }
}

/// Tells the service behind `ping_url` that the agent is well, for as long as it is: every loop passes and the journal takes
/// what it is given. Somebody who hears nothing for a while knows that something is wrong.
struct Pinger: ScheduledJob {
    private let shared: Shared
    private let ping: HealthPing
    private let interval: Duration
    /// How long a loop may be busy with one thing.
    private let patience: Duration

    /// When all loops were last seen to pass.
    private var passes: [Heartbeat.Part: Int] = [:]
    private var allPassedAt = ContinuousClock.now
    /// Said once, until it goes well again.
    private var hasFailed = false
    /// The service has no address for a start or a failure; it hears of trouble by hearing nothing.
    private var knowsOnlySuccess = false

    /// The first ping comes soon: whoever has just started the agent wants to see it.
    private static let firstPause = Duration.seconds(10)

    /// nil where nobody listens.
    init?(_ shared: Shared, _ ping: HealthPing?, _ settings: PingSettings?, patience: Duration = .seconds(300)) {
        guard let ping else { return nil }
        (self.shared, self.ping, self.patience) = (shared, ping, patience)
        interval = settings?.interval ?? .seconds(300)
    }

    mutating func begin() async -> Duration {
        await tell(.start)
        allPassedAt = .now
        _ = shared.health.heartbeat.haveAllPassed(since: &passes)
        shared.nudge()
        return min(interval, Self.firstPause)
    }

    mutating func perform() async -> Duration {
        await tell(await state())
        shared.nudge()
        return interval
    }

    private mutating func state() async -> HealthPing.Signal {
        if shared.health.journal.isFailing { return .fail("the journal cannot be written") }
        guard await shared.journal.answers else { return .fail("the journal cannot be read") }
        shared.health.heartbeat.beat(.journal)
        if shared.health.heartbeat.haveAllPassed(since: &passes) { allPassedAt = .now }
        let isAlive = allPassedAt.duration(to: .now) <= max(patience, interval)
        return isAlive ? .success : .fail("a part of the agent is stuck")
    }

    /// Sends a ping; one that fails is not sent again.
    private mutating func tell(_ signal: HealthPing.Signal) async {
        if signal != .success, knowsOnlySuccess { return }
        switch await ping.send(signal) {
        case .taken: hasFailed = false
        case .unknown: knowsOnlySuccess = true
        case .cancelled: break
        case .failed(let reason):
            if !hasFailed {
                shared.log.emit(.notificationFailed(sink: "ping_url", notice: "", reason: reason, next: nil))
            }
            hasFailed = true
        }
    }
}

/// Keeps credentials alive that end when they are not used: asks the destinations that have such once an hour, also while
/// nothing is delivered. Of those that could not be renewed for days a person is told while there is time. It never touches
/// the journal.
struct KeepAlive: ScheduledJob {
    private let shared: Shared
    private let interval: Duration
    /// What went wrong with each an hour ago; the same again is not said twice.
    private var troubles: [String: String] = [:]
    /// When each login was last warned of.
    private var warnings: [String: WallTime] = [:]

    /// How often the same login is warned of.
    private static let day = Duration.seconds(86_400)

    /// nil where no destination has such.
    init?(_ shared: Shared, interval: Duration = .seconds(3600)) {
        if shared.destinations.perishable().isEmpty { return nil }
        (self.shared, self.interval) = (shared, interval)
    }

    func begin() -> Duration { .zero }

    mutating func perform() async -> Duration {
        for destination in shared.destinations.perishable() {
            troubles[destination.name] = await keep(destination, lastTrouble: troubles[destination.name])
            warnings[destination.name] = await warn(destination, last: warnings[destination.name])
        }
        return interval
    }

    /// - Parameter last: when it was last warned of this login.
    /// - Returns: the same, after this look.
    private func warn(_ destination: Destination, last: WallTime?) async -> WallTime? {
        let time = shared.clock.now()
        guard let warning = await destination.expiry?(time) else { return nil }
        if let last, time - last < Self.day { return last }
        shared.log.emit(.loginExpiring(destination: destination.name, reason: warning))
        return time
    }

    /// - Returns: what went wrong now; nil when nothing did.
    private func keep(_ destination: Destination, lastTrouble: String?) async -> String? {
        do throws(DeliveryError) {
            try await destination.keepAlive?()
            return nil
        } catch {
            guard !Task.isCancelled else { return lastTrouble }
            if error.verdict == .credentials {
                // Probes find out when they work again.
                shared.destinations.report(destination.name, .credentials, reason: error.reason)
                shared.signals.raise(.destination)
            } else if error.reason != lastTrouble {
                shared.log.emit(.destinationError(destination: destination.name, reason: error.reason))
            }
            return error.reason
        }
    }
}
