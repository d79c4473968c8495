import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage

/// Days in a journal's life. No step takes anything from another but rows by their numbers, so that each can be repeated;
/// each writes at most once, so that it is there wholly or not at all.
struct FaultScript {
    struct Step: Sendable {
        var name: String
        /// Whether it may leave all as it is.
        var isIdle = false
        var act: @Sendable (inout FaultScript) async throws -> Void
    }

    private let path: FilePath
    /// Any claim, to make ends of others from.
    private let claim: Claim
    private var journal: Journal?
    /// Who is told of what, as every start of the agent says it again.
    var sinks: [NotificationSink] = []

    init(_ path: FilePath, _ claim: Claim) {
        self.path = path
        self.claim = claim
    }

    /// Made before there are faults.
    static func anyClaim() async throws -> Claim {
        let bench = try Bench()
        try await bench.admit("any")
        guard let claim = try await bench.exchange(for: wish(1)).claims.first else {
            throw Unexpected(what: "no claim")
        }
        return claim
    }

    mutating func open() async throws {
        let opened = try Journal(path: path, now: Bench.start)
        do {
            if !sinks.isEmpty { _ = try await opened.setSinks(sinks, at: Bench.start) }
        } catch {
            opened.close()
            throw error
        }
        journal = opened
    }

    var isOpen: Bool { journal != nil }

    mutating func close() {
        journal?.close()
        journal = nil
    }

    func opened() throws -> Journal {
        guard let journal else { throw Unexpected(what: "the journal is not open") }
        return journal
    }

    static func at(_ seconds: Int64) -> WallTime { Bench.start + .seconds(seconds) }

    /// File 1 was there before each of them, with the deliveries 1 (r2) and 2 (disk).
    static let days: [[Step]] = [admissions + deliveries + commands + ends, notices + lists + twins]

    private static let admissions = [
        Step(name: "recover", isIdle: true) { state in
            _ = try await state.opened().recover(destinations: ["r2", "disk"], at: at(1))
        },
        // Files 2 to 4, deliveries 3 to 8.
        Step(name: "admit three files") { state in
            let admissions = ["a", "b", "c"].map { FileAdmission.test($0, to: ["r2", "disk"]) }
            _ = try await state.opened().admit(admissions, at: at(2))
        },
        Step(name: "admit a file with a companion") { state in
            let admission = FileAdmission.test("clip.mp4", companions: [.test("clip.xmp")])
            _ = try await state.opened().admitSet(admission, at: at(3))
        },
        Step(name: "admit a file of a unit") { state in
            _ = try await state.opened().admit(.test("gigs/X/a", unit: "gigs/X"), at: at(4))
        },
        Step(name: "close the unit") { state in
            _ = try await state.opened().closeUnit(
                "gigs/X", root: "/in", routes: ["all"], marker: .test("gigs/X/DONE"), uptimes: [:], at: at(5))
        },
        Step(name: "refuse a file") { state in _ = try await state.opened().admit(.refused("too-large"), at: at(6)) },
    ]

    static func wish(_ most: Int) -> ClaimRequest { ClaimRequest(lane: .big, room: .test("r2"), most: most) }

    /// Ends the claim of delivery `number`, whoever was told of it: a claim whose answer was lost is one all the same.
    static func end(
        _ number: Int64, _ settlement: ClaimOutcome, claiming most: Int, at time: WallTime, _ state: FaultScript
    ) async throws {
        let journal = try state.opened()
        let row = try await journal.jobs(FileFilter(limit: 100)).flatMap(\.deliveries).first { $0.id == number }
        guard row?.state == .claimed else { throw Unexpected(what: "delivery \(number) is \(String(describing: row))") }
        var ended: EndedClaim = (state.claim.delivery.id, settlement)
        ended.delivery = number
        _ = try await journal.exchange([ended], for: wish(most), at: time)
    }

