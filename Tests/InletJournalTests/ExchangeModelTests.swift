import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

/// Random exchanges of two lanes to each of three destinations, whose claims are held over many steps, with commands, pauses,
/// reloads, refusals and crashes in between: the journal must never differ from `QueueModel`, and no claim may be lost.
@Suite(.seated) struct ExchangeModelTests {
    @Test(arguments: Seeds.all)
    func `the journal does what the model does while lanes hold claims`(seed: UInt64) async throws {
        var run = try HeldRun(seed: seed)
        await Seeds.play(seed, of: "exchange") { commands in
            for step in 0..<200 {
                commands.append(try await run.step())
                try await run.compare("seed \(seed), step \(step): \(commands.last ?? "")")
            }
            try await run.empty()
        }
        run.journal.close()
    }
}

private struct HeldRun {
    /// A claim that a lane holds, or whose end the journal has not taken.
    private struct Held {
        var claim: Claim
        var lane: Lane
        var hasBegun: Bool
        /// nil while it waits at hand or runs.
        var settlement: ClaimOutcome?

        var id: Int64 { claim.delivery.id }
    }

    let directory: TemporaryDirectory
    var journal: Journal
    private var model = QueueModel()
    private var random: SeededGenerator
    private var now = Bench.start
    private var held: [Held] = []
    private var seen = 0
    /// Destinations that a reload has left, and those of them that are paused, or whose limit is 0.
    private var configured = Self.destinations
    private var closed: Set<String> = []
    private var isRefusing = false
    /// How often each delivery has begun, and how often the process died while it was under way.
    private var beginnings: [Int64: Int] = [:]
    private var ownCrashes: [Int64: Int] = [:]
    /// Those that waited at hand when the process died.
    private var doubted: Set<Int64> = []

