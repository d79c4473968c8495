import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@Suite(.seated) struct ClaimTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    @Test func `nothing is claimed before its time, beyond its lane or its room`() async throws {
        try await bench.admit("a", lane: .small, at: Bench.start + .seconds(1))
        #expect(try await bench.settle(.test(.delivered), lane: .small) == nil)
        let later = Bench.start + .seconds(1)
        #expect(try await bench.settle(.test(.delivered), lane: .big, at: later) == nil)
        #expect(try await bench.settle(.test(.delivered), of: "disk", lane: .small, at: later) == nil)
        #expect(try await bench.nextDue(["disk"]) == nil)
        #expect(try await bench.nextDue(["disk", "r2"]) == later)
        #expect(try await bench.settle(.test(.delivered), lane: .small, at: later) != nil)
    }

    @Test func `a claim counts its attempt and hands out the checkpoint`() async throws {
        try await bench.admit("a")
        try await bench.hold { claim in
            #expect(claim.delivery.attempts == 1 && claim.delivery.state == .claimed && claim.checkpoint.isEmpty)
            try await bench.journal.checkpoint(claim.delivery.id, ["upload": [1], "part:1": [2]])
            try await bench.journal.checkpoint(claim.delivery.id, ["part:1": [3]])
            return .again(counts: true)
        }
        try await bench.hold { claim in
            #expect(claim.delivery.attempts == 2 && claim.checkpoint == ["upload": [1], "part:1": [3]])
            return .test(.delivered)
        }
    }

    @Test func `no two workers ever have one delivery, and no limit is exceeded`() async throws {
        for number in 0..<60 {
            try await bench.admit("\(number)", to: ["r2", "disk"], lane: number.isMultiple(of: 2) ? .big : .small)
        }
        let watch = Watch()
        let rooms = [
            ClaimCapacity(destination: "r2", limits: [.big: 3, .small: 5]),
            ClaimCapacity(destination: "disk", limits: [.big: 1, .small: 2]),
        ]
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<24 {
                group.addTask {
                    let lane: Lane = worker.isMultiple(of: 2) ? .big : .small
                    while try await bench.journal.deliveryCounts(.ready).values.reduce(0, +) > 0 {
                        let done: Void? = try await bench.journal.withClaim(
                            lane, rooms: rooms, clock: { Bench.start }
                        ) { claim in
                            watch.began(claim.delivery, lane)
                            for _ in 0..<20 { await Task.yield() }
                            watch.ended(claim.delivery, lane)
                            return (ClaimOutcome.test(.delivered), ())
                        }?.1
                        if done == nil { await Task.yield() }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(watch.claimed.count == 120)
        #expect(Set(watch.claimed).count == 120)
        #expect(watch.highest.keys.count == 4)
        for room in rooms {
            for lane in Lane.allCases {
                #expect(watch.highest["\(room.destination) \(lane)"] ?? 0 <= room.limits[lane] ?? 0)
            }
        }
        #expect(try await bench.files() == [.delivered: 60])
    }

    @Test func `room without a number is no room`() async throws {
        try await bench.admit("a")
        let rooms = [ClaimCapacity(destination: "r2", limits: [.small: 5])]
        #expect(try await bench.journal.settle(.again(), rooms) == nil)
    }

    @Test func `an idle claim writes nothing`() async throws {
        try await bench.admit("a", at: Bench.start + .seconds(60))
        func files() throws -> [[FileAttributeKey: NSObject]] {
            try ["", "-wal"].map { suffix in
                let all = try FileManager.default.attributesOfItem(atPath: bench.journal.path.string + suffix)
                return [.size: all[.size] as? NSObject, .modificationDate: all[.modificationDate] as? NSObject]
                    .compactMapValues(\.self)
            }
        }
        let before = try files()
        for _ in 0..<20 {
            #expect(try await bench.settle(.test(.delivered)) == nil)
            _ = try await bench.nextDue(["r2"])
        }
        #expect(try files() == before)
        try await bench.admit("b")
        #expect(try files() != before)
    }

    @Test func `a cancelled task still writes its proof`() async throws {
        let id = try await bench.admit("a")
        await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await bench.hold { _ in
                    withUnsafeCurrentTask { $0?.cancel() }
                    return .test(.delivered)
                }
            }
        }
        #expect(try await bench.job(id).file.state == .delivered)
    }

    @Test func `questions of a cancelled task are answered, not failed`() async throws {
        try await bench.admit("a")
        let answer = try await withThrowingTaskGroup(of: [KnownFile].self) { group in
            group.addTask {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await bench.recall([.test("a")])
            }
            return try await group.next()
        }
        #expect(answer == [.known])
    }
}

