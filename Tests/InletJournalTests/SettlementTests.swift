import InletCore
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

@testable import InletJournal

@Suite(.seated) struct SettlementTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private static let ends: [DeliveryState] = [.delivered, .failed, .expired, .cancelled, .gone, .superseded]

    @Test func `a file has the worst state of its deliveries, once all have ended`() async throws {
        for first in Self.ends {
            for second in Self.ends {
                let id = try await bench.admit("\(first)-\(second)", to: ["r2", "disk"])
                try await bench.settle(.test(first))
                #expect(try await bench.job(id).file.state == .pending)
                #expect(try await bench.job(id).file.endedAt == nil)
                try await bench.settle(.test(second), of: "disk", at: Bench.start + .seconds(1))
                let job = try await bench.job(id)
                #expect(job.file.state == FileState.combined([first, second]), "\(first) and \(second)")
                #expect(
                    job.deliveries.map(\.state) == [first, second] && job.file.endedAt == Bench.start + .seconds(1))
            }
        }
    }

    @Test func `a proof is kept with its delivery, its content with the file`() async throws {
        let id = try await bench.admit("a")
        #expect(try await bench.journal.settle(.delivered(.test("a")))?.file.isFinal == true)
        let job = try await bench.job(id)
        #expect(job.deliveries[0].proof == .test("a") && job.deliveries[0].code == nil)
        #expect(job.file.content == Proof.test().content)
    }

    @Test func `a failure is on record with code and reason`() async throws {
        let id = try await bench.admit("a")
        try await bench.settle(.ended(.failed, code: .tooLarge, reason: "too much"))
        let job = try await bench.job(id)
        #expect(job.file.code == .tooLarge && job.file.reason == "too much" && job.deliveries[0].reason == "too much")
    }

    @Test(arguments: [(true, 1), (false, 0)])
    func `a delivery that goes again keeps or gives back its attempt`(counts: Bool, attempts: Int) async throws {
        let id = try await bench.admit("a")
        let later = Bench.start + .seconds(30)
        try await bench.settle(.again(later, counts: counts))
        let delivery = try await bench.job(id).deliveries[0]
        #expect(delivery.state == .ready && delivery.attempts == attempts && delivery.nextAt == later)
        #expect(delivery.code == .timedOut)
        #expect(try await bench.nextDue(["r2"]) == later)
        #expect(try await bench.settle(.test(.delivered)) == nil)
    }

    @Test func `a proof that arrives after a cancel counts, anything else does not`() async throws {
        for (name, settlement, state) in [
            ("a", ClaimOutcome.test(.delivered), FileState.delivered), ("b", .again(), .cancelled),
            ("c", .test(.failed), .cancelled), ("d", .waiting(until: Bench.start, saying: "working"), .cancelled),
        ] {
            let id = try await bench.admit(name)
            try await bench.hold { claim in
                let running = try await bench.cancel(id)
                #expect(running == [claim.delivery.id])
                return settlement
            }
            #expect(try await bench.job(id).file.state == state)
        }
    }

    @Test func `a late proof opens a finished file again, so that its receipt tells the truth`() async throws {
        let id = try await bench.admit("a")
        try await bench.hold { claim in
            try await bench.journal.checkpoint(claim.delivery.id, ["upload": []])
            try await bench.cancel(id)
            try await bench.finishAll()
            #expect(try await bench.journal.receipts(limit: 9).count == 1)
            return .test(.delivered)
        }
        #expect(try await bench.unfinished().map(\.file.state) == [.delivered])
        #expect(try await bench.journal.receipts(limit: 9).isEmpty)
        #expect(try await bench.leftovers().isEmpty)
    }

    @Test func `a late proof leaves alone what the finisher has begun`() async throws {
        let id = try await bench.admit("a")
        try await bench.hold { _ in
            try await bench.cancel(id)
            try await bench.journal.intend(id, [1, 2, 3])
            return .test(.delivered)
        }
        let job = try await bench.job(id)
        #expect(job.file.state == .delivered && job.file.intent == [1, 2, 3])
    }

    @Test func `a running file cannot be forgotten`() async throws {
        let id = try await bench.admit("a")
        try await bench.hold { _ in
            try await bench.cancel(id)
            try await bench.finishAll()
            #expect(try await !bench.forget(id))
            return .again()
        }
        #expect(try await bench.forget(id))
    }
}

