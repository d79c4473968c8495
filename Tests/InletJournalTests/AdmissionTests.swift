import InletCore
import InletJournalSupport
import SystemPackage
import Testing

@testable import InletJournal

@Suite(.seated) struct AdmissionTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    @Test func `the same file is admitted once, however often it is offered`() async throws {
        let id = try await bench.admit("a.txt")
        for _ in 0..<3 { #expect(try await bench.offer(.test("a.txt")) == .known(id: id)) }
        let outcomes = try await withThrowingTaskGroup(of: AdmissionOutcome.self) { group in
            for _ in 0..<50 { group.addTask { try await bench.offer(.test("b.txt")) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        let admitted = outcomes.filter { if case .admitted = $0 { true } else { false } }
        #expect(admitted.count == 1)
        let totals = try await bench.journal.totals()
        #expect(totals.mapValues(\.files) == [.pending: 2])
        #expect(totals.mapValues(\.bytes) == [.pending: 20])
    }

    @Test func `what is admitted is what is read back`() async throws {
        let name = FilePath(bytes: [0xFF, 0x0A, 0x62])
        let identity = FileIdentity(size: .max, modified: .min, changed: -1, inode: .max, device: 1 << 63)
        let plan = Plan(
            route: "all", category: "image", key: "k", mediaType: "image/png", with: ["site": "north"],
            destinations: ["r2", "disk"], onSuccess: .delete, onFailure: .quarantine,
            retry: RetryPolicy(attempts: 7, expire: .seconds(5)))
        let admission = FileAdmission(
            FoundFile(root: "/in", path: name, identity: identity), plan: plan, lanes: ["r2": .small],
            uptimes: ["r2": 100])
        let id = try await bench.admit(admission)
        let job = try await bench.job(id)
        #expect(job.file.path.bytes == name.bytes && job.file.identity == identity)
        #expect(job.file.policy == FilePolicy(onSuccess: .delete, onFailure: .quarantine, retry: plan.retry))
        #expect(job.file.mediaType == "image/png" && job.file.category == "image")
        #expect(job.deliveries.map(\.destination) == ["r2", "disk"])
        #expect(job.deliveries.map(\.fields) == [plan.with, plan.with])
        #expect(job.deliveries.map(\.expiresAt) == [5100, 5000])
    }

    @Test func `changed content supersedes a waiting one and takes its key over`() async throws {
        let old = try await bench.admit("a.txt", to: ["r2", "disk"])
        let new = try await bench.admit("a.txt", .test(size: 11), to: ["r2", "disk"])
        let before = try await bench.job(old)
        #expect(before.file.state == .superseded && before.deliveries.map(\.key) == [nil, nil])
        #expect(try await bench.job(new).deliveries.map(\.key) == ["a.txt", "a.txt"])
    }

    @Test func `an attempt that left something keeps its key from the new content`() async throws {
        let old = try await bench.admit("a.txt")
        try await bench.leave(["upload": [], "completing": []], .again())
        let new = try await bench.admit("a.txt", .test(size: 11))
        #expect(try await bench.job(old).deliveries[0].key == "a.txt")
        #expect(try await bench.job(new).deliveries[0].key == "a_2.txt")
        #expect(try await bench.leftovers().map(\.file.id) == [old])
    }

    @Test func `changed content waits while a worker has the old one`() async throws {
        let id = try await bench.admit("a.txt")
        try await bench.hold { _ in
            let outcome = try await bench.offer(.test("a.txt", .test(size: 11)))
            #expect(outcome == .busy(id: id))
            return .test(.delivered)
        }
        try await bench.admit("a.txt", .test(size: 11))
        #expect(try await bench.job(id).file.state == .delivered)
    }

    @Test func `two hundred files of one name have two hundred keys per destination`() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask { try await bench.admit("\(number).jpg", to: ["r2", "disk"], key: "x.jpg") }
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
        try await bench.admit("x_2.jpg")
        try await bench.admit("x.jpg")
        let third = try await bench.admit("other.jpg", key: "x.jpg")
        #expect(try await bench.job(third).deliveries[0].key == "x_3.jpg")
        #expect(try await bench.job(bench.admit("third.jpg", to: ["disk"], key: "x.jpg")).deliveries[0].key == "x.jpg")
    }

    @Test func `a rejected file has no deliveries and its reason on record`() async throws {
        let id = try await bench.reject(.refused("a.exe"))
        let job = try await bench.job(id)
        #expect(job.file.state == .rejected && job.file.code == .rejected && job.file.reason == "too large")
        #expect(job.deliveries.isEmpty)
        #expect(try await bench.offer(.refused("a.exe")) == .known(id: id))
        #expect(try await bench.unfinished().map(\.file.id) == [id])
    }

    @Test func `sent anew, a known file is a new row beside the old one, and twice at once one row`() async throws {
        let first = try await bench.admit("a.txt")
        var again = FileAdmission.test("a.txt")
        again.newerThan = 0
        #expect(try await bench.offer(again) == .known(id: first))
        try await bench.settle(.test(.delivered))
        #expect(try await bench.offer(again) == .known(id: first))
        again.newerThan = first
        let second = try await bench.admit(again)
        #expect(first != second)
        #expect(try await bench.job(first).file.state == .delivered)
        #expect(try await bench.job(second).deliveries[0].key == "a_2.txt")
    }

    @Test func `sequence numbers never repeat, not even after reopening`() async throws {
        let numbers = try await withThrowingTaskGroup(of: Int64.self) { group in
            for _ in 0..<100 { group.addTask { try await bench.journal.nextSequence() } }
            return try await group.reduce(into: [Int64]()) { $0.append($1) }
        }
        #expect(numbers.sorted() == Array(1...100))
        let reopened = try bench.reopen()
        #expect(try await reopened.nextSequence() == 101)
    }

    @Test func `a root keeps the time of its first sight`() async throws {
        let later = Bench.start + .seconds(60)
        #expect(try await bench.journal.firstSeen(root: "/in", now: Bench.start) == Bench.start)
        #expect(try await bench.journal.firstSeen(root: "/in", now: later) == Bench.start)
        #expect(try await bench.journal.firstSeen(root: "/other", now: later) == later)
    }
}

@Suite(.seated) struct AdoptionTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private func adoption(
        _ name: String, _ identity: FileIdentity = .test(), key: String? = nil, needsKey: Bool = false
    ) throws -> FileAdoption {
        let admission = FileAdmission.test(name, identity, to: ["r2", "nas"], key: key)
        var plan = try #require(admission.plan)
        (plan.onSuccess, plan.onFailure) = (.delete, .quarantine)
        return FileAdoption(admission.arrival, plan: plan, needsKey: needsKey)
    }

    @Test func `an adopted file is delivered and finished, and nothing is to be done about it`() async throws {
        let outcomes = try await bench.journal.adopt([try adoption("a"), try adoption("b")], at: Bench.start)
        #expect(outcomes.count == 2)
        let id = try #require(outcomes[0].adopted)
        let job = try await bench.job(id)
        #expect(job.file.state == .delivered && job.file.finishedAt == Bench.start && job.file.disposition == "kept")
        // Its source is not ours to touch on this proof, whatever its route says.
        #expect(job.file.policy.onSuccess == .keep && job.file.policy.onFailure == .keep)
        #expect(job.deliveries.map(\.state) == [.delivered, .delivered])
        #expect(
            job.deliveries.map(\.proof) == [
                Proof(key: "a", size: 10, method: .adopted), Proof(key: "a", size: 10, method: .adopted),
            ])
        #expect(try await bench.unfinished().isEmpty)
        #expect(try await bench.settle(.test(.delivered)) == nil)
        #expect(try await bench.journal.isAdopted(id))
        #expect(try await bench.journal.totals()[.delivered]?.files == 2)
    }

