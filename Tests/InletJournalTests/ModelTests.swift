import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

/// Random commands to a journal and to `QueueModel`; the two must never differ.
@Suite struct ModelTests {
    @Test(arguments: [1, 2, 3, 5] as [UInt64])
    func `the journal does what the model does`(seed: UInt64) async throws {
        var run = try Run(seed: seed)
        for step in 0..<120 {
            let what = try await run.step()
            try await run.compare("seed \(seed), step \(step): \(what)")
        }
        run.journal.close()
    }
}

private struct Run {
    let directory: TemporaryDirectory
    var journal: Journal
    private var model = QueueModel()
    private var random: SeededGenerator
    private var now = Bench.start
    private static let destinations = ["r2", "disk", "tape"]

    init(seed: UInt64) throws {
        directory = try TemporaryDirectory()
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: Bench.start)
        random = SeededGenerator(seed: seed)
    }

    /// Does one random thing to both and says what it was.
    mutating func step() async throws -> String {
        now = now + .milliseconds(Int64.random(in: 0...400, using: &random))
        let file = Int64.random(in: 1...30, using: &random)
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<30: return try await admit()
        case 30..<65: return try await claim()
        case 65..<70:
            let done = try await journal.cancel(file, at: now) != nil
            #expect(done == model.cancel(file))
            return "cancel \(file)"
        case 70..<75:
            let done = try await journal.retry(file, uptimes: model.uptimes, at: now)
            #expect(done == model.retry(file, at: now))
            return "retry \(file)"
        case 75..<79:
            let done = try await journal.forget(file)
            #expect(done == model.forget(file))
            return "forget \(file)"
        case 79..<88: return try await finish()
        case 88..<91: return try await sweep()
        case 91..<94: return try await pass()
        case 94..<97: return try await restart()
        case 97: return try await clear()
        default:
            return "wait"
        }
    }

    private mutating func admit() async throws -> String {
        let name = "file-\(Int.random(in: 0..<8, using: &random))"
        let size = Int64.random(in: 1...3, using: &random)
        let destinations = Self.destinations.filter { $0 == "r2" || Bool.random(using: &random) }
        var admission = Admission.test(
            name, .test(size: size), to: destinations, key: "one-key", expire: .milliseconds(QueueModel.life))
        admission.uptimes = model.uptimes
        let outcome = try await journal.admit(admission, at: now)
        if let id = model.admit(name, size: size, to: destinations, at: now) {
            #expect(outcome == .admitted(id: id))
        } else if case .known = outcome {
            return "known \(name)"
        } else {
            Issue.record("\(outcome), but it is known")
        }
        return "admit \(name) of \(size)"
    }

    private mutating func claim() async throws -> String {
        let destination = Self.destinations.randomElement(using: &random) ?? "r2"
        let leaves = Int.random(in: 0..<4, using: &random) == 0
        let settlement = randomSettlement()
        let (journal, now) = (journal, now)
        let claimed = try await journal.withClaim(
            .big, rooms: [.test(destination)], owner: "w", clock: { now }
        ) { claim in
            if leaves { try await journal.checkpoint(claim.delivery.id, ["upload": [1]]) }
            return (settlement, claim.delivery.id)
        }?.1
        #expect(claimed == model.next(destination, at: now))
        if let claimed {
            model.claim(claimed)
            model.settle(claimed, settlement, leavingCheckpoint: leaves)
        }
        return "claim \(String(describing: claimed)) \(settlement)"
    }

    private mutating func randomSettlement() -> Settlement {
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<4: .test(.delivered)
        case 4: .again(now + .milliseconds(500), counts: true)
        case 5: .again(now + .milliseconds(500))
        case 6: .test(.superseded)
        case 7: .test(.gone)
        default: .test(.failed)
        }
    }

    private mutating func finish() async throws -> String {
        guard let job = try await journal.unfinished(at: now, limit: 100).randomElement(using: &random) else {
            return "nothing to finish"
        }
        let vacating = Bool.random(using: &random)
        let isFirst = try await journal.finish(
            job.file, disposition: vacating ? Disposition.deleted : Disposition.kept, receipt: [], at: now)
        #expect(isFirst != nil)
        model.finish(job.file.id)
        return "finish \(job.file.id)"
    }

    private mutating func sweep() async throws -> String {
        let leftovers = try await journal.leftovers(at: now, limit: 1000)
        let wanted = model.files.flatMap(\.deliveries).filter(\.hasLeftover).map(\.id)
        #expect(Set(leftovers.map(\.delivery.id)) == Set(wanted))
        for leftover in leftovers { try await journal.leftoverRemoved(leftover.delivery.id) }
        model.sweep()
        return "sweep"
    }

    private mutating func pass() async throws -> String {
        let destination = Self.destinations.randomElement(using: &random) ?? "r2"
        let uptime = (model.uptimes[destination] ?? 0) + Int64.random(in: 0...700, using: &random)
        let expired = try await journal.setUptime(destination, uptime, at: now)
        #expect(expired.sorted() == model.pass(uptime, of: destination).sorted())
        return "\(destination) is up for \(uptime)"
    }

    private mutating func restart() async throws -> String {
        journal.close()
        journal = try Journal(path: journal.path, now: now)
        let configured = Self.destinations.filter { _ in Int.random(in: 0..<4, using: &random) > 0 }
        let recovery = try await journal.recover(destinations: configured, at: now)
        #expect([recovery.freedClaims, recovery.parked, recovery.unparked] == model.recover(configured, at: now))
        return "restart with \(configured)"
    }

    private mutating func clear() async throws -> String {
        let pending = model.files.filter { $0.state == .pending }.map(\.id)
        let cleared = try await journal.clear(at: now).files
        #expect(cleared == pending.count)
        for id in pending { _ = model.cancel(id) }
        return "clear"
    }

    func compare(_ place: String) async throws {
        let totals = try await journal.totals().mapValues { StateSum(files: $0.files, bytes: $0.bytes) }
        #expect(totals == model.totals, "\(place)")
        let jobs = try await journal.jobs(FileFilter(limit: 10_000)).reversed()
        #expect(jobs.map(\.file.id) == model.files.map(\.id), "\(place)")
        for (job, file) in zip(jobs, model.files) {
            #expect(job.file.state == file.state, "\(place)")
            #expect((job.file.finishedAt != nil) == file.isFinished, "\(place)")
            #expect(job.deliveries.map(\.state) == file.deliveries.map(\.state), "\(place)")
            #expect(job.deliveries.map(\.attempts) == file.deliveries.map(\.attempts), "\(place)")
            #expect(job.deliveries.map(\.expiresAt) == file.deliveries.map(\.expiresAt), "\(place)")
        }
        let keys = jobs.flatMap(\.deliveries).compactMap { row in row.key.map { "\(row.destination) \($0)" } }
        #expect(Set(keys).count == keys.count, "\(place)")
    }
}
