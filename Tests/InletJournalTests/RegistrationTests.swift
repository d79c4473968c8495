import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage
import Testing

/// Deliveries that register what another delivery of the same file stores: `spaces` what `r2` has.
@Suite(.seated) struct RegistrationTests {
    private func model(
        _ companions: CompanionAdmission..., to destinations: [String] = ["spaces"], size: Int64 = 10,
        expire: Duration? = nil
    ) -> FileAdmission {
        var admission = FileAdmission.test(
            "ship.glb", .test(size: size), to: destinations, key: "m/ship.glb", expire: expire)
        admission.lanes["r2"] = .big
        admission.storages = ["spaces": "r2"]
        admission.companions = companions
        return admission
    }

    private func companion(_ name: String, storedBy destinations: [String] = ["r2"]) -> CompanionAdmission {
        CompanionAdmission(
            .test(name, .test(size: 3)), Companion(path: FilePath(name), kind: .sameStem, ending: "jpg"),
            category: "images", mediaType: "image/jpeg",
            lanes: Dictionary(uniqueKeysWithValues: destinations.map { ($0, Lane.big) }))
    }

    private func admit(_ bench: Bench, _ admission: FileAdmission) async throws -> Int64 {
        let (main, _) = try await bench.journal.admitSet(admission, at: Bench.start)
        guard case .admitted(let id) = main else { throw Unexpected(what: "\(main)") }
        return id
    }

    /// Registers what waits for it; nil when nothing does.
    @discardableResult
    private func register(_ bench: Bench, _ settlement: Settlement = .test(.delivered)) async throws -> DeliveryRow? {
        try await bench.settle(settlement, of: "spaces", lane: .small)
    }

    @Test(arguments: [["spaces"], ["r2", "spaces"], ["spaces", "r2"]])
    func `a file is stored once, and then registered under the same key`(destinations: [String]) async throws {
        let bench = try Bench()
        let id = try await admit(bench, model(to: destinations))
        let rows = try await bench.job(id).deliveries
        #expect(rows.map(\.destination) == ["r2", "spaces"] && rows.map(\.key) == ["m/ship.glb", "m/ship.glb"])
        #expect(rows.map(\.afterID) == [nil, rows[0].id] && rows[1].isHeld)
        #expect(try await register(bench) == nil)
        #expect(try await bench.settle(.delivered(.test("m/ship.glb")))?.fileID == id)
        #expect(try await bench.job(id).file.state == .pending)
        #expect(try await register(bench)?.id == rows[1].id)
        #expect(try await bench.job(id).file.state == .delivered)
    }