    private static let limits = ["r2": 5, "disk": 2, "far": 3]
    private static let destinations = ["disk", "far", "r2"]
    private static let routes = [["r2"], ["r2", "disk"], ["far", "r2", "disk"], ["far"]]

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
        case 0..<22: return try await admit()
        case 22..<60: return try await exchange()
        case 60..<67:
            let done = try await journal.cancel(file, at: now) != nil
            try #require(done == model.cancel(file))
            return "cancel \(file)"
        case 67..<73:
            let done = try await journal.retry(file, uptimes: model.uptimes, at: now)
            try #require(done == model.retry(file, at: now))
            if done { try await parkStrays() }
            return "retry \(file)"
        case 73..<76:
            let done = try await journal.forget(file)
            try #require(done == model.forget(file))
            if done { seen -= 1 }
            return "forget \(file)"
        case 76..<83: return try await finish()
        case 83..<86: return try await pass()
        case 86..<90: return open()
        case 90..<92: return try await reload()
        case 92..<95: return try await refuse()
        default: return try await crash()
        }
    }

    private mutating func admit() async throws -> String {
        let name = "file-\(Int.random(in: 0..<12, using: &random))"
        let size = Int64.random(in: 1...2, using: &random)
        let destinations = Self.routes[Int.random(in: 0..<4, using: &random)].filter(configured.contains)
        if destinations.isEmpty { return "nowhere to admit to" }
        let lane: Lane = Bool.random(using: &random) ? .small : .big
        var admission = FileAdmission.test(
            name, .test(size: size), to: destinations, key: "one-key", lane: lane,
            expire: .milliseconds(QueueModel.life))
        admission.uptimes = model.uptimes
        let outcome = try await journal.admit(admission, at: now)
        let before = model.files.count
        if model.isBusy(name, size: size) {
            guard case .busy = outcome else { throw Unexpected(what: "\(outcome), but \(name) is on its way") }
        } else if let id = model.admit(name, size: size, to: destinations, lane: lane, at: now) {
            try #require(outcome == .admitted(id: id))
            seen += model.files.count - before
        } else {
            guard case .known = outcome else { throw Unexpected(what: "\(outcome), but \(name) is known") }
        }
        return "admit \(name) of \(size) to the \(lane) lanes of \(destinations)"
    }

    // MARK: - The lanes

    /// What a lane does in one turn: it begins, ends, exchanges.
    private mutating func exchange() async throws -> String {
        let destination = Self.destinations[Int.random(in: 0..<3, using: &random)]
        let lane: Lane = Bool.random(using: &random) ? .small : .big
        let isOpen = configured.contains(destination) && !closed.contains(destination)
        for index in held.indices where isOf(held[index], destination, lane) && held[index].settlement == nil {
            if isOpen, !held[index].hasBegun, Bool.random(using: &random) { try await begin(index) }
            if !isOpen && !held[index].hasBegun || Bool.random(using: &random) {
                held[index].settlement = settlement(of: held[index])
            }
        }
        let running = held.count { isOf($0, destination, lane) && $0.settlement == nil }
        let limit = isOpen ? Self.limits[destination] ?? 0 : 0
        let most = lane == .big ? limit - running : min(limit, Int.random(in: 0...6, using: &random))
        let room = isOpen ? ClaimCapacity.test(destination, limit) : nil
        let ended = held.filter { isOf($0, destination, lane) && $0.settlement != nil }
        let wish = ClaimRequest(lane: lane, room: room, most: max(0, most))
        var claimed = try await offer(ended, wish)
        if claimed == nil {
            // What is refused must keep nothing else from its end; and it is kept.
            for one in ended { _ = try await offer([one], .none(lane)) }
            claimed = try await offer([], wish)
        }
        return "\(destination), \(lane): end \(ended.map { ($0.id, $0.settlement) }), claim \(claimed ?? [])"
    }

    /// - Returns: what was claimed; nil when the journal took nothing.
    private mutating func offer(_ ended: [Held], _ wish: ClaimRequest) async throws -> [Int64]? {
        do {
            return try await exchange(ended, wish)
        } catch let error as JournalError {
            guard isRefusing else { throw error }
            return nil
        }
    }

    private func isOf(_ one: Held, _ destination: String, _ lane: Lane) -> Bool {
        one.claim.delivery.destination == destination && one.lane == lane
    }

    private mutating func begin(_ index: Int) async throws {
        let (id, hasCrashed) = (held[index].id, held[index].claim.delivery.crashes > 0)
        if hasCrashed {
            try await journal.begin(id)
            model.begin(id)
        }
        held[index].hasBegun = true
        beginnings[id, default: 0] += 1
    }

    /// - Returns: what was claimed.
    private mutating func exchange(_ ended: [Held], _ wish: ClaimRequest) async throws -> [Int64] {
        let ends: [EndedClaim] = ended.compactMap { one in one.settlement.map { (one.claim.delivery.id, $0) } }
        let exchange = try await journal.exchange(ends, for: wish, at: now)
        for one in ended {
            guard let settlement = one.settlement else { continue }
            model.settle(one.id, settlement)
        }
        held.removeAll { one in ended.contains { $0.id == one.id } }
        let claimed = exchange.claims.map(\.delivery.id)
        let places = wish.room.map { [$0.destination: $0.limits[wish.lane] ?? 0] } ?? [:]
        try #require(claimed == model.claim(places, wish.lane, wish.most, at: now))
        try #require(exchange.damaged.isEmpty)
        for claim in exchange.claims {
            held.append(Held(claim: claim, lane: wish.lane, hasBegun: wish.lane == .big))
            if wish.lane == .big { beginnings[claim.delivery.id, default: 0] += 1 }
        }
        return claimed
    }

    private mutating func settlement(of one: Held) -> ClaimOutcome {
        let back = ClaimOutcome.again(at: one.claim.delivery.nextAt, countsAttempt: false, code: nil, reason: nil)
        guard one.hasBegun else { return Int.random(in: 0..<6, using: &random) == 0 ? .expired : back }
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<4: return .test(.delivered)
        case 4: return .again(now + .milliseconds(500), counts: true)
        case 5: return .waiting(until: now + .milliseconds(500), saying: nil)
        case 6: return .test(.gone)
        case 7: return .test(.failed)
        default: return back
        }
    }

    // MARK: - What comes in between

    /// Pauses a destination, sets its limit to 0, or opens it again.
    private mutating func open() -> String {
        let destination = Self.destinations[Int.random(in: 0..<3, using: &random)]
        if closed.remove(destination) == nil { closed.insert(destination) }
        return "closed are \(closed.sorted())"
    }

    /// Another configuration: destinations go, and come back.
    private mutating func reload() async throws -> String {
        configured = Self.destinations.filter { _ in Int.random(in: 0..<4, using: &random) > 0 }
        try await parkStrays()
        return "configured are \(configured)"
    }

    private mutating func parkStrays() async throws {
        _ = try await journal.parkStrays(except: { [configured] in configured }, at: now)
        _ = model.arrange(configured)
    }

    /// A journal that takes nothing for some turns, or all but one row; then it is well again.
    private mutating func refuse() async throws -> String {
        guard SQLiteShell.isInstalled else { return "no shell to refuse with" }
        let one = held.randomElement(using: &random)
        let condition = Bool.random(using: &random) ? one.map { "WHEN NEW.id = \($0.id)" } ?? "" : ""
        try SQLiteShell.run(
            journal.path,
            """
            CREATE TRIGGER refusal BEFORE UPDATE ON delivery \(condition) BEGIN SELECT RAISE(ABORT, 'the test says no'); END
            """)
        isRefusing = true
        var done: [String] = []
        for _ in 0..<3 { done.append(try await turnWhileRefused()) }
        isRefusing = false
        try SQLiteShell.run(journal.path, "DROP TRIGGER refusal")
        return "refused \(condition): \(done)"
    }

    /// As a lane whose claims cannot be written down as begun: they do not begin.
    private mutating func turnWhileRefused() async throws -> String {
        do {
            return try await exchange()
        } catch is JournalError {
            return "not begun"
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
        for one in held { if one.hasBegun { ownCrashes[one.id, default: 0] += 1 } else { doubted.insert(one.id) } }
        held = []
        let recovery = try await journal.recover(destinations: configured, at: now)
        try #require([recovery.freedClaims, recovery.parked, recovery.unparked] == model.recover(configured, at: now))
        return "crash"
    }

    // MARK: - What must hold

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
            try #require(job.deliveries.map(\.crashes) == file.deliveries.map(\.crashes), "\(place)")
        }
        try requireHolders(jobs.flatMap(\.deliveries), place)
    }

    /// Nothing is claimed that nobody holds, no attempt counts that was not begun, and none fails for crashes of others.
    private func requireHolders(_ rows: [DeliveryRow], _ place: String) throws {
        let holders = Set(held.map(\.id))
        for row in rows {
            let isClaimed = row.state == .claimed
            try #require(!isClaimed || holders.contains(row.id), "\(place): nobody holds \(row.id)")
            let counted = row.attempts - (isClaimed ? 1 : 0)
            // Of one that waited at hand when the process died the first is counted: it may have begun, and from then on that is
            // written down.
            let begun = beginnings[row.id, default: 0] + (doubted.contains(row.id) ? 1 : 0)
            // One that was cancelled at hand is not counted back: nobody tries it again.
            try #require(counted <= begun || row.state == .cancelled, "\(place): attempts of \(row.id)")
            let own = ownCrashes[row.id, default: 0]
            try #require(row.crashes <= own + 1, "\(place): crashes of \(row.id)")
            try #require(row.code != .agentCrashed || own + 1 >= RetryPolicy.mostCrashes, "\(place): \(row.id)")
        }
        let keys = rows.compactMap { row in row.key.map { "\(row.destination) \($0)" } }
        try #require(Set(keys).count == keys.count, "\(place): keys")
    }

    /// Nothing is stuck: all that is open can be delivered.
    mutating func empty() async throws {
        (configured, closed) = (Self.destinations, [])
        _ = try await crash()
        now = now + .seconds(60)
        for destination in Self.destinations {
            for lane in Lane.allCases {
                let wish = ClaimRequest(lane: lane, room: .test(destination, 1000), most: 1000)
                let claims = try await journal.exchange([], for: wish, at: now).claims
                _ = try await journal.exchange(
                    claims.map { ($0.delivery.id, .test(.delivered)) }, for: .none(lane), at: now)
            }
        }
        try #require(try await journal.totals()[.pending] == nil)
    }
}

