import InletAgent
import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

/// What is told of a folder that was delivered as one.
@Suite struct BatchEndTests {
    @Test func `a folder ends as partial with its counts, and as complete once the rest was sent again`() async throws {
        var scene = try Scene()
        scene.route.match.paths = [try GlobPattern("gigs/**")]
        scene.route.key = try KeyTemplate("{dir}/{name}")
        scene.route.unit = .folder
        scene.route.settle = .milliseconds(300)
        scene.here.script("gigs/X/bad", .fail(.hopeless))
        for name in ["a", "b", "bad"] { try scene.drop(FilePath("gigs/X/\(name)")) }
        try await scene.run { stage in
            try await eventually("its end is said") { stage.events.count("batch.ended") == 1 }
            #expect(field("outcome", stage) == .text("partial"))
            #expect(field("files", stage) == .number(3) && field("delivered", stage) == .number(2))
            #expect(field("counts", stage) == .list(["delivered: 2", "failed: 1"]))
            let failed = try await stage.finished("gigs/X/bad", .failed)
            #expect(try await stage.agent.control.act(.retry, on: failed.file.id) == .done)
            try await eventually("its new end is said") { stage.events.count("batch.ended") == 2 }
            #expect(field("outcome", stage) == .text("complete"))
            #expect(field("counts", stage) == .list(["delivered: 3"]))
        }
    }

    /// What the last line about the end of a folder says.
    private func field(_ name: String, _ stage: Stage) -> EventValue? {
        let line = stage.events.all.map(\.line).last { $0.name == "batch.ended" }
        return line?.fields.first { $0.0 == name }?.1
    }
}
