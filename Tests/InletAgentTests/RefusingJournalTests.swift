import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

/// Rows that cannot be read or written, in the lane of small files and in that of big ones.
@Suite(.enabled(if: hasSQLite), .timeLimit(.minutes(15)))
struct RefusingJournalTests {
    private static let damage = "UPDATE file SET policy = x'00' WHERE path = CAST('a' AS BLOB)"
    private static let repair =
        "UPDATE file SET policy = (SELECT policy FROM file WHERE path = CAST('b' AS BLOB)) WHERE path = CAST('a' AS BLOB)"

    /// - Parameter smallLimit: with 0 all files are big.
    private func scene(_ smallLimit: Int64, in directory: TemporaryDirectory? = nil) throws -> Scene {
        var scene = try Scene(in: directory)
        scene.destinations = [.scripted("here", scene.here, smallLimit: smallLimit)]
        // Who waited for the grace to end would not be back in time.
        scene.grace = .seconds(3600)
        return scene
    }

    @Test(arguments: [0, 1 << 20] as [Int64])
    func `one that cannot be read is parked and said, and the others get their turn`(smallLimit: Int64) async throws {
        let scene = try scene(smallLimit)
        try await scene.run { stage in
            let commands = stage.agent.control
            _ = try await commands.setPaused(true, "here", by: "test")
            try await stage.admit("a")
            try await stage.admit("b")
            try sql(scene.journalPath, Self.damage)
            _ = try await commands.setPaused(false, "here", by: "test")
            try await stage.finished("b")
            try await eventually("it is said") { stage.events.count("file.error") == 1 }
            #expect(try await stage.journal.deliveryCounts(.parked) == ["here": 1])
            let job = try #require(try await stage.agent.control.jobs(FileFilter()).first { $0.file.path == "a" })
            #expect(job.file.state == .pending)
            #expect(job.deliveries[0].code == .internalFault && job.deliveries[0].attempts == 0)
            #expect(job.deliveries[0].reason?.contains("damaged") == true)
        }
        #expect(scene.here.record.orders.map(\.key) == ["b"])
        try sql(scene.journalPath, Self.repair)
        try await scene.run { stage in try await stage.finished("a") }
        #expect(scene.here.record.orders.map(\.key) == ["b", "a"])
    }

    @Test(arguments: [0, 1 << 20] as [Int64])
    func `an end that the journal refuses is said once, and does not hold up the end of the agent`(
        smallLimit: Int64
    ) async throws {
        let scene = try scene(smallLimit)
        let gate = Gate()
        scene.here.script("a", .hold(gate, .deliver))
        try await scene.run { stage in
            try await stage.process("b")
            try await stage.start("a")
            try sql(scene.journalPath, Self.damage)
            gate.open()
            try await eventually("it is said") { stage.events.count("file.error") == 1 }
            try await stage.process("c")
            #expect(try await stage.journal.deliveryCounts(.claimed) == ["here": 1])
            #expect(stage.events.count("file.error") == 1)
        }
        try sql(scene.journalPath, Self.repair)
        try await scene.run { stage in
            try await stage.finished("a")
            #expect(stage.events.count("job.recovered") == 1)
        }
        #expect(scene.here.record.orders.map(\.key) == ["b", "a", "c", "a"])
    }

    @Test func `the journal is asked less and less often, and a few last times at the end`() {
        var patience = JournalBackoff()
        #expect((0..<6).map { _ in patience.pause(isStopping: false) } == [1, 2, 4, 8, 8, 8].map { .seconds($0) })
        #expect(
            (0..<5).map { _ in patience.pause(isStopping: true) } == [.seconds(1), .seconds(1), .seconds(1), nil, nil])
    }

    @Test func `who waits for the journal is woken by the end of the agent`() async {
        let isStopping = StopFlag()
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<5 {
                group.addTask {
                    var patience = JournalBackoff()
                    // So long that the test would not see its end.
                    await isStopping.wait(until: .now.advanced(by: .seconds(3600)))
                    return await patience.wait(isStopping)
                }
            }
            isStopping.set()
            for await goesOn in group { #expect(goesOn) }
        }
    }
}

