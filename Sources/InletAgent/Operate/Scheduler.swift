internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle
internal import Synchronization

/// Work that is done at intervals, whatever else happens. It handles its own errors.
protocol ScheduledJob: Sendable {
    /// Called once, before anything else. - Returns: the pause before the first run.
    mutating func begin() async -> Duration
    /// Does the work. - Returns: the pause after it.
    mutating func perform() async -> Duration
}

/// Runs one value until a reload replaces it: the old one is cancelled, and the new one starts.
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

/// Runs the jobs at their intervals. A reload replaces jobs.
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

    /// - Parameter ping: the service that hears that the agent is well; nil is none.
    convenience init(_ shared: Shared, ping: HealthPing?) {
        let settings = shared.settings.settings
        self.init([
            .backup: BackupJob(shared.journal, settings.journalBackup, shared.log),
            .history: HistoryPruner(shared, settings.historyAfter), .ping: Pinger(shared, ping, settings.ping),
            .keepAlive: KeepAlive(shared),
        ])
    }

    /// - Parameter job: nil removes it.
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

/// Moves files that ended long ago to the journal's history, as `journal_history` says. Reads the journal only when
/// files may be old enough, at most once a day for ages of days; otherwise it reads and writes nothing.
struct HistoryPruner: ScheduledJob {
    private let shared: Shared
    /// The age at which a file moves.
    private let age: Duration
    /// The pause that leaves the journal to others; ends early with an error on a stop.
    private let rest: @Sendable (Duration) async throws -> Void

    /// After a pass that failed.
    private static let soon = Duration.seconds(3600)

    /// nil if all stay.
    init?(
        _ shared: Shared, _ age: Duration?,
        rest: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    ) {
        guard let age else { return nil }
        (self.shared, self.age, self.rest) = (shared, age, rest)
    }

    /// Not at once: a start has enough to do.
    func begin() -> Duration { min(age, .seconds(60)) }

    /// Moves all files that are old enough, with breaks for other work.
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
                // Also after a step without a move: it held the journal too.
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

    /// A file that finishes from now on is old enough after `age`; finished ones are earlier. Those of a day move
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

/// Tells the service behind `ping_url` that the agent is well: every loop passes, and the journal accepts changes. When
/// the pings stop, that service raises the alarm.
struct Pinger: ScheduledJob {
    private let shared: Shared
    private let ping: HealthPing
    private let interval: Duration
    /// How long a loop may be busy with one task.
    private let patience: Duration

    /// When all loops were last seen to pass.
    private var passes: [Heartbeat.Part: Int] = [:]
    private var allPassedAt = ContinuousClock.now
    /// Logged once, until a ping succeeds again.
    private var hasFailed = false
    /// The service has no address for a start or a failure: missing pings tell it of trouble.
    private var knowsOnlySuccess = false

    /// The first ping comes soon: a person who just started the agent wants to see it.
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

/// Renews credentials that expire without use: asks their destinations once an hour, also without deliveries. A login
/// that could not be renewed for days is reported in time. Never uses the journal.
struct KeepAlive: ScheduledJob {
    private let shared: Shared
    private let interval: Duration
    /// Each destination's fault an hour ago; the same one is not logged again.
    private var troubles: [String: String] = [:]
    /// When each login was last warned of.
    private var warnings: [String: WallTime] = [:]

    /// How often the same login is warned of.
    private static let day = Duration.seconds(86_400)

    /// nil if no destination has such credentials.
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

    /// - Parameter last: the time of the last warning about this login.
    /// - Returns: that time after this check.
    private func warn(_ destination: Destination, last: WallTime?) async -> WallTime? {
        let time = shared.clock.now()
        guard let warning = await destination.expiry?(time) else { return nil }
        if let last, time - last < Self.day { return last }
        shared.log.emit(.loginExpiring(destination: destination.name, reason: warning))
        return time
    }

    /// - Returns: the fault; nil on success.
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
