import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// What `inlet status` says of a queue whose contents the test knows.
@Suite(.serialized) struct StatusCommandTests {
    @Test func `status tells what waits and was tried, and after a start how much of it has gone`() async throws {
        let port = try FreePort.any()
        let place = try Place(.spiral(port))
        let first = try await place.run()
        try place.put("tried", bytes(10))
        try await first.line("job.retry")
        for name in ["b", "c"] as [FilePath] { try place.put(name, bytes(20)) }
        try await first.line("job.admitted", number: 3)
        #expect(try await place.status().queue == ["total": 3, "waiting": 3, "retrying": 1])
        #expect(try await first.stop() == .code(0))
        let stopped = try await place.status()
        #expect(stopped.queue == ["total": 3, "waiting": 3, "retrying": 1] && stopped.all["resuming"] == nil)
        let agent = try await place.run()
        let down = try await agent.line("destination.down")
        #expect(down["destination"] == "store" && down["reason"]?.contains("no connection") ?? false, "\(down)")
        let started = try await place.status()
        #expect(started.queue == ["total": 3, "waiting": 3, "retrying": 1])
        #expect(started.files == ["pending": 3] && started.bytes == ["pending": 50])
        #expect(
            started.all["resuming"] as? [String: Int] == ["of": 3, "resumed": 0, "failed": 0, "waiting": 0])
        let text = try await place.inlet("status").output
        #expect(text.contains("Since the start: 0 of 3 resumed"), "\(text)")
        #expect(text.contains("Deliveries: 3 waiting, 1 of these tried before"), "\(text)")
        try await withSandbox(place.folder.path.appending("store"), port: port) { _, _ in
            let resumed = try await agent.line("queue.resumed")
            #expect(resumed.number("resumed") == 3 && resumed.number("of") == 3, "\(resumed)")
            let status = try await place.status()
            #expect(status.all["resuming"] == nil && status.queue == [:])
            #expect(status.files == ["delivered": 3] && status.bytes == ["delivered": 50])
            #expect(try await !place.inlet("status").output.contains("Since the start"))
        }
    }

    @Test func `status tells what expired, and that it waits no more`() async throws {
        try await withSpiral { place, sandbox in
            try place.configure(
                replacing: "retry: { attempts: 3, backoff: 100ms }",
                with: "retry: { backoff: 12h, max_backoff: 12h, expire: 1s }")
            sandbox.faults.add(Fault(.status(500), at: .create, times: nil))
            let agent = try await place.run()
            try place.put("late.bin", bytes(6 << 20))
            try await agent.line("job.finished") { $0["state"] == "expired" }
            let status = try await place.status()
            #expect(status.files == ["expired": 1] && status.bytes == ["expired": 6 << 20])
            #expect(status.queue == ["expired": 1] && status.all["seen"] as? Int == 1)
            let text = try await place.inlet("status").output
            #expect(text.contains(/expired +1 +6 MiB/) && !text.contains("Deliveries: "), "\(text)")
            let listed = try await place.inlet("queue", "list", "--state", "expired", "--json").objects()
            #expect(listed.compactMap { $0["path"] as? String } == [place.drop.appending("late.bin").string])
            #expect(place.exists(place.drop.appending("late.bin")))
        }
    }
}

extension Place {
    /// What `inlet status --json` says.
    struct Status {
        let all: [String: Any]
        /// Files, and their bytes, by state; states without any are left out.
        let files: [String: Int]
        let bytes: [String: Int]
        /// The counts of `queue` that are not 0.
        let queue: [String: Int]
    }

    func status() async throws -> Status {
        let all = try await inlet("status", "--json").object()
        func counts(_ name: String) -> [String: Int] {
            (all[name] as? [String: Any] ?? [:]).compactMapValues { $0 as? Int }.filter { $0.value != 0 }
        }
        var queue = counts("queue")
        queue["oldest_waiting_ms"] = nil
        return Status(all: all, files: counts("files"), bytes: counts("bytes"), queue: queue)
    }
}
