import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

/// Notices of a batch whose rows cannot be read.
@Suite(.seated, .enabled(if: SQLiteShell.isInstalled)) struct UnreadableNoticeTests {
    /// A batch of one file that has failed. - Returns: its id.
    private func ended(_ bench: Bench) async throws -> Int64 {
        _ = try await bench.journal.setSinks([NoticeSink(name: "ops", events: [.batchDone])], at: Bench.start)
        _ = try await bench.failUnit()
        guard case .due(let notice) = try await bench.journal.nextNotice("ops", at: Bench.start) else {
            throw Unexpected(what: "no notice")
        }
        return try #require(notice.subject)
    }

    @Test func `a batch that cannot be read now is not one that is forgotten`() async throws {
        let bench = try Bench()
        let batch = try await ended(bench)
        try SQLiteShell.run(bench.journal.path, "ALTER TABLE batch RENAME TO away")
        await #expect(throws: JournalError.self) { _ = try await bench.journal.endedBatch(batch, limit: 9) }
        try SQLiteShell.run(bench.journal.path, "ALTER TABLE away RENAME TO batch")
        #expect(try await bench.journal.endedBatch(batch, limit: 9)?.jobs.count == 1)
        #expect(try await bench.journal.endedBatch(batch + 1, limit: 9) == nil)
    }

    @Test func `a batch is told with what can be read of its files`() async throws {
        let bench = try Bench()
        let batch = try await ended(bench)
        try SQLiteShell.run(
            bench.journal.path, "UPDATE file SET policy = x'00', labels = x'00'; UPDATE delivery SET fields = x'00'")
        let told = try #require(try await bench.journal.endedBatch(batch, limit: 9))
        #expect(told.batch.counts == [.failed: 1])
        #expect(told.jobs.map(\.file.path) == ["gigs/X/a"] && told.jobs.map(\.file.state) == [.failed])
    }
}
