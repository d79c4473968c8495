import Foundation
import InletAgent
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// Files that wait for each other and travel together.
@Suite struct SidecarTests {
    /// Clips with metadata and `xmp`; nobody waits for time to pass.
    private func scene(takesSidecars: Bool = true, wait: Duration = .seconds(3600)) throws -> Scene {
        var scene = try Scene()
        scene.destinations = [.scripted("here", scene.here)]
        scene.destinations[0].takesSidecars = takesSidecars
        scene.route.match.extensions = ["mp4"]
        scene.route.key = try KeyTemplate("v/{name}")
        scene.route.sidecars = SidecarRule(metadata: true, extensions: ["xmp"], wait: wait)
        return scene
    }

    private func waits(_ stage: Stage, _ name: FilePath, _ why: String) async throws {
        try await eventually("\(name) shows as \(why)") {
            stage.rootStatus?.unsettled.contains {
                $0.path == stage.root.pushing(name) && $0.why == why
            } == true
        }
    }

    @Test func `a file waits for its sidecars, and all travel together`() async throws {
        let scene = try scene()
        try await scene.run { stage in
            try scene.drop("x/clip.mp4")
            try await waits(stage, "x/clip.mp4", "waiting for its sidecars")
            try scene.drop("x/clip.xmp")
            try scene.drop("x/clip.mp4.yaml", "label: Live at the Roxy\n")
            let main = try await stage.finished("x/clip.mp4")
            try await stage.finished("x/clip.xmp")
            try await stage.finished("x/clip.mp4.yaml")
            #expect(scene.here.record.stored.keys.sorted() == ["v/clip.mp4", "v/clip.mp4.yaml", "v/clip.xmp"])
            #expect(scene.here.record.orders.first?.key == "v/clip.mp4")
            #expect(scene.here.record.orders.first?.fields == ["label": "Live at the Roxy"])
            try await eventually("the end of the batch is said") { stage.events.count("batch.ended") == 1 }
            let batch = try #require(try await stage.journal.batch(of: main.file.id))
            #expect(batch.state == .delivered && batch.counts == [.delivered: 3] && batch.name == "x/clip.mp4")
        }
    }

    @Test func `what is all there at the start goes at once`() async throws {
        let scene = try scene()
        for name in ["clip.xmp", "clip.mp4", "clip.mp4.yaml"] as [FilePath] { try scene.drop(name, "") }
        try await scene.run { stage in
            for name in ["clip.mp4", "clip.xmp", "clip.mp4.yaml"] as [FilePath] { try await stage.finished(name) }
            #expect(scene.here.record.orders.first?.key == "v/clip.mp4")
            try await eventually("the end of the batch is said") { stage.events.count("batch.ended") == 1 }
        }
    }

    @Test func `a companion's time to live begins with its first try, not while it waits for its file`() async throws {
        var scene = try scene(wait: .zero)
        scene.route.retry.expire = .seconds(3600)
        let gate = Gate()
        scene.here.script("v/clip.mp4", .hold(gate, .deliver))
        let later = DeliveryError(.retry(after: .seconds(60)), .timedOut, "busy")
        scene.here.script("v/clip.xmp", .fail(later))
        for name in ["clip.xmp", "clip.mp4"] as [FilePath] { try scene.drop(name) }
        let waiting = scene
        try await waiting.run { stage in
            try await eventually("its file is on its way") { waiting.here.record.running == 1 }
            #expect(try await stage.job("clip.xmp").deliveries[0].expiresAt == nil)
            gate.open()
            try await eventually("it was tried, and waits") {
                try await stage.job("clip.xmp").deliveries[0].code == .timedOut
            }
            #expect(try await stage.job("clip.xmp").deliveries[0].expiresAt != nil)
        }
    }

    @Test func `a companion that is there first waits for its file`() async throws {
        let scene = try scene()
        try await scene.run { stage in
            try scene.drop("clip.mp4.yaml", "label: x\n")
            try scene.drop("clip.xmp")
            try await waits(stage, "clip.xmp", "waiting for its file")
            try await waits(stage, "clip.mp4.yaml", "waiting for its file")
            try await stage.process("clip.mp4")
            try await stage.finished("clip.xmp")
            #expect(scene.here.record.orders.first?.key == "v/clip.mp4")
        }
    }

    @Test func `a companion that is still written keeps its file waiting`() async throws {
        let scene = try scene()
        let xmp = try scene.drop("clip.xmp")
        try scene.drop("clip.mp4.yaml", "")
        try await whileWriting(xmp) {
            try await scene.run { stage in
                try scene.drop("clip.mp4")
                try await waits(stage, "clip.mp4", "waiting for its sidecars")
                #expect(try await stage.jobs().isEmpty)
            }
        }
        try await scene.run { stage in
            try await stage.finished("clip.mp4")
            try await stage.finished("clip.xmp")
        }
    }

