import InletCore
import InletJournal
import InletJournalSupport
import Testing

@Suite(.seated) struct ExchangeTests {
    private func wish(_ room: ClaimRoom = .test(), most: Int = 100) -> ClaimWish {
        ClaimWish(lane: .small, room: room, most: most)
    }

    private func admit(_ bench: Bench, _ count: Int, to destinations: [String] = ["r2"]) async throws -> [Int64] {
        var ids: [Int64] = []
        for number in 0..<count {
            ids.append(try await bench.admit("\(destinations[0])-\(number)", to: destinations, lane: .small))
        }
        return ids
    }

    @Test func `what ended makes room for what is claimed in the same exchange`() async throws {
        let bench = try Bench()
        let ids = try await admit(bench, 3)
        let room = ClaimRoom.test("r2", 2)
        let first = try await bench.journal.exchange([], for: wish(room), at: Bench.start)
        #expect(first.claims.map(\.file.id) == Array(ids[..<2]))
        #expect(try await bench.journal.exchange([], for: wish(room), at: Bench.start).claims.isEmpty)
        let ended = [EndedClaim(first.claims[0], .delivered(.test()))]
        let second = try await bench.journal.exchange(ended, for: wish(room), at: Bench.start)
        #expect(second.settled.map(\.state) == [.delivered])
        #expect(second.claims.map(\.file.id) == [ids[2]])
        #expect(try await bench.journal.deliveryCounts(.claimed) == ["r2": 2])
        #expect(try await bench.job(ids[0]).deliveries[0].proof == .test())
    }

    /// The notes are removed by a statement that the settlement runs too, through another layer of GRDB.
    @Test func `a proof is taken at the first try, whatever ran before it`() async throws {
        let bench = try Bench()
        _ = try await admit(bench, 1)
        let claim = try #require(try await bench.journal.exchange([], for: wish(), at: Bench.start).claims.first)
        try await bench.journal.checkpoint(claim.delivery.id, ["upload": [1]], replacing: true)
        let settled = try await bench.journal.exchange(
            [EndedClaim(claim, .delivered(.test()))], for: wish(), at: Bench.start)
        #expect(settled.settled.map(\.state) == [.delivered])
    }

    @Test func `what is given back to its time is the first again, uncounted`() async throws {
        let bench = try Bench()
        let ids = try await admit(bench, 2)
        let one = wish(most: 1)
        let claim = try #require(try await bench.journal.exchange([], for: one, at: Bench.start).claims.first)
        let back = Settlement.again(at: claim.delivery.nextAt, countsAttempt: false, code: nil, reason: nil)
        let again = try await bench.journal.exchange(
            [EndedClaim(claim, back)], for: one, at: Bench.start + .seconds(1))
        #expect(again.settled.map(\.state) == [.pending])
        #expect(again.claims.map(\.file.id) == [ids[0]])
        #expect(again.claims.map(\.delivery.attempts) == [1])
    }

    @Test func `no destination gets more than its room, nor more than was asked for`() async throws {
        let bench = try Bench()
        _ = try await admit(bench, 6)
        _ = try await admit(bench, 6, to: ["disk"])
        let room = ClaimRoom.test("r2", 4)
        let few = try await bench.journal.exchange([], for: wish(room, most: 3), at: Bench.start)
        #expect(few.claims.map(\.delivery.destination) == ["r2", "r2", "r2"])
        #expect(few.nextDue == nil)
        let rest = try await bench.journal.exchange([], for: wish(room), at: Bench.start)
        #expect(rest.claims.map(\.delivery.destination) == ["r2"])
        #expect(rest.nextDue == nil)
        for (name, limit) in [("disk", 2), ("nowhere", 0)] {
            let there = try await bench.journal.exchange([], for: wish(.test(name, 2)), at: Bench.start)
            #expect(there.claims.map(\.delivery.destination) == Array(repeating: name, count: limit))
            #expect(there.nextDue == nil)
        }
        #expect(try await bench.journal.deliveryCounts(.claimed) == ["r2": 4, "disk": 2])
        #expect(try await bench.journal.exchange([], for: wish(room), at: Bench.start).claims.isEmpty)
    }

    @Test func `an exchange says when the next is due that there is room for`() async throws {
        let bench = try Bench()
        let later = Bench.start + .seconds(5)
        _ = try await bench.admit("a", lane: .small, at: later)
        _ = try await bench.admit("b", to: ["disk"], lane: .small, at: later + .seconds(1))
        #expect(try await bench.journal.exchange([], for: wish(), at: Bench.start).nextDue == later)
        let disk = try await bench.journal.exchange([], for: wish(.test("disk")), at: Bench.start)
        #expect(disk.nextDue == later + .seconds(1))
        #expect(try await bench.journal.exchange([], for: wish(.test("r2", 0)), at: Bench.start).nextDue == nil)
        #expect(try await bench.journal.exchange([], for: .none(.small), at: later).nextDue == nil)
    }