    @Test func `a file is adopted once, and one that was sent is not`() async throws {
        #expect(try await bench.journal.adopt([try adoption("a")], at: Bench.start) != [.known])
        #expect(try await bench.journal.adopt([try adoption("a")], at: Bench.start) == [.known])
        let sent = try await bench.admit("b")
        #expect(try await bench.journal.isAdopted(sent) == false)
        #expect(try await bench.recall([.test("a", .test())]) == [.known])
        // Another content under the same name is a new file.
        #expect(try await bench.recall([.test("a", .test(size: 11))]) == [.new])
    }

    @Test func `two files cannot both be what is under one key`() async throws {
        let outcomes = try await bench.journal.adopt(
            [
                try adoption("x/a", key: "a", needsKey: true), try adoption("y/a", key: "a", needsKey: true),
                try adoption("z/a", key: "a"),
            ], at: Bench.start)
        #expect(outcomes.count == 3 && outcomes[1] == .keyTaken)
        #expect(try await bench.job(#require(outcomes[2].adopted)).deliveries.map(\.key) == ["a_2", "a_2"])
    }

    @Test func `an adopted content stands for no other file of it`() async throws {
        let first = FileAdmission.content(1, "a", .skip)
        _ = try await bench.journal.adopt([FileAdoption(first.arrival, plan: first.plan)], at: Bench.start)
        try await bench.admit(.content(1, "b", .skip))
    }

