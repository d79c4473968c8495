import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage
import Testing

/// Files that were rejected for their sidecars are taken again when those are put right.
@Suite(.seated) struct RetakeTests {
    private func rejected(_ code: ErrorCode, unit: FilePath? = nil) -> FileAdmission {
        var admission = FileAdmission(
            .test("clip.mp4"), rejectedBy: Route(name: "all", to: ["r2"]), reason: "clip.mp4.yaml:1:1: broken",
            code: code)
        admission.companions = [("clip.mp4.yaml", .metadata), ("clip.xmp", .sameStem)].map { name, kind in
            CompanionAdmission(
                .test(name), Companion(path: FilePath(name), kind: kind, ending: "x"), category: "other",
                mediaType: "text/plain", lanes: [:])
        }
        admission.unit = unit
        return admission
    }

    @Test func `the file and what was rejected with it are new again, once all of it is disposed of`() async throws {
        let bench = try Bench()
        let other = try await bench.admit("other.mp4")
        let (main, _) = try await bench.journal.admitSet(rejected(.badSidecar), at: Bench.start)
        guard case .rejected(let id) = main else { throw Unexpected(what: "\(main)") }
        #expect(try await bench.job(id).file.code == .badSidecar)
        #expect(try await !bench.journal.retake(id))
        try await bench.finishAll()
        #expect(try await bench.journal.retake(id))
        let names = ["clip.mp4", "clip.mp4.yaml", "clip.xmp"]
        #expect(try await bench.journal.recall(names.map { .test($0) }, tolerance: 0) == [.new, .new, .new])
        #expect(try await bench.journal.totals().mapValues(\.files) == [.pending: 1])
        #expect(try await bench.job(other).file.state == .pending)
        for job in [id, other] { #expect(try await !bench.journal.retake(job)) }
        #expect(try await bench.journal.receipts(limit: 9).count == 3)
    }

    @Test func `a file that was rejected for itself stays so`() async throws {
        let bench = try Bench()
        let (main, _) = try await bench.journal.admitSet(rejected(.rejected), at: Bench.start)
        try await bench.finishAll()
        guard case .rejected(let id) = main else { throw Unexpected(what: "\(main)") }
        #expect(try await !bench.journal.retake(id))
        #expect(try await bench.job(id).file.state == .rejected)
    }

    @Test func `in a unit the others stay, and the unit stays open`() async throws {
        let bench = try Bench()
        var admission = FileAdmission.test("other.mp4")
        admission.unit = "gigs"
        _ = try await bench.journal.admit(admission, at: Bench.start)
        let (main, _) = try await bench.journal.admitSet(rejected(.badSidecar, unit: "gigs"), at: Bench.start)
        try await bench.finishAll()
        guard case .rejected(let id) = main else { throw Unexpected(what: "\(main)") }
        #expect(try await bench.journal.retake(id))
        #expect(try await bench.journal.openUnits("/in").count == 1)
        #expect(try await bench.journal.totals().mapValues(\.files) == [.pending: 1])
    }
}
