import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage
import Testing

/// Units: folders whose files are delivered as one.
@Suite(.seated) struct BatchTests {
    private func inUnit(_ name: String, to destinations: [String] = ["r2"], expire: Duration? = nil) -> FileAdmission {
        var admission = FileAdmission.test("gigs/X/\(name)", to: destinations, expire: expire)
        admission.unit = "gigs/X"
        return admission
    }

    @discardableResult
    private func admit(_ bench: Bench, _ admission: FileAdmission) async throws -> Int64 {
        guard case .admitted(let id) = try await bench.journal.admit(admission, at: Bench.start) else {
            throw Unexpected(what: "not admitted")
        }
        return id
    }

    private func close(
        _ journal: Journal, marker: Arrival? = nil, uptimes: [String: Int64] = [:], at time: WallTime = Bench.start
    ) async throws -> Batch? {
        try await journal.closeUnit(
            "gigs/X", root: "/in", routes: ["all"], marker: marker, uptimes: uptimes, at: time
        ).first
    }

    @Test func `nothing of an open unit is sent, everything of a closed one`() async throws {
        let bench = try Bench()
        for name in ["a", "b", "c"] { try await admit(bench, inUnit(name)) }
        #expect(try await bench.settle(.test(.delivered)) == nil)
        #expect(try await bench.journal.nextDue(destinations: ["r2"]) == nil)
        #expect(try await bench.journal.queueCounts().values.allSatisfy { $0.waiting == 0 })
        let open = try await bench.journal.openUnits("/in")
        #expect(open.map(\.unit) == ["gigs/X"] && open.map(\.route) == ["all"] && open[0].isOpen)
        let batch = try #require(try await close(bench.journal))
        #expect(batch.counts == [.pending: 3] && batch.state == .pending && batch.closedAt == Bench.start)
        #expect(try await bench.journal.openUnits("/in").isEmpty)
        for _ in 0..<3 { #expect(try await bench.settle(.test(.delivered)) != nil) }
        #expect(try await close(bench.journal) == nil)
    }

    @Test func `files of one unit share its open row, and later ones begin a new batch`() async throws {
        let bench = try Bench()
        let ids = [try await admit(bench, inUnit("a")), try await admit(bench, inUnit("b"))]
        let other = try await bench.admit("gigs/loose")
        _ = try await close(bench.journal)
        let late = try await admit(bench, inUnit("c"))
        let batches = try await [ids[0], ids[1], late].asyncMap { try await bench.job($0).file.batchID }
        #expect(batches[0] != nil && batches[0] == batches[1] && batches[2] != batches[0])
        #expect(try await bench.job(other).file.batchID == nil)
        #expect(try await bench.journal.batch(of: other) == nil)
    }

    @Test func `a batch ends with its last file, in the worst state, once`() async throws {
        let bench = try Bench()
        let ids = [try await admit(bench, inUnit("a")), try await admit(bench, inUnit("b"))]
        _ = try await close(bench.journal)
        try await bench.settle(.test(.delivered))
        var ends: [Batch?] = [try await bench.finish(ids[0])]
        #expect(ends == [nil])
        try await bench.settle(.test(.failed))
        ends.append(try await bench.finish(ids[1]))
        let batch = try #require(ends.last ?? nil)
        #expect(batch.state == .failed && batch.counts == [.delivered: 1, .failed: 1] && batch.endedAt != nil)
        #expect(try await bench.journal.batch(of: ids[0]) == batch)
    }

    @Test func `a file that is sent again opens the end of its batch again`() async throws {
        let bench = try Bench()
        let id = try await admit(bench, inUnit("a"))
        _ = try await close(bench.journal)
        try await bench.settle(.test(.failed))
        #expect(try await bench.finish(id)?.state == .failed)
        #expect(try await bench.journal.retry(id, uptimes: [:], at: Bench.start))
        #expect(try await bench.journal.batch(of: id)?.state == .pending)
        try await bench.settle(.test(.delivered))
        #expect(try await bench.finish(id)?.state == .delivered)
    }

    @Test func `a unit's marker has no deliveries, and ends last as the others did`() async throws {
        let bench = try Bench()
        let id = try await admit(bench, inUnit("a"))
        let marker = Arrival.test("gigs/X/DONE", .test(size: 0))
        let batch = try #require(try await close(bench.journal, marker: marker))
        #expect(batch.counts == [.pending: 1])
        #expect(try await bench.journal.recall([marker], tolerance: 0) == [.known])
        try await bench.settle(.test(.delivered))
        #expect(try await bench.finish(id) == nil)
        let last = try #require(try await bench.journal.unfinished(at: Bench.start, limit: 9).first)
        #expect(last.file.path == "gigs/X/DONE" && last.file.state == .delivered && last.deliveries.isEmpty)
        #expect(try await bench.finish(last.file.id)?.state == .delivered)
    }

    @Test(arguments: [DeliveryState.gone, .superseded])
    func `a unit's marker has done its work where a file is gone or was replaced`(state: DeliveryState) async throws {
        let bench = try Bench()
        let id = try await admit(bench, inUnit("a"))
        let marker = Arrival.test("gigs/X/DONE", .test(size: 0))
        _ = try await close(bench.journal, marker: marker)
        try await bench.settle(.test(state))
        #expect(try await bench.finish(id) == nil)
        let last = try #require(try await bench.journal.unfinished(at: Bench.start, limit: 9).first)
        #expect(last.file.path == "gigs/X/DONE" && last.file.state == .delivered)
        #expect(try await bench.finish(last.file.id)?.state.rawValue == state.rawValue)
        // It does not speak for the next files of the folder.
        #expect(try await bench.journal.recall([marker], tolerance: 0) == [.known])
    }

    @Test func `a unit's marker goes where the files go that are sent, not where a rejected one does`() async throws {
        let bench = try Bench()
        var refused = FileAdmission.refused("gigs/X/a")
        refused.unit = "gigs/X"
        _ = try await bench.journal.admit(refused, at: Bench.start)
        var admission = inUnit("b")
        admission.plan?.onSuccess = .archive
        let id = try await admit(bench, admission)
        _ = try await close(bench.journal, marker: .test("gigs/X/DONE", .test(size: 0)))
        #expect(try await bench.job(id + 1).file.policy.onSuccess == .archive)
    }

    @Test func `two routes have a batch each of one folder, which one marker closes`() async throws {
        let bench = try Bench()
        let one = try await admit(bench, inUnit("a"))
        var admission = inUnit("b")
        admission.plan?.route = "other"
        let other = try await admit(bench, admission)
        let batches = try await bench.journal.closeUnit(
            "gigs/X", root: "/in", routes: ["all", "other"], marker: .test("gigs/X/DONE"), uptimes: [:], at: Bench.start
        )
        #expect(batches.map(\.route) == ["all", "other"])
        #expect(try await batches.map(\.id) == [one, other].asyncMap { try await bench.job($0).file.batchID })
        for _ in 0..<2 { try await bench.settle(.test(.delivered)) }
        #expect(try await bench.finish(one) == nil)
        #expect(try await bench.finish(other)?.state == .delivered)
    }

    @Test func `a unit of which nothing can be sent ends when it closes`() async throws {
        let bench = try Bench()
        var refused = FileAdmission.refused("gigs/X/a")
        refused.unit = "gigs/X"
        guard case .rejected(let id) = try await bench.journal.admit(refused, at: Bench.start) else {
            Issue.record("not rejected")
            return
        }
        #expect(try await bench.finish(id) == nil)
        let batch = try #require(try await close(bench.journal))
        #expect(batch.state == .rejected && batch.endedAt == Bench.start)
    }

    @Test func `the time to live begins when the unit closes`() async throws {
        let bench = try Bench()
        let id = try await admit(bench, inUnit("a", expire: .seconds(5)))
        let forever = try await admit(bench, inUnit("b"))
        #expect(try await bench.journal.setUptime("r2", 100_000, at: Bench.start).isEmpty)
        _ = try await close(bench.journal, uptimes: ["r2": 100_000])
        #expect(try await bench.job(id).deliveries[0].expiresAt == 105_000)
        #expect(try await bench.job(forever).deliveries[0].expiresAt == nil)
    }

    @Test func `what is sent again while its unit is open goes on waiting for it`() async throws {
        let bench = try Bench()
        let id = try await admit(bench, inUnit("a"))
        #expect(try await bench.journal.cancel(id, at: Bench.start) == [])
        #expect(try await bench.journal.retry(id, uptimes: [:], at: Bench.start))
        #expect(try await bench.settle(.test(.delivered)) == nil)
        _ = try await close(bench.journal)
        #expect(try await bench.settle(.test(.delivered)) != nil)
    }

    @Test func `deliveries that are parked while their unit closes are due when their destination is back`()
        async throws
    {
        let bench = try Bench()
        try await admit(bench, inUnit("a"))
        _ = try await bench.journal.recover(destinations: [], at: Bench.start)
        _ = try await close(bench.journal)
        _ = try await bench.journal.recover(destinations: ["r2"], at: Bench.start)
        #expect(try await bench.settle(.test(.delivered)) != nil)
    }

    @Test func `open units outlive a restart, and those of folders no longer watched are closed`() async throws {
        let bench = try Bench()
        let id = try await admit(bench, inUnit("a"))
        bench.journal.close()
        let journal = try Journal(path: bench.journal.path, now: Bench.start)
        defer { journal.close() }
        #expect(try await journal.openUnits("/in").map(\.name) == ["gigs/X"])
        #expect(
            try await journal.closeUnits(exceptOf: [WatchSettings(path: "/in")], uptimes: [:], at: Bench.start) == 0)
        var pattern = WatchSettings(path: "/i*")
        pattern.pattern = try RootPattern("/i*")
        #expect(try await journal.closeUnits(exceptOf: [pattern], uptimes: [:], at: Bench.start) == 0)
        #expect(
            try await journal.closeUnits(exceptOf: [WatchSettings(path: "/other")], uptimes: [:], at: Bench.start) == 1)
        #expect(try await journal.batch(of: id)?.closedAt == Bench.start)
        #expect(try await journal.nextDue(destinations: ["r2"]) == Bench.start)
    }

    @Test func `the row of a batch goes with its last file, and an empty unit leaves none`() async throws {
        let bench = try Bench()
        let ids = [try await admit(bench, inUnit("a")), try await admit(bench, inUnit("b"))]
        _ = try await close(bench.journal)
        for _ in ids { try await bench.settle(.test(.delivered)) }
        try await bench.finishAll()
        #expect(try await bench.journal.forget(ids[0]))
        #expect(try await bench.journal.batch(of: ids[1]) != nil)
        #expect(try await bench.journal.forget(ids[1]))
        #expect(try await admit(bench, inUnit("a")) > ids[1])
    }
}

extension Bench {
    /// Finishes one file and says which batch ended with it.
    func finish(_ id: Int64) async throws -> Batch? {
        try await journal.finish(
            try await job(id).file, disposition: Disposition.kept, receipt: Array("{}".utf8), at: Self.start)?
            .endedBatch
    }
}

extension Sequence {
    /// The results of `body` for one element after the other.
    func asyncMap<Result>(_ body: (Element) async throws -> Result) async throws -> [Result] {
        var results: [Result] = []
        for element in self { results.append(try await body(element)) }
        return results
    }
}