/// Two journals to which the same is done, one of which moves what has ended to its history again and again: whatever is
/// asked, they say the same.
@Suite(.seated) struct HistoryTwinTests {
    @Test(arguments: Seeds.all)
    func `a journal with a history answers as one without`(seed: UInt64) async throws {
        await Seeds.play(seed, of: "history") { commands in
            var random = SeededGenerator(seed: seed)
            let (plain, pruned) = (try Bench(), try Bench())
            var moved = 0
            for _ in 0..<80 {
                let act = TwinAct.random(&random)
                commands.append("\(act)")
                let answers = (try await act.play(plain), try await act.play(pruned))
                if Bool.random(using: &random) { moved += try await pruned.prune() }
                guard answers.0 == answers.1 else { throw Unexpected(what: "\(answers)") }
                let views = (try await TwinAct.view(plain), try await TwinAct.view(pruned))
                guard views.0 == views.1 else { throw Unexpected(what: "\(views.0)\n\(views.1)") }
            }
            if moved == 0 { throw Unexpected(what: "nothing ever went to the history") }
        }
    }
}

/// Something that is done to a journal, with small numbers for names, contents and files, so that they meet.
private enum TwinAct {
    case admit(name: Int, size: Int64, content: UInt8)
    case end(DeliveryState)
    case finish(keeps: Bool)
    case retry(Int64)
    case cancel(Int64)
    case forget(Int64)
    case rename(Int, to: Int)
    case touch(Int64, inode: UInt64)

