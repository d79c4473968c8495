import InletCore
import InletJournal
import InletJournalSupport
import Testing

@Suite(.seated) struct QueueCommandTests {
    @Test(arguments: [DeliveryState.failed, .expired, .cancelled, .gone])
    func `an ended file is sent again with fresh attempts and a fresh life`(end: DeliveryState) async throws {
        let bench = try Bench()
        let id = try await bench.admit("a", to: ["r2", "disk"], expire: .seconds(10))
        try await bench.settle(.again(counts: true))
        try await bench.settle(.test(end))
        try await bench.settle(.test(.delivered), of: "disk")
        try await bench.finishAll()
        let later = Bench.start + .seconds(99)
        #expect(try await bench.journal.retry(id, uptimes: ["r2": 5000], at: later))
        let job = try await bench.job(id)
        #expect(job.file.state == .pending)
        #expect(job.file.finishedAt == nil)
        #expect(job.file.endedAt == nil)
        #expect(job.deliveries.map(\.state) == [.ready, .delivered])
        #expect(job.deliveries[0].attempts == 0)
        #expect(job.deliveries[0].nextAt == later)
        #expect(job.deliveries[0].expiresAt == 15_000)
        #expect(job.deliveries[0].key == "a")
        #expect(try await bench.journal.receipts(limit: 9).isEmpty)
        try await bench.settle(.test(.delivered), at: later)
        try await bench.finishAll(at: later)
        #expect(try await bench.journal.receipts(limit: 9).count == 1)
    }

    @Test func `a file that was gone and is there again goes on, and what was delivered of it is not sent twice`()
        async throws
    {
        let bench = try Bench()
        let id = try await bench.admit("a", to: ["r2", "disk"], expire: .seconds(10))
        try await bench.settle(.test(.delivered), of: "disk")
        try await bench.settle(.test(.gone))
        try await bench.finishAll()
        #expect(try await bench.job(id).file.state == .gone)
        #expect(try await bench.admit("a", to: ["r2", "disk"]) == id)
        let job = try await bench.job(id)
        #expect(job.file.state == .pending && job.file.finishedAt == nil)
        #expect(job.deliveries.map(\.state) == [.ready, .delivered] && job.deliveries.map(\.key) == ["a", "a"])
        try await bench.settle(.test(.delivered))
        #expect(try await bench.job(id).file.state == .delivered)
    }

    @Test func `of one that was gone after a part of it was sent, only the same file goes on from there`() async throws
    {
        for identity in [FileIdentity.test(), .test(changed: 9)] {
            let bench = try Bench()
            let id = try await bench.admit("a")
            try await bench.hold { claim in
                try await bench.journal.checkpoint(claim.delivery.id, ["upload": [1]])
                return .test(.gone)
            }
            try await bench.finishAll()
            #expect((try await bench.admit("a", identity) == id) == (identity == .test()))
        }
    }

