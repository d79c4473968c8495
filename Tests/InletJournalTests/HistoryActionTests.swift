import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

/// Which files go to the history, and what people and late companions can do with those that are there.
@Suite(.seated) struct HistoryActionTests {
    @Test(arguments: [
        (DeliveryState.delivered, true), (.gone, true), (.superseded, true), (.cancelled, true), (.failed, false),
        (.expired, false),
    ])
    func `what waits for a person stays`(end: DeliveryState, goes: Bool) async throws {
        let bench = try Bench()
        let id = try await bench.admit("a.txt")
        try await bench.settle(.test(end))
        #expect(try await bench.prune() == 0)
        try await bench.finishAll()
        #expect(try await bench.prune(at: Bench.start + .seconds(-1)) == 0)
        #expect(try await bench.prune() == (goes ? 1 : 0))
        #expect(try await bench.prune() == 0)
        #expect(try await bench.journal.totals().values.map(\.files) == [1])
        let isRetried = try await bench.journal.retry(id, uptimes: [:], at: Bench.start)
        #expect(isRetried == (end != .delivered && end != .superseded))
        #expect(try await bench.job(id).file.state.isFinal == !isRetried)
    }

    @Test func `a step says when something will be old enough, and does not look at what came later`() async throws {
        let bench = try Bench()
        for number in 0..<3 {
            let time = Bench.start + .seconds(number)
            _ = try await bench.admit("\(number)", at: time)
            try await bench.settle(.delivered(.test("\(number)")), at: time)
            try await bench.finishAll(at: time)
        }
        var place: HistoryPlace? = HistoryPlace()
        var (files, youngest) = (0, [WallTime]())
        while let from = place {
            let step = try await bench.journal.moveToHistory(finishedBy: Bench.start, from: from)
            (files, place) = (files + step.files, step.next)
            youngest += [step.youngest].compactMap(\.self)
        }
        #expect(files == 1 && youngest == [Bench.start + .seconds(1)])
    }

    @Test func `a unit goes once it has ended and its list is written, and comes back whole`() async throws {
        let bench = try Bench()
        var admission = FileAdmission.test("gigs/X/a")
        admission.unit = "gigs/X"
        admission.plan?.manifest = ManifestRule(format: .mhl)
        let id = try await bench.admit(admission)
        let batch = try #require(try await bench.journal.batch(of: id))
        let marker = Arrival.test("gigs/X/DONE", .test(size: 0))
        _ = try await bench.journal.closeUnit(
            "gigs/X", root: "/in", routes: ["all"], marker: marker, uptimes: [:], at: Bench.start)
        try await bench.settle(.delivered(.test("gigs/X/a")))
        try await bench.finishAll()
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
        for job in try await bench.journal.jobs(ofBatch: batch.id) {
            #expect(try await bench.journal.forget(job.file.id))
        }
        #expect(try await bench.journal.batch(batch.id) == nil)
    }

    @Test func `a unit that failed stays until its files are sent, and its marker for good`() async throws {
        let bench = try Bench()
        let id = try await bench.failUnit()
        #expect(try await bench.prune() == 0)
        #expect(try await bench.journal.retry(id, uptimes: [:], at: Bench.start))
        try await bench.settle(.delivered(.test("gigs/X/a")))
        try await bench.finishAll()
        #expect(try await bench.prune() == 1)
    }

    @Test func `a late companion of a file that is there follows it`() async throws {
        let bench = try Bench()
        let main = try await bench.bury("a.mp4")
        let companion = CompanionAdmission(
            .test("a.xmp", .test(inode: 2)), Companion(path: "a.xmp", kind: .sameStem, ending: "xmp"),
            category: "other", mediaType: "text/xml", lanes: ["r2": .big])
        let outcome = try await bench.journal.admitLate(companion, main: main, uptimes: [:], at: Bench.start)
        guard case .admitted(let id) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        let key = try #require(try await bench.job(id).deliveries.first?.key)
        try await bench.settle(.delivered(.test(key)))
        try await bench.finishAll()
        // Both, as they belong together.
        #expect(try await bench.prune() == 2)
        #expect(try await bench.job(id).deliveries[0].afterID == bench.job(main).deliveries[0].id)
    }

    @Test func `lists, proofs and commands by filters reach those that are there`() async throws {
        let bench = try Bench()
        let first = try await bench.bury("a.txt")
        let second = try await bench.admit("b.txt")
        try await bench.settle(.delivered(.test("b.txt")))
        try await bench.finishAll()
        var filter = FileFilter(states: [.delivered], destination: "r2")
        #expect(try await bench.journal.matches(filter).files.map(\.id) == [first, second])
        #expect(try await bench.journal.matches(filter, newestFirst: true).files.map(\.id) == [second, first])
        filter.ids = [first]
        #expect(try await bench.journal.matches(filter).files.map(\.id) == [first])
        #expect(try await bench.journal.matches(FileFilter(states: [.delivered], destination: "s3")).files.isEmpty)
        let delivered = try await bench.journal.delivered(DeliveredFilter(), after: 0, limit: 10).page
        #expect(delivered.map(\.file.id) == [first, second])
        #expect(delivered.allSatisfy { $0.delivery.proof != nil })
        let page = try await bench.journal.delivered(DeliveredFilter(), after: 0, limit: 1)
        #expect(page.page.map(\.file.id) == [first] && page.next == delivered[0].delivery.id)
        let outcomes = try await bench.journal.act(.cancel, on: [first, second], at: Bench.start).outcomes
        #expect(outcomes == [.skipped("has ended already"), .skipped("has ended already")])
        #expect(try await bench.journal.act(.forget, on: [first], at: Bench.start).outcomes == [.done])
        #expect(try await bench.journal.totals()[.delivered]?.files == 1)
    }

    @Test func `a card stands whole whether its files are there or not`() async throws {
        let bench = try Bench()
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
        var elsewhere = Arrival.test("a")
        (elsewhere.root, elsewhere.volume) = ("/other", volume)
        #expect(try await bench.journal.recall([elsewhere, .test("a")], tolerance: 0) == [.known, .new])
        // It gets a better name, and its files with it.
        let heirs = try await bench.journal.inheritance(of: "better", from: [key], at: "/in", after: "", limit: 10)
        #expect(heirs.map(\.path) == ["a", "b"])
        try await bench.journal.inherit(heirs, by: "better")
        #expect(try await bench.journal.standing(of: "better")?.proved == 2)
        #expect(try await bench.journal.standing(of: key)?.proved == 0)
    }

    @Test func `after a restore of a backup the history is there, and nothing of it is given away`() async throws {
        let bench = try Bench()
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
        let bench = try Bench()
        let id = try await bench.admit("a.txt", key: "k.txt")
        _ = try await bench.journal.cancel(id, at: Bench.start)
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
