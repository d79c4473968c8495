import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage
import Testing

/// Files that are admitted with, or after, the file they belong to.
@Suite(.seated) struct CompanionTests {
    private func companion(
        _ name: String, _ kind: Companion.Kind = .sameStem, storedBy destinations: [String] = ["r2"], size: Int64 = 3
    ) -> CompanionAdmission {
        let ending = String(name.split(separator: ".").last ?? "")
        return CompanionAdmission(
            .test(name, .test(size: size)), Companion(path: FilePath(name), kind: kind, ending: ending),
            category: "other", mediaType: "text/plain",
            lanes: Dictionary(uniqueKeysWithValues: destinations.map { ($0, Lane.big) }))
    }

    private func clip(
        to destinations: [String] = ["r2"], _ companions: CompanionAdmission..., key: String = "v/clip.mp4",
        onSuccess: Route.OnSuccess = .keep
    ) -> FileAdmission {
        var admission = FileAdmission.test("clip.mp4", to: destinations, key: key)
        admission.plan?.onSuccess = onSuccess
        admission.companions = companions
        return admission
    }

    /// Admits a file with companions; the ids are theirs, the main file's first.
    private func admit(_ bench: Bench, _ admission: FileAdmission) async throws -> [Int64] {
        let (main, others) = try await bench.journal.admitSet(admission, at: Bench.start)
        return try ([main] + others).map { outcome in
            switch outcome {
            case .admitted(let id), .rejected(let id): return id
            case .known, .busy, .duplicate, .full: throw Unexpected(what: "\(outcome)")
            }
        }
    }

