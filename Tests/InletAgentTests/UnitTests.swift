import Foundation
import InletAgent
import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

/// Folders that are delivered as one, and files that wait for a marker.
@Suite struct UnitTests {
    private func files(_ scene: Scene) -> [String] { scene.here.record.stored.keys.sorted() }

    @Test func `a quiet folder is delivered as one`() async throws {
        var scene = try Scene.units(.quiet)
        scene.route.settle = .milliseconds(300)
        for number in 0..<50 { try scene.directory.write([1], to: FilePath("outside/day \(number % 3)/\(number)")) }
        try await scene.run { stage in
            try scene.directory.makeDirectory("drop/gigs")
            try move(scene.directory.path.appending("outside"), to: stage.root.pushing("gigs/X"))
            try await eventually("its end is said") { stage.events.count("batch.ended") == 1 }
            #expect(files(scene).count == 50)
            let names = stage.events.names
            #expect(names.firstIndex(of: "batch.closed") ?? 0 < names.firstIndex(of: "job.started") ?? 0)
            let jobs = try await stage.jobs()
            #expect(Set(jobs.map(\.file.batchID)).count == 1)
            let batch = try #require(try await stage.journal.batch(of: jobs[0].file.id))
            #expect(batch.name == "gigs/X" && batch.counts == [.delivered: 50] && batch.state == .delivered)
        }
    }

    @Test func `a folder with a marker waits for it, however quiet it is, and the marker goes with it`() async throws {
        var scene = try Scene.units(.marker)
        scene.route.onSuccess = .archive
        try await scene.run { stage in
            try scene.drop("gigs/X/a")
            try scene.drop("gigs/X/raw/b")
            try await stage.process("gigs/loose")
            try await stage.job("gigs/X/a")
            try await stage.job("gigs/X/raw/b")
            try await eventually("the status says so") {
                stage.rootStatus?.unsettled.first?.why
                    == "waiting for its marker gigs/X/DONE"
            }
            #expect(files(scene) == ["gigs/loose"])
            try await stage.process("gigs/X/DONE", "")
            #expect(files(scene) == ["gigs/X/a", "gigs/X/raw/b", "gigs/loose"])
            for name in ["a", "raw/b", "DONE"] as [FilePath] {
                #expect(isThere(stage.root.pushing(".inlet/done/gigs/X").pushing(name)))
            }
            try await eventually("its end is said") { stage.events.count("batch.ended") == 1 }
        }
    }

    @Test func `an empty marker closes its folder at once, and an empty companion goes with its file`() async throws {
        var scene = try Scene.units(.marker)
        scene.watch[0].settleEmpty = .seconds(3600)
        var clips = Route(name: "clips", key: try KeyTemplate("{name}"), to: ["here"])
        clips.sidecars = SidecarRule(metadata: false, extensions: ["xmp"], wait: .zero)
        scene.others = [clips]
        try await scene.run { stage in
            try scene.drop("gigs/X/a")
            try scene.drop("gigs/X/DONE", "")
            try scene.drop("clip.xmp", "")
            try scene.drop("clip.mp4")
            for name in ["gigs/X/a", "gigs/X/DONE", "clip.mp4", "clip.xmp"] as [FilePath] {
                try await stage.finished(name)
            }
        }
    }

    @Test func `what a folder's marker says labels all its files, over its own file and the route`() async throws {
        var scene = try Scene.units(.marker)
        scene.route.labels = ["type": try KeyTemplate("raw"), "day": try KeyTemplate("1")]
        try scene.drop("gigs/X/.inlet.yaml", "labels: { owner: nobody, city: Rome }")
        for name in ["gigs/X/a", "gigs/X/raw/b"] as [FilePath] { try scene.drop(name) }
        try scene.drop("gigs/X/DONE", "labels: { type: gig, owner: Ann }")
        let said = ["type": "gig", "owner": "Ann", "city": "Rome"]
        try await scene.run { stage in
            for name in ["gigs/X/a", "gigs/X/raw/b"] as [FilePath] {
                let file = try await stage.finished(name).file
                #expect(file.labels == said.merging(["day": "1"]) { $1 })
                #expect(try await stage.journal.batch(of: file.id)?.labels == said)
            }
        }
    }

    @Test func `folders that are written with their markers while others are looked at are closed whole`() async throws
    {
        let scene = try Scene.units(.marker)
        let folders = 60
        try await scene.run { stage in
            for number in 0..<folders {
                for name in ["a", "b", "raw/c", "raw/deep/d"] { try scene.drop(FilePath("gigs/\(number)/\(name)")) }
                try scene.drop(FilePath("gigs/\(number)/DONE"), "")
            }
            try await eventually("all have ended") {
                try await stage.journal.totals()[.delivered]?.files == folders * 5
            }
            let batches = try await stage.journal.batches(limit: 1000)
            #expect(batches.count == folders)
            #expect(batches.allSatisfy { $0.counts == [.delivered: 4] })
        }
    }

