import InletAgent
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@Suite struct LimitTests {
    /// Drops 12 files at a closed gate and returns how many transfers ran at once at most.
    private func most(_ scene: Scene, expected: Int) async throws -> Int {
        let gate = Gate()
        scene.here.always(.hold(gate, .deliver))
        for number in 0..<12 { try scene.drop(FilePath("file-\(number)")) }
        try await scene.run { stage in
            try await eventually("all are admitted") { try await stage.jobs().count == 12 }
            try await eventually("\(expected) run") { scene.here.record.running == expected }
            gate.open()
            for number in 0..<12 { try await stage.finished(FilePath("file-\(number)")) }
        }
        return scene.here.record.mostRunning
    }

    @Test func `big files have a worker each, and no more`() async throws {
        var scene = try Scene()
        scene.workers = 3
        scene.destinations = [.scripted("here", scene.here, smallLimit: 0)]
        #expect(try await most(scene, expected: 3) == 3)
    }

    @Test func `a destination's own limit holds`() async throws {
        var scene = try Scene()
        scene.destinations = [.scripted("here", scene.here, smallLimit: 0, maxInFlight: 1)]
        #expect(try await most(scene, expected: 1) == 1)
    }

    @Test func `small files share the destination's connections`() async throws {
        var scene = try Scene()
        scene.workers = 1
        scene.destinations = [.scripted("here", scene.here, connections: 5)]
        #expect(try await most(scene, expected: 5) == 5)
    }

    @Test func `a destination without room does not hold up another`() async throws {
        var scene = try Scene()
        let other = ScriptedPipeline()
        let gate = Gate()
        scene.here.always(.hold(gate, .deliver))
        scene.destinations = [
            .scripted("here", scene.here, smallLimit: 0, maxInFlight: 1), .scripted("other", other, smallLimit: 0),
        ]
        scene.route.to = ["here", "other"]
        scene.workers = 2
        try await scene.run { stage in
            for number in 0..<6 { try scene.drop(FilePath("file-\(number)")) }
            try await eventually("the other has all") { other.record.stored.count == 6 }
            #expect(scene.here.record.stored.isEmpty)
            gate.open()
            for number in 0..<6 { try await stage.finished(FilePath("file-\(number)")) }
            #expect(scene.here.record.mostRunning == 1)
        }
    }
}
