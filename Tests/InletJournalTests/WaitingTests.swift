import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage
import Testing

/// Deliveries whose destinations work on them.
@Suite(.seated) struct WaitingTests {
    private static let later = Bench.start + .seconds(3)

    private func wait(_ bench: Bench, _ saying: String?, lane: Lane = .big, at time: WallTime = Bench.start)
        async throws
    {
        #expect(try await bench.settle(.waiting(until: Self.later, saying: saying), lane: lane, at: time) != nil)
    }

    @Test func `it waits in the light lane, costs no attempt, and says why`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await wait(bench, "generating, 81 %")
        let row = try await bench.job(id).deliveries[0]
        #expect(row.attempts == 0 && row.waits == 1 && row.isBeingWorkedOn && row.nextAt == Self.later)
        #expect(row.reason == "generating, 81 %" && row.code == nil)
        #expect(try await bench.settle(.test(.failed), lane: .big, at: Self.later) == nil)
        try await wait(bench, nil, lane: .small, at: Self.later)
        let again = try await bench.job(id).deliveries[0]
        #expect(again.waits == 2 && again.attempts == 0 && again.reason == nil)
        #expect(try await bench.settle(.test(.delivered), lane: .small, at: Self.later)?.attempts == 1)
    }

    @Test func `other loops hear of it when it changes lanes`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a")
        for (lane, isNews) in [(Lane.big, true), (.small, false)] {
            let outcome = try await bench.journal.withClaim(
                lane, rooms: [.test()], clock: { Self.later }
            ) { _ in (Settlement.waiting(until: Self.later, saying: nil), ()) }
            #expect(outcome?.0.hasReleased == isNews)
        }
    }

    @Test func `what is worked on is listed until something else is heard of it`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a", .test(size: 7))
        _ = try await bench.admit("b")
        #expect(try await bench.journal.waiting(limit: 10).isEmpty)
        try await wait(bench, "step 1")
        let row = try await bench.job(id).deliveries[0]
        let listed = try await bench.journal.waiting(limit: 10)
        #expect(listed.map(\.id) == [row.id] && listed.map(\.file) == [id] && listed.map(\.path) == ["/in/a"])
        #expect(listed.map(\.size) == [7] && listed.map(\.route) == ["all"] && listed.map(\.destination) == ["r2"])
        #expect(listed.map(\.saying) == ["step 1"] && listed.map(\.until) == [Self.later])
        #expect(listed.map(\.admittedAt) == [Bench.start])
        #expect(try await bench.journal.waiting(limit: 0).isEmpty)
        try await bench.settle(.again(), lane: .small, at: Self.later)
        #expect(try await bench.journal.waiting(limit: 10).isEmpty)
        try await wait(bench, "step 2", lane: .small, at: Self.later)
        #expect(try await bench.journal.waiting(limit: 10).map(\.saying) == ["step 2"])
        _ = try await bench.journal.cancel(id, at: Self.later)
        #expect(try await bench.journal.waiting(limit: 10).isEmpty)
    }

    @Test func `what is worked on does not expire, and what then fails has all its time`() async throws {
        let bench = try Bench()
        let journal = bench.journal
        let id = try await bench.admit("a", expire: .seconds(10))
        let other = try await bench.admit("b", expire: .seconds(30))
        try await wait(bench, "queued")
        #expect(try await journal.nextExpiries(of: ["r2", "disk", "spaces"]) == ["r2": 30_000])
        #expect(try await journal.setUptime("r2", 20_000, at: Self.later).isEmpty)
        // An end of ours says nothing about it.
        try await bench.settle(
            .again(at: Self.later, countsAttempt: false, code: nil, reason: nil), lane: .small, at: Self.later)
        #expect(try await journal.setUptime("r2", 21_000, at: Self.later).isEmpty)
        try await bench.settle(.again(Self.later), lane: .small, at: Self.later)
        #expect(try await journal.nextExpiries(of: ["r2", "disk", "spaces"]) == ["r2": 30_000])
        #expect(try await journal.setUptime("r2", 30_999, at: Self.later) == [other])
        // A second failure gives it no more.
        try await bench.settle(.again(Self.later), lane: .small, at: Self.later)
        #expect(try await journal.nextExpiries(of: ["r2", "disk", "spaces"]) == ["r2": 31_000])
        #expect(try await journal.setUptime("r2", 31_000, at: Self.later) == [id])
    }

    @Test func `what never expires does not begin to when it fails`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await wait(bench, "queued")
        try await bench.settle(.again(Self.later), lane: .small, at: Self.later)
        #expect(try await bench.job(id).deliveries[0].expiresAt == nil)
        #expect(try await bench.journal.nextExpiries(of: ["r2", "disk", "spaces"]).isEmpty)
    }

    @Test func `one that was cancelled meanwhile stays so`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await bench.hold { _ in
            _ = try await bench.journal.cancel(id, at: Bench.start)
            return .waiting(until: Self.later, saying: "working")
        }
        #expect(try await bench.job(id).file.state == .cancelled)
    }
}
