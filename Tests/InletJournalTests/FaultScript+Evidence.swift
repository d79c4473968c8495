import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage

/// A day of notices, checksum lists and files of the same content.
extension FaultScript {
    private static let everything = NoticeSink(name: "ops", events: Set(NoticeEvent.allCases))
    private static let leaving = NoticeSink(name: "old", events: [.destinationDown])

    /// The notice that "ops" gets next.
    private static func due(_ state: FaultScript, at time: WallTime) async throws -> Notice {
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
            try await state.opened().noticeFailed(notice.id, again: at(5), holdsLine: true, reason: "away")
        },
        Step(name: "post one behind it") { state in try await state.opened().post(.destinationUp, [2], at: at(4)) },
        Step(name: "a notice is refused") { state in
            let notice = try await due(state, at: at(6))
            try await state.opened().noticeFailed(notice.id, again: at(8), holdsLine: false, reason: "no")
        },
        Step(name: "a notice is given up") { state in
            try await state.opened().noticeGivenUp(due(state, at: at(9)).id, reason: "no")
        },
        Step(name: "a notice is taken") { state in
            try await state.opened().removeNotice(due(state, at: at(9)).id)
        },
        Step(name: "a receiver leaves the configuration") { state in
            state.sinks = [everything]
            _ = try await state.opened().setSinks(state.sinks, at: at(10))
        },
    ]

    static let lists = [
        // File 2, delivery 3.
        Step(name: "admit a file of a unit with a list") { state in
            var admission = FileAdmission.test("gigs/Y/a")
            admission.plan?.manifest = ManifestRule(format: .mhl, algorithm: .md5)
            admission.plan?.digests = [Digest(.xxh64, [1])]
            admission.unit = "gigs/Y"
            _ = try await state.opened().admit(admission, at: at(11))
        },
        Step(name: "close the unit") { state in
            _ = try await state.opened().closeUnit(
                "gigs/Y", root: "/in", routes: ["all"], marker: nil, uptimes: [:], at: at(12))
        },
        Step(name: "claim two") { state in
            _ = try await state.opened().exchange([], for: wish(2), at: at(13))
        },
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
        Step(name: "the list is written") { state in
            try await state.opened().manifestDone(owed(state, at: at(18)))
        },
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
            _ = try await state.opened().admit(
                [.content(1, "one", .skip), .content(1, "two", .skip)], at: at(20))
        },
        Step(name: "claim the first, for which the second waits") { state in
            _ = try await state.opened().exchange([], for: wish(9), at: at(21))
        },
        Step(name: "settle the first, which wakes the second") { state in
            try await end(4, .delivered(.test("one")), claiming: 0, at: at(22), state)
        },
        Step(name: "claim the second") { state in
            _ = try await state.opened().exchange([], for: wish(9), at: at(23))
        },
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
            let companion = CompanionAdmission(
                .test("one.xmp"), Companion(path: "one.xmp", kind: .sameStem, ending: "xmp"), category: "other",
                mediaType: "text/plain", lanes: ["r2": .big])
            _ = try await state.opened().admitLate(companion, main: 3, uptimes: [:], at: at(26))
        },
        Step(name: "settle one to try again much later") { state in
            try await end(1, .again(at(500), counts: true), claiming: 0, at: at(27), state)
        },
        Step(name: "hurry") { state in _ = try await state.opened().hurry(to: "r2", at: at(28)) },
        Step(name: "bound the outbox") { state in _ = try await state.opened().boundOutbox(to: 1) },
        Step(name: "clear the queue") { state in _ = try await state.opened().clearAll(at: at(30)) },
    ]
}
