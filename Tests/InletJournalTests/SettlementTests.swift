import InletCore
import InletJournal
import InletJournalSupport
import Testing

@Suite(.seated) struct SettlementTests {
    private static let ends: [DeliveryState] = [.delivered, .failed, .expired, .cancelled, .gone, .superseded]

    @Test func `a file has the worst state of its deliveries, once all have ended`() async throws {
        let bench = try Bench()
        for first in Self.ends {
            for second in Self.ends {
                let id = try await bench.admit("\(first)-\(second)", to: ["r2", "disk"])
                try await bench.settle(.test(first))
                #expect(try await bench.job(id).file.state == .pending)
                #expect(try await bench.job(id).file.endedAt == nil)
                try await bench.settle(.test(second), of: "disk", at: Bench.start + .seconds(1))
                let job = try await bench.job(id)
                #expect(job.file.state == FileState.combined([first, second]), "\(first) and \(second)")
                #expect(job.deliveries.map(\.state) == [first, second])
                #expect(job.file.endedAt == Bench.start + .seconds(1))
            }
        }
    }

    @Test func `a proof is kept with its delivery, its content with the file`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        let settled = try await bench.journal.withClaim(
            .big, rooms: [.test()], clock: { Bench.start }
        ) { _ in (Settlement.delivered(.test("a")), 0) }
        #expect(settled?.0.isFinal == true)
        let job = try await bench.job(id)
        #expect(job.deliveries[0].proof == .test("a"))
        #expect(job.deliveries[0].code == nil)
        #expect(job.file.content == Proof.test().content)
    }

    @Test func `a failure is on record with code and reason`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await bench.settle(.ended(.failed, code: .tooLarge, reason: "too much"))
        let job = try await bench.job(id)
        #expect(job.file.code == .tooLarge)
        #expect(job.file.reason == "too much")
        #expect(job.deliveries[0].reason == "too much")
    }

    @Test(arguments: [(true, 1), (false, 0)])
    func `a delivery that goes again keeps or gives back its attempt`(counts: Bool, attempts: Int) async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        let later = Bench.start + .seconds(30)
        try await bench.settle(.again(later, counts: counts))
        let delivery = try await bench.job(id).deliveries[0]
        #expect(delivery.state == .ready)
        #expect(delivery.attempts == attempts)
        #expect(delivery.nextAt == later)
        #expect(delivery.code == .timedOut)
        #expect(try await bench.journal.nextDue(destinations: ["r2"]) == later)
        #expect(try await bench.settle(.test(.delivered)) == nil)
    }

    @Test func `a proof that arrives after a cancel counts, anything else does not`() async throws {
        let bench = try Bench()
        for (name, settlement, state) in [
            ("a", Settlement.test(.delivered), FileState.delivered), ("b", .again(), .cancelled),
            ("c", .test(.failed), .cancelled),
        ] {
            let id = try await bench.admit(name)
            try await bench.hold { claim in
                let running = try await bench.journal.cancel(id, at: Bench.start)
                #expect(running == [claim.delivery.id])
                return settlement
            }
            #expect(try await bench.job(id).file.state == state)
        }
    }

    @Test func `a late proof opens a finished file again, so that its receipt tells the truth`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await bench.hold { claim in
            try await bench.journal.checkpoint(claim.delivery.id, ["upload": []])
            _ = try await bench.journal.cancel(id, at: Bench.start)
            try await bench.finishAll()
            #expect(try await bench.journal.receipts(limit: 9).count == 1)
            return .test(.delivered)
        }
        let unfinished = try await bench.journal.unfinished(at: Bench.start, limit: 9)
        #expect(unfinished.map(\.file.state) == [.delivered])
        #expect(try await bench.journal.receipts(limit: 9).isEmpty)
        #expect(try await bench.journal.leftovers(at: Bench.start, limit: 9).isEmpty)
    }

    @Test func `a late proof leaves alone what the finisher has begun`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await bench.hold { _ in
            _ = try await bench.journal.cancel(id, at: Bench.start)
            try await bench.journal.intend(id, [1, 2, 3])
            return .test(.delivered)
        }
        let job = try await bench.job(id)
        #expect(job.file.state == .delivered)
        #expect(job.file.intent == [1, 2, 3])
    }

    @Test func `a delivery that was cancelled and put back waits for its holder to let go`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await bench.hold { _ in
            _ = try await bench.journal.cancel(id, at: Bench.start)
            #expect(try await bench.journal.retry(id, uptimes: [:], at: Bench.start))
            #expect(try await bench.settle(.test(.failed)) == nil)
            #expect(try await bench.journal.nextDue(destinations: ["r2"]) == nil)
            return .test(.failed)
        }
        #expect(try await bench.job(id).file.state == .pending)
        try await bench.settle(.test(.delivered))
        #expect(try await bench.job(id).file.state == .delivered)
    }

    @Test func `a running file cannot be forgotten`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await bench.hold { _ in
            _ = try await bench.journal.cancel(id, at: Bench.start)
            try await bench.finishAll()
            #expect(try await !bench.journal.forget(id))
            return .again()
        }
        #expect(try await bench.journal.forget(id))
    }
}
