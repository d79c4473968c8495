import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage
import Testing

/// Checksum lists that ended units are owed.
@Suite(.seated) struct ManifestTests {
    private func admit(_ bench: Bench, _ name: String, _ rule: ManifestRule?, unit: FilePath? = "gigs/X") async throws
        -> Int64
    {
        var admission = FileAdmission.test("gigs/X/\(name)")
        admission.plan?.manifest = rule
        admission.plan?.digests = [Digest(.xxh64, [1])]
        admission.unit = unit
        guard case .admitted(let id) = try await bench.journal.admit(admission, at: Bench.start) else {
            throw Unexpected(what: "not admitted")
        }
        return id
    }

    private func close(_ bench: Bench) async throws {
        _ = try await bench.journal.closeUnit(
            "gigs/X", root: "/in", routes: ["all"], marker: nil, uptimes: [:], at: Bench.start)
    }

    private func due(_ bench: Bench) async throws -> ManifestOrder? {
        try await bench.journal.nextManifest(at: Bench.start)
    }

    @Test func `the end of a unit owes its list, until that is written`() async throws {
        let bench = try Bench()
        let rule = ManifestRule(format: .mhl, algorithm: .md5)
        let id = try await admit(bench, "a", rule)
        try await close(bench)
        try await bench.settle(.test(.delivered))
        #expect(try await due(bench) == nil)
        #expect(try await bench.journal.manifestDue() == nil)
        try await bench.finishAll()
        let order = try #require(try await due(bench))
        #expect(order.rule == rule && order.generation == 1 && order.attempts == 0 && order.reason == nil)
        #expect(try await bench.journal.batch(of: id)?.id == order.batch)
        #expect(try await bench.journal.manifestDue() == Bench.start)
        try await bench.journal.manifestDone(order)
        #expect(try await due(bench) == nil)
        #expect(try await bench.journal.manifestDue() == nil)
    }

    @Test func `without the rule nothing is owed, nor for what is no unit`() async throws {
        let bench = try Bench()
        _ = try await admit(bench, "a", nil)
        _ = try await admit(bench, "b", ManifestRule(format: .ascmhl), unit: nil)
        try await close(bench)
        for _ in 0..<2 { try await bench.settle(.test(.delivered)) }
        try await bench.finishAll()
        #expect(try await due(bench) == nil)
    }

    @Test func `a failure is put off, and keeps its reason`() async throws {
        let bench = try Bench()
        _ = try await admit(bench, "a", ManifestRule(format: .ascmhl))
        try await close(bench)
        try await bench.settle(.test(.delivered))
        try await bench.finishAll()
        let later = Bench.start + .seconds(30)
        try await bench.journal.manifestFailed(try #require(try await due(bench)), reason: "full", until: later)
        #expect(try await due(bench) == nil)
        #expect(try await bench.journal.manifestDue() == later)
        let again = try #require(try await bench.journal.nextManifest(at: later))
        #expect(again.attempts == 1 && again.reason == "full")
    }

    @Test func `an end that was taken back owes one list, of the last end`() async throws {
        let bench = try Bench()
        let id = try await admit(bench, "a", ManifestRule(format: .ascmhl))
        try await close(bench)
        try await bench.settle(.test(.failed))
        try await bench.finishAll()
        let first = try #require(try await due(bench))
        #expect(try await bench.journal.retry(id, uptimes: [:], at: Bench.start))
        try await bench.settle(.test(.delivered))
        try await bench.finishAll()
        let second = try #require(try await due(bench))
        #expect(first.generation == 1 && second.generation == 2 && second.batch == first.batch)
        try await bench.journal.manifestDone(first)
        #expect(try await due(bench) == second)
        try await bench.journal.manifestDone(second)
        #expect(try await due(bench) == nil)
    }

    @Test func `batches are found, and the one that ended last`() async throws {
        let bench = try Bench()
        #expect(try await bench.journal.batches(limit: 9).isEmpty)
        #expect(try await bench.journal.batch(nil) == nil)
        let id = try await admit(bench, "a", nil)
        try await close(bench)
        try await bench.settle(.test(.delivered))
        try await bench.finishAll()
        _ = try await admit(bench, "b", nil)
        let ended = try #require(try await bench.journal.batch(nil))
        #expect(try await bench.journal.batches(limit: 9).map(\.id) == [ended.id + 1, ended.id])
        #expect(try await bench.journal.batch(ended.id) == ended)
        #expect(try await bench.journal.batch(99) == nil)
        #expect(try await bench.journal.jobs(ofBatch: ended.id).map(\.file.id) == [id])
    }

    @Test func `others below a folder are found by their keys`() async throws {
        let bench = try Bench()
        let id = try await admit(bench, "a", nil)
        let batch = try #require(try await bench.job(id).file.batchID)
        for key in ["gigs/X0", "gigs/Xa/b", "gigs/X"] { _ = try await bench.admit(key) }
        #expect(try await !bench.journal.hasOthers(besides: batch, below: "gigs/X", at: "r2"))
        #expect(try await bench.journal.hasOthers(besides: batch, below: "gigs", at: "r2"))
        _ = try await bench.admit("other", key: "gigs/X/raw/c")
        #expect(try await bench.journal.hasOthers(besides: batch, below: "gigs/X", at: "r2"))
        #expect(try await !bench.journal.hasOthers(besides: batch, below: "gigs/X", at: "elsewhere"))
    }
}
