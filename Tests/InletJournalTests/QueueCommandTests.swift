import InletCore
import InletJournalSupport
import InletTestSupport
import Testing

@testable import InletJournal

@Suite(.seated) struct QueueCommandTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    @Test(arguments: [DeliveryState.failed, .expired, .cancelled, .gone])
    func `an ended file is sent again with fresh attempts and a fresh life`(end: DeliveryState) async throws {
        let id = try await bench.admit("a", to: ["r2", "disk"], expire: .seconds(10))
        try await bench.settle(.again(counts: true))
        try await bench.settle(.test(end))
        try await bench.settleAndFinish(.test(.delivered), of: "disk")
        let later = Bench.start + .seconds(99)
        #expect(try await bench.journal.retry(id, uptimes: ["r2": 5000], at: later))
        let job = try await bench.job(id)
        #expect(job.file.state == .pending && job.file.finishedAt == nil && job.file.endedAt == nil)
        #expect(job.deliveries.map(\.state) == [.ready, .delivered] && job.deliveries[0].attempts == 0)
        #expect(job.deliveries[0].nextAt == later && job.deliveries[0].expiresAt == 15_000)
        #expect(job.deliveries[0].key == "a")
        #expect(try await bench.journal.receipts(limit: 9).isEmpty)
        try await bench.settle(.test(.delivered), at: later)
        try await bench.finishAll(at: later)
        #expect(try await bench.journal.receipts(limit: 9).count == 1)
    }

    @Test func `a file that was gone and is there again goes on, and what was delivered of it is not sent twice`()
        async throws
    {
        let id = try await bench.admit("a", to: ["r2", "disk"], expire: .seconds(10))
        try await bench.settle(.test(.delivered), of: "disk")
        try await bench.settleAndFinish(.test(.gone))
        #expect(try await bench.job(id).file.state == .gone)
        #expect(try await bench.admit("a", to: ["r2", "disk"]) == id)
        let job = try await bench.job(id)
        #expect(job.file.state == .pending && job.file.finishedAt == nil)
        #expect(job.deliveries.map(\.state) == [.ready, .delivered] && job.deliveries.map(\.key) == ["a", "a"])
        try await bench.settle(.test(.delivered))
        #expect(try await bench.job(id).file.state == .delivered)
    }

    @Test
    func `of one that was gone after a part of it was sent, only the same file goes on from there`() async throws {
        for identity in [FileIdentity.test(), .test(changed: 9)] {
            let bench = try Bench()
            let id = try await bench.admit("a")
            try await bench.leave(["upload": [1]], .test(.gone))
            try await bench.finishAll()
            #expect((try await bench.admit("a", identity) == id) == (identity == .test()))
        }
    }

    @Test func `another file under the name of one that was gone is new`() async throws {
        let id = try await bench.settled("a", .gone, finishes: true)
        #expect(try await bench.admit("a", .test(modified: 7)) != id)
    }

    @Test func `files that are gone soon after their admission are counted`() async throws {
        for name in ["a", "b", "c"] { try await bench.admit(name) }
        try await bench.settle(.test(.gone), at: Bench.start + .seconds(3))
        try await bench.settle(.test(.gone), at: Bench.start + .seconds(30))
        try await bench.settle(.test(.delivered), at: Bench.start + .seconds(3))
        #expect(try await bench.journal.goneSoon(within: .seconds(10), since: Bench.start) == 1)
        #expect(try await bench.journal.goneSoon(within: .seconds(10), since: Bench.start + .seconds(9)) == 0)
    }

    @Test(arguments: [false, true]) func `what may not be read goes on when it is touched, even after its time`(
        _ isExpired: Bool
    ) async throws {
        let id = try await bench.admit("a", to: ["r2", "disk"], expire: .seconds(10))
        try await bench.settle(.test(.delivered), of: "disk")
        let later = Bench.start + .seconds(60)
        try await bench.settle(.again(at: later, countsAttempt: false, code: .sourceForbidden, reason: "no permission"))
        #expect(try await bench.journal.forbidden()?.reason == "no permission")
        if isExpired {
            #expect(try await bench.setUptime("r2", 20_000, at: later) == [id])
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
        let id = try await bench.admit("a")
        #expect(try await !bench.retry(id))
        try await bench.settle(.test(.delivered))
        let other = try await bench.settled("b", .superseded)
        for file in [id, other, 4711] { #expect(try await !bench.retry(file)) }
    }

    @Test func `cancelling ends what is open and leaves what was delivered`() async throws {
        let id = try await bench.admit("a", to: ["r2", "disk"])
        try await bench.settle(.test(.delivered))
        #expect(try await bench.cancel(id) == [])
        #expect(try await bench.job(id).deliveries.map(\.state) == [.delivered, .cancelled])
        #expect(try await bench.job(id).file.state == .cancelled)
        for file in [id, 4711] { #expect(try await bench.cancel(file) == nil) }
    }

    @Test func `a forgotten file is new, and only finished files are forgotten`() async throws {
        let id = try await bench.admit("a")
        #expect(try await !bench.forget(id))
        try await bench.settle(.test(.failed))
        #expect(try await !bench.forget(id))
        try await bench.finishAll()
        #expect(try await bench.forget(id))
        #expect(try await !bench.forget(id))
        #expect(try await bench.journal.job(id) == nil)
        #expect(try await bench.journal.totals().isEmpty)
        #expect(try await bench.recall([.test("a")]) == [.new])
        #expect(try await bench.admit("a") > id)
    }

    @Test func `forgetting a delivered file never gives its key to another`() async throws {
        let first = try await bench.settled("a", .delivered, finishes: true)
        #expect(try await bench.forget(first))
        #expect(try await bench.job(bench.admit("a")).deliveries[0].key == "a_2")
        #expect(try await bench.job(bench.admit("b", to: ["disk"], key: "a")).deliveries[0].key == "a")
    }

    @Test
    func `forgetting a file of which nothing arrived gives its key back, unless something may have`() async throws {
        for (key, note, next) in [("a", "upload", "a"), ("b", CheckpointName.mayBeVisible, "b_2")] {
            let id = try await bench.admit(key)
            try await bench.leave([note: []], .test(.failed))
            let delivery = try await bench.job(id).deliveries[0].id
            try await bench.journal.leftoverRemoved(delivery)
            try await bench.finishAll()
            #expect(try await bench.forget(id))
            #expect(try await bench.job(bench.admit(key)).deliveries[0].key == next)
            try await bench.settle(.test(.delivered))
        }
    }

    @Test func `clearing cancels every pending file`() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<600 { group.addTask { try await bench.admit("\(number)", to: ["r2", "disk"]) } }
            try await group.waitForAll()
        }
        try await bench.hold { claim in
            let (files, running) = try await bench.journal.clearAll(at: Bench.start)
            #expect(files == 600)
            #expect(running == [claim.delivery.id])
            return .again()
        }
        #expect(try await bench.files() == [.cancelled: 600])
        #expect(try await bench.journal.clearAll(at: Bench.start).files == 0)
    }

    @Test func `what expires together does so in groups, so that nobody waits for long`() async throws {
        let count = 2 * Journal.expiredAtOnce + 9
        for number in 0..<count { try await bench.admit("\(number)", expire: .seconds(10)) }
        var groups: [Int] = []
        repeat {
            groups.append(try await bench.setUptime("r2", 10_000).count)
        } while groups.last == Journal.expiredAtOnce
        #expect(groups == [Journal.expiredAtOnce, Journal.expiredAtOnce, 9])
    }

    @Test func `what a volume that is away holds back has all its time when it is back`() async throws {
        let id = try await bench.admit("a", expire: .seconds(10))
        try await bench.setUptime("r2", 9000)
        let away = ClaimOutcome.again(
            at: Bench.start, countsAttempt: false, code: .sourceGone, reason: "/in is not mounted")
        try await bench.settle(away)
        #expect(try await bench.setUptime("r2", 18_000).isEmpty)
        try await bench.settle(.again(at: Bench.start, countsAttempt: false, code: .timedOut, reason: "busy"))
        #expect(try await bench.setUptime("r2", 19_000) == [id])
    }

    @Test func `what waits expires by its destination's uptime, what runs does not`() async throws {
        let id = try await bench.admit("a", to: ["r2", "disk"], expire: .seconds(10))
        let other = try await bench.admit("b", expire: .seconds(20))
        let forever = try await bench.admit("c")
        #expect(try await bench.journal.nextExpiries(of: ["r2", "disk", "spaces"]) == ["r2": 10_000, "disk": 10_000])
        #expect(try await bench.setUptime("r2", 9999).isEmpty)
        #expect(try await bench.setUptime("r2", 10_000) == [id])
        #expect(try await bench.job(id).deliveries.map(\.state) == [.expired, .ready])
        #expect(try await bench.journal.uptimes() == ["r2": 10_000])
        #expect(try await bench.setUptime("r2", 1).isEmpty)
        #expect(try await bench.journal.uptimes() == ["r2": 10_000])
        try await bench.hold { claim in
            #expect(claim.file.id == other)
            let expired = try await bench.setUptime("r2", .max)
            #expect(!expired.contains(other))
            return .test(.delivered)
        }
        #expect(try await bench.job(forever).file.state == .pending)
    }
}