/// Sees which deliveries are claimed, and how many at once.
private final class Watch: Sendable {
    private struct State {
        var claimed: [Int64] = []
        var running: [String: Int] = [:]
        var highest: [String: Int] = [:]
    }

    private let state = Mutex(State())
    var claimed: [Int64] { state.withLock(\.claimed) }
    var highest: [String: Int] { state.withLock(\.highest) }

    func began(_ delivery: DeliveryRow, _ lane: Lane) {
        state.withLock { state in
            let place = "\(delivery.destination) \(lane)"
            state.claimed.append(delivery.id)
            state.running[place, default: 0] += 1
            state.highest[place] = max(state.highest[place] ?? 0, state.running[place] ?? 0)
        }
    }

    func ended(_ delivery: DeliveryRow, _ lane: Lane) {
        state.withLock { $0.running["\(delivery.destination) \(lane)", default: 0] -= 1 }
    }
}

@Suite(.seated) struct ExchangeTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private func wish(_ room: ClaimCapacity = .test(), most: Int = 100) -> ClaimRequest {
        ClaimRequest(lane: .small, room: room, most: most)
    }

    private func admit(_ count: Int, to destinations: [String] = ["r2"]) async throws -> [Int64] {
        var ids: [Int64] = []
        for number in 0..<count {
            ids.append(try await bench.admit("\(destinations[0])-\(number)", to: destinations, lane: .small))
        }
        return ids
    }

    @Test func `what ended makes room for what is claimed in the same exchange`() async throws {
        let ids = try await admit(3)
        let room = ClaimCapacity.test("r2", 2)
        let first = try await bench.exchange(for: wish(room))
        #expect(first.claims.map(\.file.id) == Array(ids[..<2]))
        #expect(try await bench.exchange(for: wish(room)).claims.isEmpty)
        let ended: [EndedClaim] = [(first.claims[0].delivery.id, .delivered(.test()))]
        let second = try await bench.exchange(ended, for: wish(room))
        #expect(second.settled.map(\.state) == [.delivered] && second.claims.map(\.file.id) == [ids[2]])
        #expect(try await bench.journal.deliveryCounts(.claimed) == ["r2": 2])
        #expect(try await bench.job(ids[0]).deliveries[0].proof == .test())
    }

    /// The notes are removed by a statement that the settlement runs too, through another layer of GRDB.
    @Test func `a proof is taken at the first try, whatever ran before it`() async throws {
        _ = try await admit(1)
        let claim = try #require(try await bench.exchange(for: wish()).claims.first)
        try await bench.journal.checkpoint(claim.delivery.id, ["upload": [1]], replacing: true)
        let settled = try await bench.exchange([(claim.delivery.id, .delivered(.test()))], for: wish())
        #expect(settled.settled.map(\.state) == [.delivered])
    }

    @Test func `what is given back to its time is the first again, uncounted`() async throws {
        let ids = try await admit(2)
        let one = wish(most: 1)
        let claim = try #require(try await bench.exchange(for: one).claims.first)
        let back = ClaimOutcome.again(at: claim.delivery.nextAt, countsAttempt: false, code: nil, reason: nil)
        let again = try await bench.exchange([(claim.delivery.id, back)], for: one, at: Bench.start + .seconds(1))
        #expect(again.settled.map(\.state) == [.pending] && again.claims.map(\.file.id) == [ids[0]])
        #expect(again.claims.map(\.delivery.attempts) == [1])
    }

    @Test func `no destination gets more than its room, nor more than was asked for`() async throws {
        _ = try await admit(6)
        _ = try await admit(6, to: ["disk"])
        let room = ClaimCapacity.test("r2", 4)
        let few = try await bench.exchange(for: wish(room, most: 3))
        #expect(few.claims.map(\.delivery.destination) == ["r2", "r2", "r2"] && few.nextDue == nil)
        let rest = try await bench.exchange(for: wish(room))
        #expect(rest.claims.map(\.delivery.destination) == ["r2"] && rest.nextDue == nil)
        for (name, limit) in [("disk", 2), ("nowhere", 0)] {
            let there = try await bench.exchange(for: wish(.test(name, 2)))
            #expect(there.claims.map(\.delivery.destination) == Array(repeating: name, count: limit))
            #expect(there.nextDue == nil)
        }
        #expect(try await bench.journal.deliveryCounts(.claimed) == ["r2": 4, "disk": 2])
        #expect(try await bench.exchange(for: wish(room)).claims.isEmpty)
    }

    @Test func `an exchange says when the next is due that there is room for`() async throws {
        let later = Bench.start + .seconds(5)
        try await bench.admit("a", lane: .small, at: later)
        try await bench.admit("b", to: ["disk"], lane: .small, at: later + .seconds(1))
        #expect(try await bench.exchange(for: wish()).nextDue == later)
        #expect(try await bench.exchange(for: wish(.test("disk"))).nextDue == later + .seconds(1))
        #expect(try await bench.exchange(for: wish(.test("r2", 0))).nextDue == nil)
        #expect(try await bench.exchange(for: .none(.small), at: later).nextDue == nil)
    }

    @Test func `one that is refused takes the whole exchange back`() async throws {
        let ids = try await admit(3)
        let claims = try await bench.exchange(for: wish(most: 2)).claims
        var stranger: EndedClaim = (claims[1].delivery.id, .delivered(.test()))
        stranger.delivery = 4711
        let ended: [EndedClaim] = [(claims[0].delivery.id, .delivered(.test())), stranger]
        await #expect(throws: JournalError.self) {
            try await bench.exchange(ended, for: wish())
        }
        #expect(try await bench.job(ids[0]).deliveries[0].state == .claimed)
        #expect(try await bench.job(ids[2]).deliveries[0].state == .ready)
    }

    @Test
    func `a file whose source stays is finished in the exchange, once all its deliveries have ended`() async throws {
        let id = try await bench.admit("a", to: ["r2", "disk"], lane: .small)
        let keep: EndingRule = { job in
            ("kept", Array("\(job.deliveries.map(\.state.rawValue))".utf8))
        }
        let rooms = [ClaimCapacity.test("r2"), .test("disk")]
        let claims = try await bench.journal.claims(.small, rooms: rooms, most: 100, at: Bench.start)
        let none = ClaimRequest.none(.small)
        let first = try await bench.exchange([(claims[0].delivery.id, .delivered(.test()))], for: none, ending: keep)
        #expect(first.settled.map { $0.finish == nil } == [true])
        let second = try await bench.exchange([(claims[1].delivery.id, .test(.failed))], for: none, ending: keep)
        #expect(second.settled.map(\.state) == [.failed])
        #expect(second.settled.map { $0.finish?.disposition } == ["kept"])
        #expect(try await bench.job(id).file.finishedAt == Bench.start)
        #expect(try await bench.journal.receipts(limit: 9) == [Array("[\"delivered\", \"failed\"]".utf8)])
    }

    @Test(arguments: [ClaimOutcome.again(), .test(.failed)])
    func `who was cancelled and sent again while it was held is due when its holder has let go`(
        _ end: ClaimOutcome
    ) async throws {
        let id = try await bench.admit("a", lane: .small)
        let claim = try #require(try await bench.exchange(for: wish()).claims.first)
        #expect(try await bench.cancel(id) == [claim.delivery.id])
        #expect(try await bench.forget(id) == false)
        #expect(try await bench.retry(id))
        let held = try await bench.exchange(for: wish())
        #expect(held.claims.isEmpty && held.nextDue == nil)
        let next = try await bench.exchange([(claim.delivery.id, end)], for: wish())
        #expect(next.claims.map(\.delivery.id) == [claim.delivery.id] && next.claims.map(\.delivery.attempts) == [1])
    }

    @Test func `the end of one that was never begun counts no attempt`() async throws {
        let ids = try await admit(2)
        let claims = try await bench.exchange(for: wish()).claims
        #expect(try await bench.cancel(ids[1]) == [claims[1].delivery.id])
        let back = ClaimOutcome.again(at: Bench.start, countsAttempt: false, code: nil, reason: nil)
        let ended: [EndedClaim] = [(claims[0].delivery.id, .expired), (claims[1].delivery.id, back)]
        let exchange = try await bench.exchange(ended, for: wish())
        #expect(exchange.settled.map(\.state) == [.expired, .cancelled] && exchange.claims.isEmpty)
        for (id, state) in zip(ids, [DeliveryState.expired, .cancelled]) {
            let delivery = try await bench.job(id).deliveries[0]
            #expect(delivery.state == state && delivery.attempts == 0 && delivery.reason != nil)
        }
    }

    /// Which of them had been begun when the process died, nobody knows: none pays for it, and all keep their names.
    @Test func `what was held by a process that died costs no attempt, and its key is not given away`() async throws {
        let ids = try await admit(3)
        try await bench.exchange(for: wish())
        #expect(try await bench.recover(["r2"]).freedClaims == 3)
        for id in ids {
            let delivery = try await bench.job(id).deliveries[0]
            #expect(delivery.state == .ready && delivery.attempts == 0)
        }
        try await bench.cancel(ids[0])
        try await bench.finishAll()
        #expect(try await bench.forget(ids[0]))
        #expect(try await bench.job(bench.admit("r2-0", lane: .small)).deliveries[0].key == "r2-0_2")
    }
}