    @Test func `another file under the name of one that was gone is new`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await bench.settle(.test(.gone))
        try await bench.finishAll()
        #expect(try await bench.admit("a", .test(modified: 7)) != id)
    }

    @Test func `files that are gone soon after their admission are counted`() async throws {
        let bench = try Bench()
        for name in ["a", "b", "c"] { _ = try await bench.admit(name) }
        try await bench.settle(.test(.gone), at: Bench.start + .seconds(3))
        try await bench.settle(.test(.gone), at: Bench.start + .seconds(30))
        try await bench.settle(.test(.delivered), at: Bench.start + .seconds(3))
        #expect(try await bench.journal.goneSoon(within: .seconds(10), since: Bench.start) == 1)
        #expect(try await bench.journal.goneSoon(within: .seconds(10), since: Bench.start + .seconds(9)) == 0)
    }

    @Test(arguments: [false, true]) func `what may not be read goes on when it is touched, even after its time`(
        _ isExpired: Bool
    ) async throws {
        let bench = try Bench()
        let id = try await bench.admit("a", to: ["r2", "disk"], expire: .seconds(10))
        try await bench.settle(.test(.delivered), of: "disk")
        let later = Bench.start + .seconds(60)
        try await bench.settle(.again(at: later, countsAttempt: false, code: .sourceForbidden, reason: "no permission"))
        #expect(try await bench.journal.forbidden()?.reason == "no permission")
        if isExpired {
            #expect(try await bench.journal.setUptime("r2", 20_000, at: later) == [id])
            try await bench.finishAll()
            let file = try await bench.job(id).file
            #expect(file.state == .expired && file.code == .sourceForbidden)
            #expect(file.reason?.hasSuffix("(no permission)") == true)
        }
        let now = Bench.start + .seconds(30)
        let file = try await bench.job(id).file
        let touch = try await bench.journal.refresh(file, identity: .test(changed: 9), uptimes: ["r2": 30_000], at: now)
        #expect(touch.goesOn && touch.isNoted)
        let job = try await bench.job(id)
        #expect(job.file.state == .pending && job.file.identity.changed == 9)
        #expect(job.deliveries.map(\.state) == [.ready, .delivered] && job.deliveries[0].nextAt == now)
        #expect(job.deliveries[0].attempts == 0 && job.deliveries[0].key == "a")
    }

    @Test func `there is nothing to send again of what is pending, delivered, superseded or unknown`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        #expect(try await !bench.journal.retry(id, uptimes: [:], at: Bench.start))
        try await bench.settle(.test(.delivered))
        #expect(try await !bench.journal.retry(id, uptimes: [:], at: Bench.start))
        let other = try await bench.admit("b")
        try await bench.settle(.test(.superseded))
        #expect(try await !bench.journal.retry(other, uptimes: [:], at: Bench.start))
        #expect(try await !bench.journal.retry(4711, uptimes: [:], at: Bench.start))
    }

    @Test func `cancelling ends what is open and leaves what was delivered`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a", to: ["r2", "disk"])
        try await bench.settle(.test(.delivered))
        #expect(try await bench.journal.cancel(id, at: Bench.start) == [])
        #expect(try await bench.job(id).deliveries.map(\.state) == [.delivered, .cancelled])
        #expect(try await bench.job(id).file.state == .cancelled)
        #expect(try await bench.journal.cancel(id, at: Bench.start) == nil)
        #expect(try await bench.journal.cancel(4711, at: Bench.start) == nil)
    }

    @Test func `a forgotten file is new, and only finished files are forgotten`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        #expect(try await !bench.journal.forget(id))
        try await bench.settle(.test(.failed))
        #expect(try await !bench.journal.forget(id))
        try await bench.finishAll()
        #expect(try await bench.journal.forget(id))
        #expect(try await !bench.journal.forget(id))
        #expect(try await bench.journal.job(id) == nil)
        #expect(try await bench.journal.totals().isEmpty)
        #expect(try await bench.journal.recall([.test("a")], tolerance: 0) == [.new])
        #expect(try await bench.admit("a") > id)
    }

    @Test func `forgetting a delivered file never gives its key to another`() async throws {
        let bench = try Bench()
        let first = try await bench.admit("a")
        try await bench.settle(.test(.delivered))
        try await bench.finishAll()
        #expect(try await bench.journal.forget(first))
        let second = try await bench.admit("a")
        #expect(try await bench.job(second).deliveries[0].key == "a_2")
        let elsewhere = try await bench.admit("b", to: ["disk"], key: "a")
        #expect(try await bench.job(elsewhere).deliveries[0].key == "a")
    }

    @Test func `forgetting a file of which nothing arrived gives its key back, unless something may have`() async throws
    {
        let bench = try Bench()
        for (key, note, next) in [("a", "upload", "a"), ("b", CheckpointNote.mayBeVisible, "b_2")] {
            let id = try await bench.admit(key)
            try await bench.hold { claim in
                try await bench.journal.checkpoint(claim.delivery.id, [note: []])
                return .test(.failed)
            }
            let delivery = try await bench.job(id).deliveries[0].id
            try await bench.journal.leftoverRemoved(delivery)
            try await bench.finishAll()
            #expect(try await bench.journal.forget(id))
            let again = try await bench.admit(key)
            #expect(try await bench.job(again).deliveries[0].key == next)
            try await bench.settle(.test(.delivered))
        }
    }

    @Test func `clearing cancels every pending file`() async throws {
        let bench = try Bench()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<600 { group.addTask { _ = try await bench.admit("\(number)", to: ["r2", "disk"]) } }
            try await group.waitForAll()
        }
        try await bench.hold { claim in
            let (files, running) = try await bench.journal.clearAll(at: Bench.start)
            #expect(files == 600)
            #expect(running == [claim.delivery.id])
            return .again()
        }
        #expect(try await bench.journal.totals().mapValues(\.files) == [.cancelled: 600])
        #expect(try await bench.journal.clearAll(at: Bench.start).files == 0)
    }

    @Test func `deliveries of a destination that left are parked until it is back`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a", to: ["r2", "disk"])
        #expect(try await bench.journal.recover(destinations: ["disk"], at: Bench.start).numbers == [0, 1, 0])
        #expect(try await bench.job(id).deliveries.map(\.state) == [.parked, .ready])
        #expect(try await bench.settle(.test(.delivered)) == nil)
        #expect(try await bench.journal.recover(destinations: [], at: Bench.start).numbers == [0, 1, 0])
        let back = try await bench.journal.recover(destinations: ["r2", "disk"], at: Bench.start)
        #expect(back.numbers == [0, 0, 2])
        try await bench.settle(.test(.delivered))
        try await bench.settle(.test(.delivered), of: "disk")
        #expect(try await bench.job(id).file.state == .delivered)
    }

    @Test func `what expires together does so in groups, so that nobody waits for long`() async throws {
        let bench = try Bench()
        let count = 2 * Journal.expiredAtOnce + 9
        for number in 0..<count { _ = try await bench.admit("\(number)", expire: .seconds(10)) }
        var groups: [Int] = []
        repeat {
            groups.append(try await bench.journal.setUptime("r2", 10_000, at: Bench.start).count)
        } while groups.last == Journal.expiredAtOnce
        #expect(groups == [Journal.expiredAtOnce, Journal.expiredAtOnce, 9])
    }

    @Test func `what a volume that is away holds back has all its time when it is back`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a", expire: .seconds(10))
        _ = try await bench.journal.setUptime("r2", 9000, at: Bench.start)
        let away = Settlement.again(
            at: Bench.start, countsAttempt: false, code: .sourceGone, reason: "/in is not mounted")
        try await bench.settle(away)
        #expect(try await bench.journal.setUptime("r2", 18_000, at: Bench.start).isEmpty)
        try await bench.settle(.again(at: Bench.start, countsAttempt: false, code: .timedOut, reason: "busy"))
        #expect(try await bench.journal.setUptime("r2", 19_000, at: Bench.start) == [id])
    }

    @Test func `what waits expires by its destination's uptime, what runs does not`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a", to: ["r2", "disk"], expire: .seconds(10))
        let other = try await bench.admit("b", expire: .seconds(20))
        let forever = try await bench.admit("c")
        #expect(try await bench.journal.nextExpiries(of: ["r2", "disk", "spaces"]) == ["r2": 10_000, "disk": 10_000])
        #expect(try await bench.journal.setUptime("r2", 9999, at: Bench.start).isEmpty)
        #expect(try await bench.journal.setUptime("r2", 10_000, at: Bench.start) == [id])
        #expect(try await bench.job(id).deliveries.map(\.state) == [.expired, .ready])
        #expect(try await bench.journal.uptimes() == ["r2": 10_000])
        #expect(try await bench.journal.setUptime("r2", 1, at: Bench.start).isEmpty)
        #expect(try await bench.journal.uptimes() == ["r2": 10_000])
        try await bench.hold { claim in
            #expect(claim.file.id == other)
            let expired = try await bench.journal.setUptime("r2", .max, at: Bench.start)
            #expect(expired.contains(other) == false)
            return .test(.delivered)
        }
        #expect(try await bench.job(forever).file.state == .pending)
    }

    @Test func `pauses last`() async throws {
        let bench = try Bench()
        try await bench.journal.setPaused("r2", true)
        try await bench.journal.setPaused("disk", true)
        try await bench.journal.setPaused("disk", false)
        _ = try await bench.journal.setUptime("r2", 5, at: Bench.start)
        bench.journal.close()
        let reopened = try Journal(path: bench.journal.path, now: Bench.start)
        defer { reopened.close() }
        #expect(try await reopened.paused() == ["r2"])
    }
}

extension Recovery {
    fileprivate var numbers: [Int] { [freedClaims, parked, unparked] }
}
