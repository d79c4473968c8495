import InletCore
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

@testable import InletJournal

/// What is known of a file after it went to the history: all that was known before.
@Suite(.seated) struct HistoryTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    @Test func `a file is shown as it was after it went to the history`() async throws {
        var admission = FileAdmission.content(7, "a.txt", .off, to: ["r2", "s3"])
        admission.plan?.labels = ["event": "wedding"]
        admission.plan?.with = ["title": "x"]
        let id = try await bench.admit(admission)
        for (number, claim) in try await bench.claimAll(["r2", "s3"]).enumerated() {
            let proof = Proof(
                key: number == 0 ? "a.txt" : "elsewhere", size: 10, method: .sha256,
                content: ContentHash(digest: .content(7), partSize: number == 0 ? nil : 8), etag: "\"e\"",
                url: "https://x/a.txt", details: ["id": "9"], secrets: ProofSecrets(["token": "t"]))
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
        let id = try await bench.bury("a.txt")
        let questions: [FoundFile] = [
            .test("a.txt"), .test("a.txt", .test(inode: 9)), .test("a.txt", .test(size: 99)), .test("b.txt"),
        ]
        let answers = try await bench.recall(questions)
        #expect(answers[0] == .known && answers[2] == .new && answers[3] == .new)
        guard case .touched(let row) = answers[1] else {
            Issue.record("\(answers[1])")
            return
        }
        #expect(row.id == id && row.content == Proof.test().content)
        #expect(try await bench.offer(.test("a.txt")) == .known(id: id))
        try await bench.refresh(row, identity: .test(inode: 9))
        #expect(try await bench.recall([questions[1]]) == [.known])
    }

    @Test func `what came after it under its path counts, wherever that is`() async throws {
        _ = try await bench.bury("a.txt", .test(size: 1))
        let second = try await bench.bury("a.txt", .test(size: 2), key: "b")
        let third = try await bench.admit("a.txt", .test(size: 3), key: "c")
        let sizes: [Int64] = [1, 2, 3]
        let answers = try await bench.recall(sizes.map { .test("a.txt", .test(size: $0)) })
        #expect(answers == [.new, .new, .known])
        try await bench.cancel(third)
        try await bench.finishAll()
        // The second comes back for a new proof: the third, which was there, must not be older than it.
        try await bench.prune()
        let delivery = try await bench.job(second).deliveries[0].id
        try await bench.journal.replaceProof(of: delivery, by: .test("b"))
        #expect(try await bench.journal.newest("/in", ["a.txt"]).first??.id == third)
    }

    @Test func `an older file that cannot go keeps the newer ones of its path from going`() async throws {
        try await bench.settled("a.txt", .failed, .test(size: 1), finishes: true)
        try await bench.admit("a.txt", .test(size: 2), key: "b")
        try await bench.settleAndFinish(.delivered(.test("b")))
        #expect(try await bench.prune() == 0)
        #expect(try await bench.recall([.test("a.txt", .test(size: 2))]) == [.known])
    }

    @Test func `its key is given to nobody, though it is forgotten`() async throws {
        let id = try await bench.bury("a.txt", key: "k.txt")
        #expect(try await bench.job(bench.admit("b.txt", key: "k.txt")).deliveries.map(\.key) == ["k_2.txt"])
        #expect(try await bench.forget(id))
        #expect(try await bench.recall([.test("a.txt")]) == [.new])
        #expect(try await bench.job(bench.admit("c.txt", key: "k.txt")).deliveries.map(\.key) == ["k_3.txt"])
    }

