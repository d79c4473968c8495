import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// Files in the journal's history, as users meet them.
@Suite struct HistoryCommandTests {
    @Test func `a file that stays in its folder is not sent again after it went to the history and a restart`()
        async throws
    {
        let place = try Place(top: ["journal_history: { after: 1s }"])
        try place.put("a.bin", bytes(100))
        let first = try await place.run()
        try await first.line("job.finished") { $0.isAbout("a.bin") }
        #expect(try await first.stop() == .code(0))
        // It looks a second after its start; what had finished before is old enough then.
        let second = try await place.run()
        #expect(try await second.line("journal.pruned").number("files") == 1)
        #expect(try await second.stop() == .code(0))
        let third = try await place.run()
        try await place.deliver("b.bin", bytes(200), by: third)
        #expect(third.lines("job.admitted").allSatisfy { $0.isAbout("b.bin") })
        #expect(try await place.balance()["delivered"] == 2)
        try await place.inlet("queue", "show", "1", code: 0, says: "a.bin")
        // Dropped anew, with other bytes, it gets a key of its own.
        try await place.deliver("a.bin", bytes(300), by: third)
        #expect(try await third.stop() == .code(0))
        let files = Place.files(below: place.library)
        #expect(files == ["a.bin": bytes(100), "b.bin": bytes(200), "a_2.bin": bytes(300)])
        // Forgotten, it is seen no more in the queue.
        try await place.inlet("queue", "forget", "1", code: 0)
        #expect(try await place.inlet("queue", "show", "1").ending != .code(0))
    }
}
