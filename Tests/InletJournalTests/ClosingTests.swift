import InletCore
import InletJournalSupport
import SystemPackage
import Testing

@testable import InletJournal

/// Closing deliveries: what tells a destination that a whole unit has been sent to it.
@Suite(.seated) struct ClosingTests {
    @discardableResult
    private func admit(
        _ bench: Bench, _ name: String, _ identity: FileIdentity = .test(), to destinations: [String] = ["spaces"]
    ) async throws -> Int64 {
        var admission = FileAdmission.test("gigs/X/\(name)", identity, to: destinations, expire: .seconds(5))
        admission.unit = "gigs/X"
        guard case .admitted(let id) = try await bench.journal.admit(admission, at: Bench.start) else {
            throw Unexpected(what: "not admitted")
        }
        return id
    }

    @discardableResult
    private func close(_ bench: Bench, to destinations: [String] = ["spaces"]) async throws -> Batch? {
        try await bench.journal.closeUnit(
            "gigs/X", root: "/in", routes: ["all"], marker: nil, uptimes: [:], closing: destinations, at: Bench.start
        ).first
    }

    @discardableResult
    private func send(_ bench: Bench, _ settlement: Settlement = .test(.delivered)) async throws -> DeliveryRow? {
        try await bench.settle(settlement, of: "spaces")
    }

    /// Sends the closing delivery; nil when none is due.
    @discardableResult
    private func sendClosing(
        _ bench: Bench, _ settlement: Settlement = .test(.delivered)
    ) async throws -> DeliveryRow? {
        try await bench.settle(settlement, of: "spaces", lane: .small)
    }

    @Test func `it comes after every file of the unit, however they ended, and holds the unit open`() async throws {
        let bench = try Bench()
        let first = try await admit(bench, "a", .test(modified: 3_000_000_000))
        try await admit(bench, "b", .test(modified: 1_000_000_000))
        try await admit(bench, "c", .test(modified: 2_000_000_000))
        #expect(try await sendClosing(bench) == nil)
        let batch = try #require(try await close(bench))
        for settlement in [Settlement.test(.delivered), .test(.failed), .test(.delivered)] {
            #expect(try await sendClosing(bench) == nil)
            #expect(try await send(bench, settlement) != nil)
        }
        try await bench.finishAll()
        #expect(try await bench.journal.batch(of: first)?.endedAt == nil)
        let closing = try #require(try await sendClosing(bench))
        #expect(closing.closes == batch.id && closing.key == "gigs/X/session" && closing.fileID == first)
        #expect(try await sendClosing(bench) == nil)
        let context = try await bench.journal.context(of: closing, in: bench.job(first).file)
        let wanted = OrderBatch(
            id: batch.id, name: "gigs/X", folder: "gigs/X", role: .closing, files: 2, failed: 1,
            firstCaptured: WallTime(milliseconds: 1000), lastCaptured: WallTime(milliseconds: 3000))
        #expect(context.batch == wanted && context.upstream.isEmpty)
        try await bench.finishAll()
        #expect(try await bench.journal.batch(of: first)?.state == .failed)
        #expect(try await bench.journal.batch(of: first)?.endedAt != nil)
    }

    @Test func `its files know that they are members`() async throws {
        let bench = try Bench()
        let id = try await admit(bench, "a")
        let batch = try #require(try await close(bench))
        let job = try await bench.job(id)
        let context = try await bench.journal.context(of: job.deliveries[0], in: job.file)
        #expect(context.batch == OrderBatch(id: batch.id, name: "gigs/X", folder: "gigs/X"))
        let other = try await bench.job(bench.admit("alone"))
        let alone = try await bench.journal.context(of: other.deliveries[0], in: other.file)
        #expect(alone.batch == nil && alone.upstream.isEmpty)
    }