    @Test func `its content is not sent again, unless it was deleted there`() async throws {
        let first = try await bench.deliver(.content(1, "a", .skip))
        #expect(try await bench.prune() == 1)
        let copy = try await bench.duplicate(.content(1, "b", .skip), of: first)
        try await bench.finishAll()
        #expect(try await bench.prune() == 1)
        let question = ContentQuery(digest: .content(1), size: 10, route: "all", fields: [:], destinations: ["r2"])
        #expect(try await bench.journal.originals(question)["r2"]?.job == first)
        // Deleting the copy's object deletes the only one there is.
        var proof = try #require(try await bench.job(copy).deliveries[0].proof)
        proof.details?[Proof.deletedName] = "now"
        try await bench.journal.replaceProof(of: bench.job(copy).deliveries[0].id, by: proof)
        #expect(try await bench.journal.originals(question).isEmpty)
    }

    @Test func `a file that is renamed after that goes on under its new path`() async throws {
        let id = try await bench.bury("a.txt")
        let arrival = FoundFile.test("b.txt", .test(changed: 2))
        let found = try #require(try await bench.journal.renamed(from: "a.txt", to: arrival))
        #expect(found.file.id == id && !found.isUntold)
        #expect(try await bench.journal.rename(found, to: arrival, plan: nil))
        #expect(try await bench.recall([.test("a.txt"), arrival]) == [.new, .known])
    }

    @Test func `its folder holds files, unless they were taken away`() async throws {
        try await bench.settled("a.txt", .delivered)
        try await bench.finishAll(Disposition.deleted)
        #expect(try await bench.prune() == 1)
        #expect(try await !bench.journal.holdsFiles(of: "/in"))
        let kept = try await bench.bury("b.txt")
        #expect(try await bench.journal.holdsFiles(of: "/in"))
        #expect(try await bench.forget(kept))
        #expect(try await !bench.journal.holdsFiles(of: "/in"))
    }