    @Test func `a key that is taken in the storage is another one in both places`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("other", key: "m/ship.glb")
        let id = try await admit(bench, model())
        #expect(try await bench.job(id).deliveries.map(\.key) == ["m/ship_2.glb", "m/ship_2.glb"])
    }

    @Test(arguments: [DeliveryState.failed, .cancelled, .gone])
    func `what could not be stored is not registered, and says where; sent again, both go in order`(
        state: DeliveryState
    ) async throws {
        let bench = try Bench()
        let id = try await admit(bench, model())
        try await bench.settle(.test(state))
        let job = try await bench.job(id)
        #expect(job.deliveries.map(\.state) == [state, state])
        #expect(job.deliveries[1].reason == "not stored in 'r2': the test says \(state.rawValue)")
        #expect(job.file.reason == "the test says \(state.rawValue)" && job.file.state != .pending)
        try await bench.finishAll()
        #expect(try await bench.journal.retry(id, uptimes: [:], at: Bench.start))
        #expect(try await bench.job(id).deliveries.map(\.state) == [.ready, .ready])
        #expect(try await register(bench) == nil)
        try await bench.settle(.test(.delivered))
        #expect(try await register(bench)?.fileID == id)
        #expect(try await bench.job(id).file.state == .delivered)
    }

    @Test func `a registration that fails leaves what is stored, and says so; it is sent again alone`() async throws {
        let bench = try Bench()
        let id = try await admit(bench, model())
        try await bench.settle(.delivered(.test("m/ship.glb")))
        try await register(bench, .test(.failed))
        let job = try await bench.job(id)
        #expect(job.deliveries.map(\.state) == [.delivered, .failed] && job.file.state == .failed)
        #expect(job.deliveries[1].reason == "the test says failed; the file stays stored in 'r2' as m/ship.glb")
        #expect(try await bench.journal.retry(id, uptimes: [:], at: Bench.start))
        #expect(try await bench.settle(.test(.failed)) == nil)
        #expect(try await register(bench)?.fileID == id)
        #expect(try await bench.job(id).file.state == .delivered)
    }

    @Test func `who cancels the storage cancels the registration, even when its proof still comes`() async throws {
        let bench = try Bench()
        let id = try await admit(bench, model())
        try await bench.hold { claim in
            let running = try await bench.journal.cancel(id, at: Bench.start)
            #expect(running == [claim.delivery.id])
            return .test(.delivered)
        }
        #expect(try await bench.job(id).deliveries.map(\.state) == [.delivered, .cancelled])
        #expect(try await bench.job(id).file.state == .cancelled)
        #expect(try await register(bench) == nil)
        #expect(try await bench.journal.retry(id, uptimes: [:], at: Bench.start))
        #expect(try await register(bench)?.fileID == id)
    }

    @Test func `content that changed is superseded in both places, and frees both keys`() async throws {
        let bench = try Bench()
        let old = try await admit(bench, model())
        let new = try await admit(bench, model(size: 11))
        #expect(try await bench.job(old).deliveries.map(\.state) == [.superseded, .superseded])
        #expect(try await bench.job(new).deliveries.map(\.key) == ["m/ship.glb", "m/ship.glb"])
    }

    @Test(arguments: [DeliveryState.delivered, .failed])
    func `it waits for the companions too, however they end, and is told of those that are stored`(
        state: DeliveryState
    ) async throws {
        let bench = try Bench()
        let id = try await admit(bench, model(companion("ship.jpg")))
        try await bench.settle(.delivered(.test("m/ship.glb")))
        #expect(try await register(bench) == nil)
        let ended = state == .delivered ? Settlement.delivered(.test("m/ship.jpg")) : .test(state)
        #expect(try await bench.settle(ended)?.fileID == id + 1)
        let row = try #require(try await register(bench))
        let context = try await bench.journal.context(of: row, in: bench.job(id).file)
        let stored = state == .delivered ? ["m/ship.glb", "m/ship.jpg"] : ["m/ship.glb"]
        #expect(context.upstream.map(\.proof.key) == stored)
        #expect(context.upstream.map(\.path) == Array(["ship.glb", "ship.jpg"].prefix(stored.count)))
        #expect(context.upstream.map(\.mediaType) == Array(["text/plain", "image/jpeg"].prefix(stored.count)))
        #expect(context.upstream.allSatisfy { $0.destination == "r2" } && context.batch == nil)
        #expect(try await bench.job(id).file.state == .delivered)
    }

    @Test func `who waits is told when the last of what it waited for has ended`() async throws {
        let bench = try Bench()
        _ = try await admit(bench, model(companion("ship.jpg")))
        let first = try await settled(bench, .test(.delivered))
        let second = try await settled(bench, .test(.failed))
        #expect(first.hasReleased && second.hasReleased)
    }

    private func settled(_ bench: Bench, _ settlement: Settlement) async throws -> SettledFile {
        let outcome = try await bench.journal.withClaim(
            .big, rooms: [.test()], clock: { Bench.start }
        ) { _ in (settlement, ()) }
        guard let outcome else { throw Unexpected(what: "nothing to claim") }
        return outcome.0
    }

    @Test func `a companion follows what stores it, never the registration`() async throws {
        let bench = try Bench()
        let id = try await admit(bench, model(companion("ship.jpg"), to: ["spaces", "disk"]))
        let companions = try await bench.job(id + 1).deliveries
        #expect(companions.map(\.destination) == ["r2"])
        let main = try await bench.job(id).deliveries
        #expect(companions.map(\.afterID) == [main[0].id])
    }

    @Test func `its time begins when somebody begins it, once`() async throws {
        let bench = try Bench()
        let id = try await admit(bench, model(expire: .seconds(5)))
        let rows = try await bench.job(id).deliveries
        #expect(rows.map(\.expiresAt) == [5000, nil])
        try await bench.settle(.test(.delivered))
        #expect(try await bench.journal.setUptime("spaces", 1_000_000, at: Bench.start).isEmpty)
        try await bench.journal.startExpiry(of: rows[1].id, at: 1_005_000)
        try await bench.journal.startExpiry(of: rows[1].id, at: 9_000_000)
        #expect(try await bench.journal.nextExpiries(of: ["r2", "disk", "spaces"]) == ["spaces": 1_005_000])
        #expect(try await bench.journal.setUptime("spaces", 1_005_000, at: Bench.start) == [id])
        let reason = try await bench.job(id).deliveries[1].reason ?? ""
        #expect(reason.hasSuffix("; the file stays stored in 'r2' as k"))
    }

    @Test func `the process may end between any two steps`() async throws {
        let bench = try Bench()
        let id = try await admit(bench, model(companion("ship.jpg")))
        let path = bench.journal.path
        bench.journal.close()
        for (destination, lane) in [("r2", Lane.big), ("r2", .big), ("spaces", .small)] {
            let journal = try Journal(path: path, now: Bench.start)
            defer { journal.close() }
            _ = try await journal.recover(destinations: ["r2", "spaces"], at: Bench.start)
            let claimed = try await journal.withClaim(
                lane, rooms: [.test(destination)], clock: { Bench.start }
            ) { _ in (Settlement.test(.delivered), ()) }
            #expect(claimed != nil)
        }
        let journal = try Journal(path: path, now: Bench.start)
        defer { journal.close() }
        #expect(try await journal.totals().mapValues(\.files) == [.delivered: 2])
        #expect(try await journal.job(id)?.deliveries.map(\.attempts) == [1, 1])
    }

    @Test func `a file that was sent is known by all places it went to`() async throws {
        let bench = try Bench()
        var admission = model()
        admission.arrival = Arrival(root: "", path: "/in/ship.glb", identity: .test())
        admission.newerThan = 0
        let id = try await admit(bench, admission)
        #expect(try await bench.journal.admit(admission, at: Bench.start) == .known(id: id))
        let last = try await bench.journal.lastSent([
            ("/in/ship.glb", admission.steps.destinations), ("/in/ship.glb", ["spaces"]),
        ])
        #expect(last.map { $0?.file.id } == [id, nil])
    }
}