    private static let deliveries = [
        Step(name: "claim two") { state in _ = try await state.opened().exchange([], for: wish(2), at: at(10)) },
        Step(name: "write a checkpoint") { state in
            try await state.opened().checkpoint(3, ["upload": [1, 2, 3], "part:1": Array(repeating: 7, count: 5000)])
        },
        Step(name: "replace a checkpoint") { state in
            try await state.opened().checkpoint(
                3, ["upload": [4, 5], "part:2": Array(repeating: 8, count: 5000)], replacing: true)
        },
        Step(name: "settle one as delivered, and claim the next") { state in
            try await end(1, .delivered(.test()), claiming: 1, at: at(11), state)
        },
        Step(name: "settle one to try again") { state in
            try await end(3, .again(at(20), counts: true), claiming: 0, at: at(12), state)
        },
        Step(name: "settle one that its destination works on, and claim the next") { state in
            try await end(5, .waiting(until: at(30), saying: "processing"), claiming: 1, at: at(13), state)
        },
        Step(name: "settle one as failed") { state in
            try await end(7, .test(.failed), claiming: 0, at: at(14), state)
        },
        Step(name: "admit a small file") { state in
            _ = try await state.opened().admit(.test("small", lane: .small), at: at(15))
        },
        Step(name: "claim it, to have it at hand") { state in
            let small = ClaimRequest(lane: .small, room: .test("r2"), most: 1)
            _ = try await state.opened().exchange([], for: small, at: at(16))
        },
        Step(name: "note that it really begins") { state in
            let journal = try state.opened()
            let jobs = try await journal.jobs(FileFilter(limit: 100))
            guard let delivery = jobs.first(where: { $0.file.path == "small" })?.deliveries.first else {
                throw Unexpected(what: "no small file")
            }
            try await journal.begin(delivery.id)
        },
    ]

    private static let commands = [
        Step(name: "cancel") { state in _ = try await state.opened().cancel(4, at: at(40)) },
        Step(name: "retry") { state in _ = try await state.opened().retry(4, uptimes: [:], at: at(41)) },
        Step(name: "pause") { state in try await state.opened().setPaused("disk", true) },
        Step(name: "count the uptime") { state in _ = try await state.opened().setUptime("r2", 5000, at: at(42)) },
        Step(name: "start again", isIdle: true) { state in
            state.close()
            try await state.open()
        },
        Step(name: "recover again", isIdle: true) { state in
            _ = try await state.opened().recover(destinations: ["r2", "disk"], at: at(43))
        },
        Step(name: "cancel a file with a checkpoint") { state in _ = try await state.opened().cancel(2, at: at(44)) },
        Step(name: "ask about a leftover later") { state in
            try await state.opened().postponeLeftover(3, until: at(60))
        },
        Step(name: "a leftover remains") { state in try await state.opened().leftoverRemains(3, until: at(61)) },
        Step(name: "a leftover is gone") { state in
            try await state.opened().leftoverRemoved(3, keeping: ["key": [1]])
        },
    ]

    private static let ends = [
        Step(name: "finish what was refused") { state in
            let journal = try state.opened()
            let refused = try await journal.jobs(FileFilter(states: [.rejected], limit: 10))
            guard let job = refused.first, refused.count == 1 else { throw Unexpected(what: "\(refused)") }
            _ = try await journal.finish(job.file, disposition: Disposition.kept, receipt: [1], at: at(50))
        },
        Step(name: "put finishing off") { state in
            try await state.opened().postponeFinish(2, until: at(90), note: "the folder is away")
        },
        Step(name: "say what is intended") { state in try await state.opened().intend(2, [9]) },
        Step(name: "finish what was cancelled") { state in
            let journal = try state.opened()
            guard let job = try await journal.job(2) else { throw Unexpected(what: "no job 2") }
            _ = try await journal.finish(job.file, disposition: Disposition.kept, receipt: [2], at: at(51))
        },
        Step(name: "forget what was refused") { state in
            let journal = try state.opened()
            for job in try await journal.jobs(FileFilter(states: [.rejected], limit: 10)) {
                _ = try await journal.forget(job.file.id)
            }
        },
    ]
}

/// A day of notices, checksum lists and files of the same content.
extension FaultScript {
    private static let everything = NotificationSink(name: "ops", events: Set(NotificationEvent.allCases))
    private static let leaving = NotificationSink(name: "old", events: [.destinationDown])

    /// The notice that "ops" gets next.
    private static func due(_ state: FaultScript, at time: WallTime) async throws -> QueuedNotification {
        guard case .due(let notice) = try await state.opened().nextNotice("ops", at: time) else {
            throw Unexpected(what: "no notice is due")
        }
        return notice
    }

