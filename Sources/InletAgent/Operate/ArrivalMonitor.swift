internal import InletCore
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle
internal import SystemPackage

/// Reports watched folders from which no file came for longer than they say (`expect`), and files that come again.
/// Sleeps until the next folder may be due; a file wakes it only after a quiet time.
///
/// At the start it also reads from the journal when files last came, and how they ended in the last 30 days.
struct ArrivalMonitor: Service {
    private let shared: Shared
    private let tally: MetricsCollector
    private let notifications: NotificationStage
    private let start: WallTime
    private var arrivals: ArrivalRegistry { shared.arrivals }

    /// Before a journal that does not answer is asked again.
    private static let journalPause = Duration.seconds(10)

    init(_ shared: Shared, _ tally: MetricsCollector, _ notifications: NotificationStage) {
        (self.shared, self.tally, self.notifications, start) = (shared, tally, notifications, shared.clock.now())
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask { await self.countRecent() }
                group.addTask { await self.arrivals.signal.loop { await self.look() } }
            }
        }
    }

    /// Counts the files of the last 30 days, a piece at a time, with breaks for other work. Files that
    /// finish from now on are counted by their events.
    func countRecent() async {
        var place: EndedFiles.Place? = EndedFiles.Place()
        while let from = place, !Task.isCancelled {
            let began = ContinuousClock.now
            do throws(JournalError) {
                let piece = try await shared.journal.ends(
                    since: RecentEnds.start(at: start), until: start, from: from)
                tally.add(piece.ends)
                place = piece.next
                guard place != nil, await Task.rest(for: began.duration(to: .now)) else { return }
            } catch {
                // Other services report a journal that does not answer.
                guard await Task.rest(for: Self.journalPause) else { return }
            }
        }
    }

    /// - Returns: the time of the next look; nil waits for the signal.
    func look() async -> ContinuousClock.Instant? {
        let now = shared.clock.now()
        let watched = shared.settings.watch.filter { $0.pattern == nil }
        do throws(JournalError) {
            try await follow(watched, at: now)
        } catch {
            // Other services report a journal that does not answer.
            return .now.advanced(by: Self.journalPause)
        }
        let states = Dictionary(shared.roots.statuses.map { ($0.root, $0.state) }) { first, _ in first }
        var next: ContinuousClock.Instant?
        for folder in watched {
            guard let due = await decide(folder, states[folder.path], at: now) else { continue }
            next = min(next ?? due, due)
        }
        return next.map { max($0, .now.advanced(by: .milliseconds(10))) }
    }

    private func follow(_ watched: [WatchSettings], at now: WallTime) async throws(JournalError) {
        let (unread, left) = arrivals.follow(watched.map(\.path), at: now)
        for root in left {
            notifications.withdrawQuiet(root)
            try await shared.journal.setQuiet(root, since: nil)
        }
        if unread.isEmpty, arrivals.knowsNewest { return }
        let known = try await shared.journal.arrivals(in: unread)
        arrivals.fill(known.newest, known.folders, at: now)
    }

    /// - Returns: when the folder must be decided about again.
    private func decide(
        _ folder: WatchSettings, _ state: RootStatus.State?, at now: WallTime
    ) async -> ContinuousClock.Instant? {
        typealias Decision = (news: QuietClock.News?, next: ContinuousClock.Instant?, quiet: WallTime?)
        let instant = ContinuousClock.now
        let decision = arrivals.decide(folder.path) { clock -> Decision in
            clock.see(Self.presence(state), at: now, instant)
            let (news, next) = clock.decide(expect: folder.expect, at: now, instant)
            return (news, next, clock.quietSince)
        }
        guard let (news, next, quiet) = decision else { return nil }
        if let news {
            await report(news, folder)
        } else if let quiet {
            // A new receiver does not know it; the others are not told again.
            notifications.remind(.rootQuiet(root: folder.path, since: quiet, expect: folder.expect ?? .zero))
        }
        return next
    }

    private static func presence(_ state: RootStatus.State?) -> QuietClock.Presence {
        switch state {
        case .watching: .watched
        case .starting: .listed
        case .standby: .elsewhere
        case .missing, .failing, .guarded, nil: .away
        }
    }

    private func report(_ news: QuietClock.News, _ folder: WatchSettings) async {
        var kept: WallTime?
        switch news {
        case .quiet(let since):
            kept = since
            shared.log.emit(.rootQuiet(root: folder.path, since: since, expect: folder.expect ?? .zero))
        case .recovered(let since): shared.log.emit(.rootRecovered(root: folder.path, since: since))
        case .withdrawn: notifications.withdrawQuiet(folder.path)
        }
        // If the journal does not take it now, the next start reports it once more.
        try? await shared.journal.setQuiet(folder.path, since: kept)
    }
}
