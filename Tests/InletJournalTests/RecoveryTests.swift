import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage
import Testing

/// What a start makes of the claims of a process that died.
struct RecoveryTests {
    /// Claims what is due in the small lane.
    private func claims(_ bench: Bench, at time: WallTime, most: Int = 10) async throws -> [Claim] {
        let wish = ClaimWish(lane: .small, room: .test(), most: most)
        return try await bench.journal.exchange([], for: wish, at: time).claims
    }

    @Test func `a start frees claims uncounted, and delays those that are interrupted again and again`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        for crash in 1..<CrashRule.most {
            let now = Bench.start + .seconds(100 * crash)
            try await bench.hold(at: now) { claim in
                // An upload that is made anew each time is no progress.
                try await bench.journal.checkpoint(claim.delivery.id, ["upload": [UInt8(crash)]])
                let recovery = try await bench.journal.recover(destinations: ["r2"], at: now)
                #expect(recovery.freedClaims == 1 && recovery.crashed.isEmpty)
                let delivery = try await bench.job(id).deliveries[0]
                #expect(delivery.state == .ready && delivery.attempts == 0 && delivery.crashes == crash)
                #expect(delivery.nextAt == now + CrashRule.delay(after: crash, of: delivery.id))
                return .again()
            }
        }
        #expect(try await bench.journal.recover(destinations: ["r2"], at: Bench.start).isEmpty)
    }

    @Test func `one that has ended the process time and again fails, with its checkpoint left to be let go`()
        async throws
    {
        let bench = try Bench()
        let id = try await bench.admit("a")
        var last: Recovery?
        for crash in 1...CrashRule.most {
            let now = Bench.start + .seconds(100 * crash)
            try await bench.hold(at: now) { claim in
                try await bench.journal.checkpoint(claim.delivery.id, ["upload": [1]])
                last = try await bench.journal.recover(destinations: ["r2"], at: now)
                return .again()
            }
        }
        let job = try await bench.job(id)
        #expect(last?.crashed.map(\.job) == [id] && last?.crashed.first?.destination == "r2")
        #expect(job.file.state == .failed && job.deliveries[0].code == .agentCrashed)
        #expect(job.deliveries[0].reason?.contains("\(CrashRule.most) times") == true)
        #expect(try await bench.journal.nextLeftover() != nil)
        try await bench.finishAll()
        #expect(try await bench.journal.retry(id, uptimes: [:], at: Bench.start))
        #expect(try await bench.job(id).deliveries[0].crashes == 0)
        #expect(try await bench.settle(.test(.delivered)) != nil)
    }

    @Test func `what only waited at hand is counted once, and again only when it was begun`() async throws {
        let bench = try Bench()
        for name in ["a", "b", "c"] { _ = try await bench.admit(name, lane: .small) }
        for crash in 1...CrashRule.most {
            let now = Bench.start + .seconds(100 * crash)
            let held = try await claims(bench, at: now)
            #expect(held.count == 3)
            #expect(held.allSatisfy { ($0.delivery.crashes > 0) == (crash > 1) })
            if let first = held.first(where: { $0.file.path == "a" }), crash > 1 {
                try await bench.journal.begin(first.delivery.id)
            }
            let recovery = try await bench.journal.recover(destinations: ["r2"], at: now)
            #expect(recovery.freedClaims == 3 && recovery.crashed.count == (crash == CrashRule.most ? 1 : 0))
        }
        let left = try await claims(bench, at: Bench.start + .seconds(100_000))
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
        let bench = try Bench()
        let id = try await bench.admit("a", lane: .small)
        for _ in 1...2 {
            #expect(try await claims(bench, at: Bench.start).count == 1)
            try SQLiteShell.run(bench.journal.path, "UPDATE delivery SET owner = '\(owner)'")
            #expect(try await bench.journal.recover(destinations: ["r2"], at: Bench.start).freedClaims == 1)
        }
        #expect(try await bench.job(id).deliveries[0].crashes == crashes)
    }

    @Test func `a big delivery counts as begun as soon as it is claimed, and is written so`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        for crash in 1...2 {
            let wish = ClaimWish(lane: .big, room: .test(), most: 1)
            #expect(try await bench.journal.exchange([], for: wish, at: Bench.start).claims.count == 1)
            _ = try await bench.journal.recover(destinations: ["r2"], at: Bench.start)
            #expect(try await bench.job(id).deliveries[0].crashes == crash)
        }
    }

    @Test(arguments: ["part:7", "offset"])
    func `bytes that have arrived take its crashes back`(_ note: String) async throws {
        let bench = try Bench()
        let id = try await bench.admit("a")
        for crash in 1...3 * CrashRule.most {
            let now = Bench.start + .seconds(100 * crash)
            try await bench.hold(at: now) { claim in
                if crash % 3 == 0 { try await bench.journal.checkpoint(claim.delivery.id, [note: [UInt8(crash)]]) }
                #expect(try await bench.journal.recover(destinations: ["r2"], at: now).crashed.isEmpty)
                return .again()
            }
            #expect(try await bench.job(id).deliveries[0].crashes == crash % 3 + (crash < 3 ? 0 : 1))
        }
    }

    @Test func `where the whole machine went down, no crash is counted`() async throws {
        let bench = try Bench()
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
            if counted >= CrashRule.most { break }
            let delivery = try await bench.job(id).deliveries[0]
            #expect(delivery.crashes == counted && delivery.attempts == 0, "run \(run)")
        }
    }

    @Test func `a destination that has taken it up takes its crashes back`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a", lane: .small)
        _ = try await claims(bench, at: Bench.start)
        _ = try await bench.journal.recover(destinations: ["r2"], at: Bench.start)
        #expect(try await bench.job(id).deliveries[0].crashes == 1)
        try await bench.settle(.waiting(until: Bench.start, saying: nil), lane: .small)
        #expect(try await bench.job(id).deliveries[0].crashes == 0)
    }

    @Test func `what waits at the start are the files that may go, oldest first`() async throws {
        let bench = try Bench()
        let first = try await bench.admit("a")
        let second = try await bench.admit("b", to: ["r2", "disk"])
        _ = try await bench.admit("c")
        #expect(try await bench.journal.waitingFiles(limit: 2) == [first, second])
        try await bench.settle(.test(.delivered))
        try await bench.settle(.test(.delivered))
        #expect(try await bench.journal.waitingFiles(limit: 10).first == second)
    }
}