    @Test func `destinations that are not told, and those that got nothing, have none`() async throws {
        let bench = try Bench()
        let id = try await admit(bench, "a", to: ["spaces", "r2"])
        try await close(bench, to: ["spaces", "other"])
        #expect(try await bench.job(id).deliveries.map(\.closes).compactMap(\.self).count == 1)
        #expect(try await bench.job(id).deliveries.last?.destination == "spaces")
        // What goes elsewhere does not hold it up.
        try await send(bench)
        #expect(try await sendClosing(bench) != nil)
    }

    @Test func `the next unit of the same folder is closed by itself`() async throws {
        let bench = try Bench()
        try await admit(bench, "a")
        let first = try await close(bench)
        try await send(bench)
        try await sendClosing(bench)
        try await admit(bench, "b")
        let second = try await close(bench)
        try await send(bench)
        let closing = try #require(try await sendClosing(bench))
        #expect(closing.closes == second?.id && first?.id != second?.id)
        #expect(closing.key == "gigs/X/session_2")
    }

    @Test func `a file that is sent again is waited for again`() async throws {
        let bench = try Bench()
        try await admit(bench, "a")
        let failed = try await admit(bench, "b")
        try await close(bench)
        try await send(bench)
        try await send(bench, .test(.failed))
        #expect(try await bench.journal.retry(failed, uptimes: [:], at: Bench.start))
        #expect(try await sendClosing(bench) == nil)
        try await send(bench)
        #expect(try await sendClosing(bench) != nil)
    }

    @Test func `one that failed is sent again with its file`() async throws {
        let bench = try Bench()
        let id = try await admit(bench, "a")
        try await close(bench)
        try await send(bench)
        try await sendClosing(bench, .test(.failed))
        #expect(try await bench.job(id).file.state == .failed)
        #expect(try await bench.journal.retry(id, uptimes: [:], at: Bench.start))
        #expect(try await sendClosing(bench)?.fileID == id)
        #expect(try await bench.job(id).file.state == .delivered)
    }

    @Test func `cancelling the file that it stands with leaves it to another`() async throws {
        let bench = try Bench()
        let first = try await admit(bench, "a")
        let second = try await admit(bench, "b")
        try await close(bench)
        #expect(try await bench.journal.cancel(first, at: Bench.start) != nil)
        #expect(try await bench.job(first).file.state == .cancelled)
        try await send(bench)
        #expect(try await sendClosing(bench)?.fileID == second)
    }

    @Test func `cancelling all of a unit cancels it too`() async throws {
        let bench = try Bench()
        for name in ["a", "b", "c"] { try await admit(bench, name) }
        try await close(bench)
        _ = try await bench.journal.clearAll(at: Bench.start)
        #expect(try await bench.journal.totals().mapValues(\.files) == [.cancelled: 3])
        #expect(try await sendClosing(bench) == nil)
    }

    @Test func `a file of the unit that changes does not take it away`() async throws {
        let bench = try Bench()
        let first = try await admit(bench, "a")
        try await admit(bench, "b")
        try await close(bench)
        try await send(bench)
        let again = try await admit(bench, "a", .test(size: 11))
        #expect(again != first)
        try await send(bench)
        #expect(try await sendClosing(bench)?.fileID == first)
    }

    @Test func `the process may end before it is sent`() async throws {
        let bench = try Bench()
        let id = try await admit(bench, "a")
        try await close(bench)
        try await send(bench)
        let path = bench.journal.path
        bench.journal.close()
        let journal = try Journal(path: path, now: Bench.start)
        defer { journal.close() }
        #expect(try await journal.recover(destinations: [], at: Bench.start).parked == 1)
        #expect(try await journal.recover(destinations: ["spaces"], at: Bench.start).unparked == 1)
        let claimed = try await journal.withClaim(
            .small, rooms: [.test("spaces")], clock: { Bench.start }
        ) { claim in (Settlement.test(.delivered), claim.delivery.closes) }
        #expect(claimed?.1 != nil)
        #expect(try await journal.job(id)?.file.state == .delivered)
    }
}
