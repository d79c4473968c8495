import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

/// `priority:` in the queue.
@Suite(.seated) struct PriorityTests {
    private func admission(
        _ name: String, _ priority: Priority, to destinations: [String] = ["r2"], lane: Lane = .big
    ) -> FileAdmission {
        var admission = FileAdmission.test(name, to: destinations, lane: lane)
        admission.plan?.priority = priority
        return admission
    }

    private func claim(_ bench: Bench, _ most: Int, _ room: ClaimRoom = .test(), at time: WallTime) async throws
        -> [Claim]
    {
        let wish = ClaimWish(lane: .big, room: room, most: most)
        return try await bench.journal.exchange([], for: wish, at: time).claims
    }

    @Test func `what is due goes by priority, then by how long it has waited`() async throws {
        let bench = try Bench()
        let order: [(String, Priority)] = [
            ("low-1", .low), ("normal-1", .normal), ("high-1", .high), ("low-2", .low), ("high-2", .high),
            ("normal-2", .normal),
        ]
        for (seconds, (name, priority)) in order.enumerated() {
            _ = try await bench.journal.admit(admission(name, priority), at: Bench.start + .seconds(seconds))
        }
        let first = try await claim(bench, 4, at: Bench.start + .seconds(60))
        #expect(first.compactMap(\.delivery.key) == ["high-1", "high-2", "normal-1", "normal-2"])
        let rest = try await claim(bench, 4, at: Bench.start + .seconds(60))
        #expect(rest.compactMap(\.delivery.key) == ["low-1", "low-2"])
        #expect(rest.map(\.delivery.priority) == [.low, .low])
    }

    @Test func `what is not due yet keeps nothing of another priority waiting`() async throws {
        let bench = try Bench()
        _ = try await bench.journal.admit(admission("later", .high), at: Bench.start + .seconds(50))
        _ = try await bench.journal.admit(admission("now", .low), at: Bench.start)
        #expect(try await bench.journal.nextDue(destinations: ["r2"]) == Bench.start)
        #expect(try await claim(bench, 5, at: Bench.start).compactMap(\.delivery.key) == ["now"])
        #expect(try await bench.journal.nextDue(destinations: ["r2"]) == Bench.start + .seconds(50))
    }

    @Test func `destinations and lanes stay apart, and the more urgent goes first in each`() async throws {
        let bench = try Bench()
        _ = try await bench.journal.admit(admission("other", .high, to: ["disk"]), at: Bench.start)
        _ = try await bench.journal.admit(admission("old", .normal), at: Bench.start)
        _ = try await bench.journal.admit(admission("new", .high), at: Bench.start + .seconds(1))
        _ = try await bench.journal.admit(admission("small", .high, lane: .small), at: Bench.start)
        let claims = try await claim(bench, 9, at: Bench.start + .seconds(9))
        #expect(claims.compactMap(\.delivery.key) == ["new", "old"])
    }

    @Test func `what belongs to a file is as urgent as the file, and a retry changes nothing`() async throws {
        let bench = try Bench()
        var main = admission("clip.mp4", .high)
        main.companions = [
            CompanionAdmission(
                .test("clip.xmp"), Companion(path: "clip.xmp", kind: .sameStem, ending: "xmp"), category: "other",
                mediaType: "text/xml", lanes: ["r2": .small])
        ]
        guard case .admitted(let id) = try await bench.journal.admitSet(main, at: Bench.start).main else {
            throw Unexpected(what: "not admitted")
        }
        #expect(try await bench.job(id).deliveries.map(\.priority) == [.high])
        #expect(try await bench.job(id + 1).deliveries.map(\.priority) == [.high])
        try await bench.settle(.test(.failed))
        #expect(try await bench.journal.retry(id, uptimes: [:], at: Bench.start))
        #expect(try await bench.job(id).deliveries.map(\.priority) == [.high])
    }

    @Test(arguments: Seeds.all)
    func `claims are what a sorted list gives`(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let bench = try Bench()
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
            let claimed = try await claim(bench, most, .test("r2", 1000), at: Bench.start + .seconds(now))
            try #require(claimed.map(\.file.id) == expected, "seed \(seed), \(now) s")
            waiting.removeAll { expected.contains($0.id) }
        }
    }
}
