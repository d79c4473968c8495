import InletCore
import InletJournal
import InletLinux
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage

@testable import InletAgent

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

/// A journal, a board of destinations and the rules of attempts, driven through virtual time by a loop instead of services,
/// against a server that is there at some times and not at others.
struct OutageSimulation {
    /// When the server is away, in seconds from the start.
    private let outages: [Range<Int64>]
    /// When the process is killed and started again, in seconds from the start; ascending.
    private var restarts: [Int64]
    private let time = VirtualTime()
    private let log: EventLog
    private let directory: TemporaryDirectory
    private var journal: Journal
    private var board: DestinationBoard
    private var random: SeededGenerator
    /// When probes began since the last start.
    private var probes: [WallTime] = []

    /// The most probes that any 60 s had within one run of the agent.
    private(set) var mostProbesAMinute = 0
    private(set) var probeCount = 0
    private(set) var deliveries: [Int64: Int] = [:]
    /// Attempts that met an outage.
    private(set) var failures = 0

    /// What a group of deliveries takes.
    private static let turn = Duration.seconds(20)

    init(outages: [Range<Int64>], restarts: [Int64], files: Int, seed: UInt64) async throws {
        self.outages = outages
        self.restarts = restarts
        random = SeededGenerator(seed: seed)
        directory = try TemporaryDirectory()
        log = try EventLog(nil)
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: VirtualTime.start)
        self.journal = journal
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<files { group.addTask { try await Self.admit(number, to: journal) } }
            try await group.waitForAll()
        }
        board = try await Self.board(journal, log, time)
    }

    func close() { journal.close() }

    /// With one attempt and two hours to live: nothing of an outage may count.
    private static func admit(_ number: Int, to journal: Journal) async throws {
        let identity = FileIdentity(size: 1, modified: 1, changed: 1, inode: UInt64(number), device: 1)
        let plan = Plan(
            route: "all", category: "other", key: "\(number)", mediaType: "text/plain", destinations: ["here"],
            retry: RetryPolicy(attempts: 1, expire: .seconds(7200)))
        let admission = Admission(
            Arrival(root: "/in", path: FilePath("\(number)"), identity: identity), plan: plan,
            lanes: ["here": .small], uptimes: ["here": 0])
        _ = try await journal.admit(admission, at: VirtualTime.start)
    }

    private static func board(
        _ journal: Journal, _ log: EventLog, _ time: VirtualTime
    ) async throws -> DestinationBoard {
        DestinationBoard(
            [.scripted("here", ScriptedPipeline())], paused: [], uptimes: try await journal.uptimes(), workers: 1,
            log: log, unproved: try await Agent.waitingFor(journal), clock: time.clock)
    }

    /// Runs until nothing waits any more, or `end` is reached, in seconds.
    mutating func run(until end: Int64) async throws {
        while seconds < end {
            let claims = try await turn()
            if let restart = restarts.first, seconds >= restart {
                restarts.removeFirst()
                try await self.restart()
                continue
            }
            try await settle(claims)
            let due = try await journal.nextDue(.small, rooms: board.rooms())
            guard let next = [due, board.nextLook()].compactMap(\.self).min() else {
                if try await Agent.waitingFor(journal).isEmpty { return }
                continue
            }
            time.advance(to: max(next, time.now + .milliseconds(1)))
        }
    }

    private var seconds: Int64 { (time.now - VirtualTime.start).components.seconds }

    private func isAway(at time: Int64) -> Bool { outages.contains { $0.contains(time) } }

    /// Probes and claims what is due; what was claimed takes its time.
    private mutating func turn() async throws -> [Claim] {
        _ = board.reopen()
        for destination in board.dueProbes() { probe(destination.name) }
        let rooms = board.rooms()
        if rooms.isEmpty { return [] }
        let wish = ClaimWish(lane: .small, rooms: rooms, most: 8, owner: "small")
        let claims = try await journal.exchange([], for: wish, at: time.now).claims
        if !claims.isEmpty { time.advance(to: time.now + Self.turn) }
        for (name, uptime) in board.runningUptimes() {
            let expired = try await journal.setUptime(name, uptime, at: time.now)
            if !expired.isEmpty { throw Expired() }
        }
        return claims
    }

    struct Expired: Error {}

    private mutating func probe(_ name: String) {
        let now = time.now
        probes.append(now)
        probeCount += 1
        mostProbesAMinute = max(mostProbesAMinute, probes.reversed().prefix { now - $0 < .seconds(60) }.count)
        board.report(name, .probeBegan)
        board.report(name, isAway(at: seconds) ? .probeFailed(credentials: false) : .probeSucceeded)
    }

    private mutating func settle(_ claims: [Claim]) async throws {
        let isAway = isAway(at: seconds)
        var ended: [EndedClaim] = []
        for claim in claims { ended.append(EndedClaim(claim, isAway ? failed(claim) : delivered(claim))) }
        if ended.isEmpty { return }
        let nothing = ClaimWish(lane: .small, rooms: [], most: 0, owner: "")
        _ = try await journal.exchange(ended, for: nothing, at: time.now)
    }

    private mutating func delivered(_ claim: Claim) -> Settlement {
        deliveries[claim.file.id, default: 0] += 1
        board.report("here", .delivered(file: claim.file.id))
        return .delivered(Proof(key: claim.delivery.key ?? "", size: 1, method: .size))
    }

    private mutating func failed(_ claim: Claim) -> Settlement {
        failures += 1
        let errors: [DeliveryError] = [
            .outage, .gateway, DeliveryError(.outage(after: nil), .stalled, "no byte moved"),
        ]
        let error = errors.randomElement(using: &random) ?? .outage
        let ref = AgentEvent.JobRef(
            job: claim.file.id, delivery: claim.delivery.id, path: claim.file.fullPath, route: "all",
            destination: "here")
        let judge = AttemptJudge(
            ref: ref, file: claim.file, attempt: claim.delivery.attempts, isStopping: false, clock: time.clock)
        let isFilesFault =
            judge.breakerEvent(error).map {
                board.blames(file: "here", $0, reason: error.reason, code: error.code)
            } ?? false
        return judge.failed(judge.weighed(error, isFilesFault: isFilesFault)).0
    }

    /// The process is killed, with its claims, and started again.
    private mutating func restart() async throws {
        let before = try await journal.uptimes()
        journal.close()
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: time.now)
        _ = try await journal.recover(destinations: ["here"], at: time.now)
        if try await journal.uptimes() != before { throw Expired() }
        board = try await Self.board(journal, log, time)
        probes = []
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
