import InletCore
import InletJournalSupport
import InletTestSupport
import Testing

@testable import InletJournal

/// Cancelling everything that waits, when that is much.
@Suite(.seated) struct ClearingTests {
    /// A journal in which so many files wait.
    private func bench(_ count: Int) async throws -> Bench {
        let bench = try Bench()
        _ = try await bench.journal.admit((0..<count).map { .test("\($0)") }, at: Bench.start)
        return bench
    }

    @Test func `a step cancels a group, and who begins again after it goes on with the rest`() async throws {
        let group = Journal.clearedAtOnce
        let bench = try await bench(2 * group + 9)
        let first = try await bench.journal.clear(at: Bench.start)
        #expect(first.files == group && first.next != nil)
        #expect(try await bench.journal.totals().mapValues(\.files) == [.cancelled: group, .pending: group + 9])
        // As after the end of the process: nobody knows how far it came.
        #expect(try await bench.journal.clearAll(at: Bench.start).files == group + 9)
        #expect(try await bench.journal.totals().mapValues(\.files) == [.cancelled: 2 * group + 9])
    }

    @Test func `others have their turn between two steps, and what comes meanwhile is not meant`() async throws {
        let bench = try await bench(Journal.clearedAtOnce + 1)
        let first = try await bench.journal.clear(at: Bench.start)
        let new = try await bench.admit("new")
        let last = try await bench.journal.clear(from: #require(first.next), at: Bench.start)
        #expect(last == ClearingStep(files: 1))
        #expect(try await bench.job(new).file.state == .pending)
        #expect(try await bench.journal.clear(at: Bench.start).files == 1)
        #expect(try await bench.journal.clear(at: Bench.start) == ClearingStep())
    }

    @Test(.enabled(if: SQLiteShell.isInstalled))
    func `a file that cannot be read keeps no other from being cancelled, and is said`() async throws {
        let bench = try await bench(3)
        try SQLiteShell.run(bench.journal.path, "UPDATE delivery SET fields = x'00' WHERE file_id = 2")
        let step = try await bench.journal.clear(at: Bench.start)
        #expect(step.files == 2 && step.skipped.values.reduce(0, +) == 1 && step.next == nil)
        #expect(try await bench.job(1).file.state == .cancelled)
        #expect(try await bench.job(3).file.state == .cancelled)
    }
}