    @Test func `one that is refused takes the whole exchange back`() async throws {
        let bench = try Bench()
        let ids = try await admit(bench, 3)
        let claims = try await bench.journal.exchange([], for: wish(most: 2), at: Bench.start).claims
        var stranger = EndedClaim(claims[1], .delivered(.test()))
        stranger.delivery = 4711
        let ended = [EndedClaim(claims[0], .delivered(.test())), stranger]
        await #expect(throws: JournalError.self) {
            try await bench.journal.exchange(ended, for: wish(), at: Bench.start)
        }
        #expect(try await bench.job(ids[0]).deliveries[0].state == .claimed)
        #expect(try await bench.job(ids[2]).deliveries[0].state == .ready)
    }

    @Test func `a file whose source stays is finished in the exchange, once all its deliveries have ended`()
        async throws
    {
        let bench = try Bench()
        let id = try await bench.admit("a", to: ["r2", "disk"], lane: .small)
        let keep: EndingRule = { job in
            Ending(disposition: "kept", receipt: Array("\(job.deliveries.map(\.state.rawValue))".utf8))
        }
        let rooms = [ClaimRoom.test("r2"), .test("disk")]
        let claims = try await bench.journal.claims(.small, rooms: rooms, most: 100, at: Bench.start)
        let none = ClaimWish.none(.small)
        let first = try await bench.journal.exchange(
            [EndedClaim(claims[0], .delivered(.test()))], for: none, ending: keep, at: Bench.start)
        #expect(first.settled.map { $0.finish == nil } == [true])
        let second = try await bench.journal.exchange(
            [EndedClaim(claims[1], .test(.failed))], for: none, ending: keep, at: Bench.start)
        #expect(second.settled.map(\.state) == [.failed])
        #expect(second.settled.map { $0.finish?.disposition } == ["kept"])
        #expect(try await bench.job(id).file.finishedAt == Bench.start)
        #expect(try await bench.journal.receipts(limit: 9) == [Array("[\"delivered\", \"failed\"]".utf8)])
    }

    @Test func `who was cancelled and sent again while it was held is due when its holder has let go`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a", lane: .small)
        let claim = try #require(try await bench.journal.exchange([], for: wish(), at: Bench.start).claims.first)
        #expect(try await bench.journal.cancel(id, at: Bench.start) == [claim.delivery.id])
        #expect(try await bench.journal.forget(id) == false)
        #expect(try await bench.journal.retry(id, uptimes: [:], at: Bench.start))
        #expect(try await bench.journal.exchange([], for: wish(), at: Bench.start).claims.isEmpty)
        let back = Settlement.again(at: Bench.start, countsAttempt: false, code: nil, reason: nil)
        let next = try await bench.journal.exchange([EndedClaim(claim, back)], for: wish(), at: Bench.start)
        #expect(next.claims.map(\.delivery.id) == [claim.delivery.id])
        #expect(next.claims.map(\.delivery.attempts) == [1])
    }

    @Test func `the end of one that was never begun counts no attempt`() async throws {
        let bench = try Bench()
        let ids = try await admit(bench, 2)
        let claims = try await bench.journal.exchange([], for: wish(), at: Bench.start).claims
        #expect(try await bench.journal.cancel(ids[1], at: Bench.start) == [claims[1].delivery.id])
        let back = Settlement.again(at: Bench.start, countsAttempt: false, code: nil, reason: nil)
        let ended = [EndedClaim(claims[0], .expired), EndedClaim(claims[1], back)]
        let exchange = try await bench.journal.exchange(ended, for: wish(), at: Bench.start)
        #expect(exchange.settled.map(\.state) == [.expired, .cancelled])
        #expect(exchange.claims.isEmpty)
        for (id, state) in zip(ids, [DeliveryState.expired, .cancelled]) {
            let delivery = try await bench.job(id).deliveries[0]
            #expect(delivery.state == state && delivery.attempts == 0)
            #expect(delivery.reason != nil)
        }
    }

    /// Which of them had been begun when the process died, nobody knows: none pays for it, and all keep their names.
    @Test func `what was held by a process that died costs no attempt, and its key is not given away`() async throws {
        let bench = try Bench()
        let ids = try await admit(bench, 3)
        _ = try await bench.journal.exchange([], for: wish(), at: Bench.start)
        #expect(try await bench.journal.recover(destinations: ["r2"], at: Bench.start).freedClaims == 3)
        for id in ids {
            let delivery = try await bench.job(id).deliveries[0]
            #expect(delivery.state == .ready && delivery.attempts == 0)
        }
        _ = try await bench.journal.cancel(ids[0], at: Bench.start)
        try await bench.finishAll()
        #expect(try await bench.journal.forget(ids[0]))
        let again = try await bench.admit("r2-0", lane: .small)
        #expect(try await bench.job(again).deliveries[0].key == "r2-0_2")
    }
}
