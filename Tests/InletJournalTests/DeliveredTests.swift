import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage
import Testing

/// What was delivered, as those who look again ask for it; and when its deliveries began.
@Suite(.seated) struct DeliveredTests {
    @Test func `a delivery began when it was first claimed, and anew once it is sent again`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        #expect(try await bench.job(id).deliveries.first?.startedAt == nil)
        let first = Bench.start + .seconds(5)
        try await bench.hold(at: first) { claim in
            #expect(claim.delivery.startedAt == first)
            return .again(first, counts: true)
        }
        let second = first + .seconds(60)
        _ = try await bench.settle(.test(.failed), at: second)
        var delivery = try #require(try await bench.job(id).deliveries.first)
        #expect(delivery.startedAt == first && delivery.endedAt == second)
        let third = second + .seconds(60)
        #expect(try await bench.journal.retry(id, uptimes: [:], at: third))
        #expect(try await bench.job(id).deliveries.first?.startedAt == nil)
        _ = try await bench.settle(.test(.delivered), at: third)
        delivery = try #require(try await bench.job(id).deliveries.first)
        #expect(delivery.startedAt == third && delivery.endedAt == third)
    }

    @Test func `the rule that finishes a file sees when its last delivery ended`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a")
        let now = Bench.start + .seconds(5)
        let wish = ClaimWish(lane: .big, room: .test(), most: 1)
        let claim = try #require(try await bench.journal.exchange([], for: wish, at: now).claims.first)
        let end = now + .seconds(3)
        let none = ClaimWish.none(.big)
        _ = try await bench.journal.exchange(
            [EndedClaim(claim, .test(.delivered))], for: none,
            ending: { job in
                #expect(job.deliveries.first?.endedAt == end && job.deliveries.first?.startedAt == now)
                return Ending(disposition: Disposition.kept, receipt: Array("{}".utf8))
            }, at: end)
        #expect(try await bench.journal.receipts(limit: 9).count == 1)
    }

    @Test func `pages hold every proof once, and only those that are meant`() async throws {
        let bench = try Bench()
        var ids: [Int64] = []
        for number in 0..<7 { ids.append(try await bench.admit("\(number)", to: ["r2", "disk"])) }
        let late = Bench.start + .seconds(100)
        for number in 0..<7 {
            let time = number < 4 ? Bench.start : late
            _ = try await bench.settle(.test(number == 6 ? .failed : .delivered), at: time)
            if number < 3 { _ = try await bench.settle(.test(.delivered), of: "disk", at: time) }
        }
        #expect(try await pages(bench, DeliveredFilter(), 4).count == 9)
        #expect(try await pages(bench, DeliveredFilter(), 1).map(\.delivery.id).count == 9)
        let disk = try await pages(bench, DeliveredFilter(destination: "disk"), 2)
        #expect(disk.map(\.file.id) == Array(ids.prefix(3)))
        let some = try await pages(bench, DeliveredFilter(jobs: [ids[1], ids[5], ids[6]]), 100)
        #expect(some.map(\.file.id) == [ids[1], ids[1], ids[5]])
        let recent = try await pages(bench, DeliveredFilter(since: late), 100)
        #expect(recent.map(\.file.id) == [ids[4], ids[5]])
        #expect(try await pages(bench, DeliveredFilter(batch: 1), 100).isEmpty)
        #expect(some.allSatisfy { $0.delivery.proof != nil })
    }

    @Test(.enabled(if: SQLiteShell.isInstalled))
    func `what lies far apart in a long history is found, over pages with nothing`() async throws {
        let bench = try Bench()
        for name in ["first", "last"] {
            _ = try await bench.admit(name)
            try await bench.settle(.test(.delivered))
        }
        try SQLiteShell.run(bench.journal.path, "UPDATE delivery SET id = 20000 WHERE file_id = 2")
        var page = try await bench.journal.delivered(DeliveredFilter(destination: "r2"), after: 0, limit: 9)
        #expect(page.page.map(\.delivery.id) == [1])
        page = try await bench.journal.delivered(
            DeliveredFilter(destination: "r2"), after: try #require(page.next), limit: 9)
        #expect(page.page.isEmpty && page.next != nil)
        #expect(try await pages(bench, DeliveredFilter(destination: "r2"), 9).map(\.delivery.id) == [1, 20000])
    }

    /// All pages; no number comes twice.
    private func pages(_ bench: Bench, _ filter: DeliveredFilter, _ size: Int) async throws -> [Delivered] {
        var all: [Delivered] = []
        var last: Int64? = 0
        while let after = last {
            let (page, next) = try await bench.journal.delivered(filter, after: after, limit: size)
            #expect(page.count <= size)
            all += page
            last = next
        }
        #expect(Set(all.map(\.delivery.id)).count == all.count)
        return all
    }
}
