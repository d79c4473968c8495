import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage
import Testing

/// What is known of a file after it went to the history: all that was known before.
@Suite(.seated) struct HistoryTests {
    @Test func `a file is shown as it was after it went to the history`() async throws {
        let bench = try Bench()
        var admission = FileAdmission.content(7, "a.txt", .off, to: ["r2", "s3"])
        admission.plan?.labels = ["event": "wedding"]
        admission.plan?.with = ["title": "x"]
        let id = try await bench.admit(admission)
        for (number, claim) in try await bench.claimAll(["r2", "s3"]).enumerated() {
            let proof = Proof(
                key: number == 0 ? "a.txt" : "elsewhere", size: 10, method: .sha256,
                content: ContentHash(digest: .content(7), partSize: number == 0 ? nil : 8), etag: "\"e\"",
                url: "https://x/a.txt", details: ["id": "9"], keepsakes: Keepsakes(["token": "t"]))
            try await bench.end(claim, .delivered(proof))
        }
        try await bench.finishAll(Disposition.archived("/done/a.txt"))
        let before = try await bench.job(id)
        #expect(try await bench.prune() == 1)
        #expect(try await bench.job(id).lasting == before.lasting)
        #expect(try await bench.journal.jobs(FileFilter()).map(\.lasting) == [before.lasting])
        #expect(try await bench.journal.receipts(limit: 10).isEmpty)
        // And as it was when it came back: nothing of it was delivered again.
        try await bench.journal.replaceProof(of: before.deliveries[0].id, by: .test("a.txt"))
        #expect(try await bench.job(id).deliveries[1] == before.deliveries[1])
    }

    @Test func `a file is known, or touched, or new, after it went to the history`() async throws {
        let bench = try Bench()
        let id = try await bench.bury("a.txt")
        let questions: [Arrival] = [
            .test("a.txt"), .test("a.txt", .test(inode: 9)), .test("a.txt", .test(size: 99)), .test("b.txt"),
        ]
        let answers = try await bench.journal.recall(questions, tolerance: 0)
        #expect(answers[0] == .known && answers[2] == .new && answers[3] == .new)
        guard case .touched(let row) = answers[1] else {
            Issue.record("\(answers[1])")
            return
        }
        #expect(row.id == id && row.content == Proof.test().content)
        #expect(try await bench.journal.admit(.test("a.txt"), at: Bench.start) == .known(id: id))
        try await bench.journal.refresh(row, identity: .test(inode: 9), at: Bench.start)
        #expect(try await bench.journal.recall([questions[1]], tolerance: 0) == [.known])
    }

    @Test func `what came after it under its path counts, wherever that is`() async throws {
        let bench = try Bench()
        _ = try await bench.bury("a.txt", .test(size: 1))
        let second = try await bench.bury("a.txt", .test(size: 2), key: "b")
        let third = try await bench.admit("a.txt", .test(size: 3), key: "c")
        let sizes: [Int64] = [1, 2, 3]
        let answers = try await bench.journal.recall(
            sizes.map { .test("a.txt", .test(size: $0)) }, tolerance: 0)
        #expect(answers == [.new, .new, .known])
        _ = try await bench.journal.cancel(third, at: Bench.start)
        try await bench.finishAll()
        // The second comes back for a new proof: the third, which was there, must not be older than it.
        try await bench.prune()
        let delivery = try await bench.job(second).deliveries[0].id
        try await bench.journal.replaceProof(of: delivery, by: .test("b"))
        #expect(try await bench.journal.newest("/in", ["a.txt"]).first??.id == third)
    }

