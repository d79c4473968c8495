import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage
import Testing

@Suite(.seated) struct RecallTests {
    private func recall(_ bench: Bench, _ identity: FileIdentity, tolerance: Int64 = 0) async throws -> KnownFile {
        let answers = try await bench.journal.recall([.test("a.txt", identity)], tolerance: tolerance)
        return try #require(answers.first)
    }

    @Test func `a file that was never seen is new`() async throws {
        let bench = try Bench()
        #expect(try await recall(bench, .test()) == .new)
    }

    @Test func `the same file is known, and the answers keep the order of the questions`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a.txt")
        _ = try await bench.admit("c.txt")
        let answers = try await bench.journal.recall([.test("c.txt"), .test("b.txt"), .test("a.txt")], tolerance: 0)
        #expect(answers == [.known, .new, .known])
    }

    @Test func `of files that may belong together the newest row is told, and whether it is of what is there`()
        async throws
    {
        let bench = try Bench()
        let (first, second) = (try await bench.admit("a.txt"), try await bench.admit("b.txt"))
        let answers = try await bench.journal.newest(
            "/in",
            [
                ("a.txt", .test()), ("b.txt", .test(size: 11)), ("a.txt", .test(changed: 2)), ("b.txt", nil),
                ("c.txt", .test()),
            ],
            volume: nil, tolerance: 0)
        #expect(answers.map { $0?.row.id } == [first, second, first, second, nil])
        #expect(answers.map { $0?.isKnown } == [true, false, true, false, nil])
    }

    @Test(arguments: [
        FileIdentity.test(changed: 2), .test(inode: 2), .test(device: 2), .test(changed: 9, inode: 9, device: 9),
    ])
    func `a file that was only touched is compared by content`(identity: FileIdentity) async throws {
        let bench = try Bench()
        let id = try await bench.admit("a.txt")
        guard case .touched(let row) = try await recall(bench, identity) else {
            Issue.record("not touched")
            return
        }
        #expect(row.id == id)
        try await bench.journal.refresh(row, identity: identity, at: Bench.start)
        #expect(try await recall(bench, identity) == .known)
    }

    @Test(arguments: [FileIdentity.test(size: 11), .test(modified: 2)])
    func `other size or time is another file`(identity: FileIdentity) async throws {
        let bench = try Bench()
        _ = try await bench.admit("a.txt")
        #expect(try await recall(bench, identity) == .new)
    }

    @Test func `a coarse clock is given its tolerance and no more`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a.txt", .test(modified: 0))
        if case .new = try await recall(bench, .test(modified: 2_000_000_000), tolerance: 2_000_000_000) {
            Issue.record("within the tolerance, yet new")
        }
        #expect(try await recall(bench, .test(modified: 2_000_000_001), tolerance: 2_000_000_000) == .new)
    }

    @Test func `a running delivery keeps the identity that it began with`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a.txt")
        try await bench.hold { _ in
            try await bench.journal.refresh(try await bench.job(id).file, identity: .test(changed: 5), at: Bench.start)
            return .again()
        }
        #expect(try await bench.job(id).file.identity == .test())
    }

    @Test func `what was judged before a delivery of it ended is not taken note of`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a.txt")
        let seen = try await bench.job(id).file
        try await bench.settle(.test(.delivered))
        let touch = try await bench.journal.refresh(seen, identity: .test(inode: 5), at: Bench.start)
        #expect(touch.isOutdated && !touch.isNoted)
        #expect(try await bench.job(id).file.identity == .test())
    }

    @Test func `nor what was judged before one of several destinations proved the content`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a.txt", to: ["r2", "disk"])
        let seen = try await bench.job(id).file
        try await bench.settle(.test(.delivered), of: "disk")
        #expect(try await bench.job(id).file.state == seen.state)
        let touch = try await bench.journal.refresh(seen, identity: .test(changed: 5), at: Bench.start)
        #expect(touch.isOutdated && !touch.isNoted)
    }

    @Test func `what was sent in part keeps the identity that its first part was read with`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a.txt")
        try await bench.hold { claim in
            try await bench.journal.checkpoint(claim.delivery.id, ["upload": [1]])
            return .again()
        }
        let seen = try await bench.job(id).file
        let edited = try await bench.journal.refresh(seen, identity: .test(changed: 5), at: Bench.start)
        #expect(!edited.isNoted && !edited.isOutdated)
        #expect(try await bench.job(id).file.identity == .test())
        // A server that numbers its files anew has not edited them.
        #expect(try await bench.journal.refresh(seen, identity: .test(inode: 5, device: 5), at: Bench.start).isNoted)
    }

    @Test(arguments: [
        (Disposition.kept, false), (Disposition.deleted, true), (Disposition.archived("/x"), true),
        (Disposition.quarantined("/x"), true), (Disposition.untouched("busy"), false),
    ])
    func `a path that we emptied ourselves is new again`(disposition: String, isNew: Bool) async throws {
        let bench = try Bench()
        _ = try await bench.admit("a.txt")
        try await bench.settle(.test(.delivered))
        #expect(try await recall(bench, .test()) == .known)
        try await bench.finishAll(disposition)
        // The very same inode and times: it was looked at just before we took it away.
        #expect(try await recall(bench, .test()) == .known)
        if isNew { #expect(try await recall(bench, .test(changed: 2)) == .new) }
    }

    @Test(arguments: [
        (DeliveryState.gone, true), (.superseded, true), (.failed, false), (.expired, false), (.cancelled, false),
        (.delivered, false),
    ])
    func `what came to nothing is new, what was decided is known`(end: DeliveryState, isNew: Bool) async throws {
        let bench = try Bench()
        _ = try await bench.admit("a.txt")
        try await bench.settle(.test(end))
        #expect(try await recall(bench, .test()) == (isNew ? .new : .known))
        let outcome = try await bench.journal.admit(.test("a.txt"), at: Bench.start)
        if case .admitted = outcome { #expect(isNew) } else { #expect(!isNew) }
    }

    @Test func `only the latest row of a path counts`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a.txt", .test(size: 1))
        _ = try await bench.admit("a.txt", .test(size: 2))
        #expect(try await recall(bench, .test(size: 1)) == .new)
        #expect(try await recall(bench, .test(size: 2)) == .known)
    }
}