    @Test func `after its wait a file goes without what is missing, and a late companion follows it`() async throws {
        var scene = try scene(wait: .zero)
        scene.route.onSuccess = .archive
        try await scene.run { stage in
            let main = try await stage.process("clip.mp4")
            #expect(!isThere(stage.root.appending("clip.mp4")))
            let late = try await stage.process("clip.xmp")
            #expect(late.deliveries.map(\.key) == ["v/clip.xmp"])
            #expect(late.deliveries[0].afterID == main.deliveries[0].id)
            #expect(late.file.batchID != nil)
            #expect(try await stage.job("clip.mp4").file.batchID == late.file.batchID)
            #expect(isThere(stage.root.pushing(".inlet/done/clip.xmp")))
        }
    }

    @Test func `a late companion of a file that is still there and kept follows it too`() async throws {
        let scene = try scene(wait: .zero)
        try await scene.run { stage in
            try await stage.process("clip.mp4")
            #expect(try await stage.process("clip.mp4.xmp").deliveries.map(\.key) == ["v/clip.mp4.xmp"])
        }
        try await scene.run { stage in
            try await stage.process("last.mp4")
            #expect(scene.here.record.orders.count == 3)
        }
    }

    @Test func `metadata goes with its file where it cannot be stored, and is archived, never deleted`() async throws {
        var scene = try scene(takesSidecars: false)
        scene.route.sidecars.extensions = []
        scene.route.onSuccess = .delete
        try scene.drop("clip.mp4.yaml", "label: x\nnotes: y\n")
        try scene.drop("clip.mp4")
        try await scene.run { stage in
            try await stage.finished("clip.mp4")
            let yaml = try await stage.finished("clip.mp4.yaml")
            #expect(yaml.deliveries.map(\.proof?.method) == [.carried])
            #expect(scene.here.record.stored.keys.sorted() == ["v/clip.mp4"])
            #expect(scene.here.record.orders.map(\.fields) == [["label": "x", "notes": "y"]])
            #expect(!isThere(stage.root.appending("clip.mp4")))
            #expect(try text(stage.root.pushing(".inlet/done/clip.mp4.yaml")) == "label: x\nnotes: y\n")
        }
    }

    @Test func `metadata that comes too late to go anywhere is rejected, and says so`() async throws {
        var scene = try scene(takesSidecars: false, wait: .zero)
        scene.route.sidecars.extensions = []
        try await scene.run { stage in
            try await stage.process("clip.mp4")
            let yaml = try await stage.process("clip.mp4.yaml", "label: x\n", as: .rejected)
            #expect(yaml.file.reason?.hasPrefix("it came too late: its file clip.mp4") == true)
            #expect(scene.here.record.orders.count == 1)
        }
    }

    @Test func `metadata that cannot be understood rejects its file, with the line`() async throws {
        var scene = try scene()
        scene.route.onFailure = .quarantine
        try scene.drop("clip.mp4.yaml", "label: x\n  notes: [y\n")
        try scene.drop("clip.xmp")
        try scene.drop("clip.mp4")
        try await scene.run { stage in
            let main = try await stage.finished("clip.mp4", .rejected)
            #expect(main.file.reason?.hasPrefix("clip.mp4.yaml:2:") == true, "\(main.file.reason ?? "")")
            for name in ["clip.mp4.yaml", "clip.xmp"] as [FilePath] {
                let reason = try await stage.finished(name, .rejected).file.reason
                #expect(reason?.hasPrefix("its file clip.mp4 was rejected: clip.mp4.yaml:2:") == true)
                #expect(isThere(stage.root.pushing(".inlet/failed").pushing(name)))
            }
            #expect(scene.here.record.orders.isEmpty)
        }
    }

    @Test func `a companion without a file is left to the routes`() async throws {
        let scene = try scene(wait: .zero)
        try await scene.run { stage in
            try scene.drop("lone.xmp")
            try await eventually("it is ignored") { stage.events.count("file.ignored") == 1 }
            #expect(try await stage.jobs().isEmpty)
        }
    }

    @Test func `a companion follows its file over a restart`() async throws {
        let scene = try scene()
        scene.here.always(.stall)
        for name in ["clip.xmp", "clip.mp4", "clip.mp4.yaml"] as [FilePath] { try scene.drop(name, "") }
        var first = scene
        first.grace = .zero
        try await first.run { stage in
            try await eventually("the file is being sent") { scene.here.record.running == 1 }
            #expect(try await stage.jobs().count == 3)
        }
        scene.here.always(.deliver)
        try await scene.run { stage in
            for name in ["clip.mp4", "clip.xmp", "clip.mp4.yaml"] as [FilePath] { try await stage.finished(name) }
            #expect(scene.here.record.orders.filter { $0.key != "v/clip.mp4" }.count == 2)
        }
    }
}