/// A plain delivery is settled in a third of the statements: the journal must be the same after it, to the last byte.
@Suite(.seated, .enabled(if: SQLiteShell.isInstalled)) struct PlainSettlementTests {
    @Test(arguments: 0..<30) func `the short way and the long way leave the same journal`(seed: UInt64) async throws {
        let (short, long) = try (Bench(), Bench())
        let settled = try await play(seed, short) { ended, ending, time in
            try await short.journal.exchange([ended], for: .none(.big), ending: ending, at: time).settled[0]
        }
        let stepwise = try await play(seed, long) { ended, ending, time in
            try await long.journal.commit { try Journal.settleStepwise(ended, ending, time, $0) }
        }
        #expect(settled == stepwise)
        #expect(try SQLiteShell.run(short.file, ".dump") == SQLiteShell.run(long.file, ".dump"))
    }

    @Test func `only what hangs on nothing goes the short way`() async throws {
        let bench = try Bench()
        try await bench.admit("plain")
        try await bench.admit("two", to: ["r2", "disk"])
        try await bench.admit(.test("unit/a", unit: "unit"))
        var counted = FileAdmission.test("counted")
        counted.plan?.digests = [Digest(.sha256, Array(repeating: 7, count: 32))]
        try await bench.offer(counted)
        let claims = try await bench.claimAll()
        let names = try await bench.journal.commit { database in
            let ended: [EndedClaim] = claims.map { ($0.delivery.id, .delivered(.test())) }
            let settled = try Journal.settlePlain(ended, claims, nil, Bench.start, database)
            return settled.keys.sorted().map { claims[$0].file.path }
        }
        #expect(names == ["plain"])
    }

    private typealias Settling = (EndedClaim, EndingRule?, WallTime) async throws -> SettledFile

    /// Admits files of all kinds, claims them, cancels some, and settles what was claimed.
    /// - Returns: what each settling said.
    private func play(_ seed: UInt64, _ bench: Bench, _ settle: Settling) async throws -> [String] {
        var random = SeededGenerator(seed: seed)
        var said: [String] = []
        var now = Bench.start
        for number in 0..<12 { _ = try await bench.journal.admitSet(admission(number, &random), at: now) }
        for _ in 0..<4 {
            now = now + .seconds(1)
            let rooms = [ClaimCapacity.test("r2", 4), .test("disk", 4)]
            let claims = try await bench.journal.claims(.big, rooms: rooms, most: 6, at: now)
            for claim in claims {
                if Int.random(in: 0..<6, using: &random) == 0 {
                    try await bench.cancel(claim.file.id, at: now)
                }
                if Bool.random(using: &random) {
                    try await bench.journal.checkpoint(claim.delivery.id, ["part:1": [1]])
                }
                let ended: EndedClaim = (claim.delivery.id, Self.settlement(now, &random))
                let ending: EndingRule? = Bool.random(using: &random) ? Self.atOnce : nil
                let result = try await settle(ended, ending, now)
                let batch = result.finish?.endedBatch.map { "\($0.id) \($0.state)" }
                let disposition = result.finish?.disposition
                said.append("\(result.state) \(result.hasReleased) \(disposition ?? "-") \(batch ?? "-")")
            }
        }
        return said
    }

    private static let atOnce: EndingRule = { job in
        job.deliveries.count == 1
            ? ("kept", Array("\(job.file.state) \(job.deliveries[0].state)".utf8)) : nil
    }

    private static func settlement(_ now: WallTime, _ random: inout SeededGenerator) -> ClaimOutcome {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: .test(.failed)
        case 1: .again(now, counts: true)
        case 2: .delivered(Proof(key: "k", size: 10, method: .size))
        default: .test(.delivered)
        }
    }

    private func admission(_ number: Int, _ random: inout SeededGenerator) -> FileAdmission {
        let name = "file-\(number)"
        let isForTwo = Int.random(in: 0..<4, using: &random) == 0
        var admission = FileAdmission.test(name, to: isForTwo ? ["r2", "disk"] : ["r2"])
        switch Int.random(in: 0..<6, using: &random) {
        case 0: admission.plan?.digests = [Digest(.sha256, Array(repeating: UInt8(number % 3), count: 32))]
        case 1:
            admission.plan?.digests = [Digest(.sha256, Array(repeating: UInt8(number % 3), count: 32))]
            admission.plan?.dedupe = .link
        case 2:
            admission.companions = [.test("\(name).xmp", .sameStem, .test(size: 3))]
        default: break
        }
        return admission
    }
}

