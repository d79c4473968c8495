import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

/// A part of the agent that ends unasked is missed, and what it cannot read is not taken for nothing.
@Suite struct ServiceRestartTests {
    private struct Broken: Error, CustomStringConvertible { var description: String { "it broke" } }

    @Test func `a part that ends unasked is said, shown, and begins anew, with longer pauses`() async throws {
        let log = try EventLog(nil)
        let record = EventRecord(log)
        let restarts = ServiceRestarts(log: log, first: .milliseconds(1))
        let runs = Count()
        let task = StopFlag()
        await withDiscardingTaskGroup { group in
            group.addTask {
                await restarts.keep("counting") {
                    if runs.add() == 1 { throw Broken() }
                    if runs.value == 2 { return }
                    task.set()
                    await StopFlag().wait()
                }
            }
            await task.wait()
            #expect(restarts.incidents().map(\.service) == ["counting"])
            #expect(restarts.incidents().map(\.reason) == ["it ended without a reason"])
            #expect(restarts.incidents(at: .now.advanced(by: .seconds(61))).isEmpty)
            group.cancelAll()
        }
        let said = record.all.compactMap { event in
            if case .serviceFailed(_, let reason, let wait) = event { (reason, wait) } else { nil }
        }
        #expect(said.map(\.0) == ["it broke", "it ended without a reason"])
        #expect(said.map(\.1) == [.milliseconds(1), .milliseconds(2)])
        #expect(restarts.incidents().isEmpty)
    }

    @Test func `a journal that the finisher cannot read is trouble, not the end of its work`() async throws {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        let shared = Shared.test(journal, try EventLog(nil)) { $0.stateDirectory = directory.path }
        let finisher = FinishingStage(shared, BlockingPool(name: "finisher", threads: 1), version: "test")
        journal.close()
        try await whileRunning([finisher]) { try await eventually("it is said") { shared.health.journal.isFailing } }
    }

    @Test func `a journal that the sweeper cannot read is trouble, not the end of its work`() async throws {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        let shared = Shared.test(journal, try EventLog(nil))
        journal.close()
        try await whileRunning([Leftovers(shared: shared)]) {
            try await eventually("it is said") { shared.health.journal.isFailing }
        }
    }
}
