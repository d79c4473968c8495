import Foundation
import InletLinux
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
            #expect(text.contains(/delivered\t1\t1000 bytes/) && text.contains(/failed\t1\t6 MiB/), "\(text)")
            #expect(text.contains(/rejected\t1\t10 MiB/) && text.contains(/seen\t3/), "\(text)")
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
            #expect(table.contains(/delivered\t1000 bytes\tstore\t\S+\/drop\/good\.bin\t/), "\(table)")
            #expect(table.contains(/failed\t6 MiB\tstore\t\S+\/drop\/bad\.bin\t/), "\(table)")
            #expect(table.contains(/rejected\t10 MiB\t.*\/drop\/huge\.bin\t.*9 MiB/), "\(table)")
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
        try await place.inlet("queue", "cancel", "1", errors: "has already ended")
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
            #expect(text.contains(/expired\t1\t6 MiB/) && !text.contains("Deliveries: "), "\(text)")
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

@Suite(.serialized) struct ChecklistGapsTests {
    @Test func `status shows how far each transfer is, in bytes and percent`() async throws {
        try await withSpiral("parallel_parts: 1") { place, sandbox in
            sandbox.faults.add(Fault(.stall, at: .part, part: 2, times: nil))
            let agent = try await place.run()
            let size = 16 << 20
            try place.put("film.mov", bytes(size))
            try await agent.wait("the second part") { sandbox.traffic.partOrder.contains(2) }
            let status = try await place.inlet("status", "--json").object()
            let transfer = try #require((status["in_flight"] as? [[String: Any]])?.first)
            let sent = try #require(transfer["sent"] as? Int)
            #expect(sent >= 5 << 20 && sent <= 10 << 20)
            #expect(transfer["size"] as? Int == size)
            #expect(transfer["path"] as? String == place.drop.appending("film.mov").string)
            let text = try await place.inlet("status").output
            let shown = try #require(text.firstMatch(of: /(\d+) %/))
            #expect((31...62).contains(Int(shown.1) ?? -1), "\(text)")
        }
    }

    @Test func `the public address of what was stored is printed, logged and kept in the receipt`() async throws {
        try await withSpiral("public_url: \"https://cdn.example/media\"") { place, sandbox in
            let agent = try await place.run()
            let file = try place.folder.write(bytes(10), to: "elsewhere/live set.mov")
            let sent = try await place.inlet("send", file.string)
            let address = "https://cdn.example/media/live_set.mov"
            #expect(sent.output.contains(address), "\(sent.output)")
            #expect(try await agent.line("job.delivered")["url"] == address)
            try await agent.line("job.finished")
            let deliveries = try await place.inlet("receipts").objects().first?["deliveries"] as? [[String: Any]]
            #expect(deliveries?.first?["url"] as? String == address)
            #expect(sandbox.objects().map(\.key) == ["live_set.mov"])
        }
    }
}

/// The journal backed up, restored and reset by the commands.
@Suite(.serialized) struct BackupCommandTests {
    @Test func `a backup made under load and restored loses no file and makes no second object`() async throws {
        let (place, agent) = try await Place.running()
        try await place.deliver("before.txt", bytes(10), by: agent)
        for number in 0..<40 { try place.put(FilePath("a\(number).bin"), bytes(2000, seed: UInt64(number))) }
        try await agent.line("job.finished", number: 2)
        let backup = place.folder.path.appending("backup.sqlite")
        try await place.inlet("queue", "backup", backup.string, code: 0, says: backup.string)
        for number in 0..<20 { try place.put(FilePath("b\(number).bin"), bytes(2000, seed: UInt64(100 + number))) }
        try await agent.line("job.finished", number: 61)
        try await place.inlet("queue", "restore", backup.string, "--yes", code: 75)
        // Another over its own name, and one by itself under the time.
        let other = place.folder.path.appending("other.sqlite").string
        for _ in 0..<2 { try await place.inlet("queue", "backup", other, code: 0) }
        try await place.inlet("queue", "backup", says: "state/backups/journal-")
        let mode = try FileManager.default.attributesOfItem(atPath: backup.string)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
        #expect(try await agent.stop() == .code(0))

        try place.put("c.bin", bytes(10))
        try await place.inlet("queue", "restore", backup.string, code: 64)
        try await place.inlet("queue", "restore", backup.string, "--yes", code: 0, says: "was kept as")
        let again = try await place.run()
        try await eventually("all is delivered") { try await place.balance()["delivered"] == 62 }
        let balance = try await place.balance()
        #expect(balance.values.reduce(0, +) == 62, "\(balance)")
        try await again.stop()
        // What the backup knows is not begun again, and what came after it has the same places.
        #expect(!again.lines("job.started").contains { $0.isAbout("before.txt") })
        let names = Place.files(below: place.library).keys
        #expect(names.count == 62 && names.contains("before.txt"), "\(names)")
        for number in 0..<40 {
            let name = "a\(number).bin"
            #expect(try place.content(place.library.appending(name)) == bytes(2000, seed: UInt64(number)), "\(name)")
        }
    }

    @Test func `a reset keeps the journal and begins an empty one, and not while the agent runs`() async throws {
        let (place, agent) = try await Place.running()
        try place.put("a.txt", bytes(10))
        try await agent.line("job.finished")
        try await place.inlet("queue", "reset", "--yes", code: 75)
        try await agent.stop()
        try await place.inlet("queue", "reset", code: 64)
        try await place.inlet("queue", "reset", "--yes", code: 0, says: "are new ones then")
        let kept = try FileManager.default.contentsOfDirectory(atPath: place.state.string)
        let old = try #require(kept.first { $0.hasPrefix("journal.sqlite.reset-") })
        #expect(place.exists(place.drop.appending("a.txt")))
        #expect(try await place.balance()["delivered"] == 0)
        // And back again.
        let aside = place.state.appending(old).string
        try await place.inlet("queue", "restore", aside, "--yes", code: 0)
        #expect(try await place.balance()["delivered"] == 1)
    }

    @Test func `a start without its journal ends with what to do, and status says so too`() async throws {
        let place = try Place()
        try place.put("a.txt", bytes(10))
        try await place.runUntil("job.finished")
        try FileManager.default.removeItem(atPath: place.state.appending("journal.sqlite").string)
        for command in ["run", "status"] {
            try await place.inlet(command, code: 78, errors: "queue restore")
        }
        try await place.inlet("queue", "reset", "--yes", code: 0)
        try await place.runUntil("job.finished")
    }

    @Test func `a reset waits for a command that has the journal for a moment`() async throws {
        let place = try Place()
        try await place.run().stop()
        var lock = try FileLock(place.state.appending("lock"))
        let isHeld = lock != nil
        #expect(isHeld)
        async let reset = place.inlet("queue", "reset", "--yes")
        // Held for as long as another command takes.
        try await place.inlet("config", "show", code: 0)
        lock = nil
        #expect(try await reset.ending == .code(0))
    }

    @Test(arguments: [true, false])
    func `a backup is not written over what is no backup`(_ running: Bool) async throws {
        let place = try Place()
        let agent = running ? try await place.run() : nil
        let precious = try place.folder.write("precious".utf8, to: "precious.mov")
        let journal = place.state.appending("journal.sqlite").string
        for target in [precious.string, journal, place.drop.string] {
            try await place.inlet("queue", "backup", target, code: 1, errors: "no backup was made")
        }
        #expect(try place.content(precious) == Data("precious".utf8))
        try await agent?.stop()
    }
}
