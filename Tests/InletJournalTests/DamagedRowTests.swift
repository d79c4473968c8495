import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage
import Testing

/// One row that cannot be read any more, among others that can.
@Suite(.seated, .enabled(if: SQLiteShell.isInstalled)) struct DamagedRowTests {
    private static let rule = ManifestRule(format: .mhl)

    private func admit(_ bench: Bench, _ unit: FilePath, _ names: [String]) async throws -> [Int64] {
        var ids: [Int64] = []
        for name in names {
            var admission = FileAdmission.test("\(unit)/\(name)")
            admission.plan?.manifest = Self.rule
            admission.plan?.digests = [Digest(.xxh64, [1])]
            admission.unit = unit
            ids.append(try await bench.admit(admission))
        }
        _ = try await bench.journal.closeUnit(
            unit, root: "/in", routes: ["all"], marker: nil, uptimes: [:], at: Bench.start)
        return ids
    }

    private func deliver(_ bench: Bench, _ count: Int) async throws {
        for _ in 0..<count { try await bench.settle(.test(.delivered)) }
        try await bench.finishAll()
    }

    @Test func `a batch has all its files, and says which of them it cannot read`() async throws {
        let bench = try Bench()
        let ids = try await admit(bench, "A001", ["a", "b", "c", "d"])
        try await deliver(bench, 4)
        let path = bench.journal.path
        try SQLiteShell.run(path, "UPDATE file SET policy = x'00' WHERE id = \(ids[0])")
        try SQLiteShell.run(path, "UPDATE file SET digests = x'00' WHERE id = \(ids[1])")
        try SQLiteShell.run(path, "UPDATE delivery SET proof = x'00' WHERE file_id = \(ids[2])")
        let batch = try #require(try await bench.journal.batch(of: ids[0]))
        let jobs = try await bench.journal.jobs(ofBatch: batch.id)
        #expect(jobs.map(\.file.id) == ids)
        #expect(jobs.map(\.file.isDamaged) == [true, true, false, false])
        #expect(jobs.map { $0.deliveries[0].isDamaged } == [false, false, true, false])
        #expect(jobs.map { $0.file.digests.isEmpty } == [false, true, false, false])
        let page = try await bench.journal.delivered(DeliveredFilter(batch: batch.id), after: 0, limit: 9).page
        #expect(page.map { $0.delivery.proof == nil } == [false, false, true, false])
    }

    @Test func `a list that is owed without its rule is put off like any other`() async throws {
        let bench = try Bench()
        _ = try await admit(bench, "A001", ["a"])
        _ = try await admit(bench, "A002", ["a"])
        try await deliver(bench, 2)
        try SQLiteShell.run(bench.journal.path, "UPDATE manifest SET rule = x'00' WHERE batch_id = 1")
        let first = try #require(try await bench.journal.nextManifest(at: Bench.start))
        #expect(first.batch == 1 && first.rule == nil)
        try await bench.journal.manifestFailed(first, reason: "damaged", until: Bench.start + .seconds(30))
        let second = try #require(try await bench.journal.nextManifest(at: Bench.start))
        #expect(second.batch == 2 && second.rule == Self.rule)
    }

    @Test func `a policy that cannot be read keeps its unit neither from its end nor from its list`() async throws {
        let bench = try Bench()
        let ids = try await admit(bench, "A001", ["a", "b"])
        try await deliver(bench, 1)
        let done = try #require(try await bench.job(ids[0]).file.finishedAt)
        #expect(done == Bench.start)
        try SQLiteShell.run(bench.journal.path, "UPDATE file SET policy = x'00' WHERE id = \(ids[0])")
        try await deliver(bench, 1)
        let order = try #require(try await bench.journal.nextManifest(at: Bench.start))
        #expect(order.rule == Self.rule)
    }
}
