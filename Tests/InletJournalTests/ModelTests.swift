import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

/// Random commands to a journal and to `QueueModel`; the two must never differ.
@Suite(.seated) struct ModelTests {
    @Test(arguments: Seeds.all)
    func `the journal does what the model does`(seed: UInt64) async throws {
        let commands = QueueCommands.sequence(seed: seed, count: 120)
        guard let difference = try await QueuePlayer.difference(commands) else { return }
        let (shortest, last) = try await Self.shrink(commands, difference)
        await Seeds.play(seed, of: "queue") { commands in
            commands = shortest.map(\.description)
            throw Unexpected(what: "\(last)\nafter:\n  \(commands.joined(separator: "\n  "))")
        }
    }

    /// Leaves out whatever command the difference does not need.
    private static func shrink(
        _ commands: [TimedCommand], _ difference: String
    ) async throws -> ([TimedCommand], String) {
        var (shortest, last) = (commands, difference)
        var size = max(1, commands.count / 2)
        while size > 0 {
            var start = 0
            while start < shortest.count {
                var candidate = shortest
                candidate.removeSubrange(start..<min(start + size, candidate.count))
                if let found = try await QueuePlayer.difference(candidate) {
                    (shortest, last) = (candidate, found)
                } else {
                    start += size
                }
            }
            size /= 2
        }
        return (shortest, last)
    }
}

/// Plays commands to a journal of its own and to a model.
private struct QueuePlayer {
    struct Difference: Error {
        var text: String
    }

    private let directory: TemporaryDirectory
    private var journal: Journal
    private var model = QueueModel()
    private var now = Bench.start

