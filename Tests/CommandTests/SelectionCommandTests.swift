import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Commands on selections of the queue, with a running agent and without one; labels; and a queue that is full.
@Suite(.serialized) struct SelectionCommandTests {
    /// Three files that wait for a destination that is down: `gigs/a`, `gigs/b` and `c`, labelled by their folder.
    private func withWaiting(running: Bool, _ body: (Place) async throws -> Void) async throws {
        var config = ConfigText.spiral(try FreePort.any())
        config.route += ["type: gig", "labels: { folder: \"{folder[1]}\" }"]
        let place = try Place(config)
        let agent = try await place.run()
        try place.folder.makeDirectory("drop/gigs")
        for name in ["gigs/a", "gigs/b", "c"] as [FilePath] { try place.put(name, bytes(10)) }
        try await agent.line("job.admitted", number: 3)
        try await agent.line("destination.down")
        if !running { try await agent.stop() }
        try await body(place)
    }

    @Test(arguments: [true, false])
    func `what waits is counted once, and a selection of it is listed, tried out, asked about, and then done`(
        _ running: Bool
    ) async throws {
        try await withWaiting(running: running) { place in
            try await expectCounted(place, running)
            let gigs = try await place.inlet("queue", "list", "--path", "gigs/**", "--json").objects()
            #expect(gigs.count == 2)
            #expect(gigs.allSatisfy { ($0["labels"] as? [String: String]) == ["type": "gig", "folder": "gigs"] })
            #expect(try await place.inlet("queue", "list", "--label", "type=gig", "--json").objects().count == 3)
            try await place.inlet("queue", "list", "--route", "none", says: "No matching files")
            let plan = try await place.inlet(
                "queue", "cancel", "--label", "folder=gigs", "--dry-run", code: 0, says: "2 files, ",
                "would be cancelled", "gigs/a")
            #expect(!plan.output.contains("drop/c"))
            try await place.inlet("queue", "cancel", "--label", "folder=gigs", code: 64, errors: "--yes")
            #expect(try await place.balance()["pending"] == 3)
            try await place.inlet(
                "queue", "cancel", "--label", "folder=gigs", "--yes", code: 0, says: "2 files cancelled")
            #expect(try await place.balance()["cancelled"] == 2)
            let again = try await place.inlet("queue", "retry", "--state", "cancelled", "--limit", "1")
            #expect(again.output.contains("1 file queued again"), "\(again.output)\(again.errors)")
            #expect(try await place.balance()["pending"] == 2)
            try await place.inlet("queue", "clear", "--destination", "store", "--yes", says: "2 files cancelled")
            try await place.inlet("queue", "list", "--label", "folder", code: 64)
            try await place.inlet("queue", "list", "--older", "soon", code: 64)
            try await place.inlet("queue", "cancel", code: 64)
        }
    }

