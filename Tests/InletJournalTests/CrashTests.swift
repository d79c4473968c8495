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
                return (Settlement.again(), 0)
            }
        }
        let journal = try Self.open(path)
        defer { journal.close() }
        #expect(try await journal.deliveryCounts(.claimed) == ["r2": 1])
        #expect(try await journal.recover(destinations: ["r2"], at: Bench.start).freedClaims == 1)
        _ = try await journal.withClaim(.big, rooms: [.test()], clock: { Bench.start }) { claim in
            #expect(claim.checkpoint == ["upload": [1, 2]])
            #expect(claim.delivery.attempts == 1)
            return (Settlement.test(.delivered), 0)
        }
    }

    @Test func `a proof is there once it was settled`() async throws {
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let journal = try Self.open(path)
            _ = try await journal.admit(.test("a"), at: Bench.start)
            _ = try await journal.withClaim(.big, rooms: [.test()], clock: { Bench.start }) { _ in
                (Settlement.test(.delivered), 0)
            }
            Self.die()
        }
        let journal = try Self.open(path)
        defer { journal.close() }
        #expect(try await journal.recover(destinations: ["r2"], at: Bench.start).isEmpty)
        let job = try #require(try await journal.unfinished(at: Bench.start, limit: 9).first)
        #expect(job.file.state == .delivered)
        #expect(job.deliveries[0].proof == .test())
    }

    @Test func `a finished file has its receipt and is not finished again`() async throws {
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let journal = try Self.open(path)
            _ = try await journal.admit(.refused("a"), at: Bench.start)
            let job = try #require(try await journal.unfinished(at: Bench.start, limit: 1).first)
            try await journal.intend(job.file.id, [9])
            _ = try await journal.finish(
                job.file, disposition: Disposition.deleted, receipt: [1], at: Bench.start)
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
                return (Settlement.again(), 0)
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
            let companion = CompanionAdmission(
                .test("clip.xmp"), Companion(path: "clip.xmp", kind: .sameStem, ending: "xmp"), category: "other",
                mediaType: "text/plain", lanes: ["r2": .big])
            var admission = FileAdmission.test("clip.mp4")
            admission.companions = [companion]
            _ = try await journal.admitSet(admission, at: Bench.start)
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
                    var admission = FileAdmission.test("gigs/X/\(name)")
                    admission.unit = "gigs/X"
                    _ = try await journal.admit(admission, at: Bench.start)
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