extension Bench {
    fileprivate var file: FilePath { directory.path.appending("journal.sqlite") }
}

@Suite(.seated) struct FinishTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    @Test func `a file is finished once, with one receipt`() async throws {
        try await bench.settled("a", .delivered)
        let job = try #require(try await bench.unfinished().first)
        let results = try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<8 {
                group.addTask {
                    try await bench.journal.finish(
                        job.file, disposition: Disposition.deleted, receipt: [UInt8(number)], at: Bench.start) != nil
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(results.filter(\.self).count == 1)
        #expect(try await bench.journal.receipts(limit: 9).count == 1)
        #expect(try await bench.unfinished().isEmpty)
        let file = try await bench.job(job.file.id).file
        #expect(file.disposition == Disposition.deleted && file.finishedAt == Bench.start)
    }

    @Test func `what is put off comes back at its time`() async throws {
        let id = try await bench.admit("a")
        #expect(try await bench.journal.nextFinish() == nil)
        try await bench.settle(.test(.delivered))
        #expect(try await bench.journal.nextFinish() == WallTime(milliseconds: 0))
        let later = Bench.start + .seconds(60)
        try await bench.journal.postponeFinish(id, until: later, note: "held")
        #expect(try await bench.unfinished().isEmpty)
        #expect(try await bench.journal.nextFinish() == later)
        #expect(try await bench.job(id).file.disposition == "held")
        #expect(try await bench.journal.unfinished(at: later, limit: 9).map(\.file.id) == [id])
    }

    @Test(.enabled(if: SQLiteShell.isInstalled))
    func `what cannot be read of a file shows, and keeps none of the others from their end`() async throws {
        let damaged = try await bench.admit("a")
        let unproved = try await bench.admit("b")
        let whole = try await bench.admit("c")
        for _ in 0..<3 { try await bench.settle(.test(.delivered)) }
        try SQLiteShell.run(
            bench.journal.path,
            "UPDATE file SET labels = x'7b' WHERE id = \(damaged); "
                + "UPDATE delivery SET proof = x'7b' WHERE file_id = \(unproved)")
        let jobs = try await bench.unfinished()
        #expect(jobs.map(\.file.id) == [damaged, unproved, whole])
        #expect(jobs.map { $0.damage == nil } == [false, false, true])
        #expect(jobs[1].damage == "the proof of its delivery to 'r2' cannot be read")
    }

    @Test func `an intent lasts until the file is finished`() async throws {
        let id = try await bench.settled("a", .delivered)
        try await bench.journal.intend(id, [1, 2])
        #expect(try await bench.job(id).file.intent == [1, 2])
        try await bench.journal.intend(id, nil)
        #expect(try await bench.job(id).file.intent == nil)
        try await bench.journal.intend(id, [3])
        try await bench.finishAll()
        #expect(try await bench.job(id).file.intent == nil)
    }

    @Test func `the finisher may find that the file was superseded`() async throws {
        let id = try await bench.settled("a", .delivered)
        let file = try await bench.job(id).file
        #expect(
            try await bench.journal.finish(
                file, disposition: Disposition.untouched("changed"), state: .superseded, receipt: [], at: Bench.start)
                != nil)
        #expect(try await bench.files() == [.superseded: 1])
    }

