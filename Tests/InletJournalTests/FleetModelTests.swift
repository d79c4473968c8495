import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

/// Random work of an agent in a fleet that answers, refuses, or is away, with kills at any moment.
@Suite(.seated) struct FleetModelTests {
    @Test(arguments: Seeds.all)
    func `whatever happens, nothing is sent under a key that is not granted, and nothing is lost`(
        seed: UInt64
    ) async throws {
        await Seeds.play(seed, of: "fleet") { commands in
            var player = try await FleetPlayer(seed: seed)
            defer { player.journal.close() }
            for _ in 0..<150 {
                let command = player.next()
                commands.append("\(command)")
                try await player.play(command)
                try await player.check()
            }
            commands.append("end")
            try await player.end()
        }
    }
}

private enum FleetAct: CaseIterable {
    case admit, admitMany, admitUnit, closeUnit, change, adopt
    case ask, askInVain, takeAway, giveBack, tag, wait
    case claim, crash, cancel, retry, forget, prune, restart, park, unpark
}

/// The fleet's table of keys. A granted key is its agent's until it gives it back.
private struct KeyTable {
    static let us = 1
    private(set) var owners: [String: (agent: Int, ref: Int64)] = [:]

    mutating func reserve(_ key: String, _ ref: Int64, by agent: Int = us) -> Bool {
        let owner = owners[key] ?? (agent, ref)
        owners[key] = owner
        return owner == (agent, ref)
    }

    mutating func release(_ key: String, _ ref: Int64) {
        if let owner = owners[key], owner == (Self.us, ref) { owners[key] = nil }
    }

    func isOurs(_ key: String) -> Bool { owners[key]?.agent == Self.us }
}

private struct FleetPlayer {
    private let directory: TemporaryDirectory
    private(set) var journal: Journal
    private var random: SeededGenerator
    private var table = KeyTable()
    private var mark: Int64 = 0
    private var number = 0
    private var admitted: Set<Int64> = []
    private var forgotten: Set<Int64> = []
    /// Keys under which a file has arrived.
    private var delivered: Set<String> = []

    private static let tag = "k3f9q2"
    private static let now = Bench.start

