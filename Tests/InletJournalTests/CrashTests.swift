import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

/// Each child ends itself by SIGKILL right after a call returned; what that call promised must be on the disk.
@Suite(.seated) struct CrashTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.path.appending("journal.sqlite").string
    }

    private static func open(_ path: String) throws -> Journal { try Journal(path: FilePath(path), now: Bench.start) }

    private static func die() { kill(getpid(), SIGKILL) }

    @Test func `what was admitted is there`() async throws {
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let journal = try Self.open(path)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<300 {
                    group.addTask { _ = try await journal.admit(.test("\(number)"), at: Bench.start) }
                }
                try await group.waitForAll()
            }
            Self.die()
        }
        let journal = try Self.open(path)
        defer { journal.close() }
        #expect(try await journal.totals().mapValues(\.files) == [.pending: 300])
        #expect(try await journal.deliveryCounts(.ready) == ["r2": 300])
        #expect(try await journal.admit(.test("7"), at: Bench.start) != .admitted(id: 301))
    }

    @Test func `a claim comes back uncounted, with its checkpoint`() async throws {
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let journal = try Self.open(path)
            _ = try await journal.admit(.test("a"), at: Bench.start)
            _ = try await journal.withClaim(.big, rooms: [.test()], clock: { Bench.start }) { claim in
                try await journal.checkpoint(claim.delivery.id, ["upload": [1, 2]])
                Self.die()
                return (ClaimOutcome.again(), 0)
            }
        }
        let journal = try Self.open(path)
        defer { journal.close() }
        #expect(try await journal.deliveryCounts(.claimed) == ["r2": 1])
        #expect(try await journal.recover(destinations: ["r2"], at: Bench.start).freedClaims == 1)
        _ = try await journal.withClaim(.big, rooms: [.test()], clock: { Bench.start }) { claim in
            #expect(claim.checkpoint == ["upload": [1, 2]] && claim.delivery.attempts == 1)
            return (ClaimOutcome.test(.delivered), 0)
        }
    }

    @Test func `a proof is there once it was settled`() async throws {
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let journal = try Self.open(path)
            _ = try await journal.admit(.test("a"), at: Bench.start)
            try await journal.settle(.test(.delivered))
            Self.die()
        }
        let journal = try Self.open(path)
        defer { journal.close() }
        #expect(try await journal.recover(destinations: ["r2"], at: Bench.start).isEmpty)
        let job = try #require(try await journal.unfinished(at: Bench.start, limit: 9).first)
        #expect(job.file.state == .delivered && job.deliveries[0].proof == .test())
    }

    @Test func `a finished file has its receipt and is not finished again`() async throws {
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let journal = try Self.open(path)
            _ = try await journal.admit(.refused("a"), at: Bench.start)
            let job = try #require(try await journal.unfinished(at: Bench.start, limit: 1).first)
            try await journal.intend(job.file.id, [9])
            _ = try await journal.finish(job.file, disposition: Disposition.deleted, receipt: [1], at: Bench.start)
            Self.die()
        }
        let journal = try Self.open(path)
        defer { journal.close() }
        #expect(try await journal.receipts(limit: 9) == [[1]])
        #expect(try await journal.unfinished(at: Bench.start, limit: 9).isEmpty)
    }

    @Test func `a delivery cancelled while it ran is free after a crash`() async throws {
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let journal = try Self.open(path)
            _ = try await journal.admit(.test("a"), at: Bench.start)
            _ = try await journal.withClaim(.big, rooms: [.test()], clock: { Bench.start }) { claim in
                _ = try await journal.cancel(claim.file.id, at: Bench.start)
                _ = try await journal.retry(claim.file.id, uptimes: [:], at: Bench.start)
                Self.die()
                return (ClaimOutcome.again(), 0)
            }
        }
        let journal = try Self.open(path)
        defer { journal.close() }
        _ = try await journal.recover(destinations: ["r2"], at: Bench.start)
        #expect(try await journal.nextDue(destinations: ["r2"]) == Bench.start)
    }

    @Test func `a file and its companion are there together, or neither is`() async throws {
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let journal = try Self.open(path)
            _ = try await journal.admitSet(.test("clip.mp4", companions: [.test("clip.xmp")]), at: Bench.start)
            Self.die()
        }
        let journal = try Self.open(path)
        defer { journal.close() }
        let jobs = try await journal.jobs(FileFilter())
        #expect(jobs.map(\.file.path) == ["clip.xmp", "clip.mp4"])
        #expect(jobs[0].deliveries.map(\.afterID) == jobs[1].deliveries.map(\.id))
        #expect(jobs[0].deliveries[0].isHeld && !jobs[1].deliveries[0].isHeld)
        #expect(Set(jobs.map(\.file.batchID)).count == 1)
    }

    @Test func `a unit is open after a crash, and whole once it was closed`() async throws {
        for isClosed in [false, true] {
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [path = path as String, isClosed = isClosed as Bool] in
                let journal = try Self.open(path)
                for name in ["a", "b"] {
                    _ = try await journal.admit(.test("gigs/X/\(name)", unit: "gigs/X"), at: Bench.start)
                }
                if isClosed {
                    _ = try await journal.closeUnit(
                        "gigs/X", root: "/in", routes: ["all"], marker: .test("gigs/X/DONE"), uptimes: [:],
                        at: Bench.start)
                }
                Self.die()
            }
            let journal = try Self.open(path)
            defer { journal.close() }
            _ = try await journal.recover(destinations: ["r2"], at: Bench.start)
            #expect(try await journal.openUnits("/in").count == (isClosed ? 0 : 1))
            let deliveries = try await journal.jobs(FileFilter()).flatMap(\.deliveries)
            #expect(deliveries.count == 2 && deliveries.allSatisfy { $0.isHeld == !isClosed })
            #expect(try await journal.totals().values.reduce(0) { $0 + $1.files } == (isClosed ? 3 : 2))
        }
    }
}

