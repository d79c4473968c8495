import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

/// Which files a selection is of, what commands do to them, and how the queue is counted.
@Suite(.seated) struct SelectionTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    /// 1 pending, 2 failed, 3 delivered, 4 pending for another destination, with labels and another route.
    private func fill() async throws {
        try await bench.admit("gigs/c.mov", at: Bench.start + .seconds(50))
        try await bench.admit("gigs/a.mov", to: ["disk"])
        try await bench.settle(.test(.failed), of: "disk")
        try await bench.admit("b.jpg", to: ["disk"])
        try await bench.settle(.test(.delivered), of: "disk", at: Bench.start + .seconds(20))
        try await bench.finishAll()
        var labelled = FileAdmission.test("gigs/d.mov", to: ["lab"])
        labelled.plan?.route = "gigs"
        labelled.plan?.labels = ["type": "gig", "owner": "Ann = Bob"]
        try await bench.offer(labelled)
    }

    private static let filters: [(change: @Sendable (inout FileFilter) throws -> Void, files: [Int64])] = [
        ({ _ in }, [1, 2, 3, 4]),
        ({ $0.ids = [4, 2, 99] }, [2, 4]),
        ({ $0.states = [.pending] }, [1, 4]),
        ({ $0.states = [.delivered, .failed] }, [2, 3]),
        ({ $0.destination = "disk" }, [2, 3]),
        ({ $0.route = "gigs" }, [4]),
        ({ $0.path = try GlobPattern("gigs/**") }, [1, 2, 4]),
        ({ $0.path = try GlobPattern("*.jpg") }, [3]),
        ({ $0.text = "GIGS/" }, [1, 2, 4]),
        ({ $0.text = "b.jp" }, [3]),
        ({ $0.text = "gigs_c" }, []),
        ({ $0.text = "%" }, []),
        ({ $0.text = "\\" }, []),
        ({ $0.below = 3 }, [1, 2]),
        ({ $0.labels = ["type": "gig"] }, [4]),
        ({ $0.labels = ["type": "gig", "owner": "Ann = Bob"] }, [4]),
        ({ $0.labels = ["type": "other"] }, []),
        ({ $0.code = ErrorCode.internalFault.rawValue }, [2]),
        ({ $0.before = Bench.start + .seconds(10) }, [2, 4]),
        ({ $0.since = Bench.start + .seconds(50) }, [1]),
        ({ $0.until = Bench.start + .seconds(49) }, [2, 3, 4]),
        ({ $0.isUnanswered = true }, []),
        ({ $0.upTo = 2 }, [1, 2]),
        ({ $0.batch = 1 }, []),
        (
            {
                $0.states = [.pending]
                $0.path = try GlobPattern("gigs/**")
                $0.destination = "lab"
            }, [4]
        ),
    ]

    @Test(arguments: filters.indices)
    func `a filter lets through the files for which all of it holds`(number: Int) async throws {
        try await fill()
        var filter = FileFilter()
        try Self.filters[number].change(&filter)
        let expected = Self.filters[number].files
        let found = try await bench.journal.matches(filter)
        #expect(found.files.map { $0.id } == expected && found.next == nil)
        #expect(try await bench.journal.matches(filter, newestFirst: true).files.map { $0.id } == expected.reversed())
        #expect(try await bench.journal.jobs(filter).map(\.file.id) == expected.reversed())
    }

    @Test func `a selection goes through a long history in stretches, and leaves nothing out`() async throws {
        let names = (0..<9000).map { FileAdmission.test("\($0)", to: [$0 % 3 == 0 ? "r2" : "disk"]) }
        for start in stride(from: 0, to: names.count, by: 1000) {
            try await bench.offer(Array(names[start..<start + 1000]))
        }
        for newestFirst in [false, true] {
            var found: [Int64] = []
            var cursor: Int64?
            var rounds = 0
            repeat {
                let part = try await bench.journal.matches(
                    FileFilter(states: [.pending, .failed], destination: "r2"), from: cursor, newestFirst: newestFirst)
                found += part.files.map { $0.id }
                cursor = part.next
                rounds += 1
            } while cursor != nil
            #expect(rounds == 9)
            #expect(found.count == 3000)
            #expect(found == (newestFirst ? found.sorted(by: >) : found.sorted()))
        }
        #expect(try await bench.journal.jobs(FileFilter(limit: 7)).map(\.file.id) == Array((8994...9000).reversed()))
    }

    @Test(arguments: [false, true])
    func `numbers at the ends are numbers of no file`(newestFirst: Bool) async throws {
        try await fill()
        for ids in [[Int64.min], [.max], [.max - 1, .min, 2]] {
            var filter = FileFilter()
            filter.ids = ids
            var found: [Int64] = []
            var cursor: Int64?
            repeat {
                let part = try await bench.journal.matches(filter, from: cursor, newestFirst: newestFirst)
                found += part.files.map { $0.id }
                cursor = part.next
            } while cursor != nil
            #expect(found == ids.filter { $0 == 2 })
        }
    }

    @Test func `what waits is tried now, and what cannot be sent again says why`() async throws {
        let waiting = try await bench.admit("a")
        try await bench.settle(.again(Bench.start + .seconds(600), counts: true))
        let delivered = try await bench.admit("b", to: ["disk"])
        try await bench.settle(.test(.delivered), of: "disk")
        let (outcomes, running) = try await bench.journal.act(
            .retry(uptimes: [:]), on: [waiting, delivered, 4711], at: Bench.start + .seconds(1))
        #expect(running.isEmpty)
        #expect(
            outcomes == [
                .hurried, .skipped("has nothing to send again"), .skipped("has nothing to send again"),
            ])
        let delivery = try await bench.job(waiting).deliveries[0]
        #expect(delivery.nextAt == Bench.start + .seconds(1) && delivery.attempts == 1)
    }

    @Test func `what waits for a destination after a failed try is due when a person says so`() async throws {
        let later = Bench.start + .seconds(600)
        let tried = try await bench.admit("a")
        try await bench.settle(.again(later, counts: true))
        let elsewhere = try await bench.admit("b", to: ["disk"])
        try await bench.settle(.again(later, counts: true), of: "disk")
        #expect(try await bench.journal.hurry(to: "r2", at: Bench.start) == 1)
        #expect(try await bench.job(tried).deliveries[0].nextAt == Bench.start)
        #expect(try await bench.job(elsewhere).deliveries[0].nextAt == later)
        #expect(try await bench.journal.hurry(to: "r2", at: Bench.start) == 0)
    }

    @Test func `every open delivery is counted once, where it is`() async throws {
        try await bench.admit("tried")
        try await bench.settle(.again(Bench.start + .seconds(9), counts: true))
        try await bench.admit("fresh", at: Bench.start + .seconds(1))
        try await bench.admit("gone", to: ["old"])
        try await bench.admit(.test("unit/x", to: ["disk"], unit: "unit"))
        try await bench.recover(["r2", "disk"])
        var r2 = QueueCounts()
        (r2.waiting, r2.retrying, r2.oldest) = (2, 1, Bench.start)
        var disk = QueueCounts()
        disk.held = 1
        var old = QueueCounts()
        old.parked = 1
        #expect(try await bench.journal.queueCounts() == ["r2": r2, "disk": disk, "old": old])
        #expect(try await bench.journal.queueLength(of: ["r2", "disk"]) == 2)
        #expect(try await bench.journal.queueLength(of: ["disk", "old"]) == 0)
        try await bench.hold(at: Bench.start + .seconds(2)) { _ in
            let counts = try await bench.journal.queueCounts()["r2"]
            #expect(counts?.claimed == 1 && counts?.waiting == 1)
            return .again()
        }
    }

    @Test func `a full queue refuses what is new, in order, and takes what a unit is waiting for`() async throws {
        let limit = QueueLimit(files: 2, bytes: 1000)
        let outcomes = try await bench.journal.admit(
            [
                .test("a"), .test("big", .test(size: 2000)), .test("b"), .refused("no"), .test("c"),
            ], within: limit, at: Bench.start)
        #expect(outcomes.map(\.main) == [.admitted(id: 1), .full, .full, .rejected(id: 2), .full])
        try await bench.settle(.test(.delivered))
        // Into an empty queue everything goes.
        #expect(
            try await bench.journal.admit([.test("big", .test(size: 2000))], within: limit, at: Bench.start)[0].main
                == .admitted(id: 3))
        try await bench.settle(.test(.delivered))
        let unit = (0..<4).map { FileAdmission.test("u/\($0)", unit: "u") }
        let taken = try await bench.journal.admit(unit, within: limit, at: Bench.start)
        #expect(taken.allSatisfy { if case .admitted = $0.main { true } else { false } })
        #expect(try await bench.journal.admit([.test("z")], within: limit, at: Bench.start)[0].main == .full)
        #expect(try await bench.journal.pending().files == 4)
    }

    @Test func `labels of a unit go over its route's and under those of a sidecar`() async throws {
        var plain = FileAdmission.test("u/a", unit: "u")
        plain.plan?.labels = ["type": "route", "kept": "1"]
        var own = FileAdmission.test("u/b", unit: "u")
        own.plan?.labels = ["type": "sidecar"]
        own.plan?.ownLabels = ["type"]
        try await bench.offer([plain, own])
        let batches = try await bench.journal.closeUnit(
            "u", root: "/in", routes: ["all"], marker: nil, uptimes: [:], labels: ["type": "unit", "gig": "Roxy"],
            at: Bench.start)
        #expect(batches.first?.labels == ["type": "unit", "gig": "Roxy"])
        #expect(try await bench.job(1).file.labels == ["type": "unit", "kept": "1", "gig": "Roxy"])
        #expect(try await bench.job(2).file.labels == ["type": "sidecar", "gig": "Roxy"])
    }
}

