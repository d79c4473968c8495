import InletCore
import InletJournal
import InletLinux
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

/// What failed for want of its destination.
@Suite struct RecoveredFileTests {
    private static func scene() throws -> Scene {
        var scene = try Scene()
        scene.route.retry.attempts = 1
        return scene
    }

    /// The destination goes down, and comes back.
    private func outage(_ name: FilePath, _ stage: Stage) async throws {
        stage.scene.here.script(name.string, .fail(.outage))
        try await stage.process(name)
    }

    @Test func `what failed while its destination was away is sent again when that is back, and says so`() async throws
    {
        let scene = try Self.scene()
        scene.here.script("a", .fail(.passing))
        scene.here.script("hopeless", .fail(.hopeless))
        try await scene.run { stage in
            try await stage.process("a", as: .failed)
            try await stage.process("hopeless", as: .failed)
            try await outage("b", stage)
            try await stage.finished("a")
            try await eventually("it is said") {
                stage.events.field("files", of: "destination.recovered") == .number(1)
            }
            // Its fault was its own.
            #expect(try await stage.finished("hopeless", .failed).deliveries[0].attempts == 1)
            #expect(scene.here.attempts(at: "hopeless") == 1)
        }
    }

    @Test func `one that fails again stays failed, also when its destination has been away again`() async throws {
        var scene = try Self.scene()
        // The second outage's probe must not wait for a minute.
        scene.pace = ProbePace(first: .milliseconds(20), interval: .milliseconds(50))
        let here = scene.here
        here.script("a", .fail(.passing), .fail(.passing))
        try await scene.run { stage in
            try await stage.process("a", as: .failed)
            try await outage("b", stage)
            try await eventually("it was tried once more") { here.attempts(at: "a") == 2 }
            try await stage.finished("a", .failed)
            // Others come and go, and it is not tried with them.
            try await stage.process("c")
            #expect(here.attempts(at: "a") == 2)
            try await outage("d", stage)
            try await stage.process("e")
            #expect(here.attempts(at: "a") == 2)
            #expect(stage.events.count("destination.recovered") == 1)
        }
    }

    @Test func `what failed before its destination last worked is not sent again`() async throws {
        let scene = try Self.scene()
        let here = scene.here
        here.script("a", .fail(.passing))
        here.script("c", .fail(.passing))
        try await scene.run { stage in
            try await stage.process("a", as: .failed)
            try await stage.process("works")
            try await stage.process("c", as: .failed)
            try await outage("b", stage)
            try await stage.finished("c")
            #expect(here.attempts(at: "a") == 1)
            #expect(try await stage.finished("a", .failed).deliveries[0].attempts == 1)
        }
    }

    @Test func `an outage that the agent's end has cut short is made up for by the next start`() async throws {
        let scene = try Self.scene()
        scene.here.script("a", .fail(.passing))
        scene.here.script("b", .fail(.outage))
        // Down, and with no probe that succeeds before the end.
        scene.here.failProbes(.outage, .outage, .outage)
        try await scene.run { stage in
            try await stage.process("a", as: .failed)
            try await stage.admit("b")
            try await eventually("it is noted") { try await !stage.journal.outages(of: ["here"]).isEmpty }
        }
        scene.here.forgetProbeErrors()
        try await scene.run { stage in
            try await stage.finished("a")
            try await eventually("it is dealt with") { try await stage.journal.outages(of: ["here"]).isEmpty }
        }
    }

    @Test func `a return from quarantine that a crash has cut short is ended by the next start`() async throws {
        var scene = try Self.scene()
        scene.route.onFailure = .quarantine
        scene.here.script("a", .fail(.passing))
        try await scene.run { stage in
            let job = try await stage.process("a", as: .failed)
            // As the process leaves it that dies right after the rename.
            try await stage.journal.beginReturn(of: [job.file.id])
            try move(stage.root.pushing(".inlet/failed/a"), to: job.file.fullPath)
        }
        try await scene.run { stage in
            let job = try await stage.job("a", "in its place") { $0.file.disposition == Disposition.kept }
            try await stage.process("b")
            #expect(try await stage.jobs().count == 2, "the file is known")
            #expect(try await stage.agent.control.act(.retry, on: job.file.id) == .done)
            try await stage.finished("a")
        }
    }

    @Test func `a failed file in quarantine is brought back for it`() async throws {
        var scene = try Self.scene()
        scene.route.onFailure = .quarantine
        scene.here.script("a", .fail(.passing))
        try await scene.run { stage in
            let file = try await stage.process("a", as: .failed).file.fullPath
            #expect(!isThere(file))
            try await outage("b", stage)
            try await stage.finished("a")
            #expect(try text(file) == "content")
        }
    }
}