    @Test func `a marker that stays does not speak for files that come after it`() async throws {
        let scene = try Scene.units(.marker)
        try await scene.run { stage in
            try scene.drop("gigs/X/a")
            try await stage.process("gigs/X/DONE", "")
        }
        try await scene.run { stage in
            try scene.drop("gigs/X/b")
            try await stage.process("gigs/other")
            try await stage.job("gigs/X/b")
            try await eventually("the unit is open") { try await stage.journal.openUnits(stage.root).count == 1 }
            #expect(!files(scene).contains("gigs/X/b"))
            try scene.drop("gigs/X/DONE", "again")
            try await stage.finished("gigs/X/b")
            #expect(try await stage.job("gigs/X/a").file.batchID != stage.job("gigs/X/b").file.batchID)
        }
    }

    @Test func `an open folder is found again after a restart, and closed by the same rules`() async throws {
        var scene = try Scene.units(.marker)
        try await scene.run { stage in try await stage.admit("gigs/X/a") }
        #expect(files(scene).isEmpty)
        try await scene.run { stage in
            try scene.drop("gigs/X/DONE")
            try await stage.finished("gigs/X/a")
        }
        scene.route.completion = .marker
        try await scene.run { stage in try await stage.admit("gigs/Y/a") }
        // Without a marker's rule the quiet time counts.
        scene.route.completion = .quiet
        try await scene.run { stage in try await stage.finished("gigs/Y/a") }
    }

    @Test func `a folder whose root is no longer watched is closed at the start`() async throws {
        var scene = try Scene.units(.marker)
        try await scene.run { stage in try await stage.admit("gigs/X/a") }
        scene.watch = []
        scene.watch = [WatchSettings(path: try scene.directory.makeDirectory("elsewhere"), settle: .zero, rescan: nil)]
        try await scene.run { stage in try await stage.finished("gigs/X/a") }
    }

    @Test func `a folder stays open while one of its files is written`() async throws {
        let scene = try Scene.units(.marker)
        let file = try scene.drop("gigs/X/b")
        try scene.drop("gigs/X/a")
        try scene.drop("gigs/X/DONE")
        try await whileWriting(file) {
            try await scene.run { stage in
                try await stage.job("gigs/X/a")
                try await stage.process("gigs/loose")
                #expect(files(scene) == ["gigs/loose"])
            }
        }
        try await scene.run { stage in
            try await stage.finished("gigs/X/DONE")
            #expect(files(scene) == ["gigs/X/a", "gigs/X/b", "gigs/loose"])
        }
    }

    // MARK: - Files with markers

    @Test func `a file waits for its marker, which goes where it goes and is never sent`() async throws {
        var scene = try Scene.marked()
        scene.route.onSuccess = .archive
        try await scene.run { stage in
            try scene.drop("one.mp4")
            try scene.drop("two.mp4")
            try await eventually("it is said once") { stage.events.count("file.awaited") == 1 }
            try scene.drop("one.mp4.done", "")
            try await stage.finished("one.mp4")
            let marker = try await stage.finished("one.mp4.done")
            #expect(marker.deliveries.map(\.proof?.method) == [.carried])
            #expect(files(scene) == ["one.mp4"])
            #expect(isThere(stage.root.pushing(".inlet/done/one.mp4.done")))
            #expect(isThere(stage.root.appending("two.mp4")))
            #expect(stage.events.count("file.awaited") == 1)
            #expect(stage.rootStatus?.settling == 0)
        }
    }

    @Test func `a marker that is there first, or at the start, counts; kept, it does not trigger again`() async throws {
        let scene = try Scene.marked()
        try scene.drop("one.mp4")
        try scene.drop("one.mp4.done", "")
        try await scene.run { stage in
            try await stage.finished("one.mp4")
            try scene.drop("two.mp4.done", "")
            try await stage.process("two.mp4")
        }
        try await scene.run { stage in
            try scene.drop("three.mp4")
            try await stage.process("three.mp4.done", "")
            #expect(scene.here.record.orders.count == 3)
            #expect(try await stage.jobs().count == 6)
        }
    }

    @Test func `a marker says nothing of a writer`() async throws {
        let scene = try Scene.marked()
        let file = try scene.drop("one.mp4")
        try await whileWriting(file) {
            try await scene.run { stage in
                try scene.drop("one.mp4.done", "")
                try await eventually("it is seen as busy") { stage.rootStatus?.unsettled.first?.busy == true }
                #expect(try await stage.jobs().isEmpty)
            }
        }
        try await scene.run { stage in try await stage.finished("one.mp4") }
    }
}