    @Test func `a file that was sent by name is known by the places it went to`() async throws {
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

/// Which files go to the history, and what people and late companions can do with those that are there.
@Suite(.seated) struct HistoryActionTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    @Test(arguments: [
        (DeliveryState.delivered, true), (.gone, true), (.superseded, true), (.cancelled, true), (.failed, false),
        (.expired, false),
    ])
    func `what waits for a person stays`(end: DeliveryState, goes: Bool) async throws {
        let id = try await bench.settled("a.txt", end)
        #expect(try await bench.prune() == 0)
        try await bench.finishAll()
        #expect(try await bench.prune(at: Bench.start + .seconds(-1)) == 0)
        #expect(try await bench.prune() == (goes ? 1 : 0))
        #expect(try await bench.prune() == 0)
        #expect(try await bench.journal.totals().values.map(\.files) == [1])
        let isRetried = try await bench.retry(id)
        #expect(isRetried == (end != .delivered && end != .superseded))
        #expect(try await bench.job(id).file.state.isFinal == !isRetried)
    }

    @Test func `a step says when something will be old enough, and does not look at what came later`() async throws {
        for number in 0..<3 {
            let time = Bench.start + .seconds(number)
            try await bench.admit("\(number)", at: time)
            try await bench.settle(.delivered(.test("\(number)")), at: time)
            try await bench.finishAll(at: time)
        }
        var place: HistoryPlace? = (0, 0)
        var (files, youngest) = (0, [WallTime]())
        while let from = place {
            let step = try await bench.journal.moveToHistory(finishedBy: Bench.start, from: from)
            (files, place) = (files + step.files, step.next)
            youngest += [step.youngest].compactMap(\.self)
        }
        #expect(files == 1 && youngest == [Bench.start + .seconds(1)])
    }

    @Test func `a unit goes once it has ended and its list is written, and comes back whole`() async throws {
        var admission = FileAdmission.test("gigs/X/a", unit: "gigs/X")
        admission.plan?.manifest = ManifestRule(format: .mhl)
        let id = try await bench.admit(admission)
        let batch = try #require(try await bench.batch(of: id))
        let marker = FoundFile.test("gigs/X/DONE", .test(size: 0))
        try await bench.closeUnit("gigs/X", marker: marker)
        try await bench.settleAndFinish(.delivered(.test("gigs/X/a")))
        try await bench.finishAll()
        #expect(try await bench.prune() == 0)
        try await bench.journal.manifestDone(#require(try await bench.journal.nextManifest(at: Bench.start)))
        #expect(try await bench.prune() == 2)
        let ended = try #require(try await bench.journal.batch(batch.id))
        #expect(ended.counts == [.delivered: 1] && ended.state == .delivered)
        #expect(try await bench.journal.jobs(ofBatch: batch.id).map(\.file.path) == ["gigs/X/a", "gigs/X/DONE"])
        #expect(try await !bench.journal.hasOthers(besides: batch.id, below: "gigs/X", at: "r2"))
        #expect(try await bench.journal.hasOthers(besides: 0, below: "gigs/X", at: "r2"))
        // Its row goes with the last of its files.
        for job in try await bench.journal.jobs(ofBatch: batch.id) { #expect(try await bench.forget(job.file.id)) }
        #expect(try await bench.journal.batch(batch.id) == nil)
    }

    @Test func `a unit that failed stays until its files are sent, and its marker for good`() async throws {
        let id = try await bench.failUnit()
        #expect(try await bench.prune() == 0)
        #expect(try await bench.retry(id))
        try await bench.settleAndFinish(.delivered(.test("gigs/X/a")))
        #expect(try await bench.prune() == 1)
    }

    @Test func `a late companion of a file that is there follows it`() async throws {
        let main = try await bench.bury("a.mp4")
        let id = main + 1
        #expect(try await bench.admitLate(.test("a.xmp", .sameStem, .test(inode: 2)), main: main) == .admitted(id: id))
        let key = try #require(try await bench.job(id).deliveries.first?.key)
        try await bench.settleAndFinish(.delivered(.test(key)))
        // Both, as they belong together.
        #expect(try await bench.prune() == 2)
        #expect(try await bench.job(id).deliveries[0].afterID == bench.job(main).deliveries[0].id)
    }

    @Test func `lists, proofs and commands by filters reach those that are there`() async throws {
        let first = try await bench.bury("a.txt")
        let second = try await bench.admit("b.txt")
        try await bench.settleAndFinish(.delivered(.test("b.txt")))
        var filter = FileFilter(states: [.delivered], destination: "r2")
        #expect(try await bench.journal.matches(filter).files.map { $0.id } == [first, second])
        #expect(try await bench.journal.matches(filter, newestFirst: true).files.map { $0.id } == [second, first])
        filter.ids = [first]
        #expect(try await bench.journal.matches(filter).files.map { $0.id } == [first])
        #expect(try await bench.journal.matches(FileFilter(states: [.delivered], destination: "s3")).files.isEmpty)
        let delivered = try await bench.journal.delivered(DeliveredFilter(), after: 0, limit: 10).page
        #expect(delivered.map { $0.file.id } == [first, second])
        #expect(delivered.allSatisfy { $0.delivery.proof != nil })
        let page = try await bench.journal.delivered(DeliveredFilter(), after: 0, limit: 1)
        #expect(page.page.map { $0.file.id } == [first] && page.next == delivered[0].delivery.id)
        let outcomes = try await bench.act(.cancel, on: [first, second]).outcomes
        #expect(outcomes == [.skipped("has already ended"), .skipped("has already ended")])
        #expect(try await bench.act(.forget, on: [first]).outcomes == [.done])
        #expect(try await bench.journal.totals()[.delivered]?.files == 1)
    }

    @Test func `a card stands whole whether its files are there or not`() async throws {
        let key = "uuid:1234-ABCD/DCIM"
        let volume = Volume(name: "EOS", key: key)
        for name in ["a", "b"] {
            var admission = FileAdmission.test(name)
            admission.arrival.volume = volume
            _ = try await bench.deliver(admission)
            if name == "a" { #expect(try await bench.prune() == 1) }
        }
        for proofs in [nil, 1] {
            let standing = try #require(try await bench.journal.standing(of: key, proofs: proofs))
            #expect(standing.proved == 2 && standing.bytes == 20 && standing.unproved.isEmpty)
        }
        var elsewhere = FoundFile.test("a")
        (elsewhere.root, elsewhere.volume) = ("/other", volume)
        #expect(try await bench.recall([elsewhere, .test("a")]) == [.known, .new])
        // It gets a better name, and its files with it.
        let heirs = try await bench.journal.inheritance(of: "better", from: [key], at: "/in", after: "", limit: 10)
        #expect(heirs.map(\.path) == ["a", "b"])
        try await bench.journal.inherit(heirs, by: "better")
        #expect(try await bench.journal.standing(of: "better")?.proved == 2)
        #expect(try await bench.journal.standing(of: key)?.proved == 0)
    }

    @Test func `after a restore of a backup the history is there, and nothing of it is given away`() async throws {
        let id = try await bench.bury("a.txt", key: "k.txt")
        let backup = bench.directory.path.appending("backup.sqlite")
        try await bench.journal.copy(to: backup)
        let path = bench.directory.path.appending("restored.sqlite")
        #expect(try Journal.restore(backup, to: path, now: Bench.start).files == 1)
        let restored = try Journal(path: path, now: Bench.start)
        defer { restored.close() }
        #expect(try await restored.recall([.test("a.txt")], tolerance: 0) == [.known])
        #expect(try await restored.job(id)?.deliveries.map(\.key) == ["k.txt"])
    }

    @Test func `what was cancelled and restored may have arrived since, and keeps its key though it is forgotten`()
        async throws
    {
        let id = try await bench.admit("a.txt", key: "k.txt")
        try await bench.cancel(id)
        try await bench.finishAll()
        #expect(try await bench.prune() == 1)
        let backup = bench.directory.path.appending("backup.sqlite")
        try await bench.journal.copy(to: backup)
        let path = bench.directory.path.appending("restored.sqlite")
        _ = try Journal.restore(backup, to: path, now: Bench.start)
        let restored = try Journal(path: path, now: Bench.start)
        defer { restored.close() }
        #expect(try await restored.forget(id))
        let outcome = try await restored.admit(.test("b.txt", key: "k.txt"), at: Bench.start)
        guard case .admitted(let next) = outcome else { throw Unexpected(what: "\(outcome)") }
        #expect(try await restored.job(next)?.deliveries.map(\.key) == ["k_2.txt"])
    }
}

/// What other parts of the journal have added to files and deliveries goes to the history with them, and comes back.
@Suite(.seated) struct HistorySeamTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    /// A migration that gives either table a column must give it to the history too, or say here why not.
    @Test(
        .enabled(if: SQLiteShell.isInstalled),
        arguments: [("file", ["finish_at"]), ("delivery", ["owner", "resent", "until"])])
    func `the history has every column but those that only what is open needs`(
        table: String, missing: [String]
    ) throws {
        bench.journal.close()
        let found = try SQLiteShell.run(
            bench.journal.path,
            """
            SELECT name FROM pragma_table_info('\(table)')
            EXCEPT SELECT name FROM pragma_table_info('history_as_\(table)') ORDER BY name
            """)
        #expect(found.split(separator: "\n").map(String.init) == missing)
    }

    @Test(.enabled(if: SQLiteShell.isInstalled))
    func `what comes back is as it was, to the last column`() async throws {
        var admission = FileAdmission.content(3, "a.txt", .link, to: ["r2", "disk"])
        admission.plan?.priority = .high
        admission.plan?.labels = ["event": "wedding"]
        admission.plan?.with = ["title": "x"]
        let id = try await bench.deliver(admission)
        let before = try rows()
        #expect(try await bench.prune() == 1)
        #expect(try rows().isEmpty)
        #expect(try await bench.job(id).deliveries.map(\.priority) == [.high, .high])
        let isBack = try await bench.journal.commit { try Journal.revive(id, $0) }
        #expect(isBack)
        #expect(try rows() == before)
        #expect(try await bench.journal.totals().values.map(\.files) == [1])
        #expect(try await bench.journal.queueCounts().isEmpty)
    }

    /// Files, deliveries and contents, but for when a delivery that has ended would have been due.
    private func rows() throws -> String {
        try ["file", "delivery", "content"].map { table in
            let columns = try SQLiteShell.run(
                bench.journal.path,
                "SELECT group_concat(name) FROM pragma_table_info('\(table)') WHERE name <> 'next_at'"
            ).filter { $0 != "\n" }
            return try SQLiteShell.run(bench.journal.path, "SELECT \(columns) FROM \(table)")
        }.joined()
    }

    @Test func `what is sent again from there is as urgent as it was`() async throws {
        var admission = FileAdmission.test("old")
        admission.plan?.priority = .high
        let id = try await bench.admit(admission)
        try await bench.settleAndFinish(.test(.gone))
        #expect(try await bench.prune() == 1)
        try await bench.admit("new", at: Bench.start + .seconds(-60))
        #expect(try await bench.retry(id))
        #expect(try await bench.journal.queueCounts() == bench.journal.countedQueue())
        #expect(try await bench.claimAll(most: 1).map(\.file.id) == [id])
    }

    @Test func `a companion comes back though its file was forgotten meanwhile`() async throws {
        let admission = FileAdmission.test("a.mp4", companions: [.test("a.xmp", .sameStem, .test(inode: 2))])
        let main = try await bench.admit(admission)
        try await bench.settle(.delivered(.test("a.mp4")))
        let companion = main + 1
        try await bench.cancel(companion)
        try await bench.finishAll()
        // What was cancelled goes first.
        var step = (files: 0, next: (0, 0) as HistoryPlace?, youngest: nil as WallTime?)
        while step.files == 0 {
            let place = try #require(step.next)
            step = try await bench.journal.moveToHistory(finishedBy: Bench.later, from: place)
        }
        #expect(
            try await bench.journal.newest("/in", ["a.mp4", "a.xmp"]).map { $0?.state } == [.delivered, .cancelled])
        #expect(try await bench.forget(main))
        #expect(try await bench.job(companion).deliveries.count == 1)
        #expect(try await bench.retry(companion))
        #expect(try await bench.claimAll().map(\.file.id) == [companion])
    }

    /// The state of a batch is the worst of its files': here, that of one for which nothing can be done.
    @Test func `a unit with a rejected file stays while another of its files waits for a person`() async throws {
        let id = try await bench.admit(.test("gigs/X/a", expire: .seconds(60), unit: "gigs/X"))
        _ = try await bench.reject(.refused("gigs/X/b", unit: "gigs/X"))
        try await bench.closeUnit("gigs/X", uptimes: ["r2": 0])
        #expect(try await bench.setUptime("r2", 60_000) == [id])
        try await bench.finishAll()
        #expect(try await bench.batch(of: id)?.state == .rejected)
        #expect(try await bench.prune() == 0)
        #expect(try await bench.journal.retry(id, uptimes: ["r2": 60_000], at: Bench.start))
        try await bench.settleAndFinish(.delivered(.test("gigs/X/a")))
        #expect(try await bench.prune() == 2)
    }

    @Test
    func `a batch is found by its files, and told to a receiver that was away, once they are there`() async throws {
        let id = try await bench.admit(.test("gigs/X/a", unit: "gigs/X"))
        let batch = try #require(try await bench.batch(of: id))
        try await bench.closeUnit("gigs/X")
        try await bench.settleAndFinish(.delivered(.test("gigs/X/a")))
        #expect(try await bench.prune() == 1)
        #expect(try await bench.batch(of: id)?.id == batch.id)
        #expect(try await bench.journal.endedBatch(batch.id, limit: 9)?.jobs.map(\.file.id) == [id])
    }
}