/// Cancelling everything that waits, when that is much.
@Suite(.seated) struct ClearingTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private func admit(_ count: Int) async throws { try await bench.offer((0..<count).map { .test("\($0)") }) }

    @Test func `a step cancels a group, and who begins again after it goes on with the rest`() async throws {
        let group = Journal.clearedAtOnce
        try await admit(2 * group + 9)
        let first = try await bench.journal.clear(at: Bench.start)
        #expect(first.files == group && first.next != nil)
        #expect(try await bench.files() == [.cancelled: group, .pending: group + 9])
        // As after the end of the process: nobody knows how far it came.
        #expect(try await bench.journal.clearAll(at: Bench.start).files == group + 9)
        #expect(try await bench.files() == [.cancelled: 2 * group + 9])
    }

    @Test func `others have their turn between two steps, and what comes meanwhile is not meant`() async throws {
        try await admit(Journal.clearedAtOnce + 1)
        let first = try await bench.journal.clear(at: Bench.start)
        let new = try await bench.admit("new")
        let second = try await bench.journal.clear(#require(first.next), at: Bench.start)
        #expect(second.files == 1 && second.running.isEmpty && second.skipped.isEmpty && second.next == nil)
        #expect(try await bench.job(new).file.state == .pending)
        #expect(try await bench.journal.clear(at: Bench.start).files == 1)
        let last = try await bench.journal.clear(at: Bench.start)
        #expect(last.files == 0 && last.skipped.isEmpty && last.next == nil)
    }

    @Test(.enabled(if: SQLiteShell.isInstalled))
    func `a file that cannot be read keeps no other from being cancelled, and is said`() async throws {
        try await admit(3)
        try SQLiteShell.run(bench.journal.path, "UPDATE delivery SET fields = x'00' WHERE file_id = 2")
        let step = try await bench.journal.clear(at: Bench.start)
        #expect(step.files == 2 && step.skipped.values.reduce(0, +) == 1 && step.next == nil)
        #expect(try await bench.job(1).file.state == .cancelled)
        #expect(try await bench.job(3).file.state == .cancelled)
    }
}

