import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

@Suite struct AdoptTests {
    private func scene() throws -> Scene {
        var scene = try Scene()
        scene.watch[0].existing = .adopt
        (scene.route.onSuccess, scene.route.onFailure) = (.delete, .quarantine)
        scene.route.validate.maxSize = 1000
        return scene
    }

    @Test func `what was there is known as delivered, stays, and is not sent; what comes is sent`() async throws {
        let scene = try scene()
        try scene.drop("sub/old")
        // Its route refuses it: a tree that is adopted is left as it is.
        let large = try scene.drop("large", String(repeating: "x", count: 2000))
        try await outlast(large)
        try await scene.run { stage in
            let old = try await stage.finished("sub/old")
            #expect(old.deliveries.first?.proof?.method == .adopted && old.file.disposition == "kept")
            try await eventually("it is said how many") { stage.events.names.contains("watch.adopted") }
            try await stage.process("new")
            #expect(stage.events.field("files", of: "watch.adopted") == .number(1))
            #expect(stage.events.field("bytes", of: "watch.adopted") == .number(7))
        }
        #expect(isThere(scene.root.appending("sub").appending("old")) && isThere(large))
        // The next start knows it, and content that changes is sent.
        var again = try Scene(in: scene.directory)
        (again.watch, again.route) = (scene.watch, scene.route)
        try await again.run { stage in
            try scene.drop("sub/old", "another content")
            try await stage.job("sub/old", "sent") { $0.deliveries.first?.proof?.method == .size }
        }
        #expect(scene.here.record.stored.keys.sorted() == ["new"] && again.here.record.stored.count == 1)
    }

    @Test func `companions are known with their file; one that comes later goes to it`() async throws {
        var scene = try scene()
        scene.route.match.extensions = ["mp4"]
        scene.route.sidecars = SidecarRule(extensions: ["xmp", "srt"], wait: .zero)
        try scene.drop("a.mp4")
        try await outlast(try scene.drop("a.xmp"))
        try await scene.run { stage in
            try await stage.finished("a.mp4")
            let companion = try await stage.finished("a.xmp")
            #expect(companion.deliveries.isEmpty)
            try await stage.process("a.srt", "words")
        }
        #expect(scene.here.record.stored.keys.sorted() == ["a.srt"])
    }

    @Test func `with a check, what a destination does not have is sent; one that does not answer decides nothing`()
        async throws
    {
        var scene = try scene()
        scene.route.onSuccess = .keep
        scene.watch[0].adoptCheck = true
        let shelf = Shelf(holding: ["there": 7, "short": 3], outages: 1)
        scene.destinations[0].pipeline = shelf
        for name in ["there", "short"] as [FilePath] { try scene.drop(name) }
        try await outlast(try scene.drop("missing"))
        try await scene.run { stage in
            let there = try await stage.finished("there")
            #expect(there.deliveries.first?.proof?.method == .adopted)
            for name in ["short", "missing"] as [FilePath] {
                let sent = try await stage.finished(name)
                #expect(sent.deliveries.first?.proof?.method == .size)
            }
            #expect(stage.events.count("file.not_adopted") >= 2 && stage.events.names.contains("file.error"))
        }
        #expect(shelf.sent.sorted() == ["missing", "short"])
    }

    @Test(arguments: [false, true])
    func `a destination that does not say is asked now and then, complained of once, and gets nothing`(
        _ mayNotTell: Bool
    ) async throws {
        var scene = try scene()
        scene.watch[0].adoptCheck = true
        let names = (0..<40).map { FilePath("f\($0)") }
        let shelf = Shelf(
            holding: Dictionary(uniqueKeysWithValues: names.map { ($0.string, 7) }), outages: .max,
            mayNotTell: mayNotTell)
        scene.destinations[0].pipeline = shelf
        for name in names { try scene.drop(name) }
        try await outlast(scene.root.pushing(names[39]))
        try await scene.run { stage in
            // More than one round.
            try await eventually("it is asked again") { shelf.asked > 16 }
            #expect(try await stage.jobs().isEmpty)
            shelf.answer()
            for name in names { try await stage.finished(name) }
            #expect(stage.events.count("file.error") == 1)
        }
        #expect(shelf.sent.isEmpty)
    }

    @Test func `a file with a time of modification that is yet to come was there before`() async throws {
        let scene = try scene()
        let path = try scene.drop("camera")
        try setTime(path, Date(timeIntervalSince1970: 4_000_000_000))
        try await outlast(path)
        try await scene.run { stage in
            let job = try await stage.finished("camera")
            #expect(job.deliveries.first?.proof?.method == .adopted)
        }
        #expect(scene.here.record.stored.isEmpty)
    }
}

/// A destination that has some things already, and can be asked.
private final class Shelf: Pipeline, DeliveryVerifying {
    private struct State {
        var sizes: [String: Int64]
        var outages: Int
        var sent: [String] = []
        var asked = 0
    }

    private let state: Mutex<State>

    private let mayNotTell: Bool

    /// - Parameter mayNotTell: whether it says so instead of being away, `outages` times.
    init(holding sizes: [String: Int64], outages: Int, mayNotTell: Bool = false) {
        self.mayNotTell = mayNotTell
        state = Mutex(State(sizes: sizes, outages: outages))
    }

    /// No outage any more.
    func answer() { state.withLock { $0.outages = 0 } }
    var asked: Int { state.withLock(\.asked) }
    var sent: [String] { state.withLock(\.sent) }

    func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome {
        state.withLock { state in
            state.sent.append(order.key)
            state.sizes[order.key] = order.source.size
        }
        return .delivered(Proof(key: order.key, size: order.source.size, method: .size))
    }

    func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError) {}
    func probe() async throws(DeliveryError) -> String { "here" }

    func verify(_ order: VerifyOrder) async throws(DeliveryError) -> Verification {
        let answer = state.withLock { state -> Verification? in
            state.asked += 1
            if state.outages > 0 {
                state.outages -= 1
                return mayNotTell ? .cannotTell("these keys may not look") : nil
            }
            guard let size = state.sizes[order.proof.key] else { return .missing("nothing of that name") }
            return size == order.proof.size ? .same("length") : .differs("it has \(size) bytes")
        }
        guard let answer else { throw .outage }
        return answer
    }
}

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
                // The lane knows of its claims a moment after the journal does.
                let waiting = try await stage.agent.control.queue().byDestination["here"]
                let claimed = try await stage.journal.deliveryCounts(.claimed)["here"]
                return claimed == Self.connections + Self.atHand && waiting == Self.files - Self.connections
                    && scene.here.record.running == Self.connections
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
            _ = try await journal.admit(FileAdmission.made("\(number)", inode: UInt64(number)), at: .now)
        }
        let wish = ClaimRequest(
            lane: .small, room: ClaimCapacity(destination: "here", limits: [.small: 2]), most: 2)
        let claims = try await journal.exchange([], for: wish, at: .now).claims
        let log = try EventLog(nil)
        let events = EventRecord(log)
        let shared = Shared.test(journal, log, [.scripted("here", ScriptedPipeline())]) { $0.queueWarning = 2 }
        let clocks = ExpiryClocks(shared: shared)
        #expect(try await clocks.pass(clocks.waiting(), false) == false)
        shared.lanes.with(LaneID(destination: "here", lane: .small)) { $0.add(claims) }
        #expect(try await clocks.pass(clocks.waiting(), false))
        #expect(events.count("queue.warning") == 1)
    }

    @Test func `what waits at hand expires in its time, however long the others take`() async throws {
        let gate = Gate()
        var scene = try Scene()
        scene.route.retry.expire = .seconds(8)
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