    @Test func `a companion is known with its file, and has no place of its own`() async throws {
        let adoption = FileAdoption(.test("a.xmp", .test()), plan: nil, role: .fullName)
        let outcomes = try await bench.journal.adopt([adoption], at: Bench.start)
        let job = try await bench.job(#require(outcomes[0].adopted))
        #expect(job.file.state == .delivered && job.file.role == "full_name" && job.deliveries.isEmpty)
    }
}

@Suite(.seated) struct RecallTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private func recall(_ identity: FileIdentity, tolerance: Int64 = 0) async throws -> KnownFile {
        let answers = try await bench.journal.recall([.test("a.txt", identity)], tolerance: tolerance)
        return try #require(answers.first)
    }

    @Test func `the same file is known, and the answers keep the order of the questions`() async throws {
        try await bench.admit("a.txt")
        try await bench.admit("c.txt")
        #expect(try await bench.recall([.test("c.txt"), .test("b.txt"), .test("a.txt")]) == [.known, .new, .known])
    }

    @Test
    func `of files that may belong together the newest row is told, and whether it is of what is there`() async throws {
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
        let id = try await bench.admit("a.txt")
        guard case .touched(let row) = try await recall(identity) else { throw Unexpected(what: "not touched") }
        #expect(row.id == id)
        try await bench.refresh(row, identity: identity)
        #expect(try await recall(identity) == .known)
    }

    @Test(arguments: [FileIdentity.test(size: 11), .test(modified: 2)])
    func `other size or time is another file`(identity: FileIdentity) async throws {
        try await bench.admit("a.txt")
        #expect(try await recall(identity) == .new)
    }

    @Test func `a coarse clock is given its tolerance and no more`() async throws {
        try await bench.admit("a.txt", .test(modified: 0))
        if case .new = try await recall(.test(modified: 2_000_000_000), tolerance: 2_000_000_000) {
            Issue.record("within the tolerance, yet new")
        }
        #expect(try await recall(.test(modified: 2_000_000_001), tolerance: 2_000_000_000) == .new)
    }

    @Test func `a running delivery keeps the identity that it began with`() async throws {
        let id = try await bench.admit("a.txt")
        try await bench.hold { _ in
            try await bench.refresh(try await bench.job(id).file, identity: .test(changed: 5))
            return .again()
        }
        #expect(try await bench.job(id).file.identity == .test())
    }

    @Test(arguments: [["r2"], ["r2", "disk"]])
    func `what was judged before a destination proved the content is not taken note of`(places: [String]) async throws {
        let id = try await bench.admit("a.txt", to: places)
        let seen = try await bench.job(id).file
        try await bench.settle(.test(.delivered))
        #expect(try await bench.job(id).file.state == (places.count == 1 ? .delivered : .pending))
        for identity in [FileIdentity.test(inode: 5), .test(changed: 5)] {
            let touch = try await bench.refresh(seen, identity: identity)
            #expect(touch.isOutdated && !touch.isNoted)
        }
        #expect(try await bench.job(id).file.identity == .test())
    }

