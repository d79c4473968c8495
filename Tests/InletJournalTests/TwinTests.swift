import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

/// Files of the same content that are on their way at once.
@Suite(.seated) struct TwinTests {
    private static let soon = Bench.start + .seconds(31)

    @Test(arguments: [DeliveryState.delivered, .failed, .cancelled, .gone])
    func `the second waits for the first, uncounted, and goes itself when that does not arrive`(
        state: DeliveryState
    ) async throws {
        let bench = try Bench()
        let first = try await bench.admit(.content(1, "a", .skip))
        let second = try await bench.admit(.content(1, "b", .skip))
        let claims = try await bench.claimAll()
        #expect(claims.map(\.file.id) == [first])
        let waiting = try #require(try await bench.job(second).deliveries.first)
        #expect(waiting.state == .ready && waiting.attempts == 0 && waiting.nextAt > Bench.start && !waiting.isHeld)
        #expect(waiting.reason == "waits: job 1 sends the same content now")
        try await bench.end(claims[0], .test(state))
        // It is woken at once.
        let next = try await bench.claimAll()
        #expect(next.map(\.file.id) == [second])
        #expect((next.first?.original?.job == first) == (state == .delivered))
        for claim in next { try await bench.end(claim, .delivered(.test("b"))) }
        let job = try await bench.job(second)
        #expect(job.file.state == (state == .delivered ? .duplicate : .delivered))
        #expect(job.deliveries.map(\.key) == [state == .delivered ? nil : "b"])
    }

    @Test func `cancelled by a person, the first lets the second go`() async throws {
        let bench = try Bench()
        let first = try await bench.admit(.content(1, "a", .skip))
        _ = try await bench.admit(.content(1, "b", .skip))
        let running = try await bench.claimAll()
        #expect(try await bench.journal.cancel(first, at: Bench.start) == [running[0].delivery.id])
        let next = try await bench.claimAll()
        #expect(next.map(\.file.path) == ["b"] && next[0].original == nil)
    }

    @Test(arguments: [(Duration.seconds(10), false), (.seconds(600), true)])
    func `the first is waited for while it is soon tried again, not for longer`(
        pause: Duration, goesItself: Bool
    ) async throws {
        let bench = try Bench()
        _ = try await bench.admit(.content(1, "a", .skip))
        let claims = try await bench.claimAll()
        try await bench.end(claims[0], .again(Bench.start + pause, counts: true))
        let second = try await bench.admit(.content(1, "b", .skip))
        let next = try await bench.claimAll()
        #expect(next.map(\.file.id) == (goesItself ? [second] : []))
        // Then the first waits for the second, which is at it now.
        if goesItself {
            #expect(try await bench.claimAll(at: Bench.start + pause).isEmpty)
            try await bench.end(next[0], .delivered(.test("b")), at: Bench.start + pause)
        }
        let last = try await bench.claimAll(at: Bench.start + pause + .seconds(31))
        #expect(last.first?.original?.job == (goesItself ? second : nil))
    }

    @Test func `a file whose folder is away holds nobody back`() async throws {
        let bench = try Bench()
        _ = try await bench.admit(.content(1, "a", .skip))
        for claim in try await bench.claimAll() {
            let away = Settlement.again(
                at: Bench.start + .seconds(30), countsAttempt: false, code: .sourceGone, reason: "not mounted")
            try await bench.end(claim, away)
        }
        let second = try await bench.admit(.content(1, "b", .skip))
        #expect(try await bench.claimAll().map(\.file.id) == [second])
    }

    @Test func `who has begun an upload goes on with it`() async throws {
        let bench = try Bench()
        _ = try await bench.admit(.content(1, "a", .skip))
        let claims = try await bench.claimAll()
        try await bench.journal.checkpoint(claims[0].delivery.id, ["upload": [1]])
        try await bench.end(claims[0], .again(Bench.start + .seconds(600), counts: true))
        _ = try await bench.admit(.content(1, "b", .skip))
        for claim in try await bench.claimAll() { try await bench.end(claim, .delivered(.test("b"))) }
        let next = try await bench.claimAll(at: Bench.start + .seconds(600))
        #expect(next.map(\.file.path) == ["a"] && next[0].original == nil)
    }

    @Test func `a start finds the first again, and the second still waits for it`() async throws {
        let bench = try Bench()
        let first = try await bench.admit(.content(1, "a", .skip))
        _ = try await bench.admit(.content(1, "b", .skip))
        _ = try await bench.claimAll()
        bench.journal.close()
        let journal = try Journal(path: bench.directory.path.appending("journal.sqlite"), now: Bench.start)
        defer { journal.close() }
        #expect(try await journal.recover(destinations: ["r2"], at: Self.soon).freedClaims == 1)
        let wish = ClaimWish(lane: .big, room: .test(), most: 9)
        #expect(try await journal.exchange([], for: wish, at: Self.soon).claims.map(\.file.id) == [first])
    }

