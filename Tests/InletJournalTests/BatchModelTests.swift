import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

/// Random commands on files with companions, in units and alone. Whatever the order: what waits is not sent too early, and
/// nothing that has ended is forgotten by its batch.
@Suite(.seated) struct BatchModelTests {
    @Test(arguments: Seeds.all)
    func `companions come after their files, units after they are closed, and batches end with their files`(
        seed: UInt64
    ) async throws {
        var run = try BatchRun(seed: seed)
        await Seeds.play(seed, of: "batches") { commands in
            for step in 0..<120 {
                commands.append(try await run.step())
                try await run.check("seed \(seed), step \(step): \(commands.last ?? "")")
            }
        }
        run.journal.close()
    }
}

private struct BatchRun {
    let directory: TemporaryDirectory
    var journal: Journal
    private var random: SeededGenerator
    private var now = Bench.start
    private static let destinations = ["r2", "disk"]

    init(seed: UInt64) throws {
        directory = try TemporaryDirectory()
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: Bench.start)
        random = SeededGenerator(seed: seed)
    }

    mutating func step() async throws -> String {
        now = now + .milliseconds(Int64.random(in: 0...400, using: &random))
        let file = Int64.random(in: 1...40, using: &random)
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<22: return try await admit()
        case 22..<30: return try await admitLate(to: file)
        case 30..<56: return try await claim()
        case 56..<60: return try await crash()
        case 60..<66: return try await close()
        case 66..<70:
            _ = try await journal.cancel(file, at: now)
            return "cancel \(file)"
        case 70..<78:
            _ = try await journal.retry(file, uptimes: [:], at: now)
            return "retry \(file)"
        case 78..<81:
            _ = try await journal.forget(file)
            return "forget \(file)"
        case 81..<96: return try await finish()
        default:
            try await restart()
            return "restart"
        }
    }

    private mutating func restart() async throws {
        journal.close()
        journal = try Journal(path: journal.path, now: now)
        _ = try await journal.recover(destinations: Self.destinations, at: now)
    }

    /// The process dies with claims that nobody ends; a person may have cancelled one of them.
    private mutating func crash() async throws -> String {
        let rooms = Self.destinations.map { ClaimRoom.test($0) }
        let most = Int.random(in: 1...3, using: &random)
        let claims = try await journal.claims(.big, rooms: rooms, most: most, at: now)
        if let claim = claims.randomElement(using: &random) {
            if Bool.random(using: &random) { try await journal.checkpoint(claim.delivery.id, ["upload": [1]]) }
            if Bool.random(using: &random) { _ = try await journal.cancel(claim.file.id, at: now) }
        }
        try await restart()
        return "crash with \(claims.map(\.delivery.id))"
    }

    private func companion(_ name: String, _ kind: Companion.Kind, size: Int64) -> CompanionAdmission {
        CompanionAdmission(
            .test(name, .test(size: size)), Companion(path: FilePath(name), kind: kind, ending: "x"), category: "other",
            mediaType: "text/plain", lanes: kind == .marker ? [:] : ["disk": .big])
    }

    private mutating func admit() async throws -> String {
        let name = "f\(Int.random(in: 0..<6, using: &random))"
        let size = Int64.random(in: 1...3, using: &random)
        var admission = FileAdmission.test(name, .test(size: size), to: Self.destinations, key: "key")
        if Bool.random(using: &random) { admission.unit = "u" }
        let kinds = Companion.Kind.allCases.filter { _ in Bool.random(using: &random) }
        admission.companions = kinds.map { companion("\(name).\($0.rawValue)", $0, size: size) }
        let (main, others) = try await journal.admitSet(admission, at: now)
        return "admit \(name) of \(size) with \(kinds): \(main), \(others)"
    }

    private mutating func admitLate(to main: Int64) async throws -> String {
        let kind = [Companion.Kind.sameStem, .metadata].randomElement(using: &random) ?? .sameStem
        let size = Int64.random(in: 1...3, using: &random)
        let outcome = try await journal.admitLate(
            companion("late\(main)", kind, size: size), main: main, uptimes: [:], at: now)
        return "late \(kind) of \(main): \(outcome)"
    }

    private mutating func claim() async throws -> String {
        let destination = Self.destinations.randomElement(using: &random) ?? "r2"
        let states: [DeliveryState] = [.delivered, .delivered, .delivered, .failed, .superseded, .gone]
        let settlement = Settlement.test(states.randomElement(using: &random) ?? .delivered)
        let (journal, now) = (journal, now)
        let found = try await journal.withClaim(
            .big, rooms: [.test(destination)], clock: { now }
        ) { claim in
            try #require(claim.delivery.key != nil)
            if let batch = try await journal.batch(of: claim.file.id) { try #require(!batch.isOpen) }
            if let leader = claim.delivery.afterID {
                let jobs = try await journal.jobs(FileFilter(limit: 1000))
                try #require(jobs.flatMap(\.deliveries).first { $0.id == leader }?.state == .delivered)
            }
            return (settlement, claim.delivery.id)
        }?.1
        return "claim \(String(describing: found)) \(settlement)"
    }

    private mutating func close() async throws -> String {
        let marker = Arrival.test("u/DONE", .test(size: now.milliseconds))
        let batch = try await journal.closeUnit(
            "u", root: "/in", routes: ["all"], marker: Bool.random(using: &random) ? marker : nil, uptimes: [:], at: now
        ).first
        return "close \(String(describing: batch?.id))"
    }

    private mutating func finish() async throws -> String {
        guard let job = try await journal.unfinished(at: now, limit: 100).randomElement(using: &random) else {
            return "nothing to finish"
        }
        let ended = try await journal.finish(job.file, disposition: Disposition.kept, receipt: [], at: now)?.endedBatch
        return "finish \(job.file.id), end of \(String(describing: ended?.id))"
    }

    func check(_ place: String) async throws {
        try #require(try await journal.queueCounts() == journal.countedQueue(), "\(place)")
        let jobs = try await journal.jobs(FileFilter(limit: 10_000))
        for job in jobs {
            if !job.deliveries.isEmpty {
                try #require(job.file.state == FileState.combined(job.deliveries.map(\.state)), "\(place)")
            }
            for delivery in job.deliveries where delivery.state == .delivered && delivery.key == nil {
                try #require(delivery.proof?.method == .carried, "\(place)")
            }
        }
        for (id, members) in Dictionary(grouping: jobs, by: \.file.batchID) {
            guard id != nil, let batch = try await journal.batch(of: members[0].file.id) else { continue }
            let isFinished = members.allSatisfy { $0.file.finishedAt != nil }
            try #require((batch.endedAt != nil) == (isFinished && !batch.isOpen), "\(place)")
            try #require((batch.state == .pending) == (batch.endedAt == nil), "\(place)")
            let waiting = members.flatMap(\.deliveries).filter { $0.state == .ready }
            if batch.isOpen { try #require(!waiting.contains { !$0.isHeld }, "\(place)") }
            let states = Dictionary(uniqueKeysWithValues: jobs.flatMap(\.deliveries).map { ($0.id, $0.state) })
            for delivery in waiting where !batch.isOpen {
                let isLed = delivery.afterID.map { states[$0] != .delivered } ?? false
                try #require(delivery.isHeld == isLed, "\(place)")
                try #require(delivery.key != nil || isLed, "\(place)")
            }
        }
        let keys = jobs.flatMap(\.deliveries).compactMap { row in row.key.map { "\(row.destination) \($0)" } }
        try #require(Set(keys).count == keys.count, "\(place)")
    }
}