    init(seed: UInt64) async throws {
        directory = try TemporaryDirectory.inMemory()
        random = SeededGenerator(seed: seed)
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: Self.now)
        try await journal.reserveKeys(at: ["r2": "own/"])
    }

    mutating func next() -> FleetAct { FleetAct.allCases.randomElement(using: &random) ?? .ask }

    private mutating func key() -> String {
        ["a.txt", "b.txt", "c", "a_2.txt", "own/a.txt"].randomElement(using: &random) ?? "a.txt"
    }

    private mutating func name() -> String {
        number += 1
        return "file-\(number)"
    }

    private mutating func anyFile() -> Int64? { admitted.subtracting(forgotten).sorted().randomElement(using: &random) }

    mutating func play(_ act: FleetAct) async throws {
        switch act {
        case .admit: try await admit([.test(name(), key: key())])
        case .admitMany: try await admit((0..<9).map { _ in .test(name(), key: key()) })
        case .admitUnit: try await admit([.test("unit/\(name())", key: key(), unit: "unit")])
        case .closeUnit:
            _ = try await journal.closeUnit(
                "unit", root: "/in", routes: ["all"], marker: nil, uptimes: [:], closing: ["r2"], at: Self.now)
        case .change:
            try await admit([.test("file-1", .test(size: Int64.random(in: 1...99, using: &random)), key: key())])
        case .adopt:
            let admission = FileAdmission.test(name(), key: key())
            _ = try await journal.adopt([FileAdoption(admission.arrival, plan: admission.plan)], at: Self.now)
        case .ask: try await ask(isHeard: true)
        case .askInVain: try await ask(isHeard: false)
        case .takeAway: _ = table.reserve(key(), Int64(number), by: 2)
        case .giveBack: try await giveBack()
        case .tag: try await answerOne(.tagged(tag: Self.tag))
        case .wait: try await answerOne(.waits(code: .timedOut, reason: "away"))
        case .claim: try await claim()
        case .crash:
            _ = try await journal.claims(.big, rooms: [.test()], most: 3, at: Self.now)
            try await restart()
        case .cancel: if let id = anyFile() { _ = try await journal.cancel(id, at: Self.now) }
        case .retry: if let id = anyFile() { _ = try await journal.retry(id, uptimes: [:], at: Self.now) }
        case .forget:
            try await finish()
            if let id = anyFile(), try await journal.forget(id) { forgotten.insert(id) }
        case .prune:
            try await finish()
            var place: HistoryPlace? = (0, 0)
            while let from = place { place = try await journal.moveToHistory(finishedBy: Self.now, from: from).next }
        case .restart: try await restart()
        case .park: _ = try await journal.setDestinations([], at: Self.now)
        case .unpark: _ = try await journal.setDestinations(["r2"], at: Self.now)
        }
    }

    private mutating func admit(_ admissions: [FileAdmission]) async throws {
        for outcome in try await journal.admit(admissions, at: Self.now) {
            if let id = outcome.main.newRow { admitted.insert(id) }
        }
    }

    private mutating func ask(isHeard: Bool, limit: Int = 5) async throws {
        mark += 1
        let answers = try await journal.keyRequests(limit: limit).map { request in
            (request, table.reserve(request.key, request.ref) ? KeyAnswer.granted(mark: mark) : .taken)
        }
        if isHeard { try await journal.answerKeys(answers, at: Self.now) }
    }

    private func answerOne(_ answer: KeyAnswer) async throws {
        let requests = try await journal.keyRequests(limit: 1)
        try await journal.answerKeys(requests.map { ($0, answer) }, at: Self.now)
    }

    private mutating func giveBack() async throws {
        let keys = try await journal.keysToReturn(limit: 3)
        for key in keys {
            guard !delivered.contains(key.key) else { throw Unexpected(what: "\(key.key) goes back, and was sent") }
            table.release(key.key, key.ref)
        }
        try await journal.keysReturned(keys)
    }

    private mutating func claim() async throws {
        for claim in try await journal.claims(.big, rooms: [.test()], most: 3, at: Self.now) {
            let key = claim.delivery.key ?? ""
            guard isAllowed(key) else { throw Unexpected(what: "\(key) was claimed, and is not granted") }
            let arrives = Bool.random(using: &random)
            if arrives, !delivered.insert(key).inserted { throw Unexpected(what: "\(key) was sent twice") }
            let end: ClaimOutcome =
                arrives
                ? .delivered(.test(key))
                : [.again(), .test(.failed), .test(.superseded)].randomElement(using: &random) ?? .again()
            _ = try await journal.exchange([(claim.delivery.id, end)], for: .none(.big), at: Self.now)
        }
    }

    private func isAllowed(_ key: String) -> Bool {
        table.isOurs(key) || key.hasPrefix("own/") || key.contains("_\(Self.tag)")
    }

    private func finish() async throws {
        for job in try await journal.unfinished(at: Self.now, limit: 1000) {
            _ = try await journal.finish(job.file, disposition: Disposition.kept, receipt: [], at: Self.now)
        }
    }

    private mutating func restart() async throws {
        let path = journal.path
        journal.close()
        journal = try Journal(path: path, now: Self.now)
        _ = try await journal.recover(destinations: ["r2"], at: Self.now)
        try await journal.reserveKeys(at: ["r2": "own/"])
    }

    /// Every delivery that is due has its key, and the counts are right.
    func check() async throws {
        let waiting = Set(try await journal.keyRequests(limit: 1000).map(\.delivery))
        for job in try await journal.jobs(FileFilter(limit: 10_000)) {
            for row in job.deliveries where row.state == .ready {
                let key = row.key ?? ""
                if !row.isHeld, !isAllowed(key) { throw Unexpected(what: "\(key) is due, and is not granted") }
                if !row.isHeld, waiting.contains(row.id) { throw Unexpected(what: "\(key) is due, and asked for") }
            }
        }
        guard try await journal.queueCounts() == journal.countedQueue() else {
            throw Unexpected(what: "the queue counts \(try await journal.queueCounts())")
        }
    }

    /// The fleet answers, and all that is left arrives.
    mutating func end() async throws {
        for act in [.unpark, .closeUnit] as [FleetAct] { try await play(act) }
        for _ in 0..<60 {
            try await giveBack()
            try await ask(isHeard: true, limit: 1000)
            for lane in Lane.allCases { try await deliverAll(lane) }
        }
        let jobs = try await journal.jobs(FileFilter(limit: 10_000))
        if let left = jobs.first(where: { !$0.file.state.isFinal }) {
            throw Unexpected(what: "\(left.file.path) waits for ever: \(left.deliveries)")
        }
        let known = Set(jobs.map(\.file.id))
        let lost = admitted.subtracting(forgotten).subtracting(known)
        if !lost.isEmpty { throw Unexpected(what: "lost: \(lost.sorted())") }
    }

    private func deliverAll(_ lane: Lane) async throws {
        // After a crash a delivery waits.
        let later = Bench.later
        for claim in try await journal.claims(lane, rooms: [.test("r2", 1000)], most: 1000, at: later) {
            let key = claim.delivery.key ?? ""
            guard isAllowed(key) else { throw Unexpected(what: "\(key) was claimed, and is not granted") }
            _ = try await journal.exchange([(claim.delivery.id, .delivered(.test(key)))], for: .none(lane), at: later)
        }
    }
}