    /// Three wait, and status says for how long the oldest has.
    private func expectCounted(_ place: Place, _ running: Bool) async throws {
        let status = try await place.inlet("status", "--json").object()
        let queue = try #require(status["queue"] as? [String: Any])
        #expect(queue["total"] as? Int == 3)
        let waiting = try #require(queue["waiting"] as? Int)
        #expect(waiting + (queue["in_flight"] as? Int ?? -9) == 3)
        if !running { #expect(waiting == 3) }
        #expect(queue["held"] as? Int == 0 && queue["parked"] as? Int == 0)
        #expect(queue["oldest_waiting"] is String && queue["oldest_waiting_ms"] as? Int ?? -1 >= 0)
        try await place.inlet("status", says: "Deliveries: ")
    }

    @Test func `a duplicate offers its answers and no retry, and one that is left is no open question`() async throws {
        let (place, agent) = try await Place.running(route: ["dedupe: skip"])
        for name in ["a.mov", "b.mov"] as [FilePath] {
            try place.put(name, bytes(10))
            try await agent.line("job.finished", number: name == "a.mov" ? 1 : 2)
        }
        let found = try await place.inlet("queue", "list", "--state", "duplicate", "--json").objects()
        let job = try #require(found.first?["job"] as? Int)
        let offered = try #require(found.first?["actions"] as? [String])
        #expect(offered.contains("leave") && !offered.contains("retry") && found.first?["unanswered"] as? Bool == true)
        try await place.inlet("queue", "retry", "\(job)", code: 1, errors: "has nothing to send again")
        try await place.inlet("queue", "first", "\(job)", code: 1, errors: "has already ended")
        try await place.inlet("queue", "leave", code: 64)
        try await place.inlet("queue", "leave", "--state", "duplicate", "--dry-run", says: "1 file", "b.mov")
        try await place.inlet("queue", "leave", "--state", "duplicate", says: "1 file left in place")
        try await place.inlet("queue", "leave", "\(job)", code: 1, errors: "was left there already")
        let left = try await place.inlet("queue", "list", "--state", "duplicate", "--json").objects()
        #expect(left.count == 1 && left.first?["unanswered"] == nil)
        try await agent.stop()
    }

    @Test func `labels of a sidecar go over the route's, into log, listing and receipt`() async throws {
        let (place, agent) = try await Place.running(route: [
            "type: gig", "labels: { owner: nobody }", "sidecars: { metadata: true, wait: 30s }",
        ])
        try place.put("a.mov.yaml", Data("labels:\n  owner: Ann\n".utf8))
        try place.put("a.mov", bytes(10))
        let admitted = try await agent.line("job.admitted") { $0.isAbout("a.mov") }
        let finished = try await agent.line("job.finished") { $0.isAbout("a.mov") }
        let job = try #require(finished.number("job"))
        #expect(admitted.number("job") == job)
        let labels = ["type": "gig", "owner": "Ann"]
        let shown = try await place.inlet("queue", "show", String(job), "--json").object()
        #expect(shown["labels"] as? [String: String] == labels)
        try await place.inlet("queue", "show", String(job), says: "owner=Ann type=gig")
        let receipts = try await place.inlet("receipts").objects()
        #expect(receipts.contains { $0["labels"] as? [String: String] == labels })
        try await place.inlet("route", place.drop.appending("a.mov").string, says: "owner=Ann type=gig")
    }

    @Test func `a full queue leaves files in their folder, and all are delivered in the end`() async throws {
        let place = try Place(top: ["limits: { queue_max_files: 5 }"])
        try await place.inlet("pause", "store", code: 0)
        let agent = try await place.run()
        for number in 0..<30 { try place.put(FilePath("f\(number)"), bytes(10 + number)) }
        try await agent.line("queue.full")
        #expect(try await place.balance()["pending"] == 5)
        try await place.inlet("resume", "store", code: 0)
        try await agent.wait("all are delivered") {
            let files = try await place.balance()
            #expect(files["pending"] ?? 0 <= 5)
            return files["delivered"] == 30
        }
        try await agent.line("queue.recovered")
        #expect(agent.lines("queue.full").count == 1)
        for number in 0..<30 { #expect(place.exists(place.library.appending("f\(number)"))) }
    }

    @Test func `resume asks a destination that is down at once`() async throws {
        try await withSpiral { place, sandbox in
            sandbox.faults.add(Fault(.status(503), at: .presign, times: nil))
            sandbox.faults.add(Fault(.status(503), at: .create, times: nil))
            sandbox.faults.add(Fault(.status(503), at: .single, times: nil))
            let agent = try await place.run()
            try place.put("a", bytes(10))
            try await agent.line("destination.down")
            sandbox.faults.clear()
            try await place.inlet("resume", code: 0)
            try await agent.line("job.finished") { $0["state"] == "delivered" }
        }
    }
}

/// Every command on a selection with every filter, one after the other: what it says, how it ends, what is left.
@Suite(.serialized) struct SelectionTableTests {
    private struct Step {
        let command: String
        let code: Int32
        let says: [String]
        let left: [String: Int]

        init(_ command: String, _ code: Int32 = 0, _ says: String..., left: [String: Int]) {
            (self.command, self.code, self.says, self.left) = (command, code, says, left)
        }
    }

    private static let all = ["delivered": 3, "failed": 1, "rejected": 1, "pending": 1]
    private static let withoutBatch = ["failed": 1, "rejected": 1, "pending": 1]

    /// What only asks, or is about nothing: all is as it was.
    private static let harmless = [
        Step("forget --state delivered --dry-run", 0, "3 files, 30 bytes, would be forgotten", "gigs/X/b", left: all),
        Step("forget --batch 1 --dry-run", 0, "3 files, 30 bytes, would be forgotten", "gigs/X/DONE", left: all),
        Step("forget --batch 2 --yes", 0, "0 files forgotten", left: all),
        Step("forget --batch 1", 64, "3 files, 30 bytes, would be forgotten", "--yes", left: all),
        Step("forget --older 1h --yes", 0, "0 files forgotten", left: all),
        Step("forget --older 0 --dry-run", 0, "5 files, ", left: all),
        Step("forget --code timed_out --yes", 0, "0 files forgotten", left: all),
        Step("forget --path held.bin --state delivered --yes", 0, "0 files forgotten", left: all),
        Step("forget", 64, "name a job or a filter", left: all),
        Step("retry --code too_large --dry-run", 0, "1 file, 6 MiB, would be queued again", "bad.bin", left: all),
        Step("retry --code timed_out --dry-run", 0, "0 files, ", left: all),
        Step("retry --all-failed --dry-run", 0, "1 file, 6 MiB, would be queued again", left: all),
        Step("retry --older 0 --dry-run", 0, "2 files, ", "bad.bin", "held.bin", left: all),
        Step("retry --older 1h", 0, "0 files queued again", left: all),
        Step("cancel --older 0 --dry-run", 0, "1 file, 40 bytes, would be cancelled", "held.bin", left: all),
        Step("cancel --batch 1 --yes", 0, "0 files cancelled", left: all),
        Step("clear --dry-run", 0, "1 file, 40 bytes, would be cancelled", "held.bin", left: all),
        Step("clear --older 1h --yes", 0, "0 files cancelled", left: all),
        Step("clear --older 0", 64, "--yes", left: all),
        Step("clear --code too_large --yes", 0, "0 files cancelled", left: all),
    ]

    /// What takes the queue apart.
    private static let harmful = [
        Step("forget --batch 1 --older 0 --yes", 0, "3 files forgotten", left: withoutBatch),
        Step("list --batch 1", 0, "No matching files", left: withoutBatch),
        Step("clear --older 0 --yes", 0, "1 file cancelled", left: ["failed": 1, "rejected": 1, "cancelled": 1]),
        // One alone is what was meant.
        Step("forget --code too_large", 0, "1 file forgotten", left: ["rejected": 1, "cancelled": 1]),
        Step("retry --older 0 --state cancelled", 0, "1 file queued again", left: ["rejected": 1, "pending": 1]),
        Step("forget --older 0 --yes", 0, "1 file forgotten", left: ["pending": 1]),
    ]

    @Test(arguments: [true, false])
    func `each filter and each switch means the same to each command`(_ running: Bool) async throws {
        try await withSelections(running: running) { place in
            for step in Self.harmless + Self.harmful {
                let done = try await place.inlet(["queue"] + step.command.split(separator: " ").map(String.init))
                let said = done.output + done.errors
                #expect(done.ending == .code(step.code), "\(step.command): \(said)")
                for text in step.says { #expect(said.contains(text), "\(step.command): \(said)") }
                #expect(try await place.status().files == step.left, "\(step.command): \(said)")
            }
        }
    }

    /// A folder of two that was delivered with its marker as batch 1; a file that failed, one that was rejected, and one
    /// that waits for the destination, which is paused.
    private func withSelections(
        running: Bool, _ body: @Sendable @escaping (Place) async throws -> Void
    ) async throws {
        try await withSpiral(route: "validate: { max_size: 9MiB }") { place, sandbox in
            try place.configure(
                replacing: "routes:\n",
                with: """
                    routes:
                      - name: gigs
                        match: { path: "gigs/**" }
                        to: store
                        key: "{dir}/{name}"
                        unit: folder
                        completion: marker

                    """)
            for (name, size) in [("a", 10), ("b", 20), ("DONE", 0)] {
                try place.put(FilePath("gigs/X/\(name)"), bytes(size))
            }
            let agent = try await place.run()
            try await agent.line("job.finished", number: 3)
            sandbox.faults.add(Fault(.reply(.tooLarge), at: .create, times: nil))
            try place.put("bad.bin", bytes(6 << 20))
            try place.put("huge.bin", bytes(10 << 20))
            try await agent.line("job.finished", number: 5)
            sandbox.faults.clear()
            try await place.inlet("pause", "store", code: 0)
            try place.put("held.bin", bytes(40))
            try await agent.line("job.admitted") { $0.isAbout("held.bin") }
            if !running { #expect(try await agent.stop() == .code(0)) }
            try await body(place)
        }
    }
}
