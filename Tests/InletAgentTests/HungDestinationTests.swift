import InletAgent
import InletCore
import InletLinux
import InletPipelines
import InletTestSupport
import SystemPackage
import Testing

/// A destination that never answers, and the others.
@Suite struct HungDestinationTests {
    /// Everything below `far` goes to the one that hangs, all else to `near`.
    private func route(_ scene: inout Scene) throws {
        scene.silence = .milliseconds(200)
        scene.workers = 2
        scene.route.key = try KeyTemplate("{dir}/{name}")
        scene.route.match = RouteMatch(paths: [try GlobPattern("far/**")])
        scene.route.to = ["far"]
        scene.others = [Route(name: "near", key: try KeyTemplate("{dir}/{name}"), to: ["near"])]
    }

    private func folder(_ name: String, _ path: FilePath, _ pool: BlockingPool, _ smallLimit: Int64) throws
        -> Destination
    {
        let values = ConfigSection(
            values: ["path": .string(path.string)], positions: [:], position: SourcePosition(line: 1, column: 1))
        var made = try PipelineFactory(pool: pool, userAgent: "test").make(
            DestinationSettings(name: name, type: "folder", values: values))
        made.smallLimit = smallLimit
        return made
    }

    @Test(
        .enabled(if: TestMount.hasBindfs, "needs bindfs and the right to use it"), arguments: [0, 1 << 20] as [Int64])
    func `a folder whose file system never answers does not hold up another folder`(smallLimit: Int64) async throws {
        var scene = try Scene()
        try route(&scene)
        let far = try scene.directory.makeDirectory("share")
        let mount = try TestMount(bindfs: scene.directory.makeDirectory("server"), at: far)
        // What all destinations have in common is scarce.
        let pool = BlockingPool(name: "bulk", threads: 1)
        scene.destinations = [
            try folder("far", far, pool, smallLimit),
            try folder("near", scene.directory.makeDirectory("library"), pool, smallLimit),
        ]
        try await scene.run { stage in
            try scene.drop("far/0")
            try await stage.finished("far/0")
            mount.freeze()
            defer { mount.thaw() }
            for number in 1...12 { try scene.drop(FilePath("far/\(number)")) }
            try await eventually("its deliveries hang") {
                stage.agent.control.live?.inFlight.count { $0.ref.destination == "far" } ?? 0 >= scene.workers
            }
            for number in 0..<12 {
                try scene.drop(FilePath("near/\(number)"))
                try await stage.finished(FilePath("near/\(number)"))
            }
            mount.thaw()
            for number in 1...12 { try await stage.finished(FilePath("far/\(number)")) }
        }
    }

    @Test func `one that hangs does not keep another waiting, and each destination keeps to its limit`() async throws {
        var scene = try Scene()
        try route(&scene)
        let far = ScriptedPipeline()
        let gate = Gate()
        far.always(.hold(gate, .deliver))
        scene.destinations = [
            .scripted("far", far, smallLimit: -1), .scripted("near", scene.here, smallLimit: -1),
        ]
        try await scene.run { stage in
            for number in 0..<8 { try scene.drop(FilePath("far/\(number)")) }
            try await eventually("all that may run there hang") { far.record.running == scene.workers }
            for number in 0..<8 { try scene.drop(FilePath("near/\(number)")) }
            for number in 0..<8 { try await stage.finished(FilePath("near/\(number)")) }
            #expect(far.record.mostRunning == scene.workers && scene.here.record.mostRunning <= scene.workers)
            gate.open()
            for number in 0..<8 { try await stage.finished(FilePath("far/\(number)")) }
        }
    }
}
