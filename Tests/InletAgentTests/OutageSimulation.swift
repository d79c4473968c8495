import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

/// A journal, a board of destinations and the rules of attempts, driven through virtual time by a loop instead of services,
/// against a server that is there at some times and not at others, "here", and one that always is, "there".
struct OutageSimulation {
    /// When the server is away, in seconds from the start.
    private let outages: [Range<Int64>]
    /// When the process is killed and started again, in seconds from the start; ascending.
    private var restarts: [Int64]
    /// When a file for both comes, in seconds from the start; ascending.
    private var arrivals: [Int64]
    private let time = VirtualTime()
    private let log: EventLog
    private let directory: TemporaryDirectory
    private var journal: Journal
    private var board: DestinationRegistry
    private var random: SeededGenerator
    private var admitted = 0
    /// The expiry clocks as they were written last.
    private var written: [String: Int64] = [:]

    /// Probes of "here".
    private(set) var probes = MinuteCount()
    /// Probes of "here" and deliveries to it while it is away.
    private(set) var contacts = MinuteCount()
    /// How often each delivery arrived.
    private(set) var deliveries: [Int64: Int] = [:]
    /// How long each file was on its way "there", in its order.
    private(set) var waits: [Duration] = []
    /// Attempts that met an outage.
    private(set) var failures = 0

    /// What a group of deliveries takes: "here" is far.
    private static func turn(_ claims: [Claim]) -> Duration {
        claims.contains { $0.delivery.destination == "here" } ? .seconds(20) : .seconds(1)
    }