    @Test func `what was sent in part keeps the identity that its first part was read with`() async throws {
        let id = try await bench.admit("a.txt")
        try await bench.leave(["upload": [1]], .again())
        let seen = try await bench.job(id).file
        let edited = try await bench.refresh(seen, identity: .test(changed: 5))
        #expect(!edited.isNoted && !edited.isOutdated)
        #expect(try await bench.job(id).file.identity == .test())
        // A server that numbers its files anew has not edited them.
        #expect(try await bench.refresh(seen, identity: .test(inode: 5, device: 5)).isNoted)
    }

    @Test(arguments: [
        (Disposition.kept, false), (Disposition.deleted, true), (Disposition.archived("/x"), true),
        (Disposition.quarantined("/x"), true), (Disposition.untouched("busy"), false),
    ])
    func `a path that we emptied ourselves is new again`(disposition: String, isNew: Bool) async throws {
        try await bench.settled("a.txt", .delivered)
        #expect(try await recall(.test()) == .known)
        try await bench.finishAll(disposition)
        // The very same inode and times: it was looked at just before we took it away.
        #expect(try await recall(.test()) == .known)
        if isNew { #expect(try await recall(.test(changed: 2)) == .new) }
    }

    @Test(arguments: [
        (DeliveryState.gone, true), (.superseded, true), (.failed, false), (.expired, false), (.cancelled, false),
        (.delivered, false),
    ])
    func `what came to nothing is new, what was decided is known`(end: DeliveryState, isNew: Bool) async throws {
        try await bench.settled("a.txt", end)
        #expect(try await recall(.test()) == (isNew ? .new : .known))
        let outcome = try await bench.offer(.test("a.txt"))
        if case .admitted = outcome { #expect(isNew) } else { #expect(!isNew) }
    }
}

/// Files that were rejected for their sidecars are taken again when those are put right.
@Suite(.seated) struct RetakeTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private func rejected(_ code: ErrorCode, unit: FilePath? = nil) -> FileAdmission {
        var admission = FileAdmission(
            .test("clip.mp4"), rejectedBy: Route(name: "all", to: ["r2"]), reason: "clip.mp4.yaml:1:1: broken",
            code: code)
        admission.companions = [
            .test("clip.mp4.yaml", .metadata, storedBy: []), .test("clip.xmp", storedBy: []),
        ]
        admission.unit = unit
        return admission
    }

    @Test func `the file and what was rejected with it are new again, once all of it is disposed of`() async throws {
        let other = try await bench.admit("other.mp4")
        let id = try await bench.reject(rejected(.badSidecar))
        #expect(try await bench.job(id).file.code == .badSidecar)
        #expect(try await !bench.journal.retake(id))
        try await bench.finishAll()
        #expect(try await bench.journal.retake(id))
        let names = ["clip.mp4", "clip.mp4.yaml", "clip.xmp"]
        #expect(try await bench.recall(names.map { .test($0) }) == [.new, .new, .new])
        #expect(try await bench.files() == [.pending: 1])
        #expect(try await bench.job(other).file.state == .pending)
        for job in [id, other] { #expect(try await !bench.journal.retake(job)) }
        #expect(try await bench.journal.receipts(limit: 9).count == 3)
    }

    @Test func `a file that was rejected for itself stays so`() async throws {
        let id = try await bench.reject(rejected(.rejected))
        try await bench.finishAll()
        #expect(try await !bench.journal.retake(id))
        #expect(try await bench.job(id).file.state == .rejected)
    }

    @Test func `in a unit the others stay, and the unit stays open`() async throws {
        try await bench.admit(.test("other.mp4", unit: "gigs"))
        let id = try await bench.reject(rejected(.badSidecar, unit: "gigs"))
        try await bench.finishAll()
        #expect(try await bench.journal.retake(id))
        #expect(try await bench.journal.openUnits("/in").count == 1)
        #expect(try await bench.files() == [.pending: 1])
    }
}

extension FileAdoption.Outcome {
    fileprivate var adopted: Int64? { if case .adopted(let id) = self { id } else { nil } }
}
