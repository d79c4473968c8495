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
    func `a selection is listed, tried out, asked about, and then done`(_ running: Bool) async throws {
        try await withWaiting(running: running) { place in
            let gigs = try await place.inlet("queue", "list", "--path", "gigs/**", "--json").objects()
            #expect(gigs.count == 2)
            #expect(gigs.allSatisfy { ($0["labels"] as? [String: String]) == ["type": "gig", "folder": "gigs"] })
            #expect(try await place.inlet("queue", "list", "--label", "type=gig", "--json").objects().count == 3)
            try await place.inlet("queue", "list", "--route", "none", says: "No file matches")
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

    @Test(arguments: [true, false])
    func `status counts what waits, once, and how long the oldest has waited`(_ running: Bool) async throws {
        try await withWaiting(running: running) { place in
            let status = try await place.inlet("status", "--json").object()
            let queue = try #require(status["queue"] as? [String: Any])
            #expect(queue["total"] as? Int == 3)
            let waiting = try #require(queue["waiting"] as? Int)
            #expect(waiting + (queue["in_flight"] as? Int ?? -9) == 3)
            if !running { #expect(waiting == 3) }
            #expect(queue["held"] as? Int == 0 && queue["parked"] as? Int == 0)
            #expect(queue["oldest_waiting"] is String)
            #expect(queue["oldest_waiting_ms"] as? Int ?? -1 >= 0)
            try await place.inlet("status", says: "Deliveries: ")
        }
    }

    @Test func `labels of a sidecar go over the route's, into log, listing and receipt`() async throws {
        let place = try Place(route: [
            "type: gig", "labels: { owner: nobody }", "sidecars: { metadata: true, wait: 30s }",
        ])
        let agent = try await place.run()
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
