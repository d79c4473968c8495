import InletCore
import InletJournalSupport
import SystemPackage
import Testing

@testable import InletJournal

@Suite(.seated) struct AdmissionTests {
    @Test func `the same file is admitted once, however often it is offered`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a.txt")
        for _ in 0..<3 {
            #expect(try await bench.journal.admit(.test("a.txt"), at: Bench.start) == .known(id: id))
        }
        let outcomes = try await withThrowingTaskGroup(of: AdmissionOutcome.self) { group in
            for _ in 0..<50 { group.addTask { try await bench.journal.admit(.test("b.txt"), at: Bench.start) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        let admitted = outcomes.filter { if case .admitted = $0 { true } else { false } }
        #expect(admitted.count == 1)
        let totals = try await bench.journal.totals()
        #expect(totals.mapValues(\.files) == [.pending: 2])
        #expect(totals.mapValues(\.bytes) == [.pending: 20])
    }

    @Test func `what is admitted is what is read back`() async throws {
        let bench = try Bench()
        let name = FilePath(bytes: [0xFF, 0x0A, 0x62])
        let identity = FileIdentity(size: .max, modified: .min, changed: -1, inode: .max, device: 1 << 63)
        let plan = Plan(
            route: "all", category: "image", key: "k", mediaType: "image/png", with: ["site": "north"],
            destinations: ["r2", "disk"], onSuccess: .delete, onFailure: .quarantine,
            retry: RetryPolicy(attempts: 7, expire: .seconds(5)))
        let admission = FileAdmission(
            Arrival(root: "/in", path: name, identity: identity), plan: plan, lanes: ["r2": .small],
            uptimes: ["r2": 100])
        guard case .admitted(let id) = try await bench.journal.admit(admission, at: Bench.start) else {
            Issue.record("not admitted")
            return
        }
        let job = try await bench.job(id)
        #expect(job.file.path.bytes == name.bytes)
        #expect(job.file.identity == identity)
        #expect(job.file.policy == FilePolicy(onSuccess: .delete, onFailure: .quarantine, retry: plan.retry))
        #expect(job.file.mediaType == "image/png")
        #expect(job.file.category == "image")
        #expect(job.deliveries.map(\.destination) == ["r2", "disk"])
        #expect(job.deliveries.map(\.fields) == [plan.with, plan.with])
        #expect(job.deliveries.map(\.expiresAt) == [5100, 5000])
    }

    @Test func `changed content supersedes a waiting one and takes its key over`() async throws {
        let bench = try Bench()
        let old = try await bench.admit("a.txt", to: ["r2", "disk"])
        let new = try await bench.admit("a.txt", .test(size: 11), to: ["r2", "disk"])
        let before = try await bench.job(old)
        #expect(before.file.state == .superseded)
        #expect(before.deliveries.map(\.key) == [nil, nil])
        #expect(try await bench.job(new).deliveries.map(\.key) == ["a.txt", "a.txt"])
    }

    @Test func `an attempt that left something keeps its key from the new content`() async throws {
        let bench = try Bench()
        let old = try await bench.admit("a.txt")
        try await bench.hold { claim in
            try await bench.journal.checkpoint(claim.delivery.id, ["upload": [], "completing": []])
            return .again()
        }
        let new = try await bench.admit("a.txt", .test(size: 11))
        #expect(try await bench.job(old).deliveries[0].key == "a.txt")
        #expect(try await bench.job(new).deliveries[0].key == "a_2.txt")
        #expect(try await bench.journal.leftovers(at: Bench.start, limit: 9).map(\.file.id) == [old])
    }

    @Test func `changed content waits while a worker has the old one`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a.txt")
        try await bench.hold { _ in
            let outcome = try await bench.journal.admit(.test("a.txt", .test(size: 11)), at: Bench.start)
            #expect(outcome == .busy(id: id))
            return .test(.delivered)
        }
        _ = try await bench.admit("a.txt", .test(size: 11))
        #expect(try await bench.job(id).file.state == .delivered)
    }

    @Test func `two hundred files of one name have two hundred keys per destination`() async throws {
        let bench = try Bench()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask { _ = try await bench.admit("\(number).jpg", to: ["r2", "disk"], key: "x.jpg") }
            }
            try await group.waitForAll()
        }
        let jobs = try await bench.journal.jobs(FileFilter(limit: 500))
        let wanted = Set(["x.jpg"] + (2...200).map { "x_\($0).jpg" })
        for destination in ["r2", "disk"] {
            let keys = jobs.flatMap(\.deliveries).filter { $0.destination == destination }.compactMap(\.key)
            #expect(keys.count == 200)
            #expect(Set(keys) == wanted)
        }
    }

    @Test func `a numbered key avoids a file that is called so itself`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("x_2.jpg")
        _ = try await bench.admit("x.jpg")
        let third = try await bench.admit("other.jpg", key: "x.jpg")
        #expect(try await bench.job(third).deliveries[0].key == "x_3.jpg")
        let elsewhere = try await bench.admit("third.jpg", to: ["disk"], key: "x.jpg")
        #expect(try await bench.job(elsewhere).deliveries[0].key == "x.jpg")
    }

    @Test func `a rejected file has no deliveries and its reason on record`() async throws {
        let bench = try Bench()
        guard case .rejected(let id) = try await bench.journal.admit(.refused("a.exe"), at: Bench.start) else {
            Issue.record("not rejected")
            return
        }
        let job = try await bench.job(id)
        #expect(job.file.state == .rejected)
        #expect(job.file.code == .rejected)
        #expect(job.file.reason == "too large")
        #expect(job.deliveries.isEmpty)
        #expect(try await bench.journal.admit(.refused("a.exe"), at: Bench.start) == .known(id: id))
        #expect(try await bench.journal.unfinished(at: Bench.start, limit: 9).map(\.file.id) == [id])
    }

    @Test func `sent anew, a known file is a new row beside the old one, and twice at once one row`() async throws {
        let bench = try Bench()
        let first = try await bench.admit("a.txt")
        var again = FileAdmission.test("a.txt")
        again.newerThan = 0
        #expect(try await bench.journal.admit(again, at: Bench.start) == .known(id: first))
        try await bench.settle(.test(.delivered))
        #expect(try await bench.journal.admit(again, at: Bench.start) == .known(id: first))
        again.newerThan = first
        guard case .admitted(let second) = try await bench.journal.admit(again, at: Bench.start) else {
            Issue.record("not admitted")
            return
        }
        #expect(first != second)
        #expect(try await bench.job(first).file.state == .delivered)
        #expect(try await bench.job(second).deliveries[0].key == "a_2.txt")
    }

    @Test func `sequence numbers never repeat, not even after reopening`() async throws {
        let bench = try Bench()
        let numbers = try await withThrowingTaskGroup(of: Int64.self) { group in
            for _ in 0..<100 { group.addTask { try await bench.journal.nextSequence() } }
            return try await group.reduce(into: [Int64]()) { $0.append($1) }
        }
        #expect(numbers.sorted() == Array(1...100))
        bench.journal.close()
        let reopened = try Journal(path: bench.journal.path, now: Bench.start)
        #expect(try await reopened.nextSequence() == 101)
    }

    @Test func `a root keeps the time of its first sight`() async throws {
        let bench = try Bench()
        let later = Bench.start + .seconds(60)
        #expect(try await bench.journal.firstSeen(root: "/in", now: Bench.start) == Bench.start)
        #expect(try await bench.journal.firstSeen(root: "/in", now: later) == Bench.start)
        #expect(try await bench.journal.firstSeen(root: "/other", now: later) == later)
    }
}