/// The counts that triggers keep. Random sequences of commands compare them with a real count: `ModelTests`,
/// `ExchangeModelTests` and `BatchModelTests`.
@Suite(.seated) struct QueueTallyTests {
    /// A release of Inlet before this one: without what the last migration added.
    private static let earlier = """
        DROP TRIGGER queue_insert; DROP TRIGGER queue_delete; DROP TRIGGER queue_leave; DROP TRIGGER queue_enter;
        DROP TRIGGER queue_move; DROP TABLE queue_tally; DROP INDEX delivery_eldest; DROP INDEX delivery_ready;
        ALTER TABLE delivery DROP COLUMN priority;
        CREATE INDEX delivery_ready ON delivery(destination, lane, next_at, id) WHERE state = 'ready';
        DELETE FROM grdb_migrations WHERE identifier = '8 priorities';
        """

    @Test(.enabled(if: SQLiteShell.isInstalled))
    func `the journal of an earlier version is counted once, and goes on`() async throws {
        let bench = try Bench()
        for name in ["a", "b", "c"] { try await bench.admit(name, to: ["r2", "disk"]) }
        try await bench.settle(.again(Bench.start + .seconds(5), counts: true))
        try await bench.settle(.waiting(until: Bench.start + .seconds(5), saying: nil))
        try await bench.recover(["r2"])
        bench.journal.close()
        try SQLiteShell.run(bench.journal.path, Self.earlier)
        let journal = try Journal(path: bench.journal.path, now: Bench.start)
        defer { journal.close() }
        let counts = try await journal.queueCounts()
        #expect(counts["r2"]?.waiting == 2 && counts["r2"]?.working == 1 && counts["disk"]?.parked == 3)
        #expect(try await counts == journal.countedQueue())
        _ = try await journal.clearAll(at: Bench.start)
        #expect(try await journal.queueCounts().isEmpty)
        #expect(try await journal.job(1)?.deliveries.map(\.priority) == [.normal, .normal])
    }
}