    @Test func `a companion goes after its file, to the same places, under a key beside its`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("other", key: "v/clip.mp4")
        let xmp = companion("clip.xmp", storedBy: ["r2", "disk"])
        let ids = try await admit(bench, clip(to: ["r2", "disk"], xmp, companion("clip.mp4.srt", .fullName)))
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
        let bench = try Bench()
        let yaml = companion("clip.mp4.yaml", .metadata, storedBy: ["disk"])
        let done = companion("clip.mp4.done", .marker, storedBy: [], size: 0)
        let ids = try await admit(bench, clip(to: ["r2", "disk"], yaml, done, onSuccess: .delete))
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
        #expect(try await bench.journal.totals().mapValues(\.files) == [.delivered: 3])
    }

    @Test func `metadata that is stored nowhere is never deleted`() async throws {
        let bench = try Bench()
        let ids = try await admit(bench, clip(companion("clip.mp4.yaml", .metadata, storedBy: []), onSuccess: .delete))
        #expect(try await bench.job(ids[0]).file.policy.onSuccess == .delete)
        #expect(try await bench.job(ids[1]).file.policy.onSuccess == .archive)
    }

    @Test(arguments: [DeliveryState.failed, .cancelled, .superseded, .gone])
    func `when its file is not delivered, neither is a companion; sent again, it follows`(state: DeliveryState)
        async throws
    {
        let bench = try Bench()
        let yaml = companion("clip.mp4.yaml", .metadata, storedBy: [])
        let ids = try await admit(bench, clip(companion("clip.xmp"), yaml))
        try await bench.settle(.test(state))
        for id in ids { #expect(try await bench.job(id).deliveries.map(\.state) == [state]) }
        #expect(try await bench.settle(.test(.delivered)) == nil)
        try await bench.finishAll()
        #expect(try await !bench.journal.retry(ids[1], uptimes: [:], at: Bench.start))
        guard state != .superseded else { return }
        #expect(try await bench.journal.retry(ids[0], uptimes: [:], at: Bench.start))
        #expect(try await bench.journal.totals().mapValues(\.files) == [.pending: 3])
        #expect(try await bench.settle(.test(.delivered))?.fileID == ids[0])
        #expect(try await bench.settle(.test(.delivered))?.fileID == ids[1])
        #expect(try await bench.journal.totals().mapValues(\.files) == [.delivered: 3])
    }

    @Test func `a companion that failed by itself is sent again by itself`() async throws {
        let bench = try Bench()
        let ids = try await admit(bench, clip(companion("clip.xmp")))
        try await bench.settle(.test(.delivered))
        try await bench.settle(.test(.failed))
        #expect(try await bench.journal.retry(ids[1], uptimes: [:], at: Bench.start))
        #expect(try await bench.settle(.test(.delivered))?.fileID == ids[1])
    }

    @Test func `companions of a rejected file are rejected with it`() async throws {
        let bench = try Bench()
        var refused = FileAdmission.refused("clip.mp4", "too large")
        refused.companions = [companion("clip.xmp")]
        let ids = try await admit(bench, refused)
        let job = try await bench.job(ids[1])
        #expect(job.file.state == .rejected && job.deliveries.isEmpty)
        #expect(job.file.reason == "its file clip.mp4 was rejected: too large")
        try await bench.finishAll()
        #expect(try await bench.journal.batch(of: ids[0])?.state == .rejected)
    }

    @Test func `a late companion waits for its file, or goes at once when that has arrived`() async throws {
        let bench = try Bench()
        let main = try await bench.admit("clip.mp4", key: "v/clip.mp4")
        let early = try await bench.journal.admitLate(
            companion("clip.xmp"), main: main, uptimes: [:], at: Bench.start)
        #expect(early == .admitted(id: main + 1))
        #expect(try await bench.settle(.test(.delivered))?.fileID == main)
        try await bench.finishAll()
        let late = try await bench.journal.admitLate(companion("clip.srt"), main: main, uptimes: [:], at: Bench.start)
        #expect(late == .admitted(id: main + 2))
        #expect(try await bench.journal.batch(of: main)?.counts == [.delivered: 1, .pending: 2])
        for id in [main + 1, main + 2] { #expect(try await bench.settle(.test(.delivered))?.fileID == id) }
        let keys = try await [main + 1, main + 2].asyncMap { try await bench.job($0).deliveries.map(\.key) }
        #expect(keys == [["v/clip.xmp"], ["v/clip.srt"]])
        #expect(
            try await bench.journal.admitLate(companion("clip.xmp"), main: main, uptimes: [:], at: Bench.start)
                == .known(id: main + 1))
    }

    @Test func `a late companion of a failed file ends as that did`() async throws {
        let bench = try Bench()
        let main = try await bench.admit("clip.mp4")
        try await bench.settle(.test(.failed))
        _ = try await bench.journal.admitLate(companion("clip.xmp"), main: main, uptimes: [:], at: Bench.start)
        let job = try await bench.job(main + 1)
        #expect(job.file.state == .failed && job.deliveries.map(\.state) == [.failed])
        #expect(job.deliveries[0].reason == "the test says failed")
    }

    @Test func `late metadata that no destination stores is rejected, and says why`() async throws {
        let bench = try Bench()
        let main = try await bench.admit("clip.mp4")
        let yaml = companion("clip.mp4.yaml", .metadata, storedBy: [])
        let outcome = try await bench.journal.admitLate(yaml, main: main, uptimes: [:], at: Bench.start)
        #expect(outcome == .rejected(id: main + 1))
        #expect(
            try await bench.job(main + 1).file.reason
                == "it came too late: its file clip.mp4 was taken without it, and no destination stores it")
        #expect(
            try await bench.journal.admitLate(companion("x.xmp"), main: 99, uptimes: [:], at: Bench.start)
                == .busy(id: 99))
    }

    @Test func `a companion that changed is a new arrival; one that did not stays as it is`() async throws {
        let bench = try Bench()
        let ids = try await admit(bench, clip(companion("clip.xmp")))
        var again = clip(companion("clip.xmp"), companion("clip.srt"))
        again.arrival.identity.size = 11
        let (main, others) = try await bench.journal.admitSet(again, at: Bench.start)
        // The older file has not been sent: it is superseded, and its companion with it.
        #expect(main == .admitted(id: 3) && others == [.admitted(id: 4), .admitted(id: 5)])
        #expect(try await bench.job(ids[1]).file.state == .superseded)
        #expect(try await bench.job(4).deliveries.map(\.key) == ["v/clip.xmp"])
    }

    @Test func `a file that is forgotten leaves its companions in peace`() async throws {
        let bench = try Bench()
        let ids = try await admit(bench, clip(companion("clip.xmp")))
        try await bench.settle(.test(.delivered))
        try await bench.finishAll()
        #expect(try await bench.journal.forget(ids[0]))
        #expect(try await bench.job(ids[1]).deliveries.map(\.afterID) == [nil])
        #expect(try await bench.settle(.test(.delivered))?.fileID == ids[1])
        try await bench.finishAll()
        #expect(try await bench.journal.forget(ids[1]))
    }

    @Test func `a companion's time does not run while its file is on its way`() async throws {
        let bench = try Bench()
        var admission = clip(companion("clip.xmp"))
        admission.plan?.retry.expire = .seconds(5)
        let ids = try await admit(bench, admission)
        let srt = companion("clip.srt")
        _ = try await bench.journal.admitLate(srt, main: ids[0], uptimes: ["r2": 1000], at: Bench.start)
        try await bench.hold { _ in
            let expiries = try await bench.journal.nextExpiries(of: ["r2", "disk", "spaces"])
            let expired = try await bench.journal.setUptime("r2", 1_000_000, at: Bench.start)
            #expect(expiries.isEmpty && expired.isEmpty)
            return .test(.failed)
        }
        // Sent again, its file's time begins anew, and its own does not.
        #expect(try await bench.journal.retry(ids[0], uptimes: ["r2": 1_000_000], at: Bench.start))
        #expect(try await bench.journal.nextExpiries(of: ["r2", "disk", "spaces"]) == ["r2": 1_005_000])
        for id in ids + [ids[1] + 1] { #expect(try await bench.settle(.test(.delivered))?.fileID == id) }
        let last = companion("clip.mp4.srt", .fullName)
        _ = try await bench.journal.admitLate(last, main: ids[0], uptimes: ["r2": 2_000_000], at: Bench.start)
        #expect(try await bench.journal.nextExpiries(of: ["r2", "disk", "spaces"]) == ["r2": 2_005_000])
    }

    @Test func `nor does it in a unit that closes before its file is sent`() async throws {
        let bench = try Bench()
        var admission = clip(companion("clip.xmp"))
        admission.plan?.retry.expire = .seconds(5)
        admission.unit = "gigs"
        let ids = try await admit(bench, admission)
        _ = try await bench.journal.closeUnit(
            "gigs", root: "/in", routes: ["all"], marker: nil, uptimes: ["r2": 1000], at: Bench.start)
        #expect(try await bench.job(ids[0]).deliveries.map(\.expiresAt) == [6000])
        #expect(try await bench.job(ids[1]).deliveries.map(\.expiresAt) == [nil])
    }

    @Test func `in an open unit a companion waits for both, the unit and its file`() async throws {
        let bench = try Bench()
        var admission = clip(companion("clip.xmp"))
        admission.unit = "gigs"
        let ids = try await admit(bench, admission)
        #expect(try await bench.settle(.test(.delivered)) == nil)
        _ = try await bench.journal.closeUnit(
            "gigs", root: "/in", routes: ["all"], marker: nil, uptimes: [:], at: Bench.start)
        for id in ids { #expect(try await bench.settle(.test(.delivered))?.fileID == id) }
    }
}
