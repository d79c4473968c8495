import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// The queue seen and changed from outside: the same whether an agent runs or not.
@Suite(.serialized) struct QueueCommandTests {
    /// Three files: one delivered, one failed, one rejected.
    private func withQueue(
        running: Bool, _ body: @Sendable @escaping (Place, SpiralSandbox, InletProcess?) async throws -> Void
    ) async throws {
        try await withSpiral(route: "validate: { max_size: 9MiB }") { place, sandbox in
            let agent = try await place.run()
            try await place.deliver("good.bin", bytes(1000), by: agent)
            sandbox.faults.add(Fault(.reply(.tooLarge), at: .create, times: nil))
            try place.put("bad.bin", bytes(6 << 20))
            try place.put("huge.bin", bytes(10 << 20))
            try await agent.line("job.finished", number: 2) { !$0.isAbout("good.bin") }
            sandbox.faults.clear()
            if !running { #expect(try await agent.stop() == .code(0)) }
            try await body(place, sandbox, running ? agent : nil)
        }
    }

    @Test(arguments: [true, false])
    func `status has the files and bytes of each state, and all as seen, and receipts are one a file, newest first`(
        _ running: Bool
    ) async throws {
        try await withQueue(running: running) { place, _, _ in
            let status = try await place.status()
            #expect(status.files == ["delivered": 1, "failed": 1, "rejected": 1])
            #expect(status.bytes == ["delivered": 1000, "failed": 6 << 20, "rejected": 10 << 20])
            #expect(status.queue == ["failed": 1])
            #expect(status.all["running"] as? Bool == running)
            #expect(status.all["seen"] as? Int == 3)
            #expect(status.all["ignored"] as? Int == 0 && status.all["pending"] as? Int == 0)
            let text = try await place.inlet("status").output
            #expect(text.contains(running ? "is running since" : "is not running"), "\(text)")
            #expect(text.contains(/delivered +1 +1000 bytes/) && text.contains(/failed +1 +6 MiB/), "\(text)")
            #expect(text.contains(/rejected +1 +10 MiB/) && text.contains(/Seen +3/), "\(text)")
            #expect(text.contains("inlet queue list --state failed"))
            let receipts = try await place.inlet("receipts").objects()
            #expect(receipts.count == 3)
            #expect(receipts.last?["state"] as? String == "delivered")
            let deliveries = try #require(receipts.last?["deliveries"] as? [[String: Any]])
            #expect(deliveries.first?["key"] as? String == "good.bin")
            #expect((deliveries.first?["digest"] as? String)?.isEmpty == false)
            let newest = try await place.inlet("receipts", "--limit", "1").objects()
            #expect(newest.compactMap { $0["job"] as? Int } == [receipts.first?["job"] as? Int])
        }
    }

    @Test(arguments: [true, false])
    func `queue list and show tell each file's story, as text and as JSON, and forget ends it, not the file`(
        _ running: Bool
    ) async throws {
        try await withQueue(running: running) { place, _, _ in
            let all = try await place.inlet("queue", "list", "--json").objects()
            #expect(all.count == 3)
            let table = try await place.inlet("queue", "list").output
            #expect(table.contains(/delivered +1000 bytes +store +\S+\/drop\/good\.bin\n/), "\(table)")
            #expect(table.contains(/failed +6 MiB +store +\S+\/drop\/bad\.bin\n/), "\(table)")
            #expect(table.contains(/rejected +10 MiB .*\/drop\/huge\.bin\n +.*9 MiB/), "\(table)")
            let failed = try await place.inlet("queue", "list", "--state", "failed", "--json").objects()
            #expect(failed.compactMap { $0["path"] as? String } == [place.drop.appending("bad.bin").string])
            let id = try #require(failed.first?["job"] as? Int)
            let story = try await place.inlet("queue", "show", String(id), code: 0, says: "store: failed, attempts 1")
            #expect(story.output.contains(/was answered with 413: .*too large.* \[too_large\]/), "\(story.output)")
            let object = try await place.inlet("queue", "show", String(id), "--json").object()
            #expect(object["state"] as? String == "failed")
            try await place.inlet("queue", "show", "999", code: 1, errors: "no job 999")
            try await place.inlet("queue", "list", "--state", "expired", says: "No file is expired")
            try await place.inlet("queue", "list", "--state", "bogus", code: 64)
            try await place.inlet("queue", "forget", "1", code: 0)
            try await place.inlet("queue", "show", "1", code: 1)
            #expect(place.exists(place.drop.appending("good.bin")))
            let status = try await place.status()
            #expect(status.files == ["failed": 1, "rejected": 1])
            #expect(status.bytes == ["failed": 6 << 20, "rejected": 10 << 20])
            #expect(status.all["seen"] as? Int == 2)
        }
    }

    @Test(arguments: [true, false])
    func `a retried file is delivered, and a delivered one has nothing to retry`(_ running: Bool) async throws {
        try await withQueue(running: running) { place, sandbox, agent in
            try await place.inlet("queue", "retry", "--all-failed", code: 0)
            let agent = try await Self.some(agent, place)
            try await agent.line("job.finished") { $0.isAbout("bad.bin") && $0["state"] == "delivered" }
            #expect(sandbox.objects().map(\.key) == ["bad.bin", "good.bin"])
            let again = try await place.inlet("queue", "retry", "1", code: 1)
            #expect(again.errors.contains("nothing to send again"))
        }
    }

    private static func some(_ agent: InletProcess?, _ place: Place) async throws -> InletProcess {
        if let agent { return agent }
        return try await place.run()
    }

    @Test(arguments: [true, false])
    func `what waits is cancelled by number, or all of it by clear`(_ running: Bool) async throws {
        let place = try Place(.spiral(try FreePort.any()))
        let agent = try await place.run()
        for name in ["a", "b", "c"] { try place.put(FilePath(name), bytes(10)) }
        try await agent.line("job.admitted", number: 3)
        try await agent.line("destination.down")
        if !running { try await agent.stop() }
        try await place.inlet("queue", "forget", "1", code: 1)
        try await place.inlet("queue", "cancel", "1", code: 0)
        try await place.inlet("queue", "cancel", "1", errors: "has ended already")
        try await place.inlet("queue", "clear", "--yes", says: "2 files cancelled")
        #expect(try await place.balance()["cancelled"] == 3)
        #expect(place.exists(place.drop.appending("a")))
    }

    @Test(arguments: [true, false])
    func `a pause holds deliveries, survives a restart, and ends with resume`(_ running: Bool) async throws {
        let place = try Place()
        if running {
            let agent = try await place.run()
            try await place.inlet("pause", "store", says: "paused: store")
            try await agent.line("destination.paused")
            try await agent.stop()
        } else {
            try await place.inlet("pause", code: 0)
        }
        try await place.inlet("pause", "stor", code: 1, errors: "did you mean 'store'?")
        let agent = try await place.run()
        try place.put("held.txt", bytes(10))
        try await agent.line("job.admitted")
        let status = try await place.inlet("status", "--json").object()
        let destination = (status["destinations"] as? [[String: Any]])?.first
        #expect(destination?["state"] as? String == "paused")
        #expect(destination?["waiting"] as? Int == 1)
        #expect(agent.lines("job.started").isEmpty)
        try await place.inlet("resume", "store", code: 0)
        try await agent.line("job.finished")
        #expect(try place.content(place.library.appending("held.txt")) == bytes(10))
    }
}