    private init() throws {
        directory = try TemporaryDirectory()
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: Bench.start)
    }

    /// Where the two differ first; nil when they do not.
    static func difference(_ commands: [TimedCommand]) async throws -> String? {
        var player = try QueuePlayer()
        defer { player.journal.close() }
        for (number, timed) in commands.enumerated() {
            do {
                player.now = player.now + .milliseconds(timed.after)
                try await player.play(timed.command)
                try await player.compare()
            } catch {
                return "step \(number), \(timed): \((error as? Difference)?.text ?? "\(error)")"
            }
        }
        return nil
    }

    private func require<Value: Equatable>(_ journals: Value, _ models: Value, _ what: String) throws {
        if journals != models { throw Difference(text: "\(what): the journal \(journals), the model \(models)") }
    }

    private mutating func play(_ command: QueueCommand) async throws {
        switch command {
        case .admit(let name, let size, let destinations): try await admit("file-\(name)", size, destinations)
        case .claim(let destination, let lane, let ending, let checkpoint):
            try await claim(destination, lane, ending.settlement(at: now), checkpoint)
        case .crash(let destination, let lane, let most, let checkpoint, let cancel):
            try await crash(destination, lane, most, checkpoint, cancel)
        case .cancel(let file): try require(await journal.cancel(file, at: now) != nil, model.cancel(file), "cancel")
        case .retry(let file):
            let done = try await journal.retry(file, uptimes: model.uptimes, at: now)
            try require(done, model.retry(file, at: now), "retry")
        case .forget(let file): try require(await journal.forget(file), model.forget(file), "forget")
        case .finish(let pick): try await finish(pick)
        case .sweep: try await sweep()
        case .pass(let destination, let time):
            let uptime = (model.uptimes[destination] ?? 0) + time
            let expired = try await journal.setUptime(destination, uptime, at: now)
            try require(expired.sorted(), model.pass(uptime, of: destination).sorted(), "expired")
        case .restart(let destinations): try await restart(destinations)
        case .clear:
            let pending = model.files.filter { $0.state == .pending }.map(\.id)
            try require(await journal.clearAll(at: now).files, pending.count, "clear")
            for id in pending { _ = model.cancel(id) }
        case .pause(let destination, let isPaused):
            try await journal.setPaused(destination, isPaused)
            model.pause(destination, isPaused)
        case .prune:
            var place: HistoryPlace? = (0, 0)
            while let from = place { place = try await journal.moveToHistory(finishedBy: now, from: from).next }
        case .wait: break
        }
    }

    private mutating func admit(_ name: String, _ size: Int64, _ destinations: [String]) async throws {
        var admission = FileAdmission.test(
            name, .test(size: size), to: destinations, key: "one-key", expire: .milliseconds(QueueModel.life))
        admission.uptimes = model.uptimes
        let outcome = try await journal.admit(admission, at: now)
        if let id = model.admit(name, size: size, to: destinations, at: now) {
            try require(outcome, .admitted(id: id), "admit")
        } else {
            guard case .known = outcome else { throw Difference(text: "\(outcome), but it is known") }
        }
    }

    private mutating func claim(
        _ destination: String, _ lane: Lane, _ settlement: ClaimOutcome, _ checkpoint: Bool
    ) async throws {
        let (journal, now) = (journal, now)
        let claimed = try await journal.withClaim(lane, rooms: [.test(destination)], clock: { now }) { claim in
            if checkpoint { try await journal.checkpoint(claim.delivery.id, ["upload": [1]]) }
            return (settlement, claim.delivery.id)
        }?.1
        try require(claimed, model.claim([destination: 100], lane, 1, at: now).first, "claim")
        guard let claimed else { return }
        if checkpoint { model.checkpoint(claimed) }
        model.settle(claimed, settlement)
    }

    private mutating func crash(
        _ destination: String, _ lane: Lane, _ most: Int, _ checkpoint: Bool, _ cancel: Bool
    ) async throws {
        let wish = ClaimRequest(lane: lane, room: .test(destination), most: most)
        let claims = try await journal.exchange([], for: wish, at: now).claims
        try require(claims.map(\.delivery.id), model.claim([destination: 100], lane, most, at: now), "claims")
        if let first = claims.first, checkpoint {
            try await journal.checkpoint(first.delivery.id, ["upload": [1]])
            model.checkpoint(first.delivery.id)
        }
        if let last = claims.last, cancel {
            try require(await journal.cancel(last.file.id, at: now) != nil, model.cancel(last.file.id), "cancel")
        }
        try await restart(QueueCommands.destinations)
    }

    private mutating func finish(_ pick: Int) async throws {
        let unfinished = try await journal.unfinished(at: now, limit: 100)
        try require(Set(unfinished.map(\.file.id)), model.unfinished, "unfinished")
        if unfinished.isEmpty { return }
        let job = unfinished[pick % unfinished.count]
        let disposition = pick.isMultiple(of: 2) ? Disposition.deleted : Disposition.kept
        let isFirst = try await journal.finish(job.file, disposition: disposition, receipt: [], at: now) != nil
        try require(isFirst, true, "finish")
        model.finish(job.file.id)
    }

    private mutating func sweep() async throws {
        let leftovers = try await journal.leftovers(at: now, limit: 1000).map(\.delivery.id)
        try require(Set(leftovers), Set(model.files.flatMap(\.deliveries).filter(\.hasLeftover).map(\.id)), "leftovers")
        for id in leftovers { try await journal.leftoverRemoved(id) }
        model.sweep()
    }

    private mutating func restart(_ destinations: [String]) async throws {
        journal.close()
        journal = try Journal(path: journal.path, now: now)
        let recovery = try await journal.recover(destinations: destinations, at: now)
        try require(
            [recovery.freedClaims, recovery.parked, recovery.unparked], model.recover(destinations, at: now), "recover")
    }

    private func compare() async throws {
        let totals = try await journal.totals().mapValues { StateSum(files: $0.files, bytes: $0.bytes) }
        try require(totals.filter { $0.value.files > 0 }, model.totals, "totals")
        try require(await journal.paused(), model.paused, "paused")
        let jobs = try await journal.jobs(FileFilter(limit: 10_000)).reversed()
        try require(jobs.map(\.file.id), model.files.map(\.id), "files")
        for (job, file) in zip(jobs, model.files) {
            let what = "job \(file.id)"
            try require(job.file.state, file.state, what)
            try require(job.file.finishedAt != nil, file.isFinished, "\(what) finished")
            try require(job.deliveries.map(\.state), file.deliveries.map(\.state), what)
            try require(job.deliveries.map(\.attempts), file.deliveries.map(\.attempts), "\(what) attempts")
            try require(job.deliveries.map(\.expiresAt), file.deliveries.map(\.expiresAt), "\(what) expiry")
            for (row, delivery) in zip(job.deliveries, file.deliveries) where delivery.state == .ready {
                try require(row.nextAt, delivery.nextAt, "\(what) next time")
            }
        }
        try require(await journal.queueCounts(), await journal.countedQueue(), "the queue")
        let keys = jobs.flatMap(\.deliveries).compactMap { row in row.key.map { "\(row.destination) \($0)" } }
        try require(Set(keys).count, keys.count, "keys")
    }
}

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
        let rooms = Self.destinations.map { ClaimCapacity.test($0) }
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
        let settlement = ClaimOutcome.test(states.randomElement(using: &random) ?? .delivered)
        let (journal, now) = (journal, now)
        let found = try await journal.withClaim(.big, rooms: [.test(destination)], clock: { now }) { claim in
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
        let marker = FoundFile.test("u/DONE", .test(size: now.milliseconds))
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
