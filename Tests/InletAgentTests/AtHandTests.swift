import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

/// Claims that no connection has begun: to people they wait, as what is in the journal does.
@Suite struct AtHandTests {
    private static let connections = 8
    private static let files = LaneSlots.most(connections) + 8
    private static let atHand = LaneSlots.most(connections) - connections

    /// An agent with eight deliveries that run until the gate opens; others wait at hand, and the rest in the journal.
    private func run(_ scene: Scene, _ gate: Gate, _ body: (Stage) async throws -> Void) async throws {
        scene.here.always(.hold(gate, .deliver))
        try await scene.run { stage in
            for number in 0..<Self.files { try scene.drop(FilePath("\(number)")) }
            try await eventually("the stock is full") {
                let claimed = try await stage.journal.deliveryCounts(.claimed)["here"]
                return claimed == Self.connections + Self.atHand && scene.here.record.running == Self.connections
            }
            try await body(stage)
        }
    }

    /// A job that waits at hand.
    private func waiting(_ scene: Scene, _ stage: Stage) async throws -> Job {
        let begun = Set(scene.here.record.orders.map(\.key))
        return try #require(
            try await stage.jobs().first { job in
                job.deliveries[0].state == .claimed && !begun.contains(job.deliveries[0].key ?? "")
            })
    }

    @Test func `what waits at hand is shown as waiting, without an attempt`() async throws {
        let gate = Gate()
        let scene = try Scene()
        try await run(scene, gate) { stage in
            let view = stage.agent.control
            #expect(try await view.queue().byDestination == ["here": Self.files - Self.connections])
            let seen = try await view.jobs(FileFilter(limit: 100)).flatMap(\.deliveries)
            #expect(seen.count { $0.state == .claimed && $0.attempts == 1 } == Self.connections)
            #expect(seen.count { $0.state == .ready && $0.attempts == 0 } == Self.files - Self.connections)
            let job = try await waiting(scene, stage)
            #expect(try await view.job(job.file.id)?.deliveries.map(\.state) == [.ready])
            gate.open()
            try await eventually("all has arrived") { scene.here.record.stored.count == Self.files }
            try await eventually("nothing waits") { try await view.queue().byDestination.isEmpty }
        }
    }

    @Test func `what waits at hand counts for the warning of a long queue`() async throws {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        for number in 0..<3 {
            let identity = FileIdentity(size: 1, modified: 1, changed: 1, inode: UInt64(number), device: 1)
            let plan = Plan(
                route: "all", category: "other", key: "\(number)", mediaType: "text/plain", destinations: ["here"])
            let arrival = Arrival(root: "/in", path: FilePath("\(number)"), identity: identity)
            let admission = FileAdmission(arrival, plan: plan, lanes: ["here": .small], uptimes: [:])
            _ = try await journal.admit(admission, at: .now)
        }
        let wish = ClaimWish(
            lane: .small, room: ClaimRoom(destination: "here", limits: [.small: 2]), most: 2)
        let claims = try await journal.exchange([], for: wish, at: .now).claims
        let log = try EventLog(nil)
        let events = EventRecord(log)
        let board = DestinationRegistry(
            [.scripted("here", ScriptedPipeline())], paused: [], uptimes: [:], workers: 1, log: log)
        let shared = Shared(.test { $0.queueWarning = 2 }, journal, board, log)
        let clocks = ExpiryClocks(shared: shared)
        #expect(try await clocks.pass(clocks.waiting(), false) == false)
        shared.lanes.with(LaneID(destination: "here", lane: .small)) { $0.add(claims) }
        #expect(try await clocks.pass(clocks.waiting(), false))
        #expect(events.count("queue.warning") == 1)
    }

    @Test func `what waits at hand expires in its time, however long the others take`() async throws {
        let gate = Gate()
        var scene = try Scene()
        scene.route.retry.expire = .seconds(2)
        scene.here.always(.hold(gate, .deliver))
        let expiring = scene
        try await expiring.run { stage in
            for number in 0..<Self.files { try expiring.drop(FilePath("\(number)")) }
            try await eventually("all that waits has expired") {
                try await stage.journal.totals().mapValues(\.files) == [
                    .pending: Self.connections, .expired: Self.files - Self.connections,
                ]
            }
            #expect(expiring.here.record.orders.count == Self.connections)
            let expired = try await stage.jobs().filter { $0.file.state == .expired }
            #expect(expired.flatMap(\.deliveries).allSatisfy { $0.attempts == 0 && $0.code == .expired })
            gate.open()
            try await eventually("all is finished, and said once") {
                stage.events.count("job.finished") == Self.files
            }
        }
        #expect(expiring.here.record.stored.count == Self.connections)
    }

    @Test func `one that is cancelled while it waits at hand is over at once`() async throws {
        let gate = Gate()
        let scene = try Scene()
        try await run(scene, gate) { stage in
            let job = try await waiting(scene, stage)
            #expect(try await stage.agent.control.act(.cancel, on: job.file.id) == .done)
            let cancelled = try await stage.finished(job.file.path, .cancelled)
            #expect(cancelled.deliveries[0].code == .cancelled)
            try await eventually("its finish is said") { stage.events.count("job.finished") == 1 }
            try await eventually("nobody holds it") {
                try await stage.agent.control.act(.forget, on: job.file.id) == .done
            }
            #expect(scene.here.record.running == Self.connections)
            gate.open()
            try await eventually("the others have arrived") { scene.here.record.stored.count == Self.files - 1 }
        }
        #expect(scene.here.record.orders.count == Self.files - 1)
    }

    @Test func `a pause gives back at once what waits at hand`() async throws {
        let gate = Gate()
        let scene = try Scene()
        try await run(scene, gate) { stage in
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            try await eventually("all but what runs is back") {
                try await stage.journal.deliveryCounts(.claimed) == ["here": Self.connections]
            }
            let back = try await stage.jobs().flatMap(\.deliveries).filter { $0.state == .ready }
            #expect(back.count == Self.files - Self.connections && back.allSatisfy { $0.attempts == 0 })
            #expect(scene.here.record.running == Self.connections)
            gate.open()
        }
    }

    @Test func `cancellations that came too late are kept up to a bound`() async {
        let inFlight = Transfers()
        let last = Int64(5 * Transfers.mostMissed)
        for delivery in 1...last { inFlight.cancel(delivery) }
        #expect(mayBeCancelled(last, inFlight) && mayBeCancelled(last - Int64(Transfers.mostMissed), inFlight))
        #expect(!mayBeCancelled(last, inFlight))
        #expect(!mayBeCancelled(1, inFlight))
        #expect((1...last).count { mayBeCancelled($0, inFlight) } <= 2 * Transfers.mostMissed)
    }

    private func mayBeCancelled(_ delivery: Int64, _ inFlight: Transfers) -> Bool {
        let ref = AgentEvent.JobRef(job: 1, delivery: delivery, path: "/in/a", route: "all", destination: "here")
        let notes = CheckpointLog(entries: [:], write: { _ in }, replace: { _ in })
        let attempt = Attempt(checkpoint: notes, isStopping: { false })
        return inFlight.add(ref, size: 1, since: .now, attempt: attempt).mayBeCancelled
    }
}