    @Test func `a file that is sent again is not finished by a finisher that looked before`() async throws {
        let id = try await bench.settled("a", .failed)
        let file = try await bench.job(id).file
        #expect(try await bench.retry(id))
        await #expect(throws: JournalError.self) { try await bench.journal.intend(id, [1]) }
        try await bench.journal.postponeFinish(id, until: Bench.start + .seconds(60), note: "held")
        #expect(
            try await bench.journal.finish(file, disposition: Disposition.kept, receipt: [], at: Bench.start) == nil)
        #expect(try await bench.journal.receipts(limit: 9).isEmpty)
        try await bench.settle(.test(.delivered))
        #expect(try await bench.unfinished().map(\.file.state) == [.delivered])
    }

    @Test func `a file on its way to quarantine, or in it, is not sent again before it is back`() async throws {
        let id = try await bench.settled("a", .failed)
        try await bench.journal.intend(id, [1])
        #expect(try await !bench.retry(id))
        try await bench.finishAll(Disposition.quarantined("/x"))
        #expect(try await !bench.retry(id))
        #expect(try await bench.journal.quarantined(byRetryOf: [id])[id]?.map(\.id) == [id])
        try await bench.journal.beginReturn(of: [id])
        var now = try await bench.job(id).file.identity
        now.changed += 1
        #expect(try await bench.act(FileAction.retry(uptimes: [:], returned: [id: now]), on: [id]).outcomes == [.done])
        let file = try await bench.job(id).file
        #expect(file.state == .pending && file.intent == nil && file.disposition == nil && file.identity == now)
    }

    @Test(arguments: [true, false])
    func `of a return from quarantine that was cut short, the folders tell what was done`(isBack: Bool) async throws {
        let id = try await bench.settled("a", .failed)
        try await bench.finishAll(Disposition.quarantined("/x"))
        try await bench.journal.beginReturn(of: [id])
        let back = FoundFile.test("a", .test(changed: 9))
        try await bench.recover(["r2"])
        #expect(try await bench.recall([back]) == [.known], "nobody has looked yet")
        #expect(try await bench.journal.interruptedReturns().map(\.id) == [id])
        try await bench.journal.endReturn(of: [id], returned: isBack ? [id: back.identity] : [:])
        let file = try await bench.job(id).file
        #expect(file.intent == nil && file.state == .failed)
        #expect(Disposition.isKept(file.disposition) == isBack)
        #expect(try await bench.recall([back]) == [isBack ? .known : .new])
        #expect(try await bench.retry(id) == isBack)
    }

    @Test func `a file that was returned and is not sent is the known one in its place`() async throws {
        let id = try await bench.settled("a", .failed)
        try await bench.finishAll(Disposition.quarantined("/x"))
        try await bench.journal.beginReturn(of: [id])
        let back = FoundFile.test("a", .test(changed: 9))
        let scope = RetryScope(destination: "elsewhere", states: [.failed])
        let order = FileAction.retry(uptimes: [:], returned: [id: back.identity], scope: scope)
        #expect(try await bench.act(order, on: [id]).outcomes[0] != .done)
        #expect(try await bench.job(id).file.disposition == Disposition.kept)
        #expect(try await bench.recall([back]) == [.known])
    }

    @Test func `receipts come newest first`() async throws {
        for number in UInt8(1)...5 {
            let id = try await bench.settled("\(number)", .delivered)
            _ = try await bench.journal.finish(
                try await bench.job(id).file, disposition: Disposition.kept, receipt: [number], at: Bench.start)
        }
        #expect(try await bench.journal.receipts(limit: 3) == [[5], [4], [3]])
    }
}
