import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

/// How moving files to the history leaves the journal to others. Time passes only where the test says so: each look at the
/// clock is a moment later than the one before.
@Suite struct HistoryPrunerTests {
    private static let tick = Duration.milliseconds(7)
    private let directory: TemporaryDirectory
    private let journal: Journal
    private let events: EventRecord
    private let log: EventLog

    init() throws {
        directory = try TemporaryDirectory()
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        log = try EventLog(nil)
        events = EventRecord(log)
    }

    /// - Parameter rest: called instead of a rest, with its length and how many there were before it.
    private func pruner(
        _ rest: @escaping @Sendable (Duration, Int) async throws -> Void = { _, _ in }
    ) throws -> HistoryPruner {
        let (looks, rests, first) = (Steps(), Steps(), SuspendingClock.now)
        let clock = AgentClock(
            now: { VirtualTime.start }, instant: { first.advanced(by: Self.tick * looks.next()) })
        return try #require(
            HistoryPruner(.test(journal, log, clock: clock), .seconds(86_400)) { duration in
                try await rest(duration, rests.next())
            })
    }

    /// How many files each pass has moved, and how long it took.
    private var pruned: [(files: Int, duration: Duration)] {
        events.all.compactMap { event in
            guard case .journalPruned(let files, let duration) = event else { return nil }
            return (files, duration)
        }
    }

    /// Files that ended so long ago, of which nothing was to be sent, and one that waits.
    private func fill(_ count: Int, ended age: Duration) async throws {
        let time = VirtualTime.start + (.zero - age)
        let route = Route(name: "all", to: ["here"])
        _ = try await journal.admit(
            (0..<count).map { FileAdmission(Self.arrival("\($0)"), rejectedBy: route, reason: "too large") }, at: time)
        for job in try await journal.unfinished(at: time, limit: count) {
            _ = try await journal.finish(job.file, disposition: Disposition.kept, receipt: Array("{}".utf8), at: time)
        }
    }

    private static func arrival(_ name: String) -> Arrival {
        Arrival(
            root: "/in", path: FilePath(name),
            identity: FileIdentity(size: 10, modified: 1, changed: 1, inode: 1, device: 1))
    }

    @Test func `it rests after every step as long as that took, also after one that moved nothing`() async throws {
        defer { journal.close() }
        try await fill(60, ended: .seconds(2 * 86_400))
        let rests = Steps()
        let wait = try await pruner { duration, number in
            #expect(duration == Self.tick)
            #expect(rests.next() == number)
        }.perform()
        // Six states: of one of them 60 files, 25 at a time.
        #expect(rests.next() == 8)
        #expect(wait == .seconds(86_400))
        #expect(try await journal.totals()[.rejected]?.files == 60)
        // The first look, two for each step, and the last.
        #expect(pruned.map(\.files) == [60] && pruned.map(\.duration) == [Self.tick * 17])
    }

    @Test func `while it rests the journal is everybody's`() async throws {
        defer { journal.close() }
        try await fill(30, ended: .seconds(2 * 86_400))
        let plan = Plan(
            route: "all", category: "other", key: "k", mediaType: "text/plain", destinations: ["here"],
            retry: RetryPolicy(expire: nil))
        let pruner = try pruner { [journal] _, number in
            let arrival = Self.arrival("new \(number)")
            _ = try await journal.admit(
                FileAdmission(arrival, plan: plan, lanes: ["here": .big], uptimes: ["here": 0]), at: VirtualTime.start)
        }
        _ = await pruner.perform()
        #expect(try await journal.pending().files == 7)
        #expect(pruned.map(\.files) == [30])
    }

    @Test func `one that is to stop in a rest tells what it has moved, and looks again soon`() async throws {
        defer { journal.close() }
        try await fill(60, ended: .seconds(2 * 86_400))
        // The files are of the fourth state.
        let pruner = try pruner { _, number in if number == 4 { throw CancellationError() } }
        #expect(await pruner.perform() == .seconds(3600))
        #expect(pruned.map(\.files) == [50])
        _ = try await self.pruner().perform()
        #expect(pruned.map(\.files) == [50, 10])
    }

    @Test func `what is too young yet says when it looks again`() async throws {
        defer { journal.close() }
        try await fill(1, ended: .seconds(3600))
        let wait = try await pruner().perform()
        #expect(wait == .seconds(86_400 - 3600))
        #expect(events.names.isEmpty)
    }
}

/// Counts up from 0.
private final class Steps: Sendable {
    private let count = Mutex(0)

    func next() -> Int {
        count.withLock { count in
            defer { count += 1 }
            return count
        }
    }
}
