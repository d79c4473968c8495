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
            var place: HistoryPlace? = HistoryPlace()
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
        _ destination: String, _ lane: Lane, _ settlement: Settlement, _ checkpoint: Bool
    ) async throws {
        let (journal, now) = (journal, now)
        let claimed = try await journal.withClaim(
            lane, rooms: [.test(destination)], clock: { now }
        ) { claim in
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
        let wish = ClaimWish(lane: lane, room: .test(destination), most: most)
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