@Suite(.seated) struct LeftoverTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private func leave(_ settlement: ClaimOutcome) async throws { try await bench.leave(["upload": [7]], settlement) }

    @Test(arguments: [DeliveryState.failed, .gone, .superseded, .expired, .cancelled])
    func `what an ended delivery left is remembered until it is removed`(end: DeliveryState) async throws {
        let id = try await bench.admit("a")
        try await leave(.test(end))
        let leftovers = try await bench.leftovers()
        #expect(leftovers.map(\.file.id) == [id] && leftovers.map(\.checkpoint) == [["upload": [7]]])
        #expect(leftovers.map(\.delivery.key) == ["a"])
        #expect(try await bench.journal.nextLeftover() == Bench.start)
        let delivery = try #require(leftovers.first).delivery.id
        try await bench.journal.leftoverRemoved(delivery)
        #expect(try await bench.leftovers().isEmpty)
        #expect(try await bench.journal.nextLeftover() == nil)
    }

    /// Nor of one that only notes that something may be visible: that is no upload to abort.
    @Test
    func `nothing is left of a delivered file, of one that waits, and of one that was never begun`() async throws {
        try await bench.admit("a")
        try await leave(.test(.delivered))
        try await bench.admit("b")
        try await leave(.again(Bench.start + .seconds(9)))
        try await bench.settled("c", .failed)
        try await bench.admit("d")
        try await bench.leave([CheckpointName.mayBeVisible: []], .test(.failed))
        #expect(try await bench.leftovers().isEmpty)
    }

    @Test(
        arguments: [
            (["upload": [7]], nil, "a"), (["upload": [7], CheckpointName.mayBeVisible: []], "a", "a_2"),
        ] as [([String: [UInt8]], String?, String)])
    func `a superseded delivery gives its key back once its leftover is gone, unless its object may be there`(
        notes: [String: [UInt8]], kept: String?, next: String
    ) async throws {
        let id = try await bench.admit("a")
        try await bench.leave(notes, .test(.superseded))
        let delivery = try await bench.job(id).deliveries[0]
        #expect(delivery.key == "a")
        try await bench.journal.leftoverRemoved(delivery.id)
        #expect(try await bench.job(id).deliveries[0].key == kept)
        #expect(try await bench.job(bench.admit("a", .test(size: 11))).deliveries[0].key == next)
    }

    @Test func `a delivery that a crash interrupted keeps its key, because it had no time for a note`() async throws {
        let id = try await bench.admit("a")
        try await bench.hold { _ in
            try await bench.recover(["r2"])
            return .test(.superseded)
        }
        #expect(try await bench.job(id).deliveries[0].state == .ready)
        let new = try await bench.admit("a", .test(size: 11))
        #expect(try await bench.job(id).file.state == .superseded)
        #expect(try await bench.job(id).deliveries[0].key == "a")
        #expect(try await bench.job(new).deliveries[0].key == "a_2")
    }

    @Test func `neither a retry nor a cancel forgets that a crash interrupted an attempt`() async throws {
        for (key, isCancelled) in [("a", false), ("b", true)] {
            let id = try await bench.admit(key)
            try await bench.hold { _ in
                if isCancelled { try await bench.cancel(id) }
                try await bench.recover(["r2"])
                return .again()
            }
            try await bench.cancel(id)
            #expect(try await bench.retry(id))
            let new = try await bench.admit(key, .test(size: 11))
            #expect(try await bench.job(new).deliveries[0].key == key + "_2")
            try await bench.cancel(new)
        }
    }

    @Test func `notes are replaced at once`() async throws {
        try await bench.admit("a")
        try await bench.hold { claim in
            try await bench.journal.checkpoint(claim.delivery.id, ["upload": [1], "part:1": [2]])
            try await bench.journal.checkpoint(claim.delivery.id, ["upload": [3]], replacing: true)
            return .test(.failed)
        }
        #expect(try await bench.leftovers().map(\.checkpoint) == [["upload": [3]]])
    }

    @Test func `a leftover is tried sixteen times and then left to the store`() async throws {
        let id = try await bench.admit("a")
        try await leave(.test(.failed))
        let delivery = try await bench.job(id).deliveries[0].id
        let later = Bench.start + .seconds(300)
        for _ in 0..<15 { try await bench.journal.leftoverRemains(delivery, until: later) }
        #expect(try await bench.leftovers().isEmpty)
        #expect(try await bench.journal.nextLeftover() == later)
        try await bench.journal.leftoverRemains(delivery, until: later)
        #expect(try await bench.journal.nextLeftover() == nil)
    }

    @Test func `a start has what was left looked at again, where its destination is configured`() async throws {
        let id = try await bench.admit("a")
        try await leave(.test(.failed))
        let tomorrow = Bench.start + .seconds(86_400)
        try await bench.journal.leftoverRemains(try await bench.job(id).deliveries[0].id, until: tomorrow)
        try await bench.recover(["disk"])
        #expect(try await bench.journal.nextLeftover() == tomorrow)
        try await bench.recover(["disk", "r2"])
        #expect(try await bench.journal.nextLeftover() == Bench.start)
    }

    @Test func `sent again, an upload is no leftover, and a late sweep does not take its checkpoint`() async throws {
        let id = try await bench.admit("a")
        try await leave(.test(.failed))
        let delivery = try await bench.job(id).deliveries[0].id
        #expect(try await bench.retry(id))
        #expect(try await bench.journal.nextLeftover() == nil)
        try await bench.journal.leftoverRemoved(delivery)
        try await bench.hold { claim in
            #expect(claim.checkpoint == ["upload": [7]])
            return .again()
        }
    }

    @Test func `an upload that was opened while a person cancelled is a leftover`() async throws {
        let id = try await bench.admit("a")
        try await bench.hold { claim in
            try await bench.cancel(id)
            #expect(try await bench.journal.nextLeftover() == nil)
            try await bench.journal.checkpoint(claim.delivery.id, ["upload": [7]])
            return .again()
        }
        #expect(try await bench.leftovers().map(\.file.id) == [id])
        try await bench.finishAll()
        #expect(try await !bench.forget(id))
    }

    @Test func `checkpoints last until they are cleared`() async throws {
        try await bench.admit("a")
        try await leave(.again())
        let reopened = try bench.reopen()
        defer { reopened.close() }
        for expected in [["upload": [UInt8(7)]], [:]] {
            _ = try await reopened.withClaim(.big, rooms: [.test()], clock: { Bench.start }) { claim in
                #expect(claim.checkpoint == expected)
                try await reopened.checkpoint(claim.delivery.id, [:], replacing: true)
                return (ClaimOutcome.again(), 0)
            }
        }
    }
}
