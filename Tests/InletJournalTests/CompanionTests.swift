import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage
import Testing

/// Files that are admitted with, or after, the file they belong to.
@Suite(.seated) struct CompanionTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private func companion(
        _ name: String, _ kind: Companion.Kind = .sameStem, storedBy destinations: [String] = ["r2"], size: Int64 = 3
    ) -> CompanionAdmission {
        .test(name, kind, .test(size: size), storedBy: destinations)
    }

    private func clip(
        to destinations: [String] = ["r2"], _ companions: CompanionAdmission..., key: String = "v/clip.mp4",
        onSuccess: Route.OnSuccess = .keep, expire: Duration? = nil, unit: FilePath? = nil
    ) -> FileAdmission {
        var admission = FileAdmission.test(
            "clip.mp4", to: destinations, key: key, expire: expire, unit: unit, companions: companions)
        admission.plan?.onSuccess = onSuccess
        return admission
    }

    /// Admits a file with companions; the ids are theirs, the main file's first.
    private func admit(_ admission: FileAdmission) async throws -> [Int64] {
        let (main, others) = try await bench.admitSet(admission)
        return try ([main] + others).map { outcome in
            switch outcome {
            case .admitted(let id), .rejected(let id): return id
            case .known, .busy, .duplicate, .full: throw Unexpected(what: "\(outcome)")
            }
        }
    }

    @Test func `a companion goes after its file, to the same places, under a key beside its`() async throws {
        try await bench.admit("other", key: "v/clip.mp4")
        let xmp = companion("clip.xmp", storedBy: ["r2", "disk"])
        let ids = try await admit(clip(to: ["r2", "disk"], xmp, companion("clip.mp4.srt", .fullName)))
        let (main, first, second) = (
            try await bench.job(ids[0]), try await bench.job(ids[1]), try await bench.job(ids[2])
        )
        #expect(main.deliveries.map(\.key) == ["v/clip_2.mp4", "v/clip.mp4"])
        #expect(first.deliveries.map(\.key) == ["v/clip_2.xmp", "v/clip.xmp"])
        #expect(first.deliveries.map(\.afterID) == main.deliveries.map(\.id))
        #expect(second.deliveries.map(\.key) == ["v/clip_2.mp4.srt"])
        #expect(Set([main, first, second].map(\.file.batchID)).count == 1 && main.file.batchID != nil)
        #expect(first.file.role == "same_stem" && main.file.role == nil)
        try await bench.settle(.test(.delivered))
        #expect(try await bench.settle(.test(.delivered))?.fileID == ids[0])
        let followers = [try await bench.settle(.test(.delivered)), try await bench.settle(.test(.delivered))]
        #expect(Set(followers.map { $0?.fileID }) == [ids[1], ids[2]])
        #expect(try await bench.settle(.test(.delivered)) == nil)
    }

    @Test func `metadata and markers have arrived when their file has`() async throws {
        let yaml = companion("clip.mp4.yaml", .metadata, storedBy: ["disk"])
        let done = companion("clip.mp4.done", .marker, storedBy: [], size: 0)
        let ids = try await admit(clip(to: ["r2", "disk"], yaml, done, onSuccess: .delete))
        #expect(try await bench.job(ids[1]).deliveries.map(\.key) == ["v/clip.mp4.yaml", nil])
        #expect(try await bench.job(ids[2]).deliveries.map(\.key) == [nil, nil])
        // Stored somewhere, or empty: it may go as its file does.
        #expect(try await bench.job(ids[1]).file.policy.onSuccess == .delete)
        #expect(try await bench.job(ids[2]).file.policy.onSuccess == .delete)
        try await bench.settle(.delivered(.test("v/clip.mp4")), of: "r2")
        let carried = try await bench.job(ids[1]).deliveries[1]
        #expect(carried.state == .delivered && carried.proof?.method == .carried)
        #expect(carried.proof?.key == "v/clip.mp4" && carried.proof?.size == 3)
        #expect(try await bench.job(ids[1]).file.state == .pending)
        for _ in 0..<2 { try await bench.settle(.test(.delivered), of: "disk") }
        #expect(try await bench.files() == [.delivered: 3])
    }

    @Test func `metadata that is stored nowhere is never deleted`() async throws {
        let ids = try await admit(clip(companion("clip.mp4.yaml", .metadata, storedBy: []), onSuccess: .delete))
        #expect(try await bench.job(ids[0]).file.policy.onSuccess == .delete)
        #expect(try await bench.job(ids[1]).file.policy.onSuccess == .archive)
    }

    @Test(arguments: [DeliveryState.failed, .cancelled, .superseded, .gone])
    func `when its file is not delivered, neither is a companion; sent again, it follows`(state: DeliveryState)
        async throws
    {
        let yaml = companion("clip.mp4.yaml", .metadata, storedBy: [])
        let ids = try await admit(clip(companion("clip.xmp"), yaml))
        try await bench.settle(.test(state))
        for id in ids { #expect(try await bench.job(id).deliveries.map(\.state) == [state]) }
        #expect(try await bench.settle(.test(.delivered)) == nil)
        try await bench.finishAll()
        #expect(try await !bench.retry(ids[1]))
        guard state != .superseded else { return }
        #expect(try await bench.retry(ids[0]))
        #expect(try await bench.files() == [.pending: 3])
        #expect(try await bench.settle(.test(.delivered))?.fileID == ids[0])
        #expect(try await bench.settle(.test(.delivered))?.fileID == ids[1])
        #expect(try await bench.files() == [.delivered: 3])
    }

    @Test func `only what a retry sends leaves its quarantine for it`() async throws {
        let ids = try await admit(clip(to: ["r2", "disk"], companion("clip.xmp", storedBy: ["r2", "disk"])))
        for destination in ["r2", "disk"] { try await bench.settle(.test(.failed), of: destination) }
        try await bench.finishAll(Disposition.quarantined("/x"))
        func lying(_ id: Int64, _ scope: RetryScope = RetryScope()) async throws -> [Int64] {
            try await bench.journal.quarantined(byRetryOf: [id], scope)[id]?.map(\.id) ?? []
        }
        #expect(try await lying(ids[0]) == ids)
        // Its file has failed, and is sent first.
        #expect(try await lying(ids[1]).isEmpty)
        #expect(try await lying(ids[0], RetryScope(destination: "r2", states: [.failed])) == ids)
        #expect(try await lying(ids[0], RetryScope(destination: "elsewhere", states: [.failed])).isEmpty)
        #expect(try await lying(ids[0], RetryScope(states: [.expired])).isEmpty)
    }

    @Test func `a companion that failed by itself is sent again by itself`() async throws {
        let ids = try await admit(clip(companion("clip.xmp")))
        try await bench.settle(.test(.delivered))
        try await bench.settle(.test(.failed))
        #expect(try await bench.retry(ids[1]))
        #expect(try await bench.settle(.test(.delivered))?.fileID == ids[1])
    }

    @Test func `companions of a rejected file are rejected with it`() async throws {
        var refused = FileAdmission.refused("clip.mp4", "too large")
        refused.companions = [companion("clip.xmp")]
        let ids = try await admit(refused)
        let job = try await bench.job(ids[1])
        #expect(job.file.state == .rejected && job.deliveries.isEmpty)
        #expect(job.file.reason == "its file clip.mp4 was rejected: too large")
        try await bench.finishAll()
        #expect(try await bench.batch(of: ids[0])?.state == .rejected)
    }

    @Test func `a late companion waits for its file, or goes at once when that has arrived`() async throws {
        let main = try await bench.admit("clip.mp4", key: "v/clip.mp4")
        #expect(try await bench.admitLate(companion("clip.xmp"), main: main) == .admitted(id: main + 1))
        #expect(try await bench.settle(.test(.delivered))?.fileID == main)
        try await bench.finishAll()
        #expect(try await bench.admitLate(companion("clip.srt"), main: main) == .admitted(id: main + 2))
        #expect(try await bench.batch(of: main)?.counts == [.delivered: 1, .pending: 2])
        for id in [main + 1, main + 2] { #expect(try await bench.settle(.test(.delivered))?.fileID == id) }
        let keys = try await [main + 1, main + 2].asyncMap { try await bench.job($0).deliveries.map(\.key) }
        #expect(keys == [["v/clip.xmp"], ["v/clip.srt"]])
        #expect(try await bench.admitLate(companion("clip.xmp"), main: main) == .known(id: main + 1))
    }

    @Test func `a late companion of a failed file ends as that did`() async throws {
        let main = try await bench.settled("clip.mp4", .failed)
        try await bench.admitLate(companion("clip.xmp"), main: main)
        let job = try await bench.job(main + 1)
        #expect(job.file.state == .failed && job.deliveries.map(\.state) == [.failed])
        #expect(job.deliveries[0].reason == "the test says failed")
    }

    @Test func `late metadata that no destination stores is rejected, and says why`() async throws {
        let main = try await bench.admit("clip.mp4")
        let yaml = companion("clip.mp4.yaml", .metadata, storedBy: [])
        #expect(try await bench.admitLate(yaml, main: main) == .rejected(id: main + 1))
        #expect(
            try await bench.job(main + 1).file.reason
                == "it came too late: its file clip.mp4 was taken without it, and no destination stores it")
        #expect(try await bench.admitLate(companion("x.xmp"), main: 99) == .busy(id: 99))
    }

    @Test func `a companion that changed is a new arrival; one that did not stays as it is`() async throws {
        let ids = try await admit(clip(companion("clip.xmp")))
        var again = clip(companion("clip.xmp"), companion("clip.srt"))
        again.arrival.identity.size = 11
        let (main, others) = try await bench.admitSet(again)
        // The older file has not been sent: it is superseded, and its companion with it.
        #expect(main == .admitted(id: 3) && others == [.admitted(id: 4), .admitted(id: 5)])
        #expect(try await bench.job(ids[1]).file.state == .superseded)
        #expect(try await bench.job(4).deliveries.map(\.key) == ["v/clip.xmp"])
    }

    @Test func `a file that is forgotten leaves its companions in peace`() async throws {
        let ids = try await admit(clip(companion("clip.xmp")))
        try await bench.settleAndFinish(.test(.delivered))
        #expect(try await bench.forget(ids[0]))
        #expect(try await bench.job(ids[1]).deliveries.map(\.afterID) == [nil])
        #expect(try await bench.settle(.test(.delivered))?.fileID == ids[1])
        try await bench.finishAll()
        #expect(try await bench.forget(ids[1]))
    }

    @Test func `a companion's time does not run while its file is on its way`() async throws {
        let ids = try await admit(clip(companion("clip.xmp"), expire: .seconds(5)))
        let srt = companion("clip.srt")
        try await bench.admitLate(srt, main: ids[0], uptimes: ["r2": 1000])
        try await bench.hold { _ in
            let expiries = try await bench.journal.nextExpiries(of: ["r2", "disk", "spaces"])
            let expired = try await bench.setUptime("r2", 1_000_000)
            #expect(expiries.isEmpty && expired.isEmpty)
            return .test(.failed)
        }
        // Sent again, its file's time begins anew, and its own does not.
        #expect(try await bench.journal.retry(ids[0], uptimes: ["r2": 1_000_000], at: Bench.start))
        #expect(try await bench.journal.nextExpiries(of: ["r2", "disk", "spaces"]) == ["r2": 1_005_000])
        for id in ids + [ids[1] + 1] { #expect(try await bench.settle(.test(.delivered))?.fileID == id) }
        let last = companion("clip.mp4.srt", .fullName)
        try await bench.admitLate(last, main: ids[0], uptimes: ["r2": 2_000_000])
        #expect(try await bench.journal.nextExpiries(of: ["r2", "disk", "spaces"]) == ["r2": 2_005_000])
    }

    @Test func `nor does it in a unit that closes before its file is sent`() async throws {
        let ids = try await admit(clip(companion("clip.xmp"), expire: .seconds(5), unit: "gigs"))
        try await bench.closeUnit("gigs", uptimes: ["r2": 1000])
        #expect(try await bench.job(ids[0]).deliveries.map(\.expiresAt) == [6000])
        #expect(try await bench.job(ids[1]).deliveries.map(\.expiresAt) == [nil])
    }

    @Test func `in an open unit a companion waits for both, the unit and its file`() async throws {
        let ids = try await admit(clip(companion("clip.xmp"), unit: "gigs"))
        #expect(try await bench.settle(.test(.delivered)) == nil)
        try await bench.closeUnit("gigs")
        for id in ids { #expect(try await bench.settle(.test(.delivered))?.fileID == id) }
    }
}

/// Deliveries that register what another delivery of the same file stores: `spaces` what `r2` has.
@Suite(.seated) struct RegistrationTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private func model(
        _ companions: CompanionAdmission..., to destinations: [String] = ["spaces"], size: Int64 = 10,
        expire: Duration? = nil
    ) -> FileAdmission {
        var admission = FileAdmission.test(
            "ship.glb", .test(size: size), to: destinations, key: "m/ship.glb", expire: expire, companions: companions)
        admission.lanes["r2"] = .big
        admission.storages = ["spaces": "r2"]
        return admission
    }

    private func picture(_ name: String) -> CompanionAdmission {
        var companion = CompanionAdmission.test(name, .sameStem, .test(size: 3))
        companion.mediaType = "image/jpeg"
        return companion
    }

    /// Registers what waits for it; nil when nothing does.
    @discardableResult
    private func register(_ settlement: ClaimOutcome = .test(.delivered)) async throws -> DeliveryRow? {
        try await bench.settle(settlement, of: "spaces", lane: .small)
    }

    @Test(arguments: [["spaces"], ["r2", "spaces"], ["spaces", "r2"]])
    func `a file is stored once, and then registered under the same key`(destinations: [String]) async throws {
        let id = try await bench.admit(model(to: destinations))
        let rows = try await bench.job(id).deliveries
        #expect(rows.map(\.destination) == ["r2", "spaces"] && rows.map(\.key) == ["m/ship.glb", "m/ship.glb"])
        #expect(rows.map(\.afterID) == [nil, rows[0].id] && rows[1].isHeld)
        #expect(try await register() == nil)
        #expect(try await bench.settle(.delivered(.test("m/ship.glb")))?.fileID == id)
        #expect(try await bench.job(id).file.state == .pending)
        #expect(try await register()?.id == rows[1].id)
        #expect(try await bench.job(id).file.state == .delivered)
    }

    @Test func `a key that is taken in the storage is another one in both places`() async throws {
        try await bench.admit("other", key: "m/ship.glb")
        #expect(try await bench.job(bench.admit(model())).deliveries.map(\.key) == ["m/ship_2.glb", "m/ship_2.glb"])
    }

    @Test(arguments: [DeliveryState.failed, .cancelled, .gone])
    func `what could not be stored is not registered, and says where; sent again, both go in order`(
        state: DeliveryState
    ) async throws {
        let id = try await bench.admit(model())
        try await bench.settle(.test(state))
        let job = try await bench.job(id)
        #expect(job.deliveries.map(\.state) == [state, state])
        #expect(job.deliveries[1].reason == "not stored in 'r2': the test says \(state.rawValue)")
        #expect(job.file.reason == "the test says \(state.rawValue)" && job.file.state != .pending)
        try await bench.finishAll()
        #expect(try await bench.retry(id))
        #expect(try await bench.job(id).deliveries.map(\.state) == [.ready, .ready])
        #expect(try await register() == nil)
        try await bench.settle(.test(.delivered))
        #expect(try await register()?.fileID == id)
        #expect(try await bench.job(id).file.state == .delivered)
    }

    @Test func `a registration that fails leaves what is stored, and says so; it is sent again alone`() async throws {
        let id = try await bench.admit(model())
        try await bench.settle(.delivered(.test("m/ship.glb")))
        try await register(.test(.failed))
        let job = try await bench.job(id)
        #expect(job.deliveries.map(\.state) == [.delivered, .failed] && job.file.state == .failed)
        #expect(job.deliveries[1].reason == "the test says failed; the file stays stored in 'r2' as m/ship.glb")
        #expect(try await bench.retry(id))
        #expect(try await bench.settle(.test(.failed)) == nil)
        #expect(try await register()?.fileID == id)
        #expect(try await bench.job(id).file.state == .delivered)
    }

    @Test func `who cancels the storage cancels the registration, even when its proof still comes`() async throws {
        let id = try await bench.admit(model())
        try await bench.hold { claim in
            let running = try await bench.cancel(id)
            #expect(running == [claim.delivery.id])
            return .test(.delivered)
        }
        #expect(try await bench.job(id).deliveries.map(\.state) == [.delivered, .cancelled])
        #expect(try await bench.job(id).file.state == .cancelled)
        #expect(try await register() == nil)
        #expect(try await bench.retry(id))
        #expect(try await register()?.fileID == id)
    }

    @Test func `content that changed is superseded in both places, and frees both keys`() async throws {
        let old = try await bench.admit(model())
        let new = try await bench.admit(model(size: 11))
        #expect(try await bench.job(old).deliveries.map(\.state) == [.superseded, .superseded])
        #expect(try await bench.job(new).deliveries.map(\.key) == ["m/ship.glb", "m/ship.glb"])
    }

    @Test(arguments: [DeliveryState.delivered, .failed])
    func `it waits for the companions too, however they end, and is told of those that are stored`(
        state: DeliveryState
    ) async throws {
        let id = try await bench.admit(model(picture("ship.jpg")))
        try await bench.settle(.delivered(.test("m/ship.glb")))
        #expect(try await register() == nil)
        let ended = state == .delivered ? ClaimOutcome.delivered(.test("m/ship.jpg")) : .test(state)
        #expect(try await bench.settle(ended)?.fileID == id + 1)
        let row = try #require(try await register())
        let context = try await bench.journal.context(of: row, in: bench.job(id).file)
        let stored = state == .delivered ? ["m/ship.glb", "m/ship.jpg"] : ["m/ship.glb"]
        #expect(context.upstream.map(\.proof.key) == stored)
        #expect(context.upstream.map(\.path) == Array(["ship.glb", "ship.jpg"].prefix(stored.count)))
        #expect(context.upstream.map(\.mediaType) == Array(["text/plain", "image/jpeg"].prefix(stored.count)))
        #expect(context.upstream.allSatisfy { $0.destination == "r2" } && context.batch == nil)
        #expect(try await bench.job(id).file.state == .delivered)
    }

    @Test func `who waits is told when the last of what it waited for has ended`() async throws {
        _ = try await bench.admit(model(picture("ship.jpg")))
        for settlement in [ClaimOutcome.test(.delivered), .test(.failed)] {
            #expect(try await bench.journal.settle(settlement)?.file.hasReleased == true)
        }
    }

    @Test func `a companion follows what stores it, never the registration`() async throws {
        let id = try await bench.admit(model(picture("ship.jpg"), to: ["spaces", "disk"]))
        let companions = try await bench.job(id + 1).deliveries
        #expect(companions.map(\.destination) == ["r2"])
        #expect(try await companions.map(\.afterID) == [bench.job(id).deliveries[0].id])
    }

    @Test func `its time begins when somebody begins it, once`() async throws {
        let id = try await bench.admit(model(expire: .seconds(5)))
        let rows = try await bench.job(id).deliveries
        #expect(rows.map(\.expiresAt) == [5000, nil])
        try await bench.settle(.test(.delivered))
        #expect(try await bench.setUptime("spaces", 1_000_000).isEmpty)
        try await bench.journal.startExpiry(of: rows[1].id, at: 1_005_000)
        try await bench.journal.startExpiry(of: rows[1].id, at: 9_000_000)
        #expect(try await bench.journal.nextExpiries(of: ["r2", "disk", "spaces"]) == ["spaces": 1_005_000])
        #expect(try await bench.setUptime("spaces", 1_005_000) == [id])
        let reason = try await bench.job(id).deliveries[1].reason ?? ""
        #expect(reason.hasSuffix("; the file stays stored in 'r2' as k"))
    }

    @Test func `the process may end between any two steps`() async throws {
        let id = try await bench.admit(model(picture("ship.jpg")))
        let path = bench.journal.path
        bench.journal.close()
        for (destination, lane) in [("r2", Lane.big), ("r2", .big), ("spaces", .small)] {
            let journal = try Journal(path: path, now: Bench.start)
            defer { journal.close() }
            _ = try await journal.recover(destinations: ["r2", "spaces"], at: Bench.start)
            #expect(try await journal.settle(.test(.delivered), [.test(destination)], lane: lane) != nil)
        }
        let journal = try Journal(path: path, now: Bench.start)
        defer { journal.close() }
        #expect(try await journal.totals().mapValues(\.files) == [.delivered: 2])
        #expect(try await journal.job(id)?.deliveries.map(\.attempts) == [1, 1])
    }

    @Test func `a file that was sent is known by all places it went to`() async throws {
        var admission = model()
        admission.arrival = FoundFile(root: "", path: "/in/ship.glb", identity: .test())
        admission.newerThan = 0
        let id = try await bench.admit(admission)
        #expect(try await bench.offer(admission) == .known(id: id))
        let last = try await bench.journal.lastSent([
            ("/in/ship.glb", admission.steps.destinations), ("/in/ship.glb", ["spaces"]),
        ])
        #expect(last.map { $0?.file.id } == [id, nil])
    }
}