    static let notices = [
        Step(name: "say who is told") { state in
            state.sinks = [everything, leaving]
            _ = try await state.opened().setSinks(state.sinks, at: at(1))
        },
        Step(name: "post a notice") { state in try await state.opened().post(.destinationDown, [1], at: at(2)) },
        Step(name: "keep what a notice says") { state in
            try await state.opened().keepPayload([7], of: due(state, at: at(3)).id)
        },
        Step(name: "a receiver does not answer") { state in
            let notice = try await due(state, at: at(3))
            try await state.opened().noticesFailed([notice.id], again: at(5), holdsLine: true, reason: "away")
        },
        Step(name: "post one behind it") { state in try await state.opened().post(.destinationUp, [2], at: at(4)) },
        Step(name: "a notice is refused") { state in
            let notice = try await due(state, at: at(6))
            try await state.opened().noticesFailed([notice.id], again: at(8), holdsLine: false, reason: "no")
        },
        Step(name: "a notice is given up") { state in
            try await state.opened().noticesGivenUp([due(state, at: at(9)).id], reason: "no")
        },
        Step(name: "a notice is taken") { state in try await state.opened().removeNotices([due(state, at: at(9)).id]) },
        Step(name: "a receiver leaves the configuration") { state in
            state.sinks = [everything]
            _ = try await state.opened().setSinks(state.sinks, at: at(10))
        },
    ]

    static let lists = [
        // File 2, delivery 3.
        Step(name: "admit a file of a unit with a list") { state in
            var admission = FileAdmission.test("gigs/Y/a", unit: "gigs/Y")
            admission.plan?.manifest = ManifestRule(format: .mhl, algorithm: .md5)
            admission.plan?.digests = [Digest(.xxh64, [1])]
            _ = try await state.opened().admit(admission, at: at(11))
        },
        Step(name: "close the unit") { state in
            _ = try await state.opened().closeUnit(
                "gigs/Y", root: "/in", routes: ["all"], marker: nil, uptimes: [:], at: at(12))
        },
        Step(name: "claim two") { state in _ = try await state.opened().exchange([], for: wish(2), at: at(13)) },
        Step(name: "settle the file of the unit") { state in
            try await end(3, .delivered(.test()), claiming: 0, at: at(14), state)
        },
        Step(name: "finish the unit, which is owed a list and told") { state in
            let journal = try state.opened()
            guard let job = try await journal.job(2) else { throw Unexpected(what: "no job 2") }
            _ = try await journal.finish(job.file, disposition: Disposition.kept, receipt: [1], at: at(15))
        },
        Step(name: "the list cannot be written") { state in
            let order = try await owed(state, at: at(16))
            try await state.opened().manifestFailed(order, reason: "the disk is full", until: at(17))
        },
        Step(name: "the list is written") { state in try await state.opened().manifestDone(owed(state, at: at(18))) },
        Step(name: "start again", isIdle: true) { state in
            state.close()
            try await state.open()
        },
    ]

    private static func owed(_ state: FaultScript, at time: WallTime) async throws -> ManifestOrder {
        guard let order = try await state.opened().nextManifest(at: time) else {
            throw Unexpected(what: "no list is owed")
        }
        return order
    }

    static let twins = [
        // Files 3 and 4, deliveries 4 and 5.
        Step(name: "admit two of one content") { state in
            _ = try await state.opened().admit([.content(1, "one", .skip), .content(1, "two", .skip)], at: at(20))
        },
        Step(name: "claim the first, for which the second waits") { state in
            _ = try await state.opened().exchange([], for: wish(9), at: at(21))
        },
        Step(name: "settle the first, which wakes the second") { state in
            try await end(4, .delivered(.test("one")), claiming: 0, at: at(22), state)
        },
        Step(name: "claim the second") { state in _ = try await state.opened().exchange([], for: wish(9), at: at(23)) },
        Step(name: "the second is a link to the first") { state in
            var link = Proof.test("one")
            link.details = [Proof.sameAsName: "3"]
            try await end(5, .delivered(link), claiming: 0, at: at(24), state)
        },
        // File 5, delivery 6.
        Step(name: "a third is known when it comes") { state in
            _ = try await state.opened().admit(.content(1, "three", .skip), at: at(25))
        },
        Step(name: "the content is gone from its destination") { state in
            var proof = Proof.test("one")
            proof.details = [Proof.deletedName: "2026-11-22T12:00:00Z"]
            try await state.opened().replaceProof(of: 4, by: proof)
        },
        // File 6, delivery 7.
        Step(name: "admit a late companion") { state in
            _ = try await state.opened().admitLate(.test("one.xmp"), main: 3, uptimes: [:], at: at(26))
        },
        Step(name: "settle one to try again much later") { state in
            try await end(1, .again(at(500), counts: true), claiming: 0, at: at(27), state)
        },
        Step(name: "hurry") { state in _ = try await state.opened().hurry(to: "r2", at: at(28)) },
        Step(name: "bound the outbox") { state in _ = try await state.opened().boundOutbox(to: 1) },
        Step(name: "clear the queue") { state in _ = try await state.opened().clearAll(at: at(30)) },
    ]
}
