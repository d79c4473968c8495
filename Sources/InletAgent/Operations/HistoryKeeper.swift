internal import InletCore
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle

/// Moves files that ended long ago to the journal's history, as `journal_history` says. Looks into the journal only when
/// something may be old enough, at most once a day for ages of days: while it waits, nothing is read or written.
struct HistoryKeeper: Service {
    let journal: Journal
    /// How long after its end a file goes.
    let age: Duration
    let log: EventLog
    var clock = AgentClock()
    /// How it leaves the journal to others for so long; ends early with an error when it is to stop.
    var rest: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    /// After a pass that failed.
    private static let soon = Duration.seconds(3600)

    func run() async throws {
        // `rest` ends early only when it is asked to stop.
        try? await cancelWhenGracefulShutdown {
            // A start has enough to do.
            var wait = min(age, .seconds(60))
            while true {
                try await rest(wait)
                wait = await pass()
            }
        }
    }

    /// Moves all that is old enough, with breaks for everybody else. - Returns: how long nothing is to be done.
    func pass() async -> Duration {
        let start = clock.instant()
        var (files, youngest, place) = (0, nil as WallTime?, HistoryPlace() as HistoryPlace?)
        do {
            let time = clock.now() + (.zero - age)
            while let from = place, !Task.isCancelled {
                let begin = clock.instant()
                let step = try await journal.moveToHistory(finishedBy: time, from: from)
                (files, place) = (files + step.files, step.next)
                youngest = [youngest, step.youngest].compactMap(\.self).min()
                // Also after a step that found only what has to stay: it held the journal all the same.
                try await rest(begin.duration(to: clock.instant()))
            }
        } catch {
            tell(files, start.duration(to: clock.instant()))
            if !Task.isCancelled {
                log.emit(.agentTrouble(reason: "old files could not be moved to the journal's history: \(error)"))
            }
            return Self.soon
        }
        tell(files, start.duration(to: clock.instant()))
        return untilNext(youngest, now: clock.now())
    }

    /// What finishes from now on is old enough in `age` at the soonest; what has finished is so earlier. Those of a day go
    /// together.
    func untilNext(_ youngest: WallTime?, now: WallTime) -> Duration {
        let pause = min(.seconds(86_400), max(.seconds(60), age / 10))
        let due = youngest.map { Duration.milliseconds($0.milliseconds - now.milliseconds) + age } ?? age
        return max(pause, due)
    }

    private func tell(_ files: Int, _ duration: Duration) {
        if files > 0 { log.emit(.journalPruned(files: files, duration: duration)) }
    }
}
