import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

/// Contents that a destination has: `dedupe:`.
@Suite(.seated) struct DuplicateTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    @Test(arguments: [(DuplicateRule.skip, FileState.duplicate), (.link, .delivered)])
    func `what every destination has is not sent, and says where it is`(
        rule: DuplicateRule, state: FileState
    ) async throws {
        let first = try await bench.deliver(.content(1, "a", .off, to: ["r2", "nas"]))
        let id = try await bench.duplicate(.content(1, "b", rule, to: ["r2", "nas"]), of: first)
        let job = try await bench.job(id)
        #expect(job.file.state == state && job.file.finishedAt == nil)
        #expect(job.file.reason == "same content as job \(first), /in/a, which is there as a")
        #expect(job.deliveries.map(\.state) == [.delivered, .delivered])
        #expect(job.deliveries.map(\.key) == [nil, nil] && job.deliveries.map(\.place) == ["a", "a"])
        #expect(job.deliveries.allSatisfy { $0.proof?.sameAs == first && $0.attempts == 0 })
        #expect(try await bench.claimAll(["r2", "nas"]).isEmpty)
        #expect(try await bench.unfinished().map(\.file.id) == [id])
        try await bench.finishAll()
        #expect(try await bench.journal.totals()[state]?.files == (rule == .skip ? 1 : 2))
    }

    @Test
    func `content at another address is sent, and counts again once its destination is back there`() async throws {
        let journal = bench.journal
        // By a version that knew no addresses: it counts as proved at the one that is known first.
        let first = try await bench.deliver(.content(1, "a", .off))
        #expect(try await journal.setAddresses(["r2": "one"]) == [])
        #expect(try await journal.standing(of: bench.job(first)).count == 1)
        try await bench.duplicate(.content(1, "b", .skip), of: first)
        #expect(try await journal.setAddresses(["r2": "two"]) == ["r2"])
        #expect(try await journal.setAddresses(["r2": "two"]) == [])
        #expect(try await journal.standing(of: bench.job(first)).isEmpty)
        try await bench.admit(.content(1, "c", .skip))
        #expect(try await journal.setAddresses(["r2": "one"]) == ["r2"])
        try await bench.duplicate(.content(1, "d", .skip), of: first)
    }

    @Test func `what was learned of a store stays with its address, until it is learned again`() async throws {
        let learned = StoreChecksum(.crc32c, uncompared: [.crc64nvme], learnedAt: Bench.start)
        try await bench.journal.keep(StoreChecksum(.md5, learnedAt: Bench.start), at: "one")
        try await bench.journal.keep(learned, at: "one")
        let next = try bench.reopen()
        defer { next.close() }
        #expect(try await next.storeChecksum(at: "one") == learned)
        #expect(try await next.storeChecksum(at: "two") == nil)
    }

    @Test func `without the rule everything is sent`() async throws {
        try await bench.deliver(.content(1, "a", .skip))
        try await bench.admit(.content(1, "b", .off))
        let claims = try await bench.claimAll()
        #expect(claims.count == 1 && claims[0].original == nil)
    }

    @Test(arguments: [DuplicateRule.skip, .link])
    func `only a destination that lacks it gets it`(rule: DuplicateRule) async throws {
        let first = try await bench.deliver(.content(1, "a", .off))
        let id = try await bench.admit(.content(1, "b", rule, to: ["r2", "nas"]))
        #expect(try await bench.job(id).deliveries.map(\.state) == [.delivered, .ready])
        #expect(try await bench.claimAll(["r2"]).isEmpty)
        for claim in try await bench.claimAll(["nas"]) { try await bench.end(claim, .delivered(.test("b"))) }
        let job = try await bench.job(id)
        #expect(job.file.state == .delivered && job.file.reason == nil)
        #expect(job.deliveries.map { $0.proof?.sameAs } == [first, nil])
        // The second one brought it to the other destination.
        try await bench.duplicate(.content(1, "c", rule, to: ["nas"]), of: id)
    }

    @Test func `another size, another content or another destination is not the same`() async throws {
        try await bench.deliver(.content(1, "a", .skip))
        for other in [
            FileAdmission.content(1, "size", .skip, size: 11), .content(2, "content", .skip),
            .content(1, "place", .skip, to: ["nas"]),
        ] {
            #expect(try await bench.job(bench.admit(other)).file.state == .pending)
        }
    }

    @Test(arguments: [true, false])
    func `for another route it is the same with the same fields only`(areEqual: Bool) async throws {
        try await bench.deliver(.content(1, "a", .skip))
        var other = FileAdmission.content(1, "b", .skip)
        other.plan?.route = "other"
        if !areEqual { other.plan?.with = ["title": "another"] }
        let outcome = try await bench.offer(other)
        if case .duplicate = outcome { #expect(areEqual) } else { #expect(!areEqual) }
        // Sent for another purpose, it does not take the first one's place.
        for claim in try await bench.claimAll() { try await bench.end(claim, .delivered(.test("b"))) }
        try await bench.duplicate(.content(1, "c", .skip), of: 1)
    }

    @Test(arguments: [DeliveryState.failed, .cancelled, .gone])
    func `what did not arrive is no original`(state: DeliveryState) async throws {
        try await bench.admit(.content(1, "a", .skip))
        for claim in try await bench.claimAll() { try await bench.end(claim, .test(state)) }
        try await bench.admit(.content(1, "b", .skip))
        let claims = try await bench.claimAll()
        #expect(claims.count == 1 && claims[0].original == nil)
    }

    @Test func `a content that was forgotten or deleted is sent again`() async throws {
        let first = try await bench.deliver(.content(1, "a", .skip))
        #expect(try await bench.forget(first))
        let second = try await bench.deliver(.content(1, "b", .skip))
        let delivery = try #require(try await bench.job(second).deliveries.first)
        var proof = try #require(delivery.proof)
        proof.details = [Proof.deletedName: "2026-11-21T10:00:00Z"]
        try await bench.journal.replaceProof(of: delivery.id, by: proof)
        let third = try await bench.deliver(.content(1, "c", .skip))
        let link = try await bench.duplicate(.content(1, "d", .skip), of: third)
        // Deleted under the link's job, it is gone for all.
        let linked = try #require(try await bench.job(link).deliveries.first)
        proof = try #require(linked.proof)
        proof.details?[Proof.deletedName] = "2026-11-21T11:00:00Z"
        try await bench.journal.replaceProof(of: linked.id, by: proof)
        try await bench.admit(.content(1, "e", .skip))
    }

    @Test func `what undoes the first one is not given to its duplicates`() async throws {
        try await bench.admit(.content(1, "a", .link))
        var proof = Proof.test("a")
        proof.secrets = ProofSecrets(["token": "once"])
        proof.details = ["id": "7"]
        for claim in try await bench.claimAll() { try await bench.end(claim, .delivered(proof)) }
        let id = try await bench.duplicate(.content(1, "b", .link), of: 1)
        let link = try #require(try await bench.job(id).deliveries.first?.proof)
        #expect(link.secrets == nil && link.details == ["id": "7", "same_as": "1"])
    }

    @Test func `the question of a person is answered by destination`() async throws {
        try await bench.deliver(.content(1, "a", .off))
        let found = try await bench.journal.originals(
            ContentQuery(digest: .content(1), size: 10, route: "all", fields: [:], destinations: ["r2", "nas"]))
        #expect(found.mapValues(\.job) == ["r2": 1] && found["r2"]?.path == "/in/a")
    }

    // MARK: - What belongs to others

    @Test func `in a unit it waits for its turn, and the unit ends with it`() async throws {
        try await bench.deliver(.content(1, "a", .skip))
        var admission = FileAdmission.content(1, "u/b", .skip)
        admission.unit = "u"
        let id = try await bench.admit(admission)
        #expect(try await bench.job(id).deliveries.allSatisfy(\.isHeld))
        #expect(try await bench.closeUnit("u").map(\.state) == [.pending])
        for claim in try await bench.claimAll() { try await bench.end(claim, .test(.failed)) }
        try await bench.finishAll()
        #expect(try await bench.job(id).file.state == .duplicate)
        let batch = try #require(try await bench.batch(of: id))
        #expect(batch.state == .duplicate && batch.counts == [.duplicate: 1] && batch.endedAt != nil)
    }

    @Test func `a companion of a duplicate goes beside the first one, and later ones too`() async throws {
        try await bench.deliver(.content(1, "clip.mov", .skip))
        var admission = FileAdmission.content(1, "again.mov", .skip)
        admission.companions = [.test("again.jpg")]
        let id = try await bench.admit(admission)
        for claim in try await bench.claimAll() { try await bench.end(claim, .test(.failed)) }
        #expect(try await bench.job(id).file.state == .duplicate)
        #expect(try await bench.claimAll().map(\.delivery.key) == ["again.jpg"])
        #expect(try await bench.admitLate(.test("again.xmp"), main: id) == .admitted(id: id + 2))
        #expect(try await bench.job(id + 2).deliveries.map(\.key) == ["clip.xmp"])
    }

    @Test(arguments: [DuplicateRule.skip, .link])
    func `a link is registered under its own name, what is skipped is not`(rule: DuplicateRule) async throws {
        for name in ["a", "b"] {
            var admission = FileAdmission.content(1, name, rule, to: ["spaces"])
            admission.lanes["r2"] = .big
            admission.storages = ["spaces": "r2"]
            try await bench.offer(admission)
            for claim in try await bench.claimAll() { try await bench.end(claim, .delivered(.test(name))) }
            for claim in try await bench.claimAll(["spaces"], lane: .small) {
                let context = try await bench.journal.context(of: claim.delivery, in: claim.file)
                #expect(context.upstream.map(\.proof.key) == ["a"])
                try await bench.end(claim, .delivered(.test("registered \(name)")))
            }
        }
        let job = try await bench.job(2)
        #expect(job.file.state == (rule == .skip ? .duplicate : .delivered))
        #expect(job.deliveries.map { $0.proof?.key } == ["a", rule == .skip ? "registered a" : "registered b"])
    }
}

