import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

/// The counts that triggers keep. Random sequences of commands compare them with a real count as well: `ModelTests`,
/// `ExchangeModelTests` and `BatchModelTests`.
@Suite(.seated) struct QueueTallyTests {
    @Test func `each step of a delivery's life is counted where it is`() async throws {
        let bench = try Bench()
        let journal = bench.journal
        func expect(_ place: String) async throws {
            #expect(try await journal.queueCounts() == journal.countedQueue(), "\(place)")
        }
        for name in ["a", "b", "c", "d", "e"] { _ = try await bench.admit(name, to: ["r2", "disk"]) }
        try await expect("admitted")
        try await bench.settle(.again(Bench.start + .seconds(5), counts: true))
        try await expect("tried")
        try await bench.settle(.waiting(until: Bench.start + .seconds(5), saying: "at work"))
        try await expect("worked on")
        try await bench.hold { _ in
            try await expect("claimed")
            return .test(.failed)
        }
        try await expect("failed")
        #expect(try await journal.retry(3, uptimes: [:], at: Bench.start))
        try await expect("sent again")
        _ = try await journal.cancel(4, at: Bench.start)
        try await expect("cancelled")
        _ = try await journal.recover(destinations: ["r2"], at: Bench.start)
        try await expect("parked")
        #expect(try await journal.queueCounts()["disk"]?.parked == 4)
        _ = try await journal.recover(destinations: ["r2", "disk"], at: Bench.start)
        try await expect("configured again")
        _ = try await journal.clearAll(at: Bench.start)
        try await bench.finishAll()
        for file in 1...5 { _ = try await journal.forget(Int64(file)) }
        #expect(try await journal.queueCounts().isEmpty)
    }

    /// A release of Inlet before this one: without what the last migration added.
    private static let earlier = """
        DROP TRIGGER queue_insert; DROP TRIGGER queue_delete; DROP TRIGGER queue_leave; DROP TRIGGER queue_enter;
        DROP TRIGGER queue_move; DROP TABLE queue_tally; DROP INDEX delivery_eldest; DROP INDEX delivery_ready;
        ALTER TABLE delivery DROP COLUMN priority;
        CREATE INDEX delivery_ready ON delivery(destination, lane, next_at, id) WHERE state = 'ready';
        DELETE FROM grdb_migrations WHERE identifier = '8 priorities';
        """

    @Test(.enabled(if: SQLiteShell.isInstalled))
    func `the journal of an earlier version is counted once, and goes on`() async throws {
        let bench = try Bench()
        for name in ["a", "b", "c"] { _ = try await bench.admit(name, to: ["r2", "disk"]) }
        try await bench.settle(.again(Bench.start + .seconds(5), counts: true))
        try await bench.settle(.waiting(until: Bench.start + .seconds(5), saying: nil))
        _ = try await bench.journal.recover(destinations: ["r2"], at: Bench.start)
        bench.journal.close()
        try SQLiteShell.run(bench.journal.path, Self.earlier)
        let journal = try Journal(path: bench.journal.path, now: Bench.start)
        defer { journal.close() }
        let counts = try await journal.queueCounts()
        #expect(counts["r2"]?.waiting == 2 && counts["r2"]?.working == 1 && counts["disk"]?.parked == 3)
        #expect(try await counts == journal.countedQueue())
        _ = try await journal.clearAll(at: Bench.start)
        #expect(try await journal.queueCounts().isEmpty)
        #expect(try await journal.job(1)?.deliveries.map(\.priority) == [.normal, .normal])
    }
}
