import InletAgent
import InletCore
import InletJournal
import InletPipelines
import InletTestSupport
import SystemPackage
import Testing

/// Destinations that are told when all of a unit has been sent to them.
@Suite struct ClosingTests {
    private func scene() throws -> Scene {
        var scene = try Scene()
        scene.route.match.paths = [try GlobPattern("gigs/**")]
        scene.route.key = try KeyTemplate("{dir}/{name}")
        scene.route.unit = .folder
        scene.route.completion = .marker
        scene.destinations[0].closesBatches = true
        return scene
    }

    @Test func `a closing delivery comes after all files of the unit`() async throws {
        let scene = try scene()
        let gate = Gate()
        scene.here.script("gigs/X/b", .hold(gate, .deliver))
        try await scene.run { stage in
            for name in ["a", "b", "c", "DONE"] { try scene.drop(FilePath("gigs/X/\(name)")) }
            try await eventually("all but one are there") { scene.here.record.stored.count == 2 }
            #expect(scene.here.record.orders.allSatisfy { $0.batch?.role == .member })
            gate.open()
            for name in ["a", "b", "c"] { try await stage.finished(FilePath("gigs/X/\(name)")) }
            let last = try #require(scene.here.record.orders.last?.batch)
            #expect(last.role == .closing && last.files == 3 && last.failed == 0)
            #expect(last.folder == "gigs/X" && last.firstCaptured != nil)
            #expect(scene.here.record.orders.count { $0.batch?.role == .closing } == 1)
            #expect(Set(scene.here.record.orders.map(\.batch?.id)) == [last.id])
            try await eventually("its end is said") { stage.events.count("batch.ended") == 1 }
        }
    }

    @Test func `it needs none of the unit's files`() async throws {
        let scene = try scene()
        let gate = Gate()
        scene.here.script("gigs/X/b", .hold(gate, .deliver))
        scene.here.haveAll()
        try await scene.run { stage in
            // The closing stands with the file that came first.
            try scene.drop("gigs/X/a")
            try await eventually("it is admitted") { try await stage.jobs().count == 1 }
            for name in ["b", "DONE"] { try scene.drop(FilePath("gigs/X/\(name)")) }
            try await eventually("one is there") { scene.here.record.stored.keys.contains("gigs/X/a") }
            try remove(stage.root.pushing("gigs/X/a"))
            gate.open()
            for name in ["a", "b"] { try await stage.finished(FilePath("gigs/X/\(name)")) }
            #expect(scene.here.record.concluded.map(\.batch?.role) == [.closing])
        }
    }
}
