import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage
import Testing

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
        guard case .adopted(let id)? = outcomes.first, outcomes.count == 2 else {
            Issue.record("\(outcomes)")
            return
        }
        let job = try #require(try await bench.journal.job(id))
        #expect(job.file.state == .delivered && job.file.finishedAt == Bench.start && job.file.disposition == "kept")
        // Its source is not ours to touch on this proof, whatever its route says.
        #expect(job.file.policy.onSuccess == .keep && job.file.policy.onFailure == .keep)
        #expect(job.deliveries.map(\.state) == [.delivered, .delivered])
        #expect(
            job.deliveries.map(\.proof) == [
                Proof(key: "a", size: 10, method: .adopted), Proof(key: "a", size: 10, method: .adopted),
            ])
        #expect(try await bench.journal.unfinished(at: Bench.start, limit: 10).isEmpty)
        #expect(try await bench.settle(.test(.delivered)) == nil)
        #expect(try await bench.journal.isAdopted(id))
        #expect(try await bench.journal.totals()[.delivered]?.files == 2)
    }

    @Test func `a file is adopted once, and one that was sent is not`() async throws {
        #expect(try await bench.journal.adopt([try adoption("a")], at: Bench.start) != [.known])
        #expect(try await bench.journal.adopt([try adoption("a")], at: Bench.start) == [.known])
        let sent = try await bench.admit("b")
        #expect(try await bench.journal.isAdopted(sent) == false)
        let known = try await bench.journal.recall([.test("a", .test())], tolerance: 0)
        #expect(known == [.known])
        // Another content under the same name is a new file.
        let changed = try await bench.journal.recall([.test("a", .test(size: 11))], tolerance: 0)
        #expect(changed == [.new])
    }

    @Test func `two files cannot both be what is under one key`() async throws {
        let outcomes = try await bench.journal.adopt(
            [
                try adoption("x/a", key: "a", needsKey: true), try adoption("y/a", key: "a", needsKey: true),
                try adoption("z/a", key: "a"),
            ], at: Bench.start)
        #expect(outcomes.count == 3 && outcomes[1] == .keyTaken)
        guard case .adopted(let id) = outcomes[2] else {
            Issue.record("\(outcomes)")
            return
        }
        #expect(try await bench.journal.job(id)?.deliveries.map(\.key) == ["a_2", "a_2"])
    }

    @Test func `an adopted content stands for no other file of it`() async throws {
        let first = FileAdmission.content(1, "a", .skip)
        _ = try await bench.journal.adopt([FileAdoption(first.arrival, plan: first.plan)], at: Bench.start)
        let twin = try await bench.journal.admit(.content(1, "b", .skip), at: Bench.start)
        guard case .admitted = twin else {
            Issue.record("\(twin)")
            return
        }
    }

    @Test func `a companion is known with its file, and has no place of its own`() async throws {
        let adoption = FileAdoption(.test("a.xmp", .test()), plan: nil, role: .fullName)
        guard case .adopted(let id)? = try await bench.journal.adopt([adoption], at: Bench.start).first else {
            Issue.record("not adopted")
            return
        }
        let job = try #require(try await bench.journal.job(id))
        #expect(job.file.state == .delivered && job.file.role == "full_name" && job.deliveries.isEmpty)
    }
}