/// Files of the same content that are on their way at once.
@Suite(.seated) struct TwinTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private static let soon = Bench.start + .seconds(31)

    @Test(arguments: [DeliveryState.delivered, .failed, .cancelled, .gone])
    func `the second waits for the first, uncounted, and goes itself when that does not arrive`(
        state: DeliveryState
    ) async throws {
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
        let first = try await bench.admit(.content(1, "a", .skip))
        try await bench.admit(.content(1, "b", .skip))
        let running = try await bench.claimAll()
        #expect(try await bench.cancel(first) == [running[0].delivery.id])
        let next = try await bench.claimAll()
        #expect(next.map(\.file.path) == ["b"] && next[0].original == nil)
    }

    @Test(arguments: [(Duration.seconds(10), false), (.seconds(600), true)])
    func `the first is waited for while it is soon tried again, not for longer`(
        pause: Duration, goesItself: Bool
    ) async throws {
        try await bench.admit(.content(1, "a", .skip))
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
        try await bench.admit(.content(1, "a", .skip))
        for claim in try await bench.claimAll() {
            let away = ClaimOutcome.again(
                at: Bench.start + .seconds(30), countsAttempt: false, code: .sourceGone, reason: "not mounted")
            try await bench.end(claim, away)
        }
        let second = try await bench.admit(.content(1, "b", .skip))
        #expect(try await bench.claimAll().map(\.file.id) == [second])
    }

    @Test func `who has begun an upload goes on with it`() async throws {
        try await bench.admit(.content(1, "a", .skip))
        let claims = try await bench.claimAll()
        try await bench.journal.checkpoint(claims[0].delivery.id, ["upload": [1]])
        try await bench.end(claims[0], .again(Bench.start + .seconds(600), counts: true))
        try await bench.admit(.content(1, "b", .skip))
        for claim in try await bench.claimAll() { try await bench.end(claim, .delivered(.test("b"))) }
        let next = try await bench.claimAll(at: Bench.start + .seconds(600))
        #expect(next.map(\.file.path) == ["a"] && next[0].original == nil)
    }

    @Test func `a start finds the first again, and the second still waits for it`() async throws {
        let first = try await bench.admit(.content(1, "a", .skip))
        try await bench.admit(.content(1, "b", .skip))
        _ = try await bench.claimAll()
        let journal = try bench.reopen()
        defer { journal.close() }
        #expect(try await journal.recover(destinations: ["r2"], at: Self.soon).freedClaims == 1)
        let claims = try await journal.claims(.big, rooms: [.test()], most: 9, at: Self.soon)
        #expect(claims.map(\.file.id) == [first])
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

    private func name(_ claim: Claim) -> String { "\(claim.delivery.destination) \(claim.file.digests.map(\.hex))" }

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
        let ends: [ClaimOutcome] = [
            .delivered(.test("k")), .delivered(.test("k")), .test(.failed), .again(now + .seconds(5), counts: true),
            .again(now + .seconds(400), counts: true), .test(.gone),
        ]
        let (claim, settlement) = (running.remove(at: place), ends.randomElement(using: &random) ?? .test(.failed))
        try await end(claim, settlement)
        return "\(claim.delivery.id): \(settlement)"
    }

    private func end(_ claim: Claim, _ settlement: ClaimOutcome) async throws {
        try await bench.end(claim, settlement, at: now)
        if claim.original != nil { return }
        if case .delivered = settlement { arrived.insert(name(claim)) }
    }

    /// A person cancels, or the process dies.
    private func disturb() async throws -> String {
        if Bool.random(using: &random), files > 0 {
            let file = Int64.random(in: 1...Int64(files), using: &random)
            guard try await bench.journal.job(file) != nil else { return "nothing" }
            if try await bench.cancel(file, at: now) != nil { cancelled.insert(file) }
            return "cancel \(file)"
        } else {
            running = []
            try await bench.recover(Self.destinations, at: now)
            return "start again"
        }
    }

    /// Everything comes to an end in bounded time, without help.
    func drain() async throws {
        for _ in 0..<400 {
            while let claim = running.popLast() { try await end(claim, .delivered(.test("k"))) }
            try await claim(most: 4)
            if !running.isEmpty { continue }
            let rooms = Self.destinations.map { ClaimCapacity.test($0) }
            guard let due = try await bench.journal.nextDue(.big, rooms: rooms) else { break }
            now = max(now, due)
        }
        let states = try await bench.journal.jobs(FileFilter(limit: 1000)).map(\.file.state)
        try #require(states.count == files && !states.contains(.pending), "\(states)")
    }
}
