import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

/// Which orders are offered for a file, and what its answers do.
@Suite(.seated) struct JobActionTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private var journal: Journal { bench.journal }

    /// The order as the journal takes it.
    private static func order(_ action: JobAction) -> FileAction {
        switch action {
        case .retry: .retry(uptimes: [:])
        case .cancel: .cancel
        case .forget: .forget
        case .first: .first
        case .leave: .answer(.left)
        case .aside: .answer(.aside)
        case .remove: .answer(.removed)
        }
    }

    private func act(_ action: JobAction, on id: Int64) async throws -> ActionOutcome {
        try await journal.act(Self.order(action), on: [id], at: Bench.start).outcomes[0]
    }

    /// Brings a new journal's file into a state. - Returns: its number.
    private typealias Scene = @Sendable (Bench) async throws -> Int64

    private static let scenes: [(name: String, make: Scene)] = [
        ("waiting", { try await $0.admit("a") }),
        (
            "waiting for its key",
            { bench in
                try await bench.journal.reserveKeys(at: ["r2": nil])
                return try await bench.admit("a")
            }
        ),
        (
            "waiting for its time",
            { bench in
                let id = try await bench.admit("a")
                try await bench.settle(.again(Bench.start + .seconds(600), counts: true))
                return id
            }
        ),
        (
            "worked on",
            { bench in
                let id = try await bench.admit("a")
                try await bench.settle(.waiting(until: Bench.start + .seconds(9), saying: "at work"))
                return id
            }
        ),
        (
            "claimed",
            { bench in
                let id = try await bench.admit("a")
                _ = try await bench.claimAll()
                return id
            }
        ),
        (
            "parked",
            { bench in
                let id = try await bench.admit("a")
                try await bench.recover(["disk"])
                return id
            }
        ),
        ("held by its unit", { try await $0.admit(.test("u/a", unit: "u")) }),
        ("failed, unfinished", { try await $0.settled("a", .failed) }),
        ("failed", { try await $0.settled("a", .failed, finishes: true) }),
        ("expired", { try await $0.settled("a", .expired, finishes: true) }),
        (
            "cancelled",
            { bench in
                let id = try await bench.admit("a")
                _ = try await bench.journal.act(.cancel, on: [id], at: Bench.start)
                try await bench.finishAll()
                return id
            }
        ),
        (
            "cancelled while it ran",
            { bench in
                let id = try await bench.admit("a")
                _ = try await bench.claimAll()
                _ = try await bench.journal.act(.cancel, on: [id], at: Bench.start)
                try await bench.finishAll()
                return id
            }
        ),
        (
            "failed with an upload to abort",
            { bench in
                let id = try await bench.admit("a")
                try await bench.leave(["upload": [1]], .test(.failed))
                try await bench.finishAll()
                return id
            }
        ),
        ("delivered", { try await $0.settled("a", .delivered, finishes: true) }),
        ("gone", { try await $0.settled("a", .gone, finishes: true) }),
        ("superseded", { try await $0.settled("a", .superseded, finishes: true) }),
        ("rejected, unfinished", { try await $0.reject(.refused("a")) }),
        ("rejected", { try await rejected($0) }),
        (
            "rejected and quarantined",
            { bench in
                let id = try await bench.reject(.refused("a"))
                try await bench.finishAll(Disposition.quarantined("/in/.inlet/failed/a"))
                return id
            }
        ),
        ("duplicate", { try await duplicate($0) }),
        (
            "duplicate, left",
            { bench in
                let id = try await duplicate(bench)
                _ = try await bench.journal.act(.answer(.left), on: [id], at: Bench.start)
                return id
            }
        ),
        ("duplicate, to be removed", { try await ordered($0) }),
        (
            "duplicate, being removed",
            { bench in
                let id = try await ordered(bench)
                try await bench.journal.intend(id, [1])
                return id
            }
        ),
        (
            "duplicate and deleted",
            { bench in
                try await bench.deliver(.content(1, "a", .off))
                let id = try await bench.duplicate(.content(1, "b", .skip), of: 1)
                try await bench.finishAll(Disposition.deleted)
                return id
            }
        ),
    ]

    private static func rejected(_ bench: Bench) async throws -> Int64 {
        let id = try await bench.reject(.refused("a"))
        try await bench.finishAll()
        return id
    }

    private static func duplicate(_ bench: Bench) async throws -> Int64 {
        try await bench.deliver(.content(1, "a", .off))
        let id = try await bench.duplicate(.content(1, "b", .skip), of: 1)
        try await bench.finishAll()
        return id
    }

    private static func ordered(_ bench: Bench) async throws -> Int64 {
        let id = try await duplicate(bench)
        _ = try await bench.journal.act(.answer(.removed), on: [id], at: Bench.start)
        return id
    }

    @Test(arguments: scenes.indices, JobAction.allCases)
    func `an order is offered exactly where it has an effect`(number: Int, action: JobAction) async throws {
        let scene = Self.scenes[number]
        let id = try await scene.make(bench)
        let job = try await bench.job(id)
        let isOffered = job.actions.contains(action)
        let outcome = try await act(action, on: id)
        if case .skipped(let reason) = outcome {
            #expect(!isOffered, "\(scene.name): \(action) is offered, and \(reason)")
            #expect(job.refusal(of: action) == reason, "\(scene.name): \(action)")
        } else {
            #expect(isOffered, "\(scene.name): \(action) is not offered")
        }
    }

    @Test func `a rejected file is never sent again, and never removed`() async throws {
        let id = try await Self.rejected(bench)
        #expect(try await bench.job(id).actions == [.leave, .aside, .forget])
    }

    @Test func `a person's word that a file may stay lasts, also in the history`() async throws {
        let id = try await Self.duplicate(bench)
        var open = FileFilter(states: [.duplicate])
        open.isUnanswered = true
        #expect(try await journal.jobs(open).map(\.file.id) == [id])
        #expect(try await act(.leave, on: id) == .done)
        #expect(try await journal.jobs(open).isEmpty)
        #expect(try await bench.job(id).file.disposition == Disposition.kept)
        try await bench.prune()
        #expect(try await journal.jobs(open).isEmpty)
        #expect(try await journal.jobs(FileFilter(states: [.duplicate])).map(\.file.id) == [id])
        #expect(try await bench.job(id).file.policy.answer == .left)
    }

    @Test(arguments: [JobAction.aside, .remove])
    func `a source that is to go is the finisher's once more, and the order ends with that`(
        action: JobAction
    ) async throws {
        let id = try await Self.duplicate(bench)
        try await bench.prune()
        #expect(try await act(action, on: id) == .done)
        let job = try #require(try await bench.unfinished().first)
        #expect(job.file.id == id && job.file.policy.answer == action.answer && job.file.state == .duplicate)
        // Not twice.
        #expect(try await act(action, on: id) == .skipped("is no longer in its place"))
        let why = Disposition.kept(because: "not removed: nobody has it")
        try await bench.finishAll(why)
        let end = try await bench.job(id)
        #expect(end.file.policy.answer == nil && end.file.disposition == why && end.file.finishedAt != nil)
        // It lies there, and waits for another answer.
        #expect(end.actions == [.leave, .aside, .remove, .forget])
        #expect(try await journal.holdsFiles(of: "/in"))
    }

    @Test func `an order is withdrawn until it has begun, and a finisher that read it before does nothing`()
        async throws
    {
        let id = try await Self.ordered(bench)
        let read = try await bench.job(id).file
        #expect(try await act(.leave, on: id) == .done)
        #expect(try await journal.beginFinish(read, [1]) == id)
        // The finisher that reads it now ends it in its place.
        let job = try #require(try await bench.unfinished().first)
        #expect(job.file.id == id && job.file.policy.answer == .left && job.file.intent == nil)
        try await bench.finishAll()
        try await journal.postponeFinish(id, until: Bench.start, note: "too late")
        let end = try await bench.job(id).file
        #expect(end.policy.answer == .left && end.disposition == Disposition.kept)
    }

    @Test func `orders to remove files are kept apart from what else is to be finished`() async throws {
        let ordered = try await Self.ordered(bench)
        let other = try await bench.settled("c", .failed)
        let now = Bench.start
        #expect(try await journal.unfinished(at: now, limit: 9, removals: true).map(\.file.id) == [ordered])
        #expect(try await journal.unfinished(at: now, limit: 9, removals: false).map(\.file.id) == [other])
        try await journal.postponeFinish(other, until: now + .seconds(9), note: "later")
        #expect(try await journal.nextFinish(removals: false) == now + .seconds(9))
        #expect(try await journal.nextFinish(removals: true) == now)
    }

    @Test(arguments: [false, true])
    func `what was done with the source of a file is no news of the file`(isInHistory: Bool) async throws {
        let id = try await Self.duplicate(bench)
        if isInHistory { try await bench.prune() }
        try await bench.setSinks([NotificationSink(name: "ops", events: Set(NotificationEvent.allCases))])
        #expect(try await act(.aside, on: id) == .done)
        try await bench.finishAll(Disposition.archived("/in/.inlet/done/b"))
        guard case .due = try await journal.nextNotice("ops", at: Bench.start) else { return }
        Issue.record("the receivers are told of it again")
    }

    @Test func `what cannot be compared is not removed`() async throws {
        try await bench.deliver(.content(1, "a", .off))
        let id = try await bench.duplicate(.content(1, "b", .skip), of: 1)
        try await bench.finishAll()
        var job = try await bench.job(id)
        #expect(job.refusal(of: .remove) == nil)
        job.deliveries[0].proof?.content = nil
        #expect(job.refusal(of: .remove) == "has no checksum at its destination to compare with")
        job = try await bench.job(id)
        job.deliveries[0].proof?.details?[Proof.deletedName] = "2026-11-27T18:30:00.000Z"
        #expect(job.refusal(of: .remove) != nil)
        job = try await bench.job(id)
        job.file.volume = "a card"
        #expect(job.refusal(of: .remove) != nil && job.refusal(of: .aside) != nil && job.refusal(of: .leave) == nil)
    }

    @Test func `what is put first is claimed before the others`() async throws {
        let ids = try await [bench.admit("a"), bench.admit("b"), bench.admit("c")]
        #expect(try await act(.first, on: ids[2]) == .done)
        #expect(try await act(.first, on: ids[2]) == .skipped("goes before the others already"))
        #expect(try await bench.claimAll(most: 3).map(\.delivery.fileID) == [ids[2], ids[0], ids[1]])
    }

    @Test func `what failed at one destination from an outage is found, and only that is sent again`() async throws {
        func fail(_ code: ErrorCode, at destination: String) async throws {
            try await bench.settle(.ended(.failed, code: code, reason: "the test says so"), of: destination)
        }
        let first = try await bench.admit("a", to: ["r2", "disk"])
        try await fail(.destinationFull, at: "r2")
        try await fail(.timedOut, at: "disk")
        let second = try await bench.admit("b", to: ["r2", "disk"])
        try await fail(.timedOut, at: "r2")
        // The file waits for the other destination, and is found all the same.
        let third = try await bench.admit("c")
        try await fail(.tooLarge, at: "r2")
        #expect(try await found(by: Bench.start) == [first, second])
        #expect(try await found(by: Bench.start, limit: 1) == [first])
        #expect(try await found(by: Bench.start, after: first) == [second])
        #expect(try await found(by: WallTime(milliseconds: Bench.start.milliseconds - 1)).isEmpty)
        // An old failure has another cause than this outage.
        #expect(try await found(since: WallTime(milliseconds: Bench.start.milliseconds + 1)).isEmpty)
        #expect(try await journal.act(Self.recovery, on: [first, second], at: Bench.start).outcomes == [.done, .done])
        #expect(try await bench.job(first).deliveries.map(\.state) == [.ready, .failed])
        #expect(try await bench.job(second).deliveries.map(\.state) == [.ready, .ready])
        #expect(try await bench.job(third).file.state == .failed)
        // What waits is not hurried.
        #expect(
            try await journal.act(Self.recovery, on: [first], at: Bench.start).outcomes == [
                .skipped("has nothing to send again")
            ])
    }

    /// As the agent sends again by itself.
    private static let recovery = FileAction.retry(
        uptimes: ["r2": 7, "disk": 7], scope: RetryScope(destination: "r2", states: [.failed]))

    private func found(
        since: WallTime = Bench.start, by time: WallTime = Bench.later, after last: Int64 = 0, limit: Int = 9
    ) async throws -> [Int64] {
        try await journal.failedFiles(
            at: "r2", from: ErrorCode.ofOutages, since: since, by: time, after: last, limit: limit)
    }

    private func fail(_ name: String, _ destinations: [String] = ["r2"]) async throws -> Int64 {
        let id = try await bench.admit(name, to: destinations, expire: .seconds(60))
        try await bench.settle(.ended(.failed, code: .timedOut, reason: "the test says so"))
        return id
    }

    @Test func `by itself the agent sends a failed delivery again once, until a person does`() async throws {
        let id = try await fail("a")
        #expect(try await journal.act(Self.recovery, on: [id], at: Bench.start).outcomes == [.done])
        try await bench.settle(.ended(.failed, code: .timedOut, reason: "the test says so"))
        #expect(try await found().isEmpty)
        #expect(try await journal.act(Self.recovery, on: [id], at: Bench.start).outcomes[0] != .done)
        #expect(try await act(.retry, on: id) == .done)
        try await bench.settle(.ended(.failed, code: .timedOut, reason: "the test says so"))
        #expect(try await found() == [id])
    }

    @Test func `what a person has cancelled is not sent again with the rest of its file`() async throws {
        let id = try await fail("a", ["r2", "disk"])
        #expect(try await found() == [id])
        #expect(try await act(.cancel, on: id) == .done)
        #expect(try await found().isEmpty)
    }

    @Test func `the time to live of deliveries to other destinations goes on`() async throws {
        let id = try await fail("a", ["r2", "disk"])
        let before = try await bench.job(id).deliveries.map(\.expiresAt)
        #expect(try await journal.act(Self.recovery, on: [id], at: Bench.start).outcomes == [.done])
        #expect(try await bench.job(id).deliveries.map(\.expiresAt) == [60_007, before[1]])
    }

    @Test func `an outage is remembered over a restart, until its destination leaves the configuration`() async throws {
        try await journal.setOutage(of: "r2", since: Bench.start)
        try await journal.setOutage(of: "disk", since: Bench.start)
        try await journal.setOutage(of: "disk", since: nil)
        let next = try bench.reopen()
        defer { next.close() }
        #expect(try await next.outages(of: ["r2", "disk"]) == ["r2": Bench.start])
        #expect(try await next.outages(of: ["disk"]).isEmpty)
        #expect(try await next.outages(of: ["r2"]).isEmpty)
    }
}