    @Test(arguments: Array(6...40) + Seeds.all)
    func `whatever becomes of them, a content is sent by one at a time and never after it arrived`(
        seed: UInt64
    ) async throws {
        let walk = try TwinWalk(seed: seed)
        await Seeds.play(seed, of: "twins") { commands in
            for _ in 0..<120 { commands.append(try await walk.step()) }
            try await walk.drain()
        }
    }
}

/// Random ends of files with few contents, and what must hold at every claim.
private final class TwinWalk {
    private let bench: Bench
    private var random: SeededGenerator
    private var now = Bench.start
    private var running: [Claim] = []
    /// By destination and content.
    private var arrived: Set<String> = []
    private var cancelled: Set<Int64> = []
    private var files = 0
    private static let destinations = ["r2", "nas"]

    init(seed: UInt64) throws {
        bench = try Bench()
        random = SeededGenerator(seed: seed)
    }

    private func name(_ claim: Claim) -> String {
        "\(claim.delivery.destination) \(claim.file.digests.map(\.hex))"
    }

    /// - Returns: what was done.
    func step() async throws -> String {
        let before = now
        switch Int.random(in: 0..<10, using: &random) {
        case 0...2: return "admit \(try await admit())"
        case 3...4:
            try await claim(most: Int.random(in: 1...4, using: &random))
            return "claim; running: \(running.map(\.delivery.id))"
        case 5...7: return "end \(try await endOne())"
        case 8:
            now = now + .seconds(Int.random(in: 1...90, using: &random))
            return "wait \(now - before)"
        default: return try await disturb()
        }
    }

    private func admit() async throws -> String {
        files += 1
        let rule: DuplicateRule = Bool.random(using: &random) ? .skip : .link
        let places = Self.destinations.filter { _ in Int.random(in: 0..<3, using: &random) > 0 }
        let admission = FileAdmission.content(
            UInt8.random(in: 1...3, using: &random), "f\(files)", rule, to: places.isEmpty ? ["r2"] : places)
        _ = try await bench.journal.admit(admission, at: now)
        return "f\(files) \(rule) to \(places)"
    }

    private func claim(most: Int) async throws {
        for claim in try await bench.claimAll(Self.destinations, most: most, at: now) {
            if claim.original == nil {
                let rivals = running.filter { name($0) == name(claim) && !cancelled.contains($0.file.id) }
                try #require(rivals.isEmpty, "sent by two at once: \(name(claim))")
                try #require(!arrived.contains(name(claim)), "sent after it arrived: \(name(claim))")
            } else {
                try #require(arrived.contains(name(claim)))
            }
            running.append(claim)
        }
    }

    private func endOne() async throws -> String {
        guard let place = running.indices.randomElement(using: &random) else { return "none" }
        let ends: [Settlement] = [
            .delivered(.test("k")), .delivered(.test("k")), .test(.failed), .again(now + .seconds(5), counts: true),
            .again(now + .seconds(400), counts: true), .test(.gone),
        ]
        let (claim, settlement) = (running.remove(at: place), ends.randomElement(using: &random) ?? .test(.failed))
        try await end(claim, settlement)
        return "\(claim.delivery.id): \(settlement)"
    }

    private func end(_ claim: Claim, _ settlement: Settlement) async throws {
        try await bench.end(claim, settlement, at: now)
        if claim.original != nil { return }
        if case .delivered = settlement { arrived.insert(name(claim)) }
    }

    /// A person cancels, or the process dies.
    private func disturb() async throws -> String {
        if Bool.random(using: &random), files > 0 {
            let file = Int64.random(in: 1...Int64(files), using: &random)
            guard try await bench.journal.job(file) != nil else { return "nothing" }
            if try await bench.journal.cancel(file, at: now) != nil { cancelled.insert(file) }
            return "cancel \(file)"
        } else {
            running = []
            _ = try await bench.journal.recover(destinations: Self.destinations, at: now)
            return "start again"
        }
    }

    /// Everything comes to an end in bounded time, without help.
    func drain() async throws {
        for _ in 0..<400 {
            while let claim = running.popLast() { try await end(claim, .delivered(.test("k"))) }
            try await claim(most: 4)
            if !running.isEmpty { continue }
            let rooms = Self.destinations.map { ClaimRoom.test($0) }
            guard let due = try await bench.journal.nextDue(.big, rooms: rooms) else { break }
            now = max(now, due)
        }
        let states = try await bench.journal.jobs(FileFilter(limit: 1000)).map(\.file.state)
        try #require(states.count == files && !states.contains(.pending), "\(states)")
    }
}