    /// - Parameters:
    ///   - files: are there at first, for "here" alone.
    ///   - arrivals: when others come, for both.
    init(
        outages: [Range<Int64>], restarts: [Int64], files: Int, arrivals: [Int64], seed: UInt64
    ) async throws {
        self.outages = outages
        self.restarts = restarts
        self.arrivals = arrivals
        random = SeededGenerator(seed: seed)
        directory = try TemporaryDirectory.inMemory()
        log = try EventLog(nil)
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: VirtualTime.start)
        self.journal = journal
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<files {
                group.addTask { _ = try await Self.admit(number, ["here": 0], to: journal, at: VirtualTime.start) }
            }
            try await group.waitForAll()
        }
        admitted = files
        board = try await Self.board(journal, log, time)
    }

    func close() { journal.close() }

    /// With one attempt and two hours to live: nothing of an outage may count.
    ///
    /// - Parameter uptimes: the expiry clocks of its destinations.
    private static func admit(
        _ number: Int, _ uptimes: [String: Int64], to journal: Journal, at now: WallTime
    ) async throws {
        let identity = FileIdentity(size: 1, modified: 1, changed: 1, inode: UInt64(number), device: 1)
        let plan = Plan(
            route: "all", category: "other", key: "\(number)", mediaType: "text/plain",
            destinations: uptimes.keys.sorted(),
            retry: RetryPolicy(attempts: 1, expire: .seconds(7200)))
        let admission = FileAdmission(
            FoundFile(root: "/in", path: FilePath("\(number)"), identity: identity), plan: plan,
            lanes: uptimes.mapValues { _ in .small }, uptimes: uptimes)
        _ = try await journal.admit(admission, at: now)
    }

    /// Admits what has come by now.
    private mutating func arrive() async throws {
        while let next = arrivals.first, next <= seconds {
            arrivals.removeFirst()
            // Its time of arrival, from which its wait is counted.
            let time = VirtualTime.start + .seconds(next)
            try await Self.admit(admitted, board.uptimes(), to: journal, at: time)
            admitted += 1
        }
    }

    private static func board(
        _ journal: Journal, _ log: EventLog, _ time: VirtualTime
    ) async throws -> DestinationRegistry {
        DestinationRegistry(
            [.scripted("here", ScriptedPipeline()), .scripted("there", ScriptedPipeline())], paused: [],
            uptimes: try await journal.uptimes(), workers: 1, log: log,
            unproved: try await journal.awaited(), clock: time.clock)
    }

    /// Runs until nothing waits any more, or `end` is reached, in seconds.
    mutating func run(until end: Int64) async throws {
        while seconds < end {
            try await arrive()
            let claims = try await turn()
            if let restart = restarts.first, seconds >= restart {
                restarts.removeFirst()
                try await self.restart()
                continue
            }
            try await settle(claims)
            let due = try await journal.nextDue(.small, rooms: board.rooms())
            let arrival = arrivals.first.map { VirtualTime.start + .seconds($0) }
            guard let next = [due, board.nextLook(), arrival].compactMap(\.self).min() else {
                if try await journal.awaited().isEmpty { return }
                continue
            }
            time.advance(to: max(next, time.now + .milliseconds(1)))
        }
    }

    private var seconds: Int64 { (time.now - VirtualTime.start).components.seconds }

    private func isAway(_ name: String) -> Bool {
        let seconds = seconds
        return name == "here" && outages.contains { $0.contains(seconds) }
    }

    /// Probes and claims what is due; what was claimed takes its time.
    private mutating func turn() async throws -> [Claim] {
        _ = board.reopen()
        for destination in board.dueProbes() { probe(destination.name) }
        let rooms = board.rooms()
        if rooms.isEmpty { return [] }
        let claims = try await journal.claims(.small, rooms: rooms, most: 16, at: time.now)
        if !claims.isEmpty { time.advance(to: time.now + Self.turn(claims)) }
        for (name, uptime) in board.runningUptimes() {
            // Where nothing is sent, now and then will do.
            guard !claims.isEmpty || uptime >= written[name, default: 0] + 600_000 else { continue }
            written[name] = uptime
            let expired = try await journal.setUptime(name, uptime, at: time.now)
            if !expired.isEmpty { throw Expired() }
        }
        return claims
    }

    struct Expired: Error {}

    private mutating func probe(_ name: String) {
        let isAway = isAway(name)
        if name == "here" { probes.add(time.now) }
        if isAway { contacts.add(time.now) }
        board.report(name, .probeBegan)
        board.report(name, isAway ? .probeFailed(credentials: false) : .probeSucceeded)
    }

    private mutating func settle(_ claims: [Claim]) async throws {
        var ended: [EndedClaim] = []
        for claim in claims {
            let isAway = isAway(claim.delivery.destination)
            ended.append((claim.delivery.id, isAway ? failed(claim) : delivered(claim)))
        }
        if ended.isEmpty { return }
        let nothing = ClaimRequest.none(.small)
        _ = try await journal.exchange(ended, for: nothing, at: time.now)
    }

    private mutating func delivered(_ claim: Claim) -> ClaimOutcome {
        let name = claim.delivery.destination
        deliveries[claim.delivery.id, default: 0] += 1
        if name == "there" { waits.append(time.now - claim.file.admittedAt) }
        board.report(name, .delivered(file: claim.file.id))
        return .delivered(Proof(key: claim.delivery.key ?? "", size: 1, method: .size))
    }

    private mutating func failed(_ claim: Claim) -> ClaimOutcome {
        failures += 1
        contacts.add(time.now)
        let errors: [DeliveryError] = [
            .outage, .gateway, DeliveryError(.outage(after: nil), .stalled, "no byte moved"),
        ]
        let error = errors.randomElement(using: &random) ?? .outage
        let ref = AgentEvent.JobRef(
            job: claim.file.id, delivery: claim.delivery.id, path: claim.file.fullPath, route: "all",
            destination: "here")
        let attempt = FailedAttempt(
            file: claim.file.id, number: claim.delivery.attempts, policy: claim.file.policy.retry, time: time.now)
        let decision = FailureClassifier.classify(error, attempt, using: &random) { event, error in
            board.report("here", event, reason: error.reason, code: error.code).action
        }
        return decision.outcome(ref, claim.file, attempt: claim.delivery.attempts, at: time.now).0
    }

    /// The process is killed, with its claims, and started again.
    private mutating func restart() async throws {
        let before = try await journal.uptimes()
        journal.close()
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: time.now)
        _ = try await journal.recover(destinations: ["here", "there"], at: time.now)
        if try await journal.uptimes() != before { throw Expired() }
        board = try await Self.board(journal, log, time)
        written = try await journal.uptimes()
        probes.forgetTimes()
        contacts.forgetTimes()
    }

    /// How many files are in each state, and the attempts of all deliveries.
    func result() async throws -> (states: [FileState: Int], attempts: Set<Int>) {
        let jobs = try await journal.jobs(FileFilter(limit: 100_000))
        return (
            try await journal.totals().mapValues(\.files),
            Set(jobs.flatMap(\.deliveries).map(\.attempts))
        )
    }
}

