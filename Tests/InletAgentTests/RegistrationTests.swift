import Foundation
import InletAgent
import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// Files that one destination stores (`here`) and another one registers (`spaces`).
@Suite(.serialized) struct RegistrationTests {
    private static func scene(
        _ spaces: ScriptedPipeline, in directory: TemporaryDirectory? = nil
    ) throws -> Scene {
        var scene = try Scene(in: directory)
        var destination = Destination.scripted("spaces", spaces)
        destination.takesSidecars = false
        destination.storage = ("here", { path, _ in path.extension == "glb" })
        scene.destinations.append(destination)
        scene.route.to = ["spaces"]
        scene.route.onSuccess = .delete
        return scene
    }

    @Test func `a file is stored, then registered, and only then disposed of`() async throws {
        let (spaces, gate) = (ScriptedPipeline(), Gate())
        let scene = try Self.scene(spaces)
        spaces.always(.hold(gate, .deliver))
        try await scene.run { stage in
            let file = try scene.drop("x/ship.glb", "a model")
            try await eventually("it is being registered") { spaces.record.orders.count == 1 }
            let order = spaces.record.orders[0]
            #expect(order.key == "ship.glb" && order.path == "x/ship.glb" && order.root == stage.root)
            #expect(order.upstream.map(\.destination) == ["here"] && order.upstream.map(\.path) == ["x/ship.glb"])
            #expect(order.upstream[0].proof.key == "ship.glb" && order.batch == nil)
            #expect(scene.here.record.stored.keys.sorted() == ["ship.glb"])
            #expect(isThere(file))
            gate.open()
            let job = try await stage.finished("x/ship.glb")
            #expect(job.deliveries.map(\.destination) == ["here", "spaces"])
            #expect(scene.here.record.orders.allSatisfy { $0.upstream.isEmpty })
            #expect(!isThere(file))
        }
    }

    @Test func `a file that needs no storage goes straight to the registration`() async throws {
        let spaces = ScriptedPipeline()
        let scene = try Self.scene(spaces)
        try await scene.run { stage in
            try scene.drop("x/markers.json", "[]")
            let job = try await stage.finished("x/markers.json")
            #expect(job.deliveries.map(\.destination) == ["spaces"])
            #expect(scene.here.record.orders.isEmpty && spaces.record.orders[0].upstream.isEmpty)
        }
    }

    @Test(arguments: [("model", ["here", "spaces"]), ("list", ["spaces"])])
    func `its own fields have a say in whether it is stored`(role: String, places: [String]) async throws {
        var scene = try Self.scene(ScriptedPipeline())
        scene.destinations[1].storage = ("here", { $1["role"] == "model" })
        scene.route.with = ["role": try KeyTemplate(role)]
        let held = scene
        try await held.run { stage in
            try held.drop("data.json")
            #expect(try await stage.finished("data.json").deliveries.map(\.destination) == places)
        }
    }

    @Test func `its companions are stored first, and the registration is told of them`() async throws {
        let spaces = ScriptedPipeline()
        var scene = try Self.scene(spaces)
        scene.route.match.extensions = ["glb"]
        scene.route.sidecars = SidecarRule(extensions: ["jpg"], wait: .seconds(3600))
        let held = scene
        try await held.run { stage in
            try held.drop("ship.jpg", "a picture")
            try held.drop("ship.glb", "a model")
            try await stage.finished("ship.glb")
            try await stage.finished("ship.jpg")
            #expect(spaces.record.orders.count == 1)
            #expect(spaces.record.orders[0].upstream.map(\.path) == ["ship.glb", "ship.jpg"])
            #expect(spaces.record.orders[0].upstream.map(\.mediaType).last == "image/jpeg")
        }
    }

    @Test func `a registration that fails leaves file and object, and says so`() async throws {
        let spaces = ScriptedPipeline()
        let scene = try Self.scene(spaces)
        spaces.script("ship.glb", .fail(.hopeless))
        try await scene.run { stage in
            let file = try scene.drop("ship.glb")
            let job = try await stage.finished("ship.glb", .failed)
            #expect(
                job.file.reason
                    == "\(DeliveryError.hopeless.reason); the file stays stored in 'here' as ship.glb")
            #expect(isThere(file) && scene.here.record.stored.count == 1)
            #expect(try await stage.agent.control.act(.retry, on: job.file.id) == .done)
            try await stage.finished("ship.glb")
            #expect(scene.here.attempts(at: "ship.glb") == 1 && spaces.attempts(at: "ship.glb") == 2)
        }
    }

    @Test func `what cannot be stored is not registered`() async throws {
        let spaces = ScriptedPipeline()
        let scene = try Self.scene(spaces)
        scene.here.script("ship.glb", .fail(.hopeless))
        try await scene.run { stage in
            try scene.drop("ship.glb")
            let job = try await stage.finished("ship.glb", .failed)
            #expect(job.deliveries[1].reason == "not stored in 'here': \(DeliveryError.hopeless.reason)")
            #expect(spaces.record.orders.isEmpty)
        }
    }

    @Test func `a file that a person names is seen in its folder`() async throws {
        let spaces = ScriptedPipeline()
        let scene = try Self.scene(spaces)
        let outside = try scene.directory.write([1], to: "elsewhere/ship.glb")
        try await scene.run { stage in
            guard case .queued(let id) = await stage.agent.control.send(outside, to: "spaces") else {
                Issue.record("not queued")
                return
            }
            try await eventually("it is delivered") { try await stage.journal.job(id)?.file.state == .delivered }
            #expect(spaces.record.orders[0].path == "ship.glb")
            #expect(spaces.record.orders[0].root == outside.removingLastComponent())
            #expect(spaces.record.orders[0].upstream.map(\.path) == ["ship.glb"])
            guard case .known(let known, _) = await stage.agent.control.send(outside, to: "spaces"), known == id else {
                Issue.record("not known")
                return
            }
        }
    }

    @Test func `a process that dies after the file is stored does not store it again`() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path.string
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            var scene = try Self.scene(ScriptedPipeline(), in: TemporaryDirectory(existing: FilePath(path)))
            scene.onEvent = { if $0.line.name == "job.delivered" { kill(getpid(), SIGKILL) } }
            try scene.drop("ship.glb")
            try await scene.run { _ in try await Task.sleep(for: .seconds(60)) }
        }
        let spaces = ScriptedPipeline()
        let scene = try Self.scene(spaces, in: directory)
        try await scene.run { stage in
            try await stage.finished("ship.glb")
            #expect(scene.here.record.orders.isEmpty && spaces.record.orders.count == 1)
            #expect(spaces.record.orders[0].upstream.map(\.proof.key) == ["ship.glb"])
        }
    }
}
