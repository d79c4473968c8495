import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

extension PlaceVersion {
    static func test(_ name: String, _ identity: FileIdentity = .test()) -> PlaceVersion {
        PlaceVersion(of: FilePath(name), size: identity.size, modified: identity.modified)
    }
}

extension PlaceWork {
    static let share = "0b5e5d0e-1f0a-4c7e-9d5e-2f1d3c4b5a69"

    static func test(
        _ name: String, number: Int64 = 7, fence: Int64 = 1, session: Int64 = 1, to destinations: [String] = ["r2"],
        key: String? = nil, _ identity: FileIdentity = .test(), isFinishing: Bool = false, hasFailed: Bool = false,
        notes: [String: [UInt8]] = [:], row: [UInt8]? = nil, expire: Duration? = nil
    ) -> PlaceWork {
        PlaceWork(
            number: number, fence: fence, session: session, place: share, version: .test(name, identity),
            isFinishing: isFinishing, hasFailed: hasFailed,
            admission: .test(name, identity, to: isFinishing ? [] : destinations, key: key, expire: expire),
            notes: notes, row: row)
    }
}

/// Words for what the fleet gives.
extension Bench {
    /// - Returns: the file.
    @discardableResult
    func take(_ work: PlaceWork, at time: WallTime = start) async throws -> Int64 {
        let starts = try await journal.takePlaceWork([work], at: time)
        guard case .taken(let file)? = starts.first else { throw Unexpected(what: "\(starts)") }
        return file
    }

    /// Takes work, delivers it, and has the fleet settle that. - Returns: the file.
    @discardableResult
    func settled(_ work: PlaceWork, finish: Int64?, hasFailed: Bool = false, mark: Int64 = 5) async throws -> Int64 {
        let file = try await take(work)
        try await settle(.delivered(.test(job(file).deliveries[0].key ?? "")))
        try await journal.placeWorkSettled([(file, finish, hasFailed)], mark: mark, at: Self.start)
        return file
    }

    func hasFile(_ id: Int64) async throws -> Bool { try await journal.job(id) != nil }
}

