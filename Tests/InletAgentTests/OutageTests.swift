import InletAgent
import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

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
            #expect(stage.events.count("destination.up") == 1)
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
            guard case .credentialsRefused? = stage.agent.view.live?.destinations().first?.state else {
                Issue.record("the destination is not marked as refusing its credentials")
                return
            }
            #expect(stage.agent.view.live?.destinations().first?.lastError == DeliveryError.refused.reason)
            #expect(scene.here.record.orders.count == 1)
        }
    }

    @Test func `a destination that goes down on last attempts is probed all the same`() async throws {
        var scene = try Scene()
        scene.route.retry.attempts = 1
        scene.here.script("a", .fail(.serverFault))
        scene.here.script("b", .fail(.serverFault))
        try await scene.run { stage in
            try scene.drop("a")
            try await stage.finished("a", .failed)
            try scene.drop("b")
            try await stage.finished("b", .failed)
            #expect(stage.events.count("destination.down") == 1)
            try scene.drop("c")
            try await stage.finished("c")
        }
    }

    @Test func `a paused destination is left alone until it is resumed`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let commands = stage.agent.commands
            #expect(try await commands.setPaused(true, nil, known: ["here"], by: "test") == ["here"])
            #expect(try await commands.setPaused(true, "nowhere", known: ["here"], by: "test") == [])
            try scene.drop("a")
            try await stage.job("a")
            #expect(stage.agent.view.live?.destinations().first?.isPaused == true)
            #expect(scene.here.record.orders.isEmpty)
            _ = try await commands.setPaused(false, "here", known: ["here"], by: "test")
            try await stage.finished("a")
            #expect(stage.events.names.contains("destination.resumed"))
        }
    }

    @Test func `a pause outlives a restart`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            _ = try await stage.agent.commands.setPaused(true, "here", known: ["here"], by: "test")
        }
        try scene.drop("a")
        try await scene.run { stage in
            try await stage.job("a")
            #expect(scene.here.record.orders.isEmpty)
            _ = try await stage.agent.commands.setPaused(false, "here", known: ["here"], by: "test")
            try await stage.finished("a")
        }
    }
}
