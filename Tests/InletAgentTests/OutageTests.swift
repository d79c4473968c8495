import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

@Suite struct OutageTests {
    @Test func `an outage pauses the destination, costs no attempt, and a probe brings it back`() async throws {
        let scene = try Scene()
        scene.here.script("a", .fail(.outage))
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("it is down") { stage.events.count("destination.down") == 1 }
            try scene.drop("b")
            #expect(try await stage.finished("a").deliveries[0].attempts == 1)
            try await stage.finished("b")
            #expect(
                scene.here.record.calls == ["a", "probe", "a", "b"]
                    || scene.here.record.calls == ["a", "probe", "b", "a"])
            try await eventually("it is said") { stage.events.count("destination.up") == 1 }
        }
    }

    @Test func `refused credentials pause the destination and cost no attempt`() async throws {
        let scene = try Scene()
        scene.here.script("a", .fail(.refused))
        try await scene.run { stage in
            try scene.drop("a")
            let job = try await stage.job("a", "back in the queue") {
                $0.deliveries[0].code == .unauthorized && $0.deliveries[0].state == .ready
            }
            #expect(job.deliveries[0].attempts == 0)
            try scene.drop("b")
            try await stage.job("b")
            guard case .credentialsRefused? = stage.agent.control.live?.destinations.first?.state else {
                Issue.record("the destination is not marked as refusing its credentials")
                return
            }
            #expect(stage.agent.control.live?.destinations.first?.lastError == DeliveryError.refused.reason)
            #expect(scene.here.record.orders.count == 1)
        }
    }

    @Test func `a file's last fault has its destination probed, and ends it only while that is well`() async throws {
        var scene = try Scene()
        scene.route.retry.attempts = 1
        scene.pace = ProbePace(first: .milliseconds(20), interval: .milliseconds(100))
        // On a busy machine it may be tried again before the probe has answered, which tells nothing.
        scene.here.script("a", .fail(.serverFault), .fail(.serverFault), .fail(.serverFault), .fail(.serverFault))
        scene.here.script("b", .fail(.serverFault))
        let here = scene.here
        try await scene.run { stage in
            try scene.drop("a")
            try await stage.finished("a", .failed)
            let calls = here.record.calls
            #expect(calls.first == "a" && calls.dropLast().contains("probe") && calls.last == "a", "\(calls)")
            here.failProbes(.outage)
            try scene.drop("b")
            #expect(try await stage.finished("b").deliveries[0].attempts == 1)
            #expect(stage.events.count("destination.down") == 1)
        }
    }

    @Test func `a paused destination is left alone until it is resumed`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let commands = stage.agent.control
            #expect(try await commands.setPaused(true, nil, by: "test") == ["here"])
            #expect(try await commands.setPaused(true, "nowhere", by: "test") == [])
            try scene.drop("a")
            try await stage.job("a")
            #expect(stage.agent.control.live?.destinations.first?.isPaused == true)
            #expect(scene.here.record.orders.isEmpty)
            _ = try await commands.setPaused(false, "here", by: "test")
            try await stage.finished("a")
            #expect(stage.events.names.contains("destination.resumed"))
        }
    }

    @Test func `a pause outlives a restart`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
        }
        try scene.drop("a")
        try await scene.run { stage in
            try await stage.job("a")
            #expect(scene.here.record.orders.isEmpty)
            _ = try await stage.agent.control.setPaused(false, "here", by: "test")
            try await stage.finished("a")
        }
    }

    @Test func `without credits nothing new begins, and what the destination works on goes on to its end`() async throws
    {
        let scene = try Scene()
        let soon = Duration.milliseconds(20)
        scene.here.always(.wait(soon))
        scene.here.script("broke", .wait(soon), .fail(.unpaid))
        try await scene.run { stage in
            try scene.drop("film")
            try await eventually("it works on the film") { scene.here.attempts(at: "film") >= 1 }
            try scene.drop("broke")
            try await eventually("it is down") { stage.events.count("destination.down") == 1 }
            try scene.drop("new")
            try await stage.job("new")
            let before = scene.here.attempts(at: "film")
            try await eventually("it is asked about the film") { scene.here.attempts(at: "film") >= before + 5 }
            #expect(scene.here.attempts(at: "new") == 0 && scene.here.attempts(at: "broke") == 2)
            scene.here.script("film", .deliver)
            try await stage.finished("film")
            // Jobs that were paid for say nothing about what is left.
            #expect(stage.events.count("destination.up") == 0)
            #expect(!scene.here.record.calls.contains("new"))
        }
    }

    @Test func `a destination without credits that is away too is left alone, and goes on once a probe reaches it`()
        throws
    {
        let log = try EventLog(nil)
        let board = DestinationRegistry(
            [.scripted("here", ScriptedPipeline())], paused: [], uptimes: [:], workers: 1, log: log)
        func rooms() -> [Bool] { board.rooms().map(\.isForBegunOnly) }
        #expect(rooms() == [false])
        board.report("here", .outage(after: .seconds(3600)), reason: "empty", code: .outOfCredits)
        #expect(rooms() == [true])
        let far = try #require(board.nextLook())
        board.report("here", .outage(after: .seconds(3600)), reason: "empty", code: .outOfCredits)
        #expect(board.nextLook() == far, "a delivery that finds nothing puts no probe off")
        board.report("here", .outage(after: nil), reason: "away", code: .connectFailed)
        #expect(rooms() == [] && board.dueProbes().isEmpty)
        let near = try #require(board.nextLook())
        #expect(near < far)
        #expect(board.report("here", .probeFailed(credentials: false), reason: "empty", code: .outOfCredits).opens)
        #expect(rooms() == [true])
        #expect(!board.report("here", .delivered(file: 1)).opens)
        #expect(rooms() == [true])
        _ = board.setPaused("here", true)
        #expect(rooms() == [])
        _ = board.setPaused("here", false)
        #expect(board.report("here", .probeSucceeded).opens)
        #expect(rooms() == [false])
    }
}