/// `priority:` in the queue.
@Suite(.seated) struct PriorityTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private func admission(
        _ name: String, _ priority: Priority, to destinations: [String] = ["r2"], lane: Lane = .big
    ) -> FileAdmission {
        var admission = FileAdmission.test(name, to: destinations, lane: lane)
        admission.plan?.priority = priority
        return admission
    }

    private func claim(_ most: Int, _ room: ClaimCapacity = .test(), at time: WallTime) async throws
        -> [Claim]
    {
        let wish = ClaimRequest(lane: .big, room: room, most: most)
        return try await bench.exchange(for: wish, at: time).claims
    }

    @Test func `what is due goes by priority, then by how long it has waited`() async throws {
        let order: [(String, Priority)] = [
            ("low-1", .low), ("normal-1", .normal), ("high-1", .high), ("low-2", .low), ("high-2", .high),
            ("normal-2", .normal),
        ]
        for (seconds, (name, priority)) in order.enumerated() {
            _ = try await bench.journal.admit(admission(name, priority), at: Bench.start + .seconds(seconds))
        }
        let first = try await claim(4, at: Bench.start + .seconds(60))
        #expect(first.compactMap(\.delivery.key) == ["high-1", "high-2", "normal-1", "normal-2"])
        let rest = try await claim(4, at: Bench.start + .seconds(60))
        #expect(
            rest.compactMap(\.delivery.key) == ["low-1", "low-2"] && rest.map(\.delivery.priority) == [.low, .low])
    }

    @Test func `what is not due yet keeps nothing of another priority waiting`() async throws {
        _ = try await bench.journal.admit(admission("later", .high), at: Bench.start + .seconds(50))
        try await bench.offer(admission("now", .low))
        #expect(try await bench.nextDue(["r2"]) == Bench.start)
        #expect(try await claim(5, at: Bench.start).compactMap(\.delivery.key) == ["now"])
        #expect(try await bench.nextDue(["r2"]) == Bench.start + .seconds(50))
    }

    @Test func `destinations and lanes stay apart, and the more urgent goes first in each`() async throws {
        try await bench.offer(admission("other", .high, to: ["disk"]))
        try await bench.offer(admission("old", .normal))
        _ = try await bench.journal.admit(admission("new", .high), at: Bench.start + .seconds(1))
        try await bench.offer(admission("small", .high, lane: .small))
        let claims = try await claim(9, at: Bench.start + .seconds(9))
        #expect(claims.compactMap(\.delivery.key) == ["new", "old"])
    }

    @Test func `what belongs to a file is as urgent as the file, and a retry changes nothing`() async throws {
        var main = admission("clip.mp4", .high)
        main.companions = [.test("clip.xmp", lane: .small)]
        let id = try await bench.admit(main)
        #expect(try await bench.job(id).deliveries.map(\.priority) == [.high])
        #expect(try await bench.job(id + 1).deliveries.map(\.priority) == [.high])
        try await bench.settle(.test(.failed))
        #expect(try await bench.retry(id))
        #expect(try await bench.job(id).deliveries.map(\.priority) == [.high])
    }

    @Test(arguments: Seeds.all)
    func `claims are what a sorted list gives`(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        var waiting: [(priority: Priority, at: Int64, id: Int64)] = []
        for number in 0..<60 {
            let priority = try #require(Priority.allCases.randomElement(using: &random))
            let at = Int64.random(in: 0...20, using: &random)
            let time = Bench.start + .seconds(at)
            guard case .admitted(let id) = try await bench.journal.admit(admission("\(number)", priority), at: time)
            else { throw Unexpected(what: "not admitted") }
            waiting.append((priority, at, id))
        }
        var now: Int64 = 0
        while !waiting.isEmpty {
            now += Int64.random(in: 0...3, using: &random)
            let most = Int.random(in: 1...9, using: &random)
            let due = waiting.filter { $0.at <= now }.sorted {
                ($0.priority.rank, $0.at, $0.id) < ($1.priority.rank, $1.at, $1.id)
            }
            let expected = due.prefix(most).map(\.id)
            let claimed = try await claim(most, .test("r2", 1000), at: Bench.start + .seconds(now))
            try #require(claimed.map(\.file.id) == expected, "seed \(seed), \(now) s")
            waiting.removeAll { expected.contains($0.id) }
        }
    }
}
