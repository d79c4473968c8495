import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

/// Random exchanges of claims that are held over many steps, with commands and crashes in between: the journal must never
/// differ from `QueueModel`, and every file must be in exactly one state.
@Suite(.seated) struct ExchangeModelTests {
    @Test(arguments: Seeds.all)
    func `the journal does what the model does while claims are held`(seed: UInt64) async throws {
        var run = try HeldRun(seed: seed)
        await Seeds.play(seed, of: "exchange") { commands in
            for step in 0..<150 {
                commands.append(try await run.step())
                try await run.compare("seed \(seed), step \(step): \(commands.last ?? "")")
            }
            try await run.empty()
        }
        run.journal.close()
    }
}

private struct HeldRun {
    let directory: TemporaryDirectory
    var journal: Journal
    private var model = QueueModel()
    private var random: SeededGenerator
    private var now = Bench.start
    private var held: [Claim] = []
    private var seen = 0
    private static let limits = ["r2": 5, "disk": 2]

    init(seed: UInt64) throws {
        directory = try TemporaryDirectory()
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: Bench.start)
        random = SeededGenerator(seed: seed)
    }

    /// Does one random thing to both and says what it was.
    mutating func step() async throws -> String {
        now = now + .milliseconds(Int64.random(in: 0...400, using: &random))
        let file = Int64.random(in: 1...40, using: &random)
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<30: return try await admit()
        case 30..<65: return try await exchange()
        case 65..<74:
            let done = try await journal.cancel(file, at: now) != nil
            try #require(done == model.cancel(file))
            return "cancel \(file)"
        case 74..<80:
            let done = try await journal.retry(file, uptimes: model.uptimes, at: now)
            try #require(done == model.retry(file, at: now))
            return "retry \(file)"
        case 80..<84:
            let done = try await journal.forget(file)
            try #require(done == model.forget(file))
            if done { seen -= 1 }
            return "forget \(file)"
        case 84..<91: return try await finish()
        case 91..<95: return try await pass()
        default: return try await crash()
        }
    }

    private mutating func admit() async throws -> String {
        let name = "file-\(Int.random(in: 0..<12, using: &random))"
        let size = Int64.random(in: 1...2, using: &random)
        let destinations = Bool.random(using: &random) ? ["r2", "disk"] : ["r2"]
        var admission = FileAdmission.test(
            name, .test(size: size), to: destinations, key: "one-key", lane: .small,
            expire: .milliseconds(QueueModel.life))
        admission.uptimes = model.uptimes
        let outcome = try await journal.admit(admission, at: now)
        let before = model.files.count
        if model.isBusy(name, size: size) {
            guard case .busy = outcome else { throw Unexpected(what: "\(outcome), but \(name) is on its way") }
        } else if let id = model.admit(name, size: size, to: destinations, lane: .small, at: now) {
            try #require(outcome == .admitted(id: id))
            seen += model.files.count - before
        } else {
            guard case .known = outcome else { throw Unexpected(what: "\(outcome), but \(name) is known") }
        }
        return "admit \(name) of \(size)"
    }

    private mutating func exchange() async throws -> String {
        var ended: [(Claim, Settlement)] = []
        for claim in held where Bool.random(using: &random) { ended.append((claim, settlement(of: claim))) }
        held.removeAll { claim in ended.contains { $0.0.delivery.id == claim.delivery.id } }
        for (claim, settlement) in ended { model.settle(claim.delivery.id, settlement) }
        let most = Int.random(in: 0...6, using: &random)
        let rooms = Self.limits.map { ClaimRoom.test($0.key, $0.value) }
        let wish = ClaimWish(lane: .small, rooms: rooms, most: most, owner: "small")
        let exchange = try await journal.exchange(ended.map { EndedClaim($0.0, $0.1) }, for: wish, at: now)
        let claimed = exchange.claims.map(\.delivery.id)
        try #require(claimed == model.claim(Self.limits, .small, most, at: now))
        try #require(exchange.damaged.isEmpty)
        held += exchange.claims
        return "end \(ended.map { ($0.0.delivery.id, $0.1) }), claim \(claimed)"
    }

    private mutating func settlement(of claim: Claim) -> Settlement {
        switch Int.random(in: 0..<12, using: &random) {
        case 0..<4: .test(.delivered)
        case 4: .again(now + .milliseconds(500), counts: true)
        case 5: .waiting(until: now + .milliseconds(500), saying: nil)
        case 6: .test(.gone)
        case 7: .test(.failed)
        case 8: .expired
        // Never begun.
        default: .again(at: claim.delivery.nextAt, countsAttempt: false, code: nil, reason: nil)
        }
    }

    private mutating func finish() async throws -> String {
        guard let job = try await journal.unfinished(at: now, limit: 100).randomElement(using: &random) else {
            return "nothing to finish"
        }
        _ = try await journal.finish(job.file, disposition: Disposition.kept, receipt: [], at: now)
        model.finish(job.file.id)
        return "finish \(job.file.id)"
    }

    private mutating func pass() async throws -> String {
        let uptime = (model.uptimes["r2"] ?? 0) + Int64.random(in: 0...700, using: &random)
        let expired = try await journal.setUptime("r2", uptime, at: now)
        try #require(expired.sorted() == model.pass(uptime, of: "r2").sorted())
        return "r2 is up for \(uptime)"
    }

    /// What was held is lost with the process.
    private mutating func crash() async throws -> String {
        journal.close()
        journal = try Journal(path: journal.path, now: now)
        held = []
        let recovery = try await journal.recover(destinations: ["r2", "disk"], at: now)
        try #require(
            [recovery.freedClaims, recovery.parked, recovery.unparked] == model.recover(["r2", "disk"], at: now))
        return "crash"
    }

    func compare(_ place: String) async throws {
        let totals = try await journal.totals().mapValues { StateSum(files: $0.files, bytes: $0.bytes) }
        try #require(totals == model.totals, "\(place)")
        try #require(totals.values.reduce(0) { $0 + $1.files } == seen, "\(place)")
        try #require(try await journal.queueCounts() == journal.countedQueue(), "\(place)")
        let jobs = try await journal.jobs(FileFilter(limit: 10_000)).reversed()
        try #require(jobs.map(\.file.id) == model.files.map(\.id), "\(place)")
        for (job, file) in zip(jobs, model.files) {
            try #require(job.file.state == file.state, "\(place)")
            try #require((job.file.finishedAt != nil) == file.isFinished, "\(place)")
            try #require(job.deliveries.map(\.state) == file.deliveries.map(\.state), "\(place)")
            try #require(job.deliveries.map(\.attempts) == file.deliveries.map(\.attempts), "\(place)")
        }
    }

    /// Nothing is stuck: all that is open can be delivered.
    mutating func empty() async throws {
        _ = try await crash()
        now = now + .seconds(60)
        let wish = ClaimWish(lane: .small, rooms: [.test("r2"), .test("disk")], most: 1000, owner: "small")
        let claims = try await journal.exchange([], for: wish, at: now).claims
        let none = ClaimWish(lane: .small, rooms: [], most: 0, owner: "small")
        _ = try await journal.exchange(claims.map { EndedClaim($0, .test(.delivered)) }, for: none, at: now)
        try #require(try await journal.totals()[.pending] == nil)
    }
}
