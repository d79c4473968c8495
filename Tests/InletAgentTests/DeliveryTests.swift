import Foundation
import InletAgent
import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

@Suite struct DeliveryTests {
    @Test func `a file that is dropped is delivered under its key`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            try scene.drop("a.txt", "hello")
            let job = try await stage.finished("a.txt")
            #expect(job.deliveries.map(\.state) == [.delivered])
            #expect(job.file.disposition == Disposition.kept)
            #expect(scene.here.record.stored == ["a.txt": Array("hello".utf8)])
            // Said after it is in the journal.
            try await eventually("all is said") { stage.events.count("job.finished") == 1 }
            let said = stage.events.names.filter { $0.hasPrefix("job.") }
            #expect(said == ["job.admitted", "job.started", "job.delivered", "job.finished"])
        }
    }

    @Test func `passing trouble is tried again, always under the same key`() async throws {
        let scene = try Scene()
        scene.here.script("a", .fail(.passing), .fail(.passing))
        try await scene.run { stage in
            try scene.drop("a")
            let job = try await stage.finished("a")
            #expect(job.deliveries[0].attempts == 3)
            #expect(scene.here.record.orders.map(\.key) == ["a", "a", "a"])
            try await eventually("each is said") { stage.events.count("job.retry") == 2 }
        }
    }

    @Test func `a file fails when its attempts are used up`() async throws {
        var scene = try Scene()
        scene.route.retry.attempts = 2
        scene.here.always(.fail(.passing))
        try await scene.run { stage in
            try scene.drop("a")
            let job = try await stage.finished("a", .failed)
            #expect(job.deliveries[0].code == .timedOut)
            #expect(job.deliveries[0].reason?.contains("given up after 2 attempts") == true)
            #expect(scene.here.record.orders.count == 2)
        }
    }

    @Test func `what cannot help is not tried again`() async throws {
        let scene = try Scene()
        scene.here.script("a", .fail(.hopeless))
        try await scene.run { stage in
            try scene.drop("a")
            let job = try await stage.finished("a", .failed)
            #expect(job.file.reason == DeliveryError.hopeless.reason)
            #expect(scene.here.record.orders.count == 1)
        }
    }

    @Test func `a waiting delivery gives its worker back and costs no attempt`() async throws {
        var scene = try Scene()
        scene.destinations = [.scripted("here", scene.here, connections: 1)]
        scene.here.script("a", .wait(.seconds(6)))
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("a waits") { stage.events.names.contains("job.waiting") }
            try scene.drop("b")
            try await stage.finished("b")
            let job = try await stage.finished("a")
            #expect(job.deliveries[0].attempts == 1)
            #expect(scene.here.record.orders.map(\.key) == ["a", "b", "a"])
        }
    }

    @Test func `a file is delivered only when every destination has it`() async throws {
        var scene = try Scene()
        let slow = ScriptedPipeline()
        let gate = Gate()
        slow.always(.hold(gate, .deliver))
        scene.destinations.append(.scripted("slow", slow))
        scene.route.to = ["here", "slow"]
        scene.route.onSuccess = .delete
        try await scene.run { stage in
            let file = try scene.drop("a")
            let job = try await stage.job("a", "with one of two") { $0.deliveries[0].state == .delivered }
            #expect(job.file.state == .pending)
            #expect(isThere(file))
            gate.open()
            try await stage.finished("a")
            #expect(!isThere(file))
        }
    }

    @Test func `the worst of several destinations decides, and then the source stays`() async throws {
        var scene = try Scene()
        let other = ScriptedPipeline()
        other.always(.fail(.hopeless))
        scene.destinations.append(.scripted("other", other))
        scene.route.to = ["here", "other"]
        scene.route.onSuccess = .delete
        try await scene.run { stage in
            let file = try scene.drop("a")
            let job = try await stage.finished("a", .failed)
            #expect(Set(job.deliveries.map(\.state)) == [.delivered, .failed])
            #expect(isThere(file))
        }
    }

    @Test func `content that changes under way is superseded, and the new one gets the same key`() async throws {
        let scene = try Scene()
        let gate = Gate()
        scene.here.script("a", .hold(gate, .fail(.changed)))
        try await scene.run { stage in
            try scene.drop("a", "old")
            try await eventually("it is on its way") { scene.here.record.running == 1 }
            try scene.drop("a", "new content")
            gate.open()
            try await stage.finished("a", .delivered)
            #expect(scene.here.record.stored == ["a": Array("new content".utf8)])
            #expect(
                try await stage.jobs().map(\.file.state).sorted { $0.rawValue < $1.rawValue } == [
                    .delivered, .superseded,
                ])
        }
    }

    /// A whole file, always of the same time, in the place of whatever is there.
    private func put(_ content: String, in scene: Scene) throws {
        let staged = try scene.directory.write(content.utf8, to: "staged")
        try setTime(staged)
        guard rename(staged.string, scene.root.appending("a").string) == 0 else { throw Errno(rawValue: errno) }
    }

    @Test func `another content of the same size and time, which one destination finds, goes to all`() async throws {
        var scene = try Scene()
        let library = try scene.directory.makeDirectory("library")
        scene.destinations.append(.folder("library", library))
        scene.route.to = ["here", "library"]
        let gate = Gate()
        scene.here.script("a", .hold(gate, .fail(.changed)))
        try await scene.run { [scene] stage in
            func pause(_ isPaused: Bool) async throws {
                _ = try await stage.agent.control.setPaused(
                    isPaused, "library", by: "test")
            }
            try await pause(true)
            try put("old!", in: scene)
            try await eventually("it is on its way") { scene.here.record.running == 1 }
            try put("new!", in: scene)
            try await eventually("it was looked at") { stage.events.count("job.unchanged") > 0 }
            gate.open()
            try await stage.job("a", "found to be another one") { $0.deliveries.contains { $0.state == .superseded } }
            try await eventually("it was looked at again") { stage.events.count("job.unchanged") > 1 }
            try await pause(false)
            try await eventually("both have it") {
                let held = try names(in: library).contains("a") ? text(library.appending("a")) : ""
                return held == "new!" && scene.here.record.stored["a"] == Array("new!".utf8)
            }
        }
    }

    @Test func `a person's cancel ends a stalled transfer at once, and what it left is removed`() async throws {
        let scene = try Scene()
        scene.here.script("a", .stall)
        try await scene.run { stage in
            try scene.drop("a")
            let job = try await stage.job("a", "claimed") { $0.deliveries[0].state == .claimed }
            try await eventually("it has noted its upload") { scene.here.record.running == 1 }
            #expect(try await stage.agent.control.act(.cancel, on: job.file.id) == .done)
            // By itself it would take an hour.
            try await eventually("the transfer has ended") { scene.here.record.running == 0 }
            try await stage.finished("a", .cancelled)
            try await eventually("the upload is removed") { scene.here.record.abandoned.map(\.key).contains("a") }
            #expect(isThere(stage.root.appending("a")))
        }
    }

    @Test func `a retry by a person starts with fresh attempts`() async throws {
        var scene = try Scene()
        scene.route.retry.attempts = 1
        scene.here.script("a", .fail(.passing))
        try await scene.run { stage in
            try scene.drop("a")
            let job = try await stage.finished("a", .failed)
            #expect(try await stage.agent.control.act(.retry, on: job.file.id) == .done)
            try await stage.finished("a", .delivered)
            #expect(try await stage.agent.control.act(.retry, on: job.file.id) != .done)
        }
    }

    @Test func `a file is not gone while its whole root is away`() async throws {
        let scene = try Scene()
        let away = scene.directory.path.appending("away")
        try await scene.run { stage in
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            try scene.drop("a")
            try await stage.job("a")
            try move(stage.root, to: away)
            _ = try await stage.agent.control.setPaused(false, "here", by: "test")
            let job = try await stage.job("a", "put off") { $0.deliveries[0].code == .sourceGone }
            #expect(job.deliveries[0].state == .ready && job.deliveries[0].attempts == 0)
        }
    }

    @Test func `a file that vanishes before its turn ends as gone`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            let file = try scene.drop("a")
            try await stage.job("a")
            try remove(file)
            _ = try await stage.agent.control.setPaused(false, "here", by: "test")
            let job = try await stage.finished("a", .gone)
            #expect(job.file.code == .sourceGone)
            #expect(scene.here.record.orders.isEmpty)
        }
    }
}