    static func random(_ random: inout SeededGenerator) -> TwinAct {
        func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
        let file = Int64(number(1...15))
        switch number(0...19) {
        case 0...5: return .admit(name: number(0...4), size: Int64(number(1...2)), content: UInt8(number(1...4)))
        case 6...10:
            let ends: [DeliveryState] = [.delivered, .delivered, .delivered, .gone, .superseded, .failed]
            return .end(ends[number(0...5)])
        case 11...14: return .finish(keeps: number(0...2) > 0)
        case 15: return .retry(file)
        case 16: return .cancel(file)
        case 17: return .forget(file)
        case 18: return .rename(number(0...4), to: number(0...4))
        default: return .touch(file, inode: UInt64(number(1...2)))
        }
    }

    /// Equal contents have equal sizes.
    private static func digest(_ content: UInt8, _ size: Int64) -> Digest { .content(content * 2 + UInt8(size)) }

    /// - Returns: what the journal answered.
    func play(_ bench: Bench) async throws -> String {
        let (journal, now) = (bench.journal, Bench.start)
        switch self {
        case .admit(let name, let size, let content):
            var admission = FileAdmission.test("file-\(name)", .test(size: size), key: "key-\(size)")
            admission.plan?.dedupe = .skip
            admission.plan?.priority = size == 1 ? .high : .low
            admission.plan?.digests = [Self.digest(content, size)]
            return "\(try await journal.admit(admission, at: now))"
        case .end(let state):
            guard let claim = try await bench.claimAll(most: 1).first else { return "nothing is due" }
            try await bench.end(
                claim, state == .delivered ? .delivered(.test(claim.delivery.key ?? "?")) : .test(state))
            return "\(claim.delivery.key ?? "?") \(claim.original?.job ?? 0)"
        case .finish(let keeps):
            try await bench.finishAll(keeps ? Disposition.kept : Disposition.deleted)
            return "finished"
        case .retry(let file): return "\(try await journal.retry(file, uptimes: [:], at: now))"
        case .cancel(let file): return "\(try await journal.cancel(file, at: now) ?? [])"
        case .forget(let file): return "\(try await journal.forget(file))"
        case .rename(let old, let new):
            let arrival = FoundFile.test("file-\(new)", .test(size: 1, changed: 2))
            guard let found = try await journal.renamed(from: FilePath("file-\(old)"), to: arrival) else { return "no" }
            return "\(found.file.id) \(try await journal.rename(found, to: arrival, plan: nil))"
        case .touch(let file, let inode):
            guard let known = try await journal.job(file)?.file else { return "no" }
            let identity = FileIdentity.test(size: known.identity.size, inode: inode)
            try await journal.refresh(known, identity: identity, at: Bench.start)
            return "touched"
        }
    }

    /// All that can be asked.
    static func view(_ bench: Bench) async throws -> String {
        let journal = bench.journal
        let questions = (0..<5).flatMap { name in
            (1...2).map { FoundFile.test("file-\(name)", .test(size: Int64($0), inode: 1)) }
        }
        let known = try await journal.recall(questions, tolerance: 0).map { answer in
            if case .touched(let file) = answer { "touched \(file.id)" } else { "\(answer)" }
        }
        var contents: [Int64?] = []
        for (content, size) in (1...4).flatMap({ content in (1...2).map { (UInt8(content), Int64($0)) } }) {
            let question = ContentQuery(
                digest: digest(content, size), size: size, route: "all", fields: [:], destinations: ["r2"])
            contents.append(try await journal.originals(question)["r2"]?.job)
        }
        let jobs = try await journal.jobs(FileFilter(limit: 1000)).map(\.lasting)
        let totals = try await journal.totals().map { "\($0.key) \($0.value)" }.sorted()
        let proofs = try await journal.delivered(DeliveredFilter(), after: 0, limit: 100).page.map { $0.delivery.id }
        let holds = try await journal.holdsFiles(of: "/in")
        let queue = try await journal.queueCounts().map { "\($0.key) \($0.value)" }.sorted()
        return "\(known)\n\(contents)\n\(jobs)\n\(totals)\n\(proofs)\n\(holds)\n\(queue)"
    }
}