/// Both clocks of an agent, turned by hand.
final class VirtualTime: Sendable {
    static let start = WallTime(milliseconds: 1_900_000_000_000)
    private let passed = Mutex<Duration>(.zero)
    private let first = SuspendingClock.now

    var now: WallTime { passed.withLock { Self.start + $0 } }
    var clock: AgentClock {
        AgentClock(now: { self.now }, instant: { self.first.advanced(by: self.passed.withLock(\.self)) })
    }

    func advance(to time: WallTime) { passed.withLock { $0 = max($0, time - Self.start) } }
}

/// Moments, and the most of them that any 60 s had within one run of the agent.
struct MinuteCount {
    private(set) var count = 0
    private(set) var most = 0
    private var times: [WallTime] = []

    mutating func add(_ time: WallTime) {
        count += 1
        times.append(time)
        most = max(most, times.reversed().prefix { time - $0 < .seconds(60) }.count)
    }

    mutating func forgetTimes() { times = [] }
}

@Suite struct OutageSimulationTests {
    private static let day: Int64 = 86_400

    /// A server that comes and goes, then is away for a day, comes and goes, is away for a week, and is then there for good.
    private func outages(_ random: inout SeededGenerator) -> [Range<Int64>] {
        var outages: [Range<Int64>] = []
        var time: Int64 = 0
        for long in [Self.day, 7 * Self.day] {
            for _ in 0..<3 {
                time += Int64.random(in: 60...400, using: &random)
                let length = Int64.random(in: 200...3000, using: &random)
                outages.append(time..<time + length)
                time += length
            }
            time += Int64.random(in: 60...400, using: &random)
            outages.append(time..<time + long)
            time += long
        }
        return outages
    }

    /// Every few minutes in the day, every half hour or so in the week.
    private func arrivals(_ outages: [Range<Int64>], _ random: inout SeededGenerator) -> [Int64] {
        outages.filter { $0.count >= Self.day }.flatMap { outage in
            let pauses: ClosedRange<Int64> = outage.count == Int(Self.day) ? 120...300 : 1200...3600
            var times: [Int64] = []
            // Later than anything that was under way when it began.
            var time = outage.lowerBound + 600
            while time < outage.upperBound {
                times.append(time)
                time += Int64.random(in: pauses, using: &random)
            }
            return times
        }
    }

    @Test(arguments: Load.of([1, 2, 3] as [UInt64]))
    func `after a day and a week of outage every file is delivered once, no minute had two probes, and others go on`(
        _ seed: UInt64
    ) async throws {
        let files = 1000
        var random = SeededGenerator(seed: seed)
        let outages = outages(&random)
        let arrivals = arrivals(outages, &random)
        let restarts = outages.map { ($0.lowerBound + $0.upperBound) / 2 } + outages.map { $0.upperBound + 30 }
        var simulation = try await OutageSimulation(
            outages: outages, restarts: restarts.sorted(), files: files, arrivals: arrivals, seed: seed)
        defer { simulation.close() }
        try await simulation.run(until: 20 * Self.day)
        let (states, attempts) = try await simulation.result()
        #expect(arrivals.count > 400)
        #expect(states == [.delivered: files + arrivals.count])
        #expect(attempts == [1])
        #expect(simulation.deliveries.count == files + 2 * arrivals.count)
        #expect(simulation.deliveries.values.allSatisfy { $0 == 1 })
        // The one that is there has each of its files at once, whatever the other does.
        #expect(simulation.waits.count == arrivals.count)
        #expect(simulation.waits.allSatisfy { $0 <= .seconds(60) }, "\(String(describing: simulation.waits.max()))")
        #expect(simulation.failures > 0)
        #expect(simulation.probes.most == 1)
        // One a minute in the day and in the week, and not much more.
        let minutes = outages.reduce(0) { $0 + $1.count } / 60
        #expect(simulation.probes.count > minutes - 100 && simulation.probes.count <= minutes + 100)
        // All that it hears of us: its eight connections fail once, then a try and a probe, then a probe a minute.
        #expect(simulation.contacts.most <= 10)
        #expect(simulation.contacts.count <= minutes + 10 * (outages.count + restarts.count))
    }
}
