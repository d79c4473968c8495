import InletCore
import InletJournal
import InletJournalSupport
import Testing

@Suite(.seated) struct LeftoverTests {
    /// Claims one delivery, leaves an upload behind and settles.
    private func leave(_ bench: Bench, _ settlement: Settlement) async throws {
        try await bench.hold { claim in
            try await bench.journal.checkpoint(claim.delivery.id, ["upload": [7]])
            return settlement
        }
    }

    @Test(arguments: [DeliveryState.failed, .gone, .superseded, .expired, .cancelled])
    func `what an ended delivery left is remembered until it is removed`(end: DeliveryState) async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await leave(bench, .test(end))
        let leftovers = try await bench.journal.leftovers(at: Bench.start, limit: 9)
        #expect(leftovers.map(\.file.id) == [id])
        #expect(leftovers.map(\.checkpoint) == [["upload": [7]]])
        #expect(leftovers.map(\.delivery.key) == ["a"])
        #expect(try await bench.journal.nextLeftover() == Bench.start)
        let delivery = try #require(leftovers.first).delivery.id
        try await bench.journal.leftoverRemoved(delivery)
        #expect(try await bench.journal.leftovers(at: Bench.start, limit: 9).isEmpty)
        #expect(try await bench.journal.nextLeftover() == nil)
    }

    @Test func `nothing is left of a delivered file, of one that waits, and of one that was never begun`() async throws
    {
        let bench = try Bench()
        _ = try await bench.admit("a")
        try await leave(bench, .test(.delivered))
        _ = try await bench.admit("b")
        try await leave(bench, .again(Bench.start + .seconds(9)))
        _ = try await bench.admit("c")
        try await bench.settle(.test(.failed))
        #expect(try await bench.journal.leftovers(at: Bench.start, limit: 9).isEmpty)
    }

    @Test(
        arguments: [
            (["upload": [7]], nil, "a"), (["upload": [7], CheckpointNote.mayBeVisible: []], "a", "a_2"),
        ] as [([String: [UInt8]], String?, String)])
    func `a superseded delivery gives its key back once its leftover is gone, unless its object may be there`(
        notes: [String: [UInt8]], kept: String?, next: String
    ) async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await bench.hold { claim in
            try await bench.journal.checkpoint(claim.delivery.id, notes)
            return .test(.superseded)
        }
        let delivery = try await bench.job(id).deliveries[0]
        #expect(delivery.key == "a")
        try await bench.journal.leftoverRemoved(delivery.id)
        #expect(try await bench.job(id).deliveries[0].key == kept)
        let new = try await bench.admit("a", .test(size: 11))
        #expect(try await bench.job(new).deliveries[0].key == next)
    }

    @Test func `a delivery that a crash interrupted keeps its key, because it had no time for a note`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await bench.hold { _ in
            _ = try await bench.journal.recover(destinations: ["r2"], at: Bench.start)
            return .test(.superseded)
        }
        let job = try await bench.job(id)
        #expect(job.deliveries[0].state == .ready)
        let new = try await bench.admit("a", .test(size: 11))
        #expect(try await bench.job(id).file.state == .superseded)
        #expect(try await bench.job(id).deliveries[0].key == "a")
        #expect(try await bench.job(new).deliveries[0].key == "a_2")
    }

    @Test func `neither a retry nor a cancel forgets that a crash interrupted an attempt`() async throws {
        let bench = try Bench()
        for (key, isCancelled) in [("a", false), ("b", true)] {
            let id = try await bench.admit(key)
            try await bench.hold { _ in
                if isCancelled { _ = try await bench.journal.cancel(id, at: Bench.start) }
                _ = try await bench.journal.recover(destinations: ["r2"], at: Bench.start)
                return .again()
            }
            _ = try await bench.journal.cancel(id, at: Bench.start)
            #expect(try await bench.journal.retry(id, uptimes: [:], at: Bench.start))
            let new = try await bench.admit(key, .test(size: 11))
            #expect(try await bench.job(new).deliveries[0].key == key + "_2")
            _ = try await bench.journal.cancel(new, at: Bench.start)
        }
    }

    @Test func `a note that something may be visible is no upload to abort`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a")
        try await bench.hold { claim in
            try await bench.journal.checkpoint(claim.delivery.id, [CheckpointNote.mayBeVisible: []])
            return .test(.failed)
        }
        #expect(try await bench.journal.leftovers(at: Bench.start, limit: 9).isEmpty)
    }

    @Test func `notes are replaced at once`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a")
        try await bench.hold { claim in
            try await bench.journal.checkpoint(claim.delivery.id, ["upload": [1], "part:1": [2]])
            try await bench.journal.checkpoint(claim.delivery.id, ["upload": [3]], replacing: true)
            return .test(.failed)
        }
        #expect(try await bench.journal.leftovers(at: Bench.start, limit: 9).map(\.checkpoint) == [["upload": [3]]])
    }

    @Test func `a leftover is tried sixteen times and then left to the store`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await leave(bench, .test(.failed))
        let delivery = try await bench.job(id).deliveries[0].id
        let later = Bench.start + .seconds(300)
        for _ in 0..<15 { try await bench.journal.leftoverRemains(delivery, until: later) }
        #expect(try await bench.journal.leftovers(at: Bench.start, limit: 9).isEmpty)
        #expect(try await bench.journal.nextLeftover() == later)
        try await bench.journal.leftoverRemains(delivery, until: later)
        #expect(try await bench.journal.nextLeftover() == nil)
    }

    @Test func `a start has what was left looked at again, where its destination is configured`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await leave(bench, .test(.failed))
        let tomorrow = Bench.start + .seconds(86_400)
        try await bench.journal.leftoverRemains(try await bench.job(id).deliveries[0].id, until: tomorrow)
        _ = try await bench.journal.recover(destinations: ["disk"], at: Bench.start)
        #expect(try await bench.journal.nextLeftover() == tomorrow)
        _ = try await bench.journal.recover(destinations: ["disk", "r2"], at: Bench.start)
        #expect(try await bench.journal.nextLeftover() == Bench.start)
    }

    @Test func `sent again, an upload is no leftover, and a late sweep does not take its checkpoint`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await leave(bench, .test(.failed))
        let delivery = try await bench.job(id).deliveries[0].id
        #expect(try await bench.journal.retry(id, uptimes: [:], at: Bench.start))
        #expect(try await bench.journal.nextLeftover() == nil)
        try await bench.journal.leftoverRemoved(delivery)
        try await bench.hold { claim in
            #expect(claim.checkpoint == ["upload": [7]])
            return .again()
        }
    }

    @Test func `an upload that was opened while a person cancelled is a leftover`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await bench.hold { claim in
            _ = try await bench.journal.cancel(id, at: Bench.start)
            #expect(try await bench.journal.nextLeftover() == nil)
            try await bench.journal.checkpoint(claim.delivery.id, ["upload": [7]])
            return .again()
        }
        #expect(try await bench.journal.leftovers(at: Bench.start, limit: 9).map(\.file.id) == [id])
        try await bench.finishAll()
        #expect(try await !bench.journal.forget(id))
    }

    @Test func `checkpoints last until they are cleared`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a")
        try await leave(bench, .again())
        bench.journal.close()
        let reopened = try Journal(path: bench.journal.path, now: Bench.start)
        defer { reopened.close() }
        for expected in [["upload": [UInt8(7)]], [:]] {
            _ = try await reopened.withClaim(.big, rooms: [.test()], clock: { Bench.start }) { claim in
                #expect(claim.checkpoint == expected)
                try await reopened.checkpoint(claim.delivery.id, [:], replacing: true)
                return (Settlement.again(), 0)
            }
        }
    }
}
