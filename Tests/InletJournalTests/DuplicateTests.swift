import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage
import Testing

/// Contents that a destination has: `dedupe:`.
@Suite(.seated) struct DuplicateTests {
    @Test(arguments: [(DuplicateRule.skip, FileState.duplicate), (.link, .delivered)])
    func `what every destination has is not sent, and says where it is`(
        rule: DuplicateRule, state: FileState
    ) async throws {
        let bench = try Bench()
        let first = try await bench.deliver(.content(1, "a", .off, to: ["r2", "nas"]))
        let outcome = try await bench.journal.admit(.content(1, "b", rule, to: ["r2", "nas"]), at: Bench.start)
        guard case .duplicate(let id, of: first) = outcome else { throw Unexpected(what: "\(outcome)") }
        let job = try await bench.job(id)
        #expect(job.file.state == state && job.file.finishedAt == nil)
        #expect(job.file.reason == "same content as job \(first), /in/a, which is there as a")
        #expect(job.deliveries.map(\.state) == [.delivered, .delivered])
        #expect(job.deliveries.map(\.key) == [nil, nil] && job.deliveries.map(\.place) == ["a", "a"])
        #expect(job.deliveries.allSatisfy { $0.proof?.sameAs == first && $0.attempts == 0 })
        #expect(try await bench.claimAll(["r2", "nas"]).isEmpty)
        #expect(try await bench.journal.unfinished(at: Bench.start, limit: 9).map(\.file.id) == [id])
        try await bench.finishAll()
        #expect(try await bench.journal.totals()[state]?.files == (rule == .skip ? 1 : 2))
    }

    @Test func `content at another address is sent, and counts again once its destination is back there`() async throws
    {
        let bench = try Bench()
        let journal = bench.journal
        // By a version that knew no addresses: it counts as proved at the one that is known first.
        let first = try await bench.deliver(.content(1, "a", .off))
        #expect(try await journal.setAddresses(["r2": "one"]) == [])
        #expect(try await journal.standing(of: bench.job(first)).count == 1)
        guard case .duplicate(_, of: first) = try await journal.admit(.content(1, "b", .skip), at: Bench.start) else {
            throw Unexpected(what: "it is not there")
        }
        #expect(try await journal.setAddresses(["r2": "two"]) == ["r2"])
        #expect(try await journal.setAddresses(["r2": "two"]) == [])
        #expect(try await journal.standing(of: bench.job(first)).isEmpty)
        guard case .admitted = try await journal.admit(.content(1, "c", .skip), at: Bench.start) else {
            throw Unexpected(what: "it was taken for delivered")
        }
        #expect(try await journal.setAddresses(["r2": "one"]) == ["r2"])
        guard case .duplicate(_, of: first) = try await journal.admit(.content(1, "d", .skip), at: Bench.start) else {
            throw Unexpected(what: "it is there again")
        }
    }

    @Test func `without the rule everything is sent`() async throws {
        let bench = try Bench()
        try await bench.deliver(.content(1, "a", .skip))
        _ = try await bench.admit(.content(1, "b", .off))
        let claims = try await bench.claimAll()
        #expect(claims.count == 1 && claims[0].original == nil)
    }

    @Test(arguments: [DuplicateRule.skip, .link])
    func `only a destination that lacks it gets it`(rule: DuplicateRule) async throws {
        let bench = try Bench()
        let first = try await bench.deliver(.content(1, "a", .off))
        let id = try await bench.admit(.content(1, "b", rule, to: ["r2", "nas"]))
        #expect(try await bench.job(id).deliveries.map(\.state) == [.delivered, .ready])
        #expect(try await bench.claimAll(["r2"]).isEmpty)
        for claim in try await bench.claimAll(["nas"]) { try await bench.end(claim, .delivered(.test("b"))) }
        let job = try await bench.job(id)
        #expect(job.file.state == .delivered && job.file.reason == nil)
        #expect(job.deliveries.map { $0.proof?.sameAs } == [first, nil])
        // The second one brought it to the other destination.
        let outcome = try await bench.journal.admit(.content(1, "c", rule, to: ["nas"]), at: Bench.start)
        guard case .duplicate(_, of: id) = outcome else { throw Unexpected(what: "\(outcome)") }
    }

