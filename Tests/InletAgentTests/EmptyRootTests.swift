import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

/// A watched folder that is empty although files of it are known. No mounts are needed: it looks the same where a share's
/// server has lost its disk.
@Suite struct EmptyRootTests {
    private func isGuarded(_ stage: Stage) -> Bool {
        stage.agent.control.live?.roots.contains { if case .guarded = $0.state { true } else { false } } == true
    }

    @Test func `a folder that somebody empties while it is watched is no alarm, then or later`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let file = try scene.drop("a")
            try await stage.finished("a")
            try remove(file)
        }
        try await scene.run { stage in
            try scene.drop("b")
            try await stage.finished("b")
            #expect(stage.events.count("watch.paused") == 0)
        }
    }

    @Test func `one that is empty at the start is paused with an alarm until the first file comes`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            try scene.drop("a")
            try await stage.finished("a")
        }
        try remove(scene.root.appending("a"))
        try await scene.run { stage in
            try await eventually("it is guarded") { isGuarded(stage) }
            #expect(stage.events.count("watch.paused") == 1)
            try scene.drop("b")
            try await stage.finished("b")
            try await eventually("it is not guarded") { !isGuarded(stage) }
            #expect(stage.events.count("watch.paused") == 1)
        }
    }

    @Test func `what waits of an empty folder is not lost, and goes when it is back`() async throws {
        let scene = try Scene()
        scene.here.always(.stall)
        try await scene.run { stage in
            for name in ["a", "b"] as [FilePath] { try scene.drop(name) }
            try await eventually("both are on their way") { scene.here.record.running == 2 }
        }
        scene.here.always(.deliver)
        let away = scene.directory.path.appending("away")
        try move(scene.root, to: away)
        try scene.directory.makeDirectory("drop")
        try await scene.run { stage in
            for name in ["a", "b"] as [FilePath] {
                try await stage.job(name, "put off") { $0.deliveries[0].code == .sourceGone }
            }
            try await eventually("it is paused") { isGuarded(stage) }
            #expect(try await stage.jobs().allSatisfy { $0.file.state == .pending && $0.deliveries[0].state == .ready })
        }
        try remove(scene.root)
        try move(away, to: scene.root)
        try await scene.run { stage in
            try await eventually("it is watched") { stage.events.count("watch.added") == 1 }
            // Not after half a minute.
            _ = try await stage.agent.control.setPaused(false, "here", by: "test")
            for name in ["a", "b"] as [FilePath] { try await stage.finished(name) }
            #expect(try await stage.jobs().count == 2)
            #expect(stage.events.count("watch.paused") == 0)
        }
    }

    @Test func `a person can say that it is right to be empty`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            try scene.drop("a")
            try await stage.finished("a")
        }
        try remove(scene.root.appending("a"))
        try await scene.run { stage in
            try await eventually("it is guarded") { isGuarded(stage) }
            #expect(try await stage.agent.control.resume(root: stage.root, by: "test"))
            try await eventually("it is watched") { stage.events.count("watch.added") == 1 && !isGuarded(stage) }
        }
    }

    @Test func `a polled folder that is empty at once is paused, and goes on with what it has again`() async throws {
        var scene = try Scene()
        (scene.watch[0].mode, scene.watch[0].poll) = (.poll, .milliseconds(20))
        try await scene.run { stage in
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            try scene.drop("a")
            try await stage.job("a")
            // Found by a pass that began when the first was there.
            try scene.drop("b")
            try await stage.job("b")
            let away = try scene.directory.makeDirectory("away")
            for name in ["a", "b"] as [FilePath.Component] {
                try move(stage.root.appending(name), to: away.appending(name))
            }
            try await eventually("it is guarded") { isGuarded(stage) }
            for name in ["a", "b"] as [FilePath.Component] {
                try move(away.appending(name), to: stage.root.appending(name))
            }
            // Renaming has changed their ctime.
            try await eventually("both are known") { stage.events.count("job.unchanged") == 2 }
            _ = try await stage.agent.control.setPaused(false, "here", by: "test")
            for name in ["a", "b"] as [FilePath] { try await stage.finished(name) }
            #expect(scene.here.record.orders.count == 2)
        }
    }
}
