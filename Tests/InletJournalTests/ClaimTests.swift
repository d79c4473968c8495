import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import Synchronization
import SystemPackage
import Testing

@Suite(.seated) struct ClaimTests {
    @Test func `the delivery that waited longest comes first`() async throws {
        let bench = try Bench()
        let late = try await bench.admit("late", at: Bench.start + .seconds(2))
        let early = try await bench.admit("early", at: Bench.start)
        let same = try await bench.admit("same", at: Bench.start)
        let now = Bench.start + .seconds(5)
        var order: [Int64] = []
        while let delivery = try await bench.settle(.test(.delivered), at: now) { order.append(delivery.fileID) }
        #expect(order == [early, same, late])
    }

    @Test func `nothing is claimed before its time, beyond its lane or its room`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a", lane: .small, at: Bench.start + .seconds(1))
        #expect(try await bench.settle(.test(.delivered), lane: .small) == nil)
        let later = Bench.start + .seconds(1)
        #expect(try await bench.settle(.test(.delivered), lane: .big, at: later) == nil)
        #expect(try await bench.settle(.test(.delivered), of: "disk", lane: .small, at: later) == nil)
        #expect(try await bench.journal.nextDue(destinations: ["disk"]) == nil)
        #expect(try await bench.journal.nextDue(destinations: ["disk", "r2"]) == later)
        #expect(try await bench.settle(.test(.delivered), lane: .small, at: later) != nil)
    }

    @Test func `a claim counts its attempt and hands out the checkpoint`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a")
        try await bench.hold { claim in
            #expect(claim.delivery.attempts == 1)
            #expect(claim.delivery.state == .claimed)
            #expect(claim.checkpoint.isEmpty)
            try await bench.journal.checkpoint(claim.delivery.id, ["upload": [1], "part:1": [2]])
            try await bench.journal.checkpoint(claim.delivery.id, ["part:1": [3]])
            return .again(counts: true)
        }
        try await bench.hold { claim in
            #expect(claim.delivery.attempts == 2)
            #expect(claim.checkpoint == ["upload": [1], "part:1": [3]])
            return .test(.delivered)
        }
    }

    @Test func `no two workers ever have one delivery, and no limit is exceeded`() async throws {
        let bench = try Bench()
        for number in 0..<60 {
            _ = try await bench.admit("\(number)", to: ["r2", "disk"], lane: number.isMultiple(of: 2) ? .big : .small)
        }
        let watch = Watch()
        let rooms = [
            ClaimRoom(destination: "r2", limits: [.big: 3, .small: 5]),
            ClaimRoom(destination: "disk", limits: [.big: 1, .small: 2]),
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
                            return (Settlement.test(.delivered), ())
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
        #expect(try await bench.journal.totals().mapValues(\.files) == [.delivered: 60])
    }

    @Test func `room without a number is no room`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a")
        let rooms = [ClaimRoom(destination: "r2", limits: [.small: 5])]
        let claimed: Int64? = try await bench.journal.withClaim(
            .big, rooms: rooms, clock: { Bench.start }
        ) { claim in (Settlement.again(), claim.delivery.id) }?.1
        #expect(claimed == nil)
    }

    @Test func `an idle claim writes nothing`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a", at: Bench.start + .seconds(60))
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
            _ = try await bench.journal.nextDue(destinations: ["r2"])
        }
        #expect(try files() == before)
        _ = try await bench.admit("b")
        #expect(try files() != before)
    }

    @Test func `a body that throws gives its claim back uncounted`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        await #expect(throws: Unexpected.self) {
            _ = try await bench.journal.withClaim(.big, rooms: [.test()], clock: { Bench.start }) {
                _ -> (Settlement, Int) in
                throw Unexpected(what: "the body")
            }
        }
        let delivery = try await bench.job(id).deliveries[0]
        #expect(delivery.state == .ready)
        #expect(delivery.attempts == 0)
        #expect(try await bench.settle(.test(.delivered))?.id == delivery.id)
    }

    @Test func `a cancelled task still writes its proof`() async throws {
        let bench = try Bench()
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
        let bench = try Bench()
        _ = try await bench.admit("a")
        let answer = try await withThrowingTaskGroup(of: [KnownFile].self) { group in
            group.addTask {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await bench.journal.recall([.test("a")], tolerance: 0)
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