    @Test func `another size, another content or another destination is not the same`() async throws {
        let bench = try Bench()
        try await bench.deliver(.content(1, "a", .skip))
        for other in [
            FileAdmission.content(1, "size", .skip, size: 11), .content(2, "content", .skip),
            .content(1, "place", .skip, to: ["nas"]),
        ] {
            let id = try await bench.admit(other)
            #expect(try await bench.job(id).file.state == .pending)
        }
    }

    @Test(arguments: [true, false])
    func `for another route it is the same with the same fields only`(areEqual: Bool) async throws {
        let bench = try Bench()
        try await bench.deliver(.content(1, "a", .skip))
        var other = FileAdmission.content(1, "b", .skip)
        other.plan?.route = "other"
        if !areEqual { other.plan?.with = ["title": "another"] }
        let outcome = try await bench.journal.admit(other, at: Bench.start)
        if case .duplicate = outcome { #expect(areEqual) } else { #expect(!areEqual) }
        // Sent for another purpose, it does not take the first one's place.
        for claim in try await bench.claimAll() { try await bench.end(claim, .delivered(.test("b"))) }
        let third = try await bench.journal.admit(.content(1, "c", .skip), at: Bench.start)
        guard case .duplicate(_, of: 1) = third else { throw Unexpected(what: "\(third)") }
    }

    @Test(arguments: [DeliveryState.failed, .cancelled, .gone])
    func `what did not arrive is no original`(state: DeliveryState) async throws {
        let bench = try Bench()
        _ = try await bench.admit(.content(1, "a", .skip))
        for claim in try await bench.claimAll() { try await bench.end(claim, .test(state)) }
        _ = try await bench.admit(.content(1, "b", .skip))
        let claims = try await bench.claimAll()
        #expect(claims.count == 1 && claims[0].original == nil)
    }

    @Test func `a content that was forgotten or deleted is sent again`() async throws {
        let bench = try Bench()
        let first = try await bench.deliver(.content(1, "a", .skip))
        #expect(try await bench.journal.forget(first))
        let second = try await bench.deliver(.content(1, "b", .skip))
        let delivery = try #require(try await bench.job(second).deliveries.first)
        var proof = try #require(delivery.proof)
        proof.details = [Proof.deletedName: "2026-11-21T10:00:00Z"]
        try await bench.journal.replaceProof(of: delivery.id, by: proof)
        let third = try await bench.deliver(.content(1, "c", .skip))
        let outcome = try await bench.journal.admit(.content(1, "d", .skip), at: Bench.start)
        guard case .duplicate(let link, of: third) = outcome else { throw Unexpected(what: "\(outcome)") }
        // Deleted under the link's job, it is gone for all.
        let linked = try #require(try await bench.job(link).deliveries.first)
        proof = try #require(linked.proof)
        proof.details?[Proof.deletedName] = "2026-11-21T11:00:00Z"
        try await bench.journal.replaceProof(of: linked.id, by: proof)
        _ = try await bench.admit(.content(1, "e", .skip))
    }

    @Test func `what undoes the first one is not given to its duplicates`() async throws {
        let bench = try Bench()
        _ = try await bench.admit(.content(1, "a", .link))
        var proof = Proof.test("a")
        proof.keepsakes = Keepsakes(["token": "once"])
        proof.details = ["id": "7"]
        for claim in try await bench.claimAll() { try await bench.end(claim, .delivered(proof)) }
        let outcome = try await bench.journal.admit(.content(1, "b", .link), at: Bench.start)
        guard case .duplicate(let id, _) = outcome else { throw Unexpected(what: "\(outcome)") }
        let link = try #require(try await bench.job(id).deliveries.first?.proof)
        #expect(link.keepsakes == nil && link.details == ["id": "7", "same_as": "1"])
    }

    @Test func `the question of a person is answered by destination`() async throws {
        let bench = try Bench()
        try await bench.deliver(.content(1, "a", .off))
        let found = try await bench.journal.originals(
            ContentQuestion(digest: .content(1), size: 10, route: "all", fields: [:], destinations: ["r2", "nas"]))
        #expect(found.mapValues(\.job) == ["r2": 1] && found["r2"]?.path == "/in/a")
    }

    // MARK: - What belongs to others

    @Test func `in a unit it waits for its turn, and the unit ends with it`() async throws {
        let bench = try Bench()
        try await bench.deliver(.content(1, "a", .skip))
        var admission = FileAdmission.content(1, "u/b", .skip)
        admission.unit = "u"
        let id = try await bench.admit(admission)
        #expect(try await bench.job(id).deliveries.allSatisfy(\.isHeld))
        let closed = try await bench.journal.closeUnit(
            "u", root: "/in", routes: ["all"], marker: nil, uptimes: [:], at: Bench.start)
        #expect(closed.map(\.state) == [.pending])
        for claim in try await bench.claimAll() { try await bench.end(claim, .test(.failed)) }
        try await bench.finishAll()
        #expect(try await bench.job(id).file.state == .duplicate)
        let batch = try #require(try await bench.journal.batch(of: id))
        #expect(batch.state == .duplicate && batch.counts == [.duplicate: 1] && batch.endedAt != nil)
    }

    @Test func `a companion of a duplicate goes beside the first one, and later ones too`() async throws {
        let bench = try Bench()
        try await bench.deliver(.content(1, "clip.mov", .skip))
        var admission = FileAdmission.content(1, "again.mov", .skip)
        admission.companions = [companion("again.jpg")]
        let id = try await bench.admit(admission)
        for claim in try await bench.claimAll() { try await bench.end(claim, .test(.failed)) }
        #expect(try await bench.job(id).file.state == .duplicate)
        #expect(try await bench.claimAll().map(\.delivery.key) == ["again.jpg"])
        let late = try await bench.journal.admitLate(companion("again.xmp"), main: id, uptimes: [:], at: Bench.start)
        guard case .admitted(let last) = late else { throw Unexpected(what: "\(late)") }
        #expect(try await bench.job(last).deliveries.map(\.key) == ["clip.xmp"])
    }

    private func companion(_ name: String) -> CompanionAdmission {
        let ending = String(name.suffix(3))
        return CompanionAdmission(
            .test(name), Companion(path: FilePath(name), kind: .sameStem, ending: ending), category: "images",
            mediaType: "image/jpeg", lanes: ["r2": .big])
    }

    @Test(arguments: [DuplicateRule.skip, .link])
    func `a link is registered under its own name, what is skipped is not`(rule: DuplicateRule) async throws {
        let bench = try Bench()
        for name in ["a", "b"] {
            var admission = FileAdmission.content(1, name, rule, to: ["spaces"])
            admission.lanes["r2"] = .big
            admission.storages = ["spaces": "r2"]
            _ = try await bench.journal.admit(admission, at: Bench.start)
            for claim in try await bench.claimAll() { try await bench.end(claim, .delivered(.test(name))) }
            for claim in try await bench.claimAll(["spaces"], lane: .small) {
                let context = try await bench.journal.context(of: claim.delivery, in: claim.file)
                #expect(context.upstream.map(\.proof.key) == ["a"])
                try await bench.end(claim, .delivered(.test("registered \(name)")))
            }
        }
        let job = try await bench.job(2)
        #expect(job.file.state == (rule == .skip ? .duplicate : .delivered))
        #expect(job.deliveries.map { $0.proof?.key } == ["a", rule == .skip ? "registered a" : "registered b"])
    }
}
