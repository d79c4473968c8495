import InletCore
import InletJournal
import InletLinux
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

/// Files that are not there any more, destinations that are silent, and taking back from several.
@Suite struct ConcludingTests {
    @Test(arguments: [true, false]) func `a file whose bytes have all left is delivered although it is gone`(
        _ isRootAway: Bool
    ) async throws {
        let scene = try Scene()
        scene.here.haveAll()
        try await scene.run { stage in
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            let file = try scene.drop("a")
            try await stage.job("a")
            if isRootAway {
                try move(stage.root, to: scene.directory.path.appending("away"))
            } else {
                try remove(file)
            }
            _ = try await stage.agent.control.setPaused(false, "here", by: "test")
            let job = try await stage.job("a", "delivered") { $0.deliveries[0].state == .delivered }
            #expect(job.deliveries[0].proof?.key == "a")
            #expect(scene.here.record.concluded.map(\.key) == ["a"] && scene.here.record.orders.isEmpty)
            #expect(scene.here.record.abandoned.isEmpty)
        }
    }

    @Test func `a delivery that waits in silence counts as life`() async throws {
        let heartbeat = Heartbeat(roots: [])
        let attempt = Attempt(
            checkpoint: CheckpointLog(
                entries: [:], write: { _ throws(DeliveryError) in }, replace: { _ throws(DeliveryError) in }),
            isStopping: { false })
        let ref = AgentEvent.JobRef(job: 1, delivery: 1, path: "/drop/a", route: "all", destination: "here")
        let watch = ProgressWatch(
            ref: ref, size: 1, log: try EventLog(nil), heartbeat: heartbeat, interval: .milliseconds(1))
        var last: [Heartbeat.Part: Int] = [:]
        heartbeat.beat(.journal)
        #expect(!heartbeat.haveAllPassed(since: &last))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await watch.run(attempt) }
            defer { group.cancelAll() }
            try await eventually("it beats") { heartbeat.haveAllPassed(since: &last) }
        }
        #expect(attempt.bytesSent == 0)
    }

    @Test func `taking back goes on where one destination fails, and does not ask twice`() async throws {
        var scene = try Scene()
        let deletedThere = Deleted()
        let deletedHere = Deleted()
        scene.destinations[0].undo = { _ throws(DeliveryError) in
            guard deletedHere.isAllowed else { throw .outage }
            return try deletedHere.take("here")
        }
        var there = Destination.scripted("there", ScriptedPipeline())
        there.undo = { _ throws(DeliveryError) in try deletedThere.take("there") }
        deletedThere.allow()
        scene.destinations.append(there)
        scene.route.to = ["here", "there"]
        try await scene.run { stage in
            try scene.drop("a")
            let job = try await stage.finished("a").file.id
            let commands = stage.agent.control
            let error = await #expect(throws: DeliveryError.self) { try await commands.undo(job, type: "scripted") }
            #expect(error?.verdict == .outage(after: nil))
            #expect(error?.reason == "there is deleted\n\(DeliveryError.outage.reason)")
            deletedHere.allow()
            #expect(try await commands.undo(job, type: "scripted") == ["here is deleted"])
            let again = await #expect(throws: DeliveryError.self) { try await commands.undo(job, type: "scripted") }
            #expect(again?.code == .notFound)
        }
    }
}

/// What one destination can delete, once.
private final class Deleted: Sendable {
    private let state = Mutex((isAllowed: false, isDone: false))

    var isAllowed: Bool { state.withLock(\.isAllowed) }
    func allow() { state.withLock { $0.isAllowed = true } }

    func take(_ name: String) throws(DeliveryError) -> String {
        let wasDone = state.withLock { state in
            defer { state.isDone = true }
            return state.isDone
        }
        if wasDone { throw DeliveryError(.giveUp, .notFound, "no token for \(name)") }
        return "\(name) is deleted"
    }
}