/// Work that the fleet has given is a file of the queue like any other.
@Suite(.seated) struct PlaceWorkTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    @Test func `work is due at once under exactly its key, and its source waits for the fleet`() async throws {
        let id = try await bench.take(.test("a.mov", key: "2026/a.mov"))
        let file = try await bench.job(id).file
        #expect(file.state == .pending && file.policy.isOfPlace && file.policy.dedupe == .off)
        #expect(try await bench.journal.endedPlaceWork(session: 1, limit: 9).isEmpty)
        #expect(try await bench.settle(.delivered(.test("2026/a.mov")))?.key == "2026/a.mov")
        #expect(try await bench.unfinished().isEmpty)
        #expect(try await bench.journal.nextFinish() == nil)
        let ended = try await bench.journal.endedPlaceWork(session: 1, limit: 9)
        #expect(ended.map(\.file) == [id] && ended.map(\.state) == [.delivered] && ended.map(\.number) == [7])
        #expect(ended.first?.version == .test("a.mov") && ended.first?.place == PlaceWork.share)
        #expect(try await bench.journal.endedPlaceWork(session: 2, limit: 9).isEmpty)
        #expect(try await bench.journal.queueCounts() == bench.journal.countedQueue())
    }

    @Test func `an end without the finishing leaves the source to others, and goes to the history`() async throws {
        let id = try await bench.settled(.test("a.mov"), finish: nil)
        #expect(try await bench.journal.placeWork().isEmpty)
        #expect(try await bench.unfinished().map(\.file.id) == [id])
        try await bench.finishAll()
        #expect(try await bench.prune() == 1)
        #expect(try await bench.job(id).file.state == .delivered)
    }

    @Test func `with the finishing its source is disposed of, and stays until the fleet knows that`() async throws {
        let id = try await bench.settled(.test("a.mov"), finish: 9)
        #expect(try await bench.unfinished().map(\.file.id) == [id])
        #expect(try await bench.journal.finishedPlaceWork(session: 1, limit: 9).isEmpty)
        try await bench.finishAll(Disposition.archived("old/a.mov"))
        let finished = try await bench.journal.finishedPlaceWork(session: 1, limit: 9)
        #expect(finished.map(\.number) == [9] && finished.map(\.fence) == [1] && finished[0].isFinishing)
        #expect(try await bench.prune() == 0)
        #expect(try await !bench.journal.forget(id))
        #expect(try await !bench.job(id).actions.contains(.forget))
        try await bench.journal.placeWorkFinished([id], mark: 8)
        #expect(try await bench.journal.placeWork().isEmpty)
        #expect(try await bench.prune() == 1)
    }

    @Test func `after a loss what waits to be finished is its delivery again, and ends at once`() async throws {
        let id = try await bench.settled(.test("a.mov"), finish: 9)
        #expect(try await bench.take(.test("a.mov", number: 40, session: 2)) == id)
        let ended = try await bench.journal.endedPlaceWork(session: 2, limit: 9)
        #expect(ended.map(\.file) == [id] && ended.map(\.number) == [40])
        #expect(try await bench.unfinished().isEmpty)
    }

    @Test func `a delivery that failed elsewhere makes the file a failed one`() async throws {
        let id = try await bench.settled(.test("a.mov"), finish: 9, hasFailed: true)
        let job = try await bench.job(id)
        #expect(job.file.state == .failed && job.file.reason?.contains("failed in the fleet") == true)
        #expect(job.deliveries.map(\.state) == [.delivered])
        #expect(try await bench.files() == [.failed: 1])
        #expect(try await bench.unfinished().map(\.file.id) == [id])
    }

    @Test(arguments: [false, true])
    func `a source that others have delivered is finished here`(hasFailed: Bool) async throws {
        let id = try await bench.take(.test("a.mov", isFinishing: true, hasFailed: hasFailed))
        let job = try #require(try await bench.unfinished().first)
        #expect(job.file.id == id && job.deliveries.isEmpty && job.damage == nil)
        #expect(job.file.state == (hasFailed ? .failed : .delivered))
        try await bench.finishAll(Disposition.deleted)
        #expect(try await bench.journal.finishedPlaceWork(session: 1, limit: 9).map(\.file) == [id])
        // Others publish what they have delivered.
        #expect(try await bench.journal.fleetReceipts(after: 0, limit: 9).isEmpty)
    }

    @Test func `finishing whose answer was lost comes to the file that delivered it`() async throws {
        let id = try await bench.take(.test("a.mov"))
        try await bench.settle(.test(.delivered))
        try await bench.journal.holdPlaceWork()
        let finishing = PlaceWork.test("a.mov", number: 12, fence: 2, session: 2, isFinishing: true)
        #expect(try await bench.take(finishing) == id)
        #expect(try await bench.unfinished().map(\.file.id) == [id])
        try await bench.journal.holdPlaceWork()
        #expect(try await bench.unfinished().isEmpty)
        #expect(try await bench.journal.nextFinish() == nil)
        #expect(try await bench.take(finishing) == id)
        try await bench.finishAll()
        #expect(try await bench.journal.finishedPlaceWork(session: 2, limit: 9).map(\.number) == [12])
    }

    @Test func `notes of a former agent are sealed and handed to the delivery, and never replace its own`() async throws
    {
        let directory = try TemporaryDirectory()
        let journal = try Journal(
            path: directory.path.appending("journal.sqlite"), now: Bench.start, seal: Reversed())
        defer { journal.close() }
        let starts = try await journal.takePlaceWork([.test("a.mov", notes: ["upload": [1, 2]])], at: Bench.start)
        guard case .taken(let id)? = starts.first else { throw Unexpected(what: "\(starts)") }
        #expect(try await journal.checkpoints(ofJob: id).values.map(\.self) == [["upload": [2, 1]]])
        _ = try await journal.takePlaceWork([.test("a.mov", fence: 2, notes: ["upload": [8]])], at: Bench.start)
        #expect(try await journal.checkpoints(ofJob: id).values.map(\.self) == [["upload": [2, 1]]])
    }

    private struct Reversed: Sealing {
        func closed(_ notes: [String: [UInt8]]) -> [String: [UInt8]] { notes.mapValues { $0.reversed() } }
        func opened(_ notes: [String: [UInt8]]) -> [String: [UInt8]] { closed(notes) }
        func closed(_ secrets: ProofSecrets) -> ProofSecrets { secrets }
        func opened(_ secrets: ProofSecrets) -> ProofSecrets? { secrets }
    }

    @Test func `a key of another file here is no work for this agent, and the rest of the batch goes on`() async throws
    {
        try await bench.admit("mine", key: "a.mov")
        let works: [PlaceWork] = [.test("a.mov"), .test("b.mov", number: 8)]
        let starts = try await bench.journal.takePlaceWork(works, at: Bench.start)
        #expect(starts.first == .keyTaken("a.mov"))
        #expect(try await bench.journal.placeWork().map(\.number) == [8])
        #expect(try await bench.files() == [.pending: 2])
    }

    @Test func `a registration comes after its storage, under its own key`() async throws {
        var work = PlaceWork.test("a.mov", to: ["site"])
        work.admission.storages = ["site": "r2"]
        work.admission.plan?.otherKeys = ["site": "a-4711"]
        let id = try await bench.take(work)
        #expect(try await bench.job(id).deliveries.map(\.key) == ["a.mov", "a-4711"])
        #expect(try await bench.nextDue(["site"]) == nil)
        try await bench.journal.holdPlaceWork()
        work.session = 2
        try await bench.take(work)
        #expect(try await bench.nextDue(["site"]) == nil)
        try await bench.settle(.delivered(.test("a.mov")))
        #expect(try await bench.journal.endedPlaceWork(session: 2, limit: 9).isEmpty)
        let claims = try await bench.claimAll(["site"], lane: .small)
        #expect(claims.map(\.delivery.key) == ["a-4711"])
        for claim in claims { try await bench.end(claim, .delivered(.test("a-4711"))) }
        #expect(try await bench.journal.endedPlaceWork(session: 2, limit: 9).map(\.file) == [id])
        #expect(try await bench.journal.queueCounts() == bench.journal.countedQueue())
    }

    @Test func `work that must wait is told from work that is due, runs, or is worked on`() async throws {
        var ids: [Int64] = []
        for (number, name) in ["a", "b", "c", "d"].enumerated() {
            ids.append(try await bench.take(.test(name, number: Int64(number))))
        }
        let later = Bench.start + .seconds(60)
        try await bench.settle(.again(later, counts: true))
        try await bench.settle(.waiting(until: later, saying: "working"))
        let claim = try #require(try await bench.claimAll(most: 1).first)
        #expect(claim.file.id == ids[2])
        let waiting = try await bench.journal.waitingPlaceWork(
            session: 1, beyond: Bench.start + .seconds(30), limit: 9)
        #expect(waiting.map(\.file) == [ids[0]] && waiting[0].nextAt == later)
        #expect(waiting[0].code == .timedOut && waiting[0].reason == "slow")
        #expect(try await bench.journal.waitingPlaceWork(session: 1, beyond: later, limit: 9).isEmpty)
        try await bench.end(claim, .again())
        _ = try await bench.journal.setDestinations([], at: Bench.start)
        let parked = try await bench.journal.waitingPlaceWork(session: 1, beyond: later, limit: 9)
        #expect(parked.map(\.file) == ids && parked.allSatisfy { $0.nextAt == nil })
    }

    @Test(.enabled(if: SQLiteShell.isInstalled))
    func `without a fleet nothing is written there`() async throws {
        _ = try await bench.bury("a")
        let id = try await bench.settled("b", .failed)
        try await bench.journal.holdPlaceWork()
        #expect(try await bench.journal.retry(id, uptimes: [:], at: Bench.start))
        _ = try await bench.journal.recover(destinations: ["r2"], at: Bench.start)
        bench.journal.close()
        for table in ["place", "place_work", "place_file", "place_row", "fleet_key"] {
            #expect(try SQLiteShell.run(bench.journal.path, "SELECT count(*) FROM \(table)") == "0\n")
        }
    }

    @Test(.enabled(if: SQLiteShell.isInstalled))
    func `the journal of an earlier version takes work`() async throws {
        let id = try await bench.admit("a")
        bench.journal.close()
        try SQLiteShell.run(
            bench.journal.path,
            """
            DROP TABLE place; DROP TABLE place_work; DROP TABLE place_row; DROP TABLE place_file;
            DELETE FROM grdb_migrations WHERE identifier = '15 places';
            """)
        let journal = try Journal(path: bench.journal.path, now: Bench.start)
        defer { journal.close() }
        let starts = try await journal.takePlaceWork([.test("b")], at: Bench.start)
        #expect(starts == [.taken(file: id + 1)])
    }
}

