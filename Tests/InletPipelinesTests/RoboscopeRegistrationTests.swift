import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Models, scans and pictures that become fields of their space.
@Suite(.timeLimit(.minutes(8))) struct RoboscopeRegistrationTests {
    @Test func `a stored model is registered in a new space of its folder's name`() async throws {
        try await withRoboscope { place in
            let order = try place.order(
                "atrium/model.glb", stored: "https://cdn.example/m.glb", fields: ["name": "The atrium"])
            let proof = try await place.deliver(order)
            let space = try place.space("atrium")
            #expect(space.modelGLBURL == "https://cdn.example/m.glb" && space.name == "The atrium")
            #expect(space.modelUSDCURL == nil && space.previewURL == nil && space.scanURL == nil && space.changes == 1)
            #expect(proof.key == order.key && proof.method == .registered && proof.size == order.source.size)
            #expect(proof.url == "https://cdn.example/m.glb")
            #expect(proof.details?["space_id"] == space.id && proof.details?["space_key"] == "atrium")
            #expect(proof.details?["model_glb_url"] == "https://cdn.example/m.glb")
            #expect(proof.details?.keys.contains { $0.hasPrefix("previous_") } == false)
        }
    }

    @Test func `a model and its picture go in one PATCH, and only what differs is written`() async throws {
        try await withRoboscope { place in
            place.sandbox.addSpace(key: "atrium")
            let first = try place.order(
                "atrium/a.usdz", stored: "https://cdn.example/1",
                companions: [("atrium/a.png", "https://cdn.example/p")])
            _ = try await place.deliver(first)
            var space = try place.space("atrium")
            #expect(space.modelUSDCURL == "https://cdn.example/1" && space.previewURL == "https://cdn.example/p")
            #expect(space.changes == 1)
            _ = try await place.deliver(first)
            #expect(try place.space("atrium").changes == 1)
            let second = try place.order(
                "atrium/a.usdz", stored: "https://cdn.example/2",
                companions: [("atrium/a.png", "https://cdn.example/p")])
            let proof = try await place.deliver(second)
            space = try place.space("atrium")
            #expect(space.modelUSDCURL == "https://cdn.example/2" && space.changes == 2)
            #expect(proof.details?["previous_model_usdc_url"] == "https://cdn.example/1")
            #expect(proof.details?["previous_preview_url"] == nil)
            #expect(place.count(.createSpace) == 0)
        }
    }

    @Test func `scans and pictures have fields of their own`() async throws {
        try await withRoboscope { place in
            for (name, url) in [("atrium/scans/s.obj", "u:s"), ("atrium/preview.png", "u:p"), ("atrium/m.glb", "u:m")] {
                _ = try await place.deliver(try place.order(FilePath(name), stored: url))
            }
            let space = try place.space("atrium")
            #expect(space.scanURL == "u:s" && space.previewURL == "u:p" && space.modelGLBURL == "u:m")
            #expect(place.count(.createSpace) == 1 && space.changes == 3)
        }
    }

    @Test func `files of one new space that come together make one space`() async throws {
        try await withRoboscope(faults: RoboscopeFault(.delay(.milliseconds(30)), at: .createSpace)) { place in
            let orders = try (0..<8).map { try place.order(FilePath("hall/\($0).glb"), stored: "u:\($0)") }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for order in orders { group.addTask { _ = try await place.deliver(order) } }
                try await group.waitForAll()
            }
            #expect(place.sandbox.spaces().count == 1 && place.count(.createSpace) == 1)
        }
    }

    @Test func `a lost answer to a new space or to a change is no second one`() async throws {
        try await withRoboscope(
            faults: RoboscopeFault(.loseAnswer, at: .createSpace), RoboscopeFault(.loseAnswer, at: .updateSpace)
        ) { place in
            let notes = Notes()
            let proof = try await place.deliver(try place.order("atrium/m.glb", stored: "u:1"), notes)
            #expect(try place.space("atrium").modelGLBURL == "u:1")
            #expect(place.count(.createSpace) == 1 && place.count(.updateSpace) == 1)
            #expect(proof.details?["previous_model_glb_url"] == nil)
            #expect(notes.entries[CheckpointNote.mayBeVisible] != nil)
        }
    }

    @Test func `the URL from before stays known when the answer is lost`() async throws {
        try await withRoboscope { place in
            _ = try await place.deliver(try place.order("atrium/m.glb", stored: "u:old"))
            place.sandbox.faults.add(RoboscopeFault(.loseAnswer, at: .updateSpace))
            let proof = try await place.deliver(try place.order("atrium/m.glb", stored: "u:new"))
            #expect(proof.details?["previous_model_glb_url"] == "u:old")
            #expect(try place.space("atrium").modelGLBURL == "u:new" && place.count(.updateSpace) == 2)
        }
    }

    @Test func `two spaces of one key are left to a person`() async throws {
        try await withRoboscope { place in
            place.sandbox.addSpace(key: "atrium")
            place.sandbox.addSpace(key: "atrium")
            let error = try await place.failure(try place.order("atrium/m.glb", stored: "u:1"))
            #expect(error?.verdict == .giveUp && error?.code == .conflict)
            #expect(place.writes == 0)
        }
    }

    @Test func `without a URL or a space nothing is asked of the server`() async throws {
        try await withRoboscope { place in
            let bare = try place.order("atrium/m.glb")
            #expect(try await place.failure(bare)?.reason.contains("public_url") == true)
            var homeless = try place.order("m.glb", stored: "u:1")
            homeless.fields["space"] = ""
            let error = try await place.failure(homeless)
            #expect(error?.verdict == .giveUp && error?.reason.contains("no space is named") == true)
            var odd = try place.order("atrium/m.glb", stored: "u:1")
            odd.fields["role"] = "marker"
            #expect(try await place.failure(odd)?.reason.contains("did you mean 'markers'?") == true)
            #expect(place.requests == 0)
        }
    }

    @Test func `a source that changed or went is not registered by its attempt`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/m.glb", stored: "u:1")
            try place.root.write(Array("other bytes".utf8), to: "atrium/m.glb")
            #expect(try await place.failure(order)?.verdict == .sourceChanged)
            let attempt = Notes().attempt(isStopping: { true })
            #expect(
                try await place.failure(try place.order("atrium/m.glb", stored: "u:1"), attempt)?.verdict == .cancelled)
            #expect(place.writes == 0)
        }
    }

    @Test func `what is stored is registered although its file is gone; markers are not`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/m.glb", stored: "u:1")
            let path = place.root.path.pushing(order.path)
            try FileManager.default.removeItem(atPath: path.string)
            guard case .delivered(let proof)? = try await place.pipeline.conclude(path, order, Notes().attempt()) else {
                Issue.record("not delivered")
                return
            }
            #expect(proof.content == nil && proof.details?["model_glb_url"] == "u:1")
            #expect(try place.space("atrium").modelGLBURL == "u:1")
            let markers = try place.order("atrium/markers.json", markerList(1))
            #expect(try await place.pipeline.conclude(path, markers, Notes().attempt()) == nil)
            let unstored = try place.order("atrium/n.glb")
            #expect(try await place.pipeline.conclude(path, unstored, Notes().attempt()) == nil)
        }
    }

    @Test func `a wrong token pauses the destination, and is not told`() async throws {
        try await withRoboscope(settings: ["token": .secret(Secret("wrong-canary"))]) { place in
            let error = try await place.failure(try place.order("atrium/m.glb", stored: "u:1"))
            #expect(error?.verdict == .credentials && error?.reason.contains("canary") == false)
            await #expect(throws: DeliveryError.self) { try await place.pipeline.probe() }
        }
        try await withRoboscope { place in
            let said = try await place.pipeline.probe()
            #expect(said.contains("takes this token"))
            #expect(place.writes == 0)
        }
    }

    @Test func `an address without an API is an outage, not the file's fault`() async throws {
        try await withRoboscope(faults: RoboscopeFault(.status(404), at: .listSpaces, times: nil)) { place in
            let error = try await place.failure(try place.order("atrium/m.glb", stored: "u:1"))
            #expect(error?.verdict == .outage(after: nil) && error?.reason.contains("/api/v1") == true)
        }
    }

    @Test(arguments: [FaultAction.garbage, .html, .endlessAnswer, .reset(afterBytes: 0), .status(503, retryAfter: 3)])
    func `a server that speaks nonsense makes nothing fail for good`(_ action: FaultAction) async throws {
        try await withRoboscope(faults: RoboscopeFault(action, at: .listSpaces)) { place in
            let order = try place.order("atrium/m.glb", stored: "u:1")
            let error = try await place.failure(order)
            #expect(error != nil && error?.verdict != .giveUp)
            _ = try await place.deliver(order)
            #expect(try place.space("atrium").modelGLBURL == "u:1")
        }
    }

    @Test func `nothing is taken back`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/m.glb", stored: "u:1")
            let notes = Notes()
            _ = try await place.deliver(order, notes)
            try await place.pipeline.abandon(order, checkpoint: notes.entries)
            #expect(try place.space("atrium").modelGLBURL == "u:1")
        }
    }

    @Test func `a destination says what it needs of others`() async throws {
        try await withRoboscope { place in
            let storage = try #require(place.destination.storage)
            #expect(storage.destination == "spiral" && place.destination.closesBatches)
            #expect(storage.isNeeded("a/m.glb", [:]) && storage.isNeeded("a/clip.mp4", [:]))
            #expect(!storage.isNeeded("a/markers.json", [:]))
            #expect(storage.isNeeded("a/markers.json", ["role": "file"]))
            #expect(!storage.isNeeded("a/cracks.json", ["role": "markers"]))
            #expect(!storage.isNeeded("a/markers.json", ["role": "nonsense"]))
            #expect(!place.destination.takesSidecars && place.destination.fields["space"] != nil)
        }
    }
}
