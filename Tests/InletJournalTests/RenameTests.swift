import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage
import Testing

/// The same inode under another path; a rename changes ctime.
@Suite(.seated) struct RenameTests {
    private static let moved = FileIdentity.test(changed: 2)

    private func renamed(
        _ bench: Bench, to identity: FileIdentity = moved, _ path: String = "b.txt"
    ) async throws -> RenamedFile? {
        try await bench.journal.renamed(from: "a.txt", to: .test(path, identity))
    }

    private func plan(_ key: String) -> Plan {
        var plan = Plan(
            route: "all", category: "images", key: key, mediaType: "image/png", with: ["label": key],
            destinations: ["r2"])
        plan.labels = ["event": key]
        return plan
    }

    @Test func `a file that waits goes on under its new path, and with its new key`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a.txt", to: ["r2", "s3"])
        let found = try #require(try await renamed(bench))
        #expect(found.file.id == id && found.isUntold)
        #expect(try await bench.journal.rename(found, to: .test("b.txt", Self.moved), plan: plan("b.txt")))
        let job = try await bench.job(id)
        #expect(job.file.path == "b.txt" && job.file.identity == Self.moved && job.file.state == .pending)
        #expect(job.file.category == "images" && job.file.mediaType == "image/png")
        #expect(job.file.labels == ["event": "b.txt"])
        #expect(job.deliveries.map(\.key) == ["b.txt", "b.txt"])
        #expect(job.deliveries.map(\.fields) == [["label": "b.txt"], ["label": "b.txt"]])
        let answers = try await bench.journal.recall([.test("b.txt", Self.moved), .test("a.txt")], tolerance: 0)
        #expect(answers == [.known, .new])
        #expect(try await bench.settle(.test(.delivered))?.key == "b.txt")
    }

    @Test func `the key that it gave up is free, and one that is taken gets a number`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a.txt")
        _ = try await bench.admit("c.txt", .test(inode: 3), key: "b.txt")
        let found = try #require(try await renamed(bench))
        #expect(try await bench.journal.rename(found, to: .test("b.txt", Self.moved), plan: plan("b.txt")))
        #expect(try await bench.job(found.file.id).deliveries.map(\.key) == ["b_2.txt"])
        let next = try await bench.admit("d.txt", .test(inode: 4), key: "a.txt")
        #expect(try await bench.job(next).deliveries.map(\.key) == ["a.txt"])
    }

    @Test func `one that a destination has heard of keeps its key, but not while it is being sent`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a.txt")
        try await bench.hold { _ in
            let found = try #require(try await renamed(bench))
            #expect(!found.isUntold)
            #expect(try await !bench.journal.rename(found, to: .test("b.txt", Self.moved), plan: nil))
            return .again()
        }
        let found = try #require(try await renamed(bench))
        #expect(!found.isUntold)
        #expect(try await bench.journal.rename(found, to: .test("b.txt", Self.moved), plan: plan("b.txt")))
        let job = try await bench.job(id)
        #expect(job.file.path == "b.txt" && job.deliveries.map(\.key) == ["a.txt"])
    }

    @Test func `one that has arrived is known under its new path`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a.txt")
        try await bench.settle(.test(.delivered))
        try await bench.finishAll()
        let found = try #require(try await renamed(bench))
        #expect(try await bench.journal.rename(found, to: .test("b.txt", Self.moved), plan: nil))
        let job = try await bench.job(id)
        #expect(job.file.path == "b.txt" && job.file.state == .delivered && job.deliveries.map(\.key) == ["a.txt"])
        #expect(try await bench.journal.recall([.test("b.txt", Self.moved)], tolerance: 0) == [.known])
    }

    @Test(arguments: [
        FileIdentity.test(size: 11, changed: 2), .test(modified: 2, changed: 2), .test(changed: 2, inode: 2),
        .test(changed: 2, device: 2),
    ])
    func `an inode that was used again is another file`(identity: FileIdentity) async throws {
        let bench = try Bench()
        _ = try await bench.admit("a.txt")
        #expect(try await renamed(bench, to: identity) == nil)
    }

    @Test(arguments: [DeliveryState.failed, .expired, .cancelled, .gone, .superseded])
    func `what did not arrive is tried anew under its new name`(end: DeliveryState) async throws {
        let bench = try Bench()
        _ = try await bench.admit("a.txt")
        try await bench.settle(.test(end))
        #expect(try await renamed(bench) == nil)
    }

    @Test func `what we took away ourselves is new wherever it is put`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a.txt")
        try await bench.settle(.test(.delivered))
        try await bench.finishAll(Disposition.archived("/in/.inlet/done/a.txt"))
        #expect(try await renamed(bench) == nil)
    }

    @Test func `a path that the journal knows is judged by what it knows of it`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a.txt")
        _ = try await bench.admit("b.txt", .test(inode: 2))
        #expect(try await renamed(bench) == nil)
    }

    @Test func `a file that changed hands meanwhile is not renamed`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a.txt")
        let found = try #require(try await renamed(bench))
        try await bench.settle(.test(.delivered))
        #expect(try await !bench.journal.rename(found, to: .test("b.txt", Self.moved), plan: plan("b.txt")))
        #expect(try await bench.job(found.file.id).file.path == "a.txt")
    }
}