@Suite struct BackupTests {
    private let directory: TemporaryDirectory
    private let journal: Journal
    private var folder: FilePath { directory.path.appending("backups") }

    init() throws {
        directory = try TemporaryDirectory()
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
    }

    @Test func `the newest backups are kept, and nothing else in their folder is touched`() async throws {
        defer { journal.close() }
        let backups = JournalBackups(journal)
        for second in 0..<4 {
            _ = try await backups.make(now: WallTime(milliseconds: 1_700_000_000_000 + Int64(second) * 1000))
        }
        try directory.write("mine".utf8, to: "backups/journal-old.sqlite")
        try directory.write("mine".utf8, to: "backups/notes.txt")
        let made = try names(in: folder).filter { $0.hasPrefix("journal-2") }
        #expect(made.count == 4)
        try await backups.prune(keep: 2)
        let left = Array(made.suffix(2)) + ["journal-old.sqlite", "notes.txt"]
        #expect(try names(in: folder) == left)
        #expect(await backups.newest() != nil)
    }

    @Test func `an earlier backup is replaced, and anything else is refused and left as it is`() async throws {
        defer { journal.close() }
        let backups = JournalBackups(journal)
        let target = directory.path.appending("mine.sqlite")
        for _ in 0..<2 { #expect(try await backups.make(at: target, now: .now) == target) }
        let text = try directory.write("text".utf8, to: "text")
        try makeSymlink(directory.path.appending("link"), to: target)
        for path in [text, journal.path, directory.path, directory.path.appending("link")] {
            await #expect(throws: Refusal.self, "\(path)") {
                try await backups.make(at: path, now: .now)
            }
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: text.string)) == Data("text".utf8))
        let missing = directory.path.appending("missing").appending("a.sqlite")
        await #expect(throws: (any Error).self) { try await backups.make(at: missing, now: .now) }
        let left = try FileManager.default.contentsOfDirectory(atPath: directory.path.string)
        #expect(!left.contains { $0.hasSuffix(".tmp") }, "\(left)")
    }

    @Test func `a change of the journal is seen, and its end is not one`() async throws {
        defer { journal.close() }
        let backups = JournalBackups(journal)
        let before = try #require(backups.lastChange())
        _ = try await backups.make(now: .now)
        #expect(backups.lastChange() == before)
        // The log's time has the file system's steps.
        try await eventually("the change has a later time") {
            try await journal.setPaused("r2", true)
            return backups.lastChange().map { $0 > before } ?? false
        }
    }

    @Test func `a journal whose changes cannot be seen is not one that rests`() async throws {
        let backups = JournalBackups(journal)
        journal.close()
        for suffix in ["", "-wal"] {
            let file = FilePath(journal.path.string + suffix)
            if isThere(file) { try remove(file) }
        }
        #expect(backups.lastChange() == nil)
    }

    @Test(
        arguments: [
            (nil, 60), (0, 86_400), (1000, 85_400), (86_390, 60), (100_000, 60), (-500, 86_400),
        ] as [(Int64?, Int64)])
    func `the next backup is due a period after the last, and not at once at every start`(age: Int64?, wait: Int64)
        throws
    {
        defer { journal.close() }
        let job = try #require(BackupJob(journal, (every: .seconds(86_400), keep: 7), try EventLog(nil)))
        let now = WallTime.now
        let last = age.map { WallTime(milliseconds: now.milliseconds - $0 * 1000) }
        #expect(job.untilDue(after: last, now: now) == .seconds(wait))
    }
}

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
        let (looks, rests, first) = (Count(), Count(), SuspendingClock.now)
        let clock = AgentClock(
            now: { VirtualTime.start }, instant: { first.advanced(by: Self.tick * (looks.add() - 1)) })
        return try #require(
            HistoryPruner(.test(journal, log, clock: clock), .seconds(86_400)) { duration in
                try await rest(duration, rests.add() - 1)
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
        let identity = FileIdentity(size: 10, modified: 1, changed: 1, inode: 1, device: 1)
        let arrivals = (0..<count).map { FoundFile(root: "/in", path: FilePath("\($0)"), identity: identity) }
        _ = try await journal.admit(
            arrivals.map { FileAdmission($0, rejectedBy: route, reason: "too large") }, at: time)
        for job in try await journal.unfinished(at: time, limit: count) {
            _ = try await journal.finish(job.file, disposition: Disposition.kept, receipt: Array("{}".utf8), at: time)
        }
    }

    @Test func `it rests after every step as long as that took, also after one that moved nothing`() async throws {
        defer { journal.close() }
        try await fill(60, ended: .seconds(2 * 86_400))
        let rests = Count()
        let wait = try await pruner { duration, number in
            #expect(duration == Self.tick)
            #expect(rests.add() - 1 == number)
        }.perform()
        // Six states: of one of them 60 files, 25 at a time.
        #expect(rests.value == 8)
        #expect(wait == .seconds(86_400))
        #expect(try await journal.totals()[.rejected]?.files == 60)
        // The first look, two for each step, and the last.
        #expect(pruned.map(\.files) == [60] && pruned.map(\.duration) == [Self.tick * 17])
    }

    @Test func `while it rests the journal is everybody's`() async throws {
        defer { journal.close() }
        try await fill(30, ended: .seconds(2 * 86_400))
        let pruner = try pruner { [journal] _, number in
            let admission = FileAdmission.made("new \(number)", .big) { $0.retry = RetryPolicy(expire: nil) }
            _ = try await journal.admit(admission, at: VirtualTime.start)
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

/// What given-up deliveries left at their destinations goes, soon; what a retry can use stays.
@Suite struct SweeperTests {
    @Test func `a leftover is tried again after ten seconds, then ever more rarely`() {
        var tries: [Int64: Int] = [:]
        let pauses = (1...7).map { _ in UploadCleaner.pause(&tries, of: 1) }
        #expect(pauses == [10, 20, 40, 80, 160, 300, 300].map { .seconds($0) })
        #expect(UploadCleaner.pause(&tries, of: 2) == .seconds(10))
    }

    /// Drops `a`, and waits until its delivery hangs.
    private func stall(_ scene: Scene, _ stage: Stage) async throws -> Job {
        scene.here.script("a", .stall)
        try await stage.start("a")
        return try await stage.job("a")
    }

    @Test func `what a person cancels is let go at once, also where the destination is paused and down`() async throws {
        let scene = try Scene()
        scene.here.failProbes(.outage, .outage, .outage, .outage, .outage)
        try await scene.run { stage in
            let job = try await stall(scene, stage)
            scene.here.script("b", .fail(.outage))
            try scene.drop("b")
            try await eventually("it is down") { stage.events.count("destination.down") == 1 }
            let commands = stage.agent.control
            _ = try await commands.setPaused(true, "here", by: "test")
            #expect(try await commands.act(.cancel, on: job.file.id) == .done)
            try await eventually("it is let go") { scene.here.record.abandoned.map(\.key) == ["a"] }
            try await stage.finished("a", .cancelled)
        }
    }

    @Test func `a destination that cannot be asked is asked again ten seconds later`() async throws {
        let scene = try Scene()
        scene.here.failAbandons(.outage)
        try await scene.run { stage in
            let job = try await stall(scene, stage)
            let before = WallTime.now
            #expect(try await stage.agent.control.act(.cancel, on: job.file.id) == .done)
            try await eventually("it was asked") { scene.here.record.abandoned.count == 1 }
            var next: WallTime?
            try await eventually("it is put off") {
                next = try await stage.journal.nextLeftover()
                return next.map { $0 >= before + .seconds(10) } ?? false
            }
            #expect(try #require(next) <= .now + .seconds(10))
        }
    }

    @Test func `a leftover that went, and comes again, is tried again as soon as a new one`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            /// Cancels it at a destination that cannot be asked; it is left alone for as long as after a first failure.
            func cancelInVain(_ job: Job) async throws {
                scene.here.failAbandons(.outage)
                let before = WallTime.now
                #expect(try await stage.agent.control.act(.cancel, on: job.file.id) == .done)
                var next: WallTime?
                try await eventually("it is put off") {
                    next = try await stage.journal.nextLeftover()
                    return next.map { $0 >= before + .seconds(10) } ?? false
                }
                #expect(try #require(next) <= .now + .seconds(10))
            }
            let job = try await stall(scene, stage)
            try await cancelInVain(job)
            try await stage.journal.postponeLeftover(job.deliveries[0].id, until: .now)
            // What another one leaves wakes the sweeper.
            scene.here.script("b", .stall)
            try await stage.start("b")
            #expect(try await stage.agent.control.act(.cancel, on: stage.job("b").file.id) == .done)
            try await eventually("both are gone") { stage.events.count("transfer.aborted") == 2 }
            try await stage.finished("a", .cancelled)
            scene.here.script("a", .stall)
            #expect(try await stage.agent.control.act(.retry, on: job.file.id) == .done)
            try await eventually("it is on its way again") { scene.here.record.running == 1 }
            try await cancelInVain(job)
        }
    }

    @Test func `what was left where nobody is configured any more is looked at once a day`() async throws {
        let scene = try Scene()
        let journal = try Journal(path: scene.journalPath, now: .now)
        _ = try await journal.admit(FileAdmission.made("a", in: scene.root, to: "gone", .big), at: .now)
        let room = ClaimCapacity(destination: "gone", limits: [.big: 1])
        _ = try await journal.withClaim(.big, rooms: [room], clock: { .now }) { claim in
            try await journal.checkpoint(claim.delivery.id, ["upload": [1]])
            return (.ended(.failed, code: .badRequest, reason: "no"), ())
        }
        journal.close()
        let before = WallTime.now
        try await scene.run { stage in
            try await eventually("it is put off") {
                let next = try await stage.journal.nextLeftover()
                return next.map { $0 >= before + .seconds(86_400) } ?? false
            }
        }
    }

    @Test(arguments: [(DeliveryError.serverFault, true), (DeliveryError.outage, true), (DeliveryError.passing, false)])
    func `a server in trouble drops no leftover, however often it is asked`(
        _ error: DeliveryError, _ isKept: Bool
    ) async throws {
        let scene = try Scene()
        scene.here.failAbandons(error)
        try await scene.run { stage in
            let job = try await stall(scene, stage)
            let before = WallTime.now
            #expect(try await stage.agent.control.act(.cancel, on: job.file.id) == .done)
            try await eventually("it is put off") {
                let next = try await stage.journal.nextLeftover()
                return scene.here.record.abandoned.count == 1 && next.map { $0 >= before + .seconds(10) } ?? false
            }
            // As many tries as it has, but one.
            let later = WallTime.now + .seconds(3600)
            let delivery = try #require(job.deliveries.first).id
            for _ in 1...15 { try await stage.journal.leftoverRemains(delivery, until: later) }
            #expect((try await stage.journal.nextLeftover() != nil) == isKept)
        }
    }

    @Test(arguments: [true, false])
    func `a retry goes on with the notes that are still good`(_ areGood: Bool) async throws {
        let scene = try Scene()
        if areGood { scene.here.keep("upload") }
        try await scene.run { stage in
            let job = try await stall(scene, stage)
            #expect(try await stage.agent.control.act(.cancel, on: job.file.id) == .done)
            try await eventually("the leftover is gone") { stage.events.count("transfer.aborted") == 1 }
            #expect(try await stage.journal.nextLeftover() == nil)
            try await stage.finished("a", .cancelled)
            try await stage.retry(job)
            #expect(scene.here.record.notes == [[:], areGood ? ["upload": [1]] : [:]])
        }
    }
}
