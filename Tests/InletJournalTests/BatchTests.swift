import InletCore
import InletJournalSupport
import SystemPackage
import Testing

@testable import InletJournal

/// Units: folders whose files are delivered as one.
@Suite(.seated) struct BatchTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private func inUnit(_ name: String, expire: Duration? = nil) -> FileAdmission {
        .test("gigs/X/\(name)", expire: expire, unit: "gigs/X")
    }

    private func close(marker: FoundFile? = nil, uptimes: [String: Int64] = [:]) async throws -> Batch? {
        try await bench.closeUnit("gigs/X", marker: marker, uptimes: uptimes).first
    }

    @Test func `nothing of an open unit is sent, everything of a closed one`() async throws {
        for name in ["a", "b", "c"] { try await bench.admit(inUnit(name)) }
        #expect(try await bench.settle(.test(.delivered)) == nil)
        #expect(try await bench.nextDue(["r2"]) == nil)
        #expect(try await bench.journal.queueCounts().values.allSatisfy { $0.waiting == 0 })
        let open = try await bench.journal.openUnits("/in")
        #expect(open.map(\.unit) == ["gigs/X"] && open.map(\.route) == ["all"] && open[0].isOpen)
        let batch = try #require(try await close())
        #expect(batch.counts == [.pending: 3] && batch.state == .pending && batch.closedAt == Bench.start)
        #expect(try await bench.journal.openUnits("/in").isEmpty)
        for _ in 0..<3 { #expect(try await bench.settle(.test(.delivered)) != nil) }
        #expect(try await close() == nil)
    }

    @Test func `files of one unit share its open row, and later ones begin a new batch`() async throws {
        let ids = [try await bench.admit(inUnit("a")), try await bench.admit(inUnit("b"))]
        let other = try await bench.admit("gigs/loose")
        _ = try await close()
        let late = try await bench.admit(inUnit("c"))
        let batches = try await [ids[0], ids[1], late].asyncMap { try await bench.job($0).file.batchID }
        #expect(batches[0] != nil && batches[0] == batches[1] && batches[2] != batches[0])
        #expect(try await bench.job(other).file.batchID == nil)
        #expect(try await bench.batch(of: other) == nil)
    }

    @Test func `a batch ends with its last file, in the worst state, once`() async throws {
        let ids = [try await bench.admit(inUnit("a")), try await bench.admit(inUnit("b"))]
        _ = try await close()
        try await bench.settle(.test(.delivered))
        var ends: [Batch?] = [try await bench.finish(ids[0])]
        #expect(ends == [nil])
        try await bench.settle(.test(.failed))
        ends.append(try await bench.finish(ids[1]))
        let batch = try #require(ends.last ?? nil)
        #expect(batch.state == .failed && batch.counts == [.delivered: 1, .failed: 1] && batch.endedAt != nil)
        #expect(try await bench.batch(of: ids[0]) == batch)
    }

    @Test func `a file that is sent again opens the end of its batch again`() async throws {
        let id = try await bench.admit(inUnit("a"))
        _ = try await close()
        try await bench.settle(.test(.failed))
        #expect(try await bench.finish(id)?.state == .failed)
        #expect(try await bench.retry(id))
        #expect(try await bench.batch(of: id)?.state == .pending)
        try await bench.settle(.test(.delivered))
        #expect(try await bench.finish(id)?.state == .delivered)
    }

    @Test func `a unit's marker has no deliveries, and ends last as the others did`() async throws {
        let id = try await bench.admit(inUnit("a"))
        let marker = FoundFile.test("gigs/X/DONE", .test(size: 0))
        let batch = try #require(try await close(marker: marker))
        #expect(batch.counts == [.pending: 1])
        #expect(try await bench.recall([marker]) == [.known])
        try await bench.settle(.test(.delivered))
        #expect(try await bench.finish(id) == nil)
        let last = try #require(try await bench.unfinished().first)
        #expect(last.file.path == "gigs/X/DONE" && last.file.state == .delivered && last.deliveries.isEmpty)
        #expect(try await bench.finish(last.file.id)?.state == .delivered)
    }

    @Test(arguments: [DeliveryState.gone, .superseded])
    func `a unit's marker has done its work where a file is gone or was replaced`(state: DeliveryState) async throws {
        let id = try await bench.admit(inUnit("a"))
        let marker = FoundFile.test("gigs/X/DONE", .test(size: 0))
        _ = try await close(marker: marker)
        try await bench.settle(.test(state))
        #expect(try await bench.finish(id) == nil)
        let last = try #require(try await bench.unfinished().first)
        #expect(last.file.path == "gigs/X/DONE" && last.file.state == .delivered)
        #expect(try await bench.finish(last.file.id)?.state.rawValue == state.rawValue)
        // It does not speak for the next files of the folder.
        #expect(try await bench.recall([marker]) == [.known])
    }

    @Test func `a unit's marker goes where the files go that are sent, not where a rejected one does`() async throws {
        _ = try await bench.reject(.refused("gigs/X/a", unit: "gigs/X"))
        var admission = inUnit("b")
        admission.plan?.onSuccess = .archive
        let id = try await bench.admit(admission)
        _ = try await close(marker: .test("gigs/X/DONE", .test(size: 0)))
        #expect(try await bench.job(id + 1).file.policy.onSuccess == .archive)
    }

    @Test func `two routes have a batch each of one folder, which one marker closes`() async throws {
        let one = try await bench.admit(inUnit("a"))
        var admission = inUnit("b")
        admission.plan?.route = "other"
        let other = try await bench.admit(admission)
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
        #expect(try await bench.finish(bench.reject(.refused("gigs/X/a", unit: "gigs/X"))) == nil)
        let batch = try #require(try await close())
        #expect(batch.state == .rejected && batch.endedAt == Bench.start)
    }

    @Test func `the time to live begins when the unit closes`() async throws {
        let id = try await bench.admit(inUnit("a", expire: .seconds(5)))
        let forever = try await bench.admit(inUnit("b"))
        #expect(try await bench.setUptime("r2", 100_000).isEmpty)
        _ = try await close(uptimes: ["r2": 100_000])
        #expect(try await bench.job(id).deliveries[0].expiresAt == 105_000)
        #expect(try await bench.job(forever).deliveries[0].expiresAt == nil)
    }

    @Test func `what is sent again while its unit is open goes on waiting for it`() async throws {
        let id = try await bench.admit(inUnit("a"))
        #expect(try await bench.cancel(id) == [])
        #expect(try await bench.retry(id))
        #expect(try await bench.settle(.test(.delivered)) == nil)
        _ = try await close()
        #expect(try await bench.settle(.test(.delivered)) != nil)
    }

    @Test
    func `deliveries that are parked while their unit closes are due when their destination is back`() async throws {
        try await bench.admit(inUnit("a"))
        try await bench.recover([])
        _ = try await close()
        try await bench.recover(["r2"])
        #expect(try await bench.settle(.test(.delivered)) != nil)
    }

    @Test func `open units outlive a restart, and those of folders no longer watched are closed`() async throws {
        let id = try await bench.admit(inUnit("a"))
        let journal = try bench.reopen()
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
        let ids = [try await bench.admit(inUnit("a")), try await bench.admit(inUnit("b"))]
        _ = try await close()
        for _ in ids { try await bench.settle(.test(.delivered)) }
        try await bench.finishAll()
        #expect(try await bench.forget(ids[0]))
        #expect(try await bench.batch(of: ids[1]) != nil)
        #expect(try await bench.forget(ids[1]))
        #expect(try await bench.admit(inUnit("a")) > ids[1])
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

/// Closing deliveries: what tells a destination that a whole unit has been sent to it.
@Suite(.seated) struct ClosingTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    @discardableResult
    private func admit(
        _ name: String, _ identity: FileIdentity = .test(), to destinations: [String] = ["spaces"]
    ) async throws -> Int64 {
        try await bench.admit(.test("gigs/X/\(name)", identity, to: destinations, expire: .seconds(5), unit: "gigs/X"))
    }

    @discardableResult
    private func close(to destinations: [String] = ["spaces"]) async throws -> Batch? {
        try await bench.journal.closeUnit(
            "gigs/X", root: "/in", routes: ["all"], marker: nil, uptimes: [:], closing: destinations, at: Bench.start
        ).first
    }

    @discardableResult
    private func send(_ settlement: ClaimOutcome = .test(.delivered)) async throws -> DeliveryRow? {
        try await bench.settle(settlement, of: "spaces")
    }

    /// Sends the closing delivery; nil when none is due.
    @discardableResult
    private func sendClosing(_ settlement: ClaimOutcome = .test(.delivered)) async throws -> DeliveryRow? {
        try await bench.settle(settlement, of: "spaces", lane: .small)
    }

    @Test func `it comes after every file of the unit, however they ended, and holds the unit open`() async throws {
        let first = try await admit("a", .test(modified: 3_000_000_000))
        try await admit("b", .test(modified: 1_000_000_000))
        try await admit("c", .test(modified: 2_000_000_000))
        #expect(try await sendClosing() == nil)
        let batch = try #require(try await close())
        for settlement in [ClaimOutcome.test(.delivered), .test(.failed), .test(.delivered)] {
            #expect(try await sendClosing() == nil)
            #expect(try await send(settlement) != nil)
        }
        try await bench.finishAll()
        #expect(try await bench.batch(of: first)?.endedAt == nil)
        let closing = try #require(try await sendClosing())
        #expect(closing.closes == batch.id && closing.key == "gigs/X/session" && closing.fileID == first)
        #expect(try await sendClosing() == nil)
        let context = try await bench.journal.context(of: closing, in: bench.job(first).file)
        let wanted = OrderBatch(
            id: batch.id, name: "gigs/X", folder: "gigs/X", isClosing: true, files: 2, failed: 1,
            firstCaptured: WallTime(milliseconds: 1000), lastCaptured: WallTime(milliseconds: 3000))
        #expect(context.batch == wanted && context.upstream.isEmpty)
        try await bench.finishAll()
        #expect(try await bench.batch(of: first)?.state == .failed)
        #expect(try await bench.batch(of: first)?.endedAt != nil)
    }

    @Test func `its files know that they are members`() async throws {
        let id = try await admit("a")
        let batch = try #require(try await close())
        let job = try await bench.job(id)
        let context = try await bench.journal.context(of: job.deliveries[0], in: job.file)
        #expect(context.batch == OrderBatch(id: batch.id, name: "gigs/X", folder: "gigs/X"))
        let other = try await bench.job(bench.admit("alone"))
        let alone = try await bench.journal.context(of: other.deliveries[0], in: other.file)
        #expect(alone.batch == nil && alone.upstream.isEmpty)
    }

    @Test func `destinations that are not told, and those that got nothing, have none`() async throws {
        let id = try await admit("a", to: ["spaces", "r2"])
        try await close(to: ["spaces", "other"])
        #expect(try await bench.job(id).deliveries.map(\.closes).compactMap(\.self).count == 1)
        #expect(try await bench.job(id).deliveries.last?.destination == "spaces")
        // What goes elsewhere does not hold it up.
        try await send()
        #expect(try await sendClosing() != nil)
    }

    @Test func `the next unit of the same folder is closed by itself`() async throws {
        try await admit("a")
        let first = try await close()
        try await send()
        try await sendClosing()
        try await admit("b")
        let second = try await close()
        try await send()
        let closing = try #require(try await sendClosing())
        #expect(closing.closes == second?.id && first?.id != second?.id && closing.key == "gigs/X/session_2")
    }

    @Test func `a file that is sent again is waited for again`() async throws {
        try await admit("a")
        let failed = try await admit("b")
        try await close()
        try await send()
        try await send(.test(.failed))
        #expect(try await bench.retry(failed))
        #expect(try await sendClosing() == nil)
        try await send()
        #expect(try await sendClosing() != nil)
    }

    @Test func `one that failed is sent again with its file`() async throws {
        let id = try await admit("a")
        try await close()
        try await send()
        try await sendClosing(.test(.failed))
        #expect(try await bench.job(id).file.state == .failed)
        #expect(try await bench.retry(id))
        #expect(try await sendClosing()?.fileID == id)
        #expect(try await bench.job(id).file.state == .delivered)
    }

    @Test func `cancelling the file that it stands with leaves it to another`() async throws {
        let first = try await admit("a")
        let second = try await admit("b")
        try await close()
        #expect(try await bench.cancel(first) != nil)
        #expect(try await bench.job(first).file.state == .cancelled)
        try await send()
        #expect(try await sendClosing()?.fileID == second)
    }

    @Test func `cancelling all of a unit cancels it too`() async throws {
        for name in ["a", "b", "c"] { try await admit(name) }
        try await close()
        _ = try await bench.journal.clearAll(at: Bench.start)
        #expect(try await bench.files() == [.cancelled: 3])
        #expect(try await sendClosing() == nil)
    }

    @Test func `a file of the unit that changes does not take it away`() async throws {
        let first = try await admit("a")
        try await admit("b")
        try await close()
        try await send()
        #expect(try await admit("a", .test(size: 11)) != first)
        try await send()
        #expect(try await sendClosing()?.fileID == first)
    }

    @Test func `the process may end before it is sent`() async throws {
        let id = try await admit("a")
        try await close()
        try await send()
        let journal = try bench.reopen()
        defer { journal.close() }
        #expect(try await journal.recover(destinations: [], at: Bench.start).parked == 1)
        #expect(try await journal.recover(destinations: ["spaces"], at: Bench.start).unparked == 1)
        #expect(try await journal.settle(.test(.delivered), [.test("spaces")], lane: .small)?.row.closes != nil)
        #expect(try await journal.job(id)?.file.state == .delivered)
    }
}

/// Checksum lists that ended units are owed.
@Suite(.seated) struct ManifestTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private func admit(_ name: String, _ rule: ManifestRule?, unit: FilePath? = "gigs/X") async throws -> Int64 {
        var admission = FileAdmission.test("gigs/X/\(name)", unit: unit)
        admission.plan?.manifest = rule
        admission.plan?.digests = [Digest(.xxh64, [1])]
        return try await bench.admit(admission)
    }

    private func due() async throws -> ManifestOrder? { try await bench.journal.nextManifest(at: Bench.start) }

    @Test func `the end of a unit owes its list, until that is written`() async throws {
        let rule = ManifestRule(format: .mhl, algorithm: .md5)
        let id = try await admit("a", rule)
        try await bench.closeUnit("gigs/X")
        try await bench.settle(.test(.delivered))
        #expect(try await due() == nil)
        #expect(try await bench.journal.manifestDue() == nil)
        try await bench.finishAll()
        let order = try #require(try await due())
        #expect(order.rule == rule && order.generation == 1 && order.attempts == 0 && order.reason == nil)
        #expect(try await bench.batch(of: id)?.id == order.batch)
        #expect(try await bench.journal.manifestDue() == Bench.start)
        try await bench.journal.manifestDone(order)
        #expect(try await due() == nil)
        #expect(try await bench.journal.manifestDue() == nil)
    }

    @Test func `without the rule nothing is owed, nor for what is no unit`() async throws {
        _ = try await admit("a", nil)
        _ = try await admit("b", ManifestRule(format: .ascmhl), unit: nil)
        try await bench.closeUnit("gigs/X")
        for _ in 0..<2 { try await bench.settle(.test(.delivered)) }
        try await bench.finishAll()
        #expect(try await due() == nil)
    }

    @Test func `a failure is put off, and keeps its reason`() async throws {
        _ = try await admit("a", ManifestRule(format: .ascmhl))
        try await bench.closeUnit("gigs/X")
        try await bench.settleAndFinish(.test(.delivered))
        let later = Bench.start + .seconds(30)
        try await bench.journal.manifestFailed(try #require(try await due()), reason: "full", until: later)
        #expect(try await due() == nil)
        #expect(try await bench.journal.manifestDue() == later)
        let again = try #require(try await bench.journal.nextManifest(at: later))
        #expect(again.attempts == 1 && again.reason == "full")
    }

    @Test func `an end that was taken back owes one list, of the last end`() async throws {
        let id = try await admit("a", ManifestRule(format: .ascmhl))
        try await bench.closeUnit("gigs/X")
        try await bench.settleAndFinish(.test(.failed))
        let first = try #require(try await due())
        #expect(try await bench.retry(id))
        try await bench.settleAndFinish(.test(.delivered))
        let second = try #require(try await due())
        #expect(first.generation == 1 && second.generation == 2 && second.batch == first.batch)
        try await bench.journal.manifestDone(first)
        #expect(try await due() == second)
        try await bench.journal.manifestDone(second)
        #expect(try await due() == nil)
    }

    @Test func `batches are found, and the one that ended last`() async throws {
        #expect(try await bench.journal.batches(limit: 9).isEmpty)
        #expect(try await bench.journal.batch(nil) == nil)
        let id = try await admit("a", nil)
        try await bench.closeUnit("gigs/X")
        try await bench.settleAndFinish(.test(.delivered))
        _ = try await admit("b", nil)
        let ended = try #require(try await bench.journal.batch(nil))
        #expect(try await bench.journal.batches(limit: 9).map(\.id) == [ended.id + 1, ended.id])
        #expect(try await bench.journal.batch(ended.id) == ended)
        #expect(try await bench.journal.batch(99) == nil)
        #expect(try await bench.journal.jobs(ofBatch: ended.id).map(\.file.id) == [id])
    }

    @Test func `others below a folder are found by their keys`() async throws {
        let id = try await admit("a", nil)
        let batch = try #require(try await bench.job(id).file.batchID)
        for key in ["gigs/X0", "gigs/Xa/b", "gigs/X"] { try await bench.admit(key) }
        #expect(try await !bench.journal.hasOthers(besides: batch, below: "gigs/X", at: "r2"))
        #expect(try await bench.journal.hasOthers(besides: batch, below: "gigs", at: "r2"))
        try await bench.admit("other", key: "gigs/X/raw/c")
        #expect(try await bench.journal.hasOthers(besides: batch, below: "gigs/X", at: "r2"))
        #expect(try await !bench.journal.hasOthers(besides: batch, below: "gigs/X", at: "elsewhere"))
    }
}