    @Test func `an older file that cannot go keeps the newer ones of its path from going`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a.txt", .test(size: 1))
        try await bench.settle(.test(.failed))
        try await bench.finishAll()
        _ = try await bench.admit("a.txt", .test(size: 2), key: "b")
        try await bench.settle(.delivered(.test("b")))
        try await bench.finishAll()
        #expect(try await bench.prune() == 0)
        #expect(try await bench.journal.recall([.test("a.txt", .test(size: 2))], tolerance: 0) == [.known])
    }

    @Test func `its key is given to nobody, though it is forgotten`() async throws {
        let bench = try Bench()
        let id = try await bench.bury("a.txt", key: "k.txt")
        let next = try await bench.admit("b.txt", key: "k.txt")
        #expect(try await bench.job(next).deliveries.map(\.key) == ["k_2.txt"])
        #expect(try await bench.journal.forget(id))
        #expect(try await bench.journal.recall([.test("a.txt")], tolerance: 0) == [.new])
        let last = try await bench.admit("c.txt", key: "k.txt")
        #expect(try await bench.job(last).deliveries.map(\.key) == ["k_3.txt"])
    }

    @Test func `its content is not sent again, unless it was deleted there`() async throws {
        let bench = try Bench()
        let first = try await bench.deliver(.content(1, "a", .skip))
        #expect(try await bench.prune() == 1)
        let second = try await bench.journal.admit(.content(1, "b", .skip), at: Bench.start)
        guard case .duplicate(let copy, of: first) = second else {
            Issue.record("\(second)")
            return
        }
        try await bench.finishAll()
        #expect(try await bench.prune() == 1)
        let question = ContentQuestion(
            digest: .content(1), size: 10, route: "all", fields: [:], destinations: ["r2"])
        #expect(try await bench.journal.originals(question)["r2"]?.job == first)
        // Deleting the copy's object deletes the only one there is.
        var proof = try #require(try await bench.job(copy).deliveries[0].proof)
        proof.details?[Proof.deletedName] = "now"
        try await bench.journal.replaceProof(of: bench.job(copy).deliveries[0].id, by: proof)
        #expect(try await bench.journal.originals(question).isEmpty)
    }

    @Test func `a file that is renamed after that goes on under its new path`() async throws {
        let bench = try Bench()
        let id = try await bench.bury("a.txt")
        let arrival = Arrival.test("b.txt", .test(changed: 2))
        let found = try #require(try await bench.journal.renamed(from: "a.txt", to: arrival))
        #expect(found.file.id == id && !found.isUntold)
        #expect(try await bench.journal.rename(found, to: arrival, plan: nil))
        #expect(
            try await bench.journal.recall([.test("a.txt"), arrival], tolerance: 0) == [.new, .known])
    }

    @Test func `its folder holds files, unless they were taken away`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a.txt")
        try await bench.settle(.test(.delivered))
        try await bench.finishAll(Disposition.deleted)
        #expect(try await bench.prune() == 1)
        #expect(try await !bench.journal.holdsFiles(of: "/in"))
        let kept = try await bench.bury("b.txt")
        #expect(try await bench.journal.holdsFiles(of: "/in"))
        #expect(try await bench.journal.forget(kept))
        #expect(try await !bench.journal.holdsFiles(of: "/in"))
    }

    @Test func `a file that was sent by name is known by the places it went to`() async throws {
        let bench = try Bench()
        var admission = FileAdmission.test("tmp/a.txt")
        admission.arrival.root = ""
        let id = try await bench.deliver(admission)
        #expect(try await bench.prune() == 1)
        #expect(try await bench.journal.lastSent([("tmp/a.txt", ["r2"])]).map { $0?.file.id } == [id])
        #expect(try await bench.journal.lastSent([("tmp/a.txt", ["s3"])]) == [nil])
        let many = try await bench.journal.lastSent([("tmp/b.txt", ["r2"]), ("tmp/a.txt", ["r2"])])
        #expect(many.map { $0?.file.id } == [nil, id])
    }

    @Test func `jobs are read in the order that is asked for, as far as somebody wants to go on`() async throws {
        let bench = try Bench()
        let buried = try await bench.bury("a.txt")
        let (open, last) = (try await bench.admit("b.txt"), try await bench.admit("c.txt"))
        let all = try await bench.journal.jobs([last, 4711, buried]) { _ in true }
        #expect(all.map { $0?.file.id } == [last, nil, buried])
        #expect(all.map { $0?.deliveries.count } == [1, nil, 1])
        let some = try await bench.journal.jobs([buried, open, last]) { $0.file.state != .pending }
        #expect(some.map { $0?.file.id } == [buried, open])
        #expect(try await bench.journal.jobs([]) { _ in true }.isEmpty)
    }
}