/// Lists of a long queue, which the journal reads in stretches. `packaging/bench/scale.sh` measures their time.
@Suite(.seated, .enabled(if: SQLiteShell.isInstalled)) struct LongListTests {
    private static let files = 5000

    /// One row of each table, made by the journal, copied so often.
    private static func fill(_ bench: Bench) async throws {
        _ = try await bench.settled("gigs/2026/first.mov", .delivered, finishes: true)
        bench.journal.close()
        let columns = { (table: String, changed: Set<String>) throws -> String in
            try SQLiteShell.run(bench.journal.path, "SELECT name FROM pragma_table_info('\(table)')")
                .split(separator: "\n").map(String.init).filter { !changed.contains($0) }.joined(separator: ", ")
        }
        let ofFile = try columns("file", ["id", "path", "state", "route", "admitted_at"])
        let ofDelivery = try columns("delivery", ["id", "file_id", "destination", "key"])
        try SQLiteShell.run(
            bench.journal.path,
            """
            BEGIN;
            CREATE TEMP TABLE n AS WITH RECURSIVE c(x) AS (SELECT 2 UNION ALL SELECT x + 1 FROM c WHERE x < \(files))
                SELECT x FROM c;
            INSERT INTO file (id, path, state, route, admitted_at, \(ofFile))
            SELECT x, CAST('gigs/2026/file ' || x || '.mov' AS BLOB),
                CASE x % 10 WHEN 0 THEN 'duplicate' WHEN 1 THEN 'rejected' WHEN 2 THEN 'failed' ELSE 'delivered' END,
                'route' || (x % 5), \(Bench.start.milliseconds) + x * 1000, \(ofFile) FROM n, file WHERE file.id = 1;
            INSERT INTO delivery (id, file_id, destination, key, \(ofDelivery))
            SELECT x, x, iif(x % 3, 'r2', 'nas'), 'key' || x, \(ofDelivery) FROM n, delivery WHERE delivery.id = 1;
            COMMIT;
            """)
    }

    private static let filters: [(name: String, change: @Sendable (inout FileFilter) -> Void, count: Int)] = [
        ("all", { _ in }, 50),
        ("one state", { $0.states = [.failed, .expired] }, 50),
        ("duplicates that wait for an answer", { ($0.states, $0.isUnanswered) = ([.duplicate], true) }, 50),
        ("a destination", { $0.destination = "nas" }, 50),
        ("no destination", { $0.destination = "elsewhere" }, 0),
        ("a route", { $0.route = "route3" }, 50),
        ("no route", { $0.route = "another" }, 0),
        ("a name", { $0.text = "FILE 3777." }, 1),
        ("no name", { $0.text = "there is no such file" }, 0),
        ("the oldest", { $0.until = Bench.start + .seconds(20) }, 20),
        ("a time without files", { $0.since = Bench.start + .seconds(1_000_000) }, 0),
        ("a page far behind", { $0.below = 1000 }, 50),
    ]

    @Test func `each list finds its files, however far behind they are`() async throws {
        let bench = try Bench()
        try await Self.fill(bench)
        let journal = try Journal(path: bench.journal.path, now: Bench.start)
        defer { journal.close() }
        for list in Self.filters {
            var filter = FileFilter(limit: 50)
            list.change(&filter)
            #expect(try await journal.jobs(filter).count == list.count, "\(list.name)")
        }
    }
}