/// Sessions come and go; work waits, or goes back.
@Suite(.seated) struct PlaceSessionTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    @Test func `work is held between sessions, and goes on with its own notes`() async throws {
        let id = try await bench.take(.test("a.mov"))
        try await bench.leave(["upload": [1]], .again(Bench.start + .seconds(600), counts: true))
        try await bench.journal.holdPlaceWork()
        #expect(try await bench.nextDue(["r2"]) == nil)
        #expect(try await bench.journal.queueCounts()["r2"]?.held == 1)
        #expect(try await bench.journal.queueCounts() == bench.journal.countedQueue())
        #expect(try await bench.job(id).refusal(of: .retry) == "waits for its fleet")
        let outcomes = try await bench.journal.act(.retry(uptimes: [:]), on: [id], at: Bench.start).outcomes
        #expect(outcomes == [.skipped("waits for its fleet")])
        #expect(try await bench.journal.placeWork().map(\.session) == [0])
        let next = PlaceWork.test("a.mov", fence: 3, session: 2, .test(inode: 9, device: 4), notes: ["upload": [8]])
        #expect(try await bench.take(next) == id)
        let claim = try #require(try await bench.claimAll().first)
        #expect(claim.checkpoint == ["upload": [1]] && claim.delivery.attempts == 2)
        #expect(claim.file.identity == next.admission.arrival.identity)
        let row = try #require(try await bench.journal.placeWork().first)
        #expect(row.session == 2 && row.fence == 3)
        #expect(try await bench.journal.queueCounts() == bench.journal.countedQueue())
    }

    @Test func `a delivery that runs at the end of a session goes on, and is held after it`() async throws {
        let ids = [try await bench.take(.test("a")), try await bench.take(.test("b", number: 8))]
        let claims = try await bench.claimAll()
        try await bench.journal.holdPlaceWork()
        try await bench.end(claims[0], .again())
        try await bench.end(claims[1], .delivered(.test("b")))
        #expect(try await bench.job(ids[0]).deliveries[0].isHeld)
        #expect(try await bench.nextDue(["r2"]) == nil)
        // Its end is told in the next session.
        #expect(try await bench.take(.test("b", number: 8, fence: 2, session: 2)) == ids[1])
        #expect(try await bench.journal.endedPlaceWork(session: 2, limit: 9).map(\.file) == [ids[1]])
    }

    @Test func `time to live stands while work is held`() async throws {
        let id = try await bench.take(.test("a", expire: .seconds(60)))
        _ = try await bench.setUptime("r2", 20_000)
        try await bench.journal.holdPlaceWork()
        #expect(try await bench.setUptime("r2", 500_000).isEmpty)
        try await bench.take(.test("a", fence: 2, session: 2, expire: .seconds(60)))
        #expect(try await bench.delivery(id).expiresAt == 540_000)
        #expect(try await bench.setUptime("r2", 540_000) == [id])
        #expect(try await bench.journal.endedPlaceWork(session: 2, limit: 9).map(\.state) == [.expired])
    }

    @Test func `a start holds work back, also what a dead process had`() async throws {
        let id = try await bench.take(.test("a"))
        try await bench.take(.test("b", number: 8))
        #expect(try await bench.claimAll(most: 1).count == 1)
        let journal = try bench.reopen()
        defer { journal.close() }
        #expect(try await journal.recover(destinations: ["r2"], at: Bench.start).freedClaims == 1)
        #expect(try await journal.nextDue(destinations: ["r2"]) == nil)
        #expect(try await journal.placeWork().map(\.session) == [0, 0])
        _ = try await journal.takePlaceWork([.test("a", fence: 2, session: 2)], at: Bench.start)
        #expect(try await journal.settle(.test(.delivered))?.row.fileID == id)
    }

    @Test func `parked work stays held when its destination comes back between sessions`() async throws {
        try await bench.take(.test("a"))
        _ = try await bench.journal.setDestinations([], at: Bench.start)
        try await bench.journal.holdPlaceWork()
        _ = try await bench.journal.setDestinations(["r2"], at: Bench.start)
        #expect(try await bench.nextDue(["r2"]) == nil)
        try await bench.take(.test("a", fence: 2, session: 2))
        #expect(try await bench.due() == ["a"])
        #expect(try await bench.journal.queueCounts() == bench.journal.countedQueue())
    }

    @Test func `a disposal that has begun goes on between sessions`() async throws {
        let id = try await bench.settled(.test("a"), finish: 9)
        #expect(try await bench.journal.beginFinish(bench.job(id).file, [1]) == nil)
        try await bench.journal.holdPlaceWork()
        #expect(try await bench.unfinished().map(\.file.id) == [id])
    }

    // MARK: - Dropped

    @Test func `of dropped work nothing stays, and it may come back under its key`() async throws {
        try await bench.journal.reserveKeys(at: ["r2": nil])
        let id = try await bench.take(.test("a.mov"))
        try await bench.leave([CheckpointName.mayBeVisible: [1], "upload": [2]], .again())
        try await bench.journal.dropPlaceWork([id])
        #expect(try await !bench.hasFile(id))
        #expect(try await bench.journal.placeWork().isEmpty)
        #expect(try await bench.files().isEmpty)
        #expect(try await bench.journal.queueCounts() == bench.journal.countedQueue())
        #expect(try await bench.journal.keysToReturn(limit: 9).isEmpty)
        #expect(try await bench.leftovers().isEmpty)
        let next = try await bench.take(.test("a.mov", fence: 4))
        #expect(try await bench.delivery(next).key == "a.mov")
        #expect(try await bench.journal.checkpoints(ofJob: next).isEmpty)
    }

    @Test func `dropped work that a worker has goes once the worker has let go`() async throws {
        let id = try await bench.take(.test("a"))
        let claim = try #require(try await bench.claimAll().first)
        try await bench.journal.dropPlaceWork([id])
        #expect(try await bench.hasFile(id))
        #expect(try await bench.journal.endedPlaceWork(session: 1, limit: 9).isEmpty)
        try await bench.end(claim, .again())
        #expect(try await bench.nextDue(["r2"]) == nil)
        try await bench.journal.dropPlaceWork([])
        #expect(try await !bench.hasFile(id))
        #expect(try await bench.journal.queueCounts() == bench.journal.countedQueue())
    }

    @Test func `dropped work that comes back in time goes on`() async throws {
        let id = try await bench.take(.test("a"))
        let claim = try #require(try await bench.claimAll().first)
        try await bench.journal.dropPlaceWork([id])
        try await bench.end(claim, .again())
        #expect(try await bench.take(.test("a", fence: 2, session: 2)) == id)
        #expect(try await bench.due() == ["a"])
    }

    @Test func `what was delivered stays as a file whose source is left to others`() async throws {
        let id = try await bench.take(.test("a"))
        try await bench.settle(.test(.delivered))
        try await bench.journal.dropPlaceWork([id])
        #expect(try await bench.journal.placeWork().isEmpty)
        #expect(try await bench.unfinished().map(\.file.id) == [id])
        // The fleet gives it again: it has ended.
        #expect(try await bench.take(.test("a", number: 44, fence: 2, session: 2)) == id)
        #expect(try await bench.unfinished().isEmpty)
        #expect(try await bench.journal.endedPlaceWork(session: 2, limit: 9).map(\.number) == [44])
    }

    @Test func `a disposal that has begun is carried to its end, and its work goes after it`() async throws {
        let id = try await bench.settled(.test("a"), finish: 9)
        #expect(try await bench.journal.beginFinish(bench.job(id).file, [1]) == nil)
        try await bench.journal.dropPlaceWork([id])
        #expect(try await bench.unfinished().map(\.file.id) == [id])
        #expect(try await bench.journal.finishedPlaceWork(session: 1, limit: 9).isEmpty)
        try await bench.finishAll(Disposition.deleted)
        try await bench.journal.dropPlaceWork([])
        #expect(try await bench.journal.placeWork().isEmpty)
        #expect(try await bench.prune() == 1)
    }

    @Test func `a disposal that has not begun is dropped with its file`() async throws {
        let id = try await bench.take(.test("a", isFinishing: true))
        try await bench.journal.dropPlaceWork([id])
        #expect(try await !bench.hasFile(id))
    }
}