/// What a start makes of the claims of a process that died.
struct RecoveryTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    /// Claims what is due in the small lane.
    private func claims(at time: WallTime) async throws -> [Claim] { try await bench.claimAll(lane: .small, at: time) }

    @Test func `a start frees claims uncounted, and delays those that are interrupted again and again`() async throws {
        let id = try await bench.admit("a")
        for crash in 1..<RetryPolicy.mostCrashes {
            let now = Bench.start + .seconds(100 * crash)
            try await bench.hold(at: now) { claim in
                // An upload that is made anew each time is no progress.
                try await bench.journal.checkpoint(claim.delivery.id, ["upload": [UInt8(crash)]])
                let recovery = try await bench.recover(["r2"], at: now)
                #expect(recovery.freedClaims == 1 && recovery.crashed.isEmpty)
                let delivery = try await bench.job(id).deliveries[0]
                #expect(delivery.state == .ready && delivery.attempts == 0 && delivery.crashes == crash)
                #expect(delivery.nextAt == now + RetryPolicy.delay(afterCrashes: crash, of: delivery.id))
                return .again()
            }
        }
        #expect(try await bench.recover(["r2"]).isEmpty)
    }

    @Test
    func `one that has ended the process time and again fails, with its checkpoint left to be let go`() async throws {
        let id = try await bench.admit("a")
        var last: Recovery?
        for crash in 1...RetryPolicy.mostCrashes {
            let now = Bench.start + .seconds(100 * crash)
            try await bench.hold(at: now) { claim in
                try await bench.journal.checkpoint(claim.delivery.id, ["upload": [1]])
                last = try await bench.recover(["r2"], at: now)
                return .again()
            }
        }
        let job = try await bench.job(id)
        #expect(last?.crashed.map(\.job) == [id] && last?.crashed.first?.destination == "r2")
        #expect(job.file.state == .failed && job.deliveries[0].code == .agentCrashed)
        #expect(job.deliveries[0].reason?.contains("\(RetryPolicy.mostCrashes) times") == true)
        #expect(try await bench.journal.nextLeftover() != nil)
        try await bench.finishAll()
        #expect(try await bench.retry(id))
        #expect(try await bench.job(id).deliveries[0].crashes == 0)
        #expect(try await bench.settle(.test(.delivered)) != nil)
    }

    @Test func `what only waited at hand is counted once, and again only when it was begun`() async throws {
        for name in ["a", "b", "c"] { try await bench.admit(name, lane: .small) }
        for crash in 1...RetryPolicy.mostCrashes {
            let now = Bench.start + .seconds(100 * crash)
            let held = try await claims(at: now)
            #expect(held.count == 3)
            #expect(held.allSatisfy { ($0.delivery.crashes > 0) == (crash > 1) })
            if let first = held.first(where: { $0.file.path == "a" }), crash > 1 {
                try await bench.journal.begin(first.delivery.id)
            }
            let recovery = try await bench.recover(["r2"], at: now)
            #expect(recovery.freedClaims == 3 && recovery.crashed.count == (crash == RetryPolicy.mostCrashes ? 1 : 0))
        }
        let left = try await claims(at: Bench.start + .seconds(100_000))
        #expect(left.map(\.delivery.crashes) == [1, 1])
        #expect(left.allSatisfy { $0.file.path != "a" })
    }

    /// Those of the version before that owned big deliveries had begun them.
    @Test(
        .enabled(if: SQLiteShell.isInstalled),
        arguments: [("begun", 2), ("big-0", 2), ("big-stand-in", 2), ("small", 1), ("small-7", 1)])
    func `a start counts as begun what is written as begun, and what a big worker of the version before owned`(
        owner: String, crashes: Int
    ) async throws {
        let id = try await bench.admit("a", lane: .small)
        for _ in 1...2 {
            #expect(try await claims(at: Bench.start).count == 1)
            try SQLiteShell.run(bench.journal.path, "UPDATE delivery SET owner = '\(owner)'")
            #expect(try await bench.recover(["r2"]).freedClaims == 1)
        }
        #expect(try await bench.job(id).deliveries[0].crashes == crashes)
    }

    @Test func `a big delivery counts as begun as soon as it is claimed, and is written so`() async throws {
        let id = try await bench.admit("a")
        for crash in 1...2 {
            #expect(try await bench.exchange(for: ClaimRequest(lane: .big, room: .test(), most: 1)).claims.count == 1)
            try await bench.recover(["r2"])
            #expect(try await bench.job(id).deliveries[0].crashes == crash)
        }
    }

    @Test(arguments: ["part:7", "offset"])
    func `bytes that have arrived take its crashes back`(_ note: String) async throws {
        let id = try await bench.admit("a")
        for crash in 1...3 * RetryPolicy.mostCrashes {
            let now = Bench.start + .seconds(100 * crash)
            try await bench.hold(at: now) { claim in
                if crash % 3 == 0 { try await bench.journal.checkpoint(claim.delivery.id, [note: [UInt8(crash)]]) }
                #expect(try await bench.recover(["r2"], at: now).crashed.isEmpty)
                return .again()
            }
            #expect(try await bench.job(id).deliveries[0].crashes == crash % 3 + (crash < 3 ? 0 : 1))
        }
    }

    @Test func `where the whole machine went down, no crash is counted`() async throws {
        let id = try await bench.admit("a")
        for run in 1...20 as ClosedRange<Int64> {
            try await bench.hold(at: Bench.start + .seconds(100 * run)) { claim in
                // Twice on each run of the machine: first it was started anew, then only the process.
                let recovery = try await bench.journal.recover(
                    destinations: ["r2"], boot: run / 2, at: Bench.start + .seconds(100 * run))
                #expect(recovery.freedClaims == 1)
                return .again()
            }
            let counted = run / 2 + run % 2
            if counted >= RetryPolicy.mostCrashes { break }
            let delivery = try await bench.job(id).deliveries[0]
            #expect(delivery.crashes == counted && delivery.attempts == 0, "run \(run)")
        }
    }

    @Test func `a destination that has taken it up takes its crashes back`() async throws {
        let id = try await bench.admit("a", lane: .small)
        _ = try await claims(at: Bench.start)
        try await bench.recover(["r2"])
        #expect(try await bench.job(id).deliveries[0].crashes == 1)
        try await bench.settle(.waiting(until: Bench.start, saying: nil), lane: .small)
        #expect(try await bench.job(id).deliveries[0].crashes == 0)
    }

    @Test func `what waits at the start are the files that may go, oldest first`() async throws {
        let first = try await bench.admit("a")
        let second = try await bench.admit("b", to: ["r2", "disk"])
        try await bench.admit("c")
        #expect(try await bench.journal.waitingFiles(limit: 2) == [first, second])
        try await bench.settle(.test(.delivered))
        try await bench.settle(.test(.delivered))
        #expect(try await bench.journal.waitingFiles(limit: 10).first == second)
    }
}
