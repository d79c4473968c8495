import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

/// Keys, orders of people, and work that comes again.
@Suite(.seated) struct PlaceOrderTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    @Test func `work asks for no key, whatever happens to it`() async throws {
        try await bench.journal.reserveKeys(at: ["r2": nil])
        let id = try await bench.take(.test("a.mov"))
        try await bench.take(.test("b.mov", number: 8))
        #expect(try await bench.requests().isEmpty)
        try await bench.settle(.again())
        try await bench.journal.holdPlaceWork()
        try await bench.journal.reserveKeys(at: ["r2": nil])
        try await bench.take(.test("a.mov", fence: 2, session: 2))
        try await bench.journal.reserveKeys(at: ["r2": nil])
        #expect(try await bench.requests().isEmpty)
        #expect(try await bench.due() == ["a.mov"])
        let claim = try #require(try await bench.claimAll().first)
        try await bench.end(claim, .renamed(reason: "another's", key: "a_2.mov"))
        #expect(try await bench.requests().isEmpty)
        #expect(try await bench.delivery(id).key == "a_2.mov")
        #expect(try await bench.due() == ["a_2.mov"])
        #expect(try await bench.journal.keysToReturn(limit: 9).isEmpty)
    }

    @Test func `a person sends a file again only when the fleet has no work for it, and its source stays`() async throws
    {
        try await bench.journal.reserveKeys(at: ["r2": nil])
        var work = PlaceWork.test("a.mov")
        work.admission.plan?.onSuccess = .delete
        let id = try await bench.take(work)
        try await bench.settle(.test(.failed))
        #expect(try await !bench.journal.retry(id, uptimes: [:], at: Bench.start))
        #expect(try await !bench.job(id).actions.contains(.retry))
        let since = try await bench.journal.failedFiles(
            at: "r2", from: [.internalFault], since: Bench.start, by: Bench.start, after: 0, limit: 9)
        #expect(since.isEmpty)
        try await bench.journal.placeWorkSettled([(id, nil, false)], mark: 3, at: Bench.start)
        try await bench.finishAll()
        #expect(try await bench.job(id).actions.contains(.retry))
        #expect(try await bench.journal.retry(id, uptimes: [:], at: Bench.start))
        #expect(try await bench.requests().isEmpty)
        #expect(try await bench.due() == ["a.mov"])
        let policy = try await bench.job(id).file.policy
        #expect(!policy.isOfPlace && policy.onSuccess == .keep && policy.onFailure == .keep)
        // Its key is the share's: it never goes back by itself.
        try await bench.settleAndFinish(.test(.failed))
        #expect(try await bench.journal.forget(id))
        #expect(try await bench.journal.keysToReturn(limit: 9).isEmpty)
    }

    @Test func `a person may cancel work, and the fleet is told`() async throws {
        let id = try await bench.take(.test("a"))
        _ = try await bench.journal.cancel(id, at: Bench.start)
        let ended = try await bench.journal.endedPlaceWork(session: 1, limit: 9)
        #expect(ended.map(\.state) == [.cancelled] && ended.map(\.code) == [.cancelled])
    }

    @Test func `the end of a delivery that was cancelled while it ran is told when it has ended`() async throws {
        let id = try await bench.take(.test("a"))
        let claim = try #require(try await bench.claimAll().first)
        _ = try await bench.journal.cancel(id, at: Bench.start)
        #expect(try await bench.journal.endedPlaceWork(session: 1, limit: 9).isEmpty)
        try await bench.end(claim, .delivered(.test("a")))
        #expect(try await bench.journal.endedPlaceWork(session: 1, limit: 9).map(\.state) == [.delivered])
        #expect(try await bench.journal.nextFinish() == nil)
    }

    @Test func `after a loss what was delivered is not sent again, wherever the journal has it`() async throws {
        let id = try await bench.settled(.test("a"), finish: nil)
        try await bench.finishAll()
        #expect(try await bench.prune() == 1)
        #expect(try await bench.take(.test("a", number: 99, session: 4)) == id)
        #expect(try await bench.due().isEmpty)
        #expect(try await bench.journal.endedPlaceWork(session: 4, limit: 9).map(\.number) == [99])
        try await bench.journal.placeWorkSettled([(id, 100, false)], mark: 9, at: Bench.start)
        #expect(try await bench.unfinished().map(\.file.id) == [id])
        try await bench.finishAll(Disposition.archived("x"))
        #expect(try await bench.journal.finishedPlaceWork(session: 4, limit: 9).map(\.number) == [100])
    }

    @Test func `what failed is sent again under its key when the fleet gives it again`() async throws {
        try await bench.journal.reserveKeys(at: ["r2": nil])
        let id = try await bench.take(.test("a"))
        try await bench.settle(.test(.failed))
        try await bench.journal.placeWorkSettled([(id, nil, false)], mark: 3, at: Bench.start)
        try await bench.finishAll()
        #expect(try await bench.take(.test("a", number: 20, session: 2)) == id)
        #expect(try await bench.requests().isEmpty)
        #expect(try await bench.job(id).file.policy.isOfPlace)
        #expect(try await bench.due() == ["a"])
        try await bench.settle(.test(.delivered))
        #expect(try await bench.unfinished().isEmpty)
        #expect(try await bench.journal.endedPlaceWork(session: 2, limit: 9).map(\.number) == [20])
    }

    @Test func `a file of this agent's own that waits keeps its key until it has ended`() async throws {
        let id = try await bench.admit("a", key: "mine")
        let starts = try await bench.journal.takePlaceWork([.test("a", key: "mine")], at: Bench.start)
        #expect(starts == [.keyTaken("mine")])
        try await bench.settle(.delivered(.test("mine")))
        #expect(try await bench.take(.test("a", key: "mine")) == id)
        #expect(try await bench.journal.endedPlaceWork(session: 1, limit: 9).map(\.file) == [id])
    }

    @Test func `a file of a share is not taken for one that was renamed`() async throws {
        try await bench.take(.test("a"))
        let renamed = try await bench.journal.renamed(from: "a", to: .test("b"))
        #expect(renamed == nil)
    }
}
