import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

/// What files that belong together may rely on: how long they wait, what a marker speaks for, and how mistakes are mended.
@Suite struct SetRuleTests {
    /// Clips with metadata that wait for each other.
    private func scene(_ sidecars: SidecarRule) throws -> Scene {
        var scene = try Scene()
        scene.route.match.extensions = ["mp4"]
        scene.route.key = try KeyTemplate("v/{name}")
        scene.route.sidecars = sidecars
        return scene
    }

    /// A clip and its metadata, which have just been written, and what looks at them.
    private func clip() throws -> (Scene, Journal, AdmissionStage) {
        let scene = try scene(SidecarRule(metadata: true, wait: .seconds(10)))
        try scene.drop("clip.mp4")
        try scene.drop("clip.mp4.yaml", "label: x")
        let journal = try Journal(path: scene.journalPath, now: .now)
        return (
            scene, journal, try AdmissionStage.alone(in: scene.root, journal, scene.route, settle: .seconds(5))
        )
    }

    /// A file last written `age` before now, whenever it was made.
    private func arrival(_ scene: Scene, _ name: FilePath, age: Duration, at now: WallTime) throws -> FoundFile {
        var identity = try #require(try FileLook.look(at: scene.root.pushing(name)).identity)
        let time = now.milliseconds * 1_000_000 - age.milliseconds * 1_000_000
        (identity.modified, identity.changed) = (time, time)
        return FoundFile(root: scene.root, path: name, identity: identity)
    }

    @Test(arguments: [0, 3, 7, 9])
    func `metadata that is written within its file's wait goes with it, whatever the quiet time`(delay: Int64)
        async throws
    {
        let (scene, journal, stage) = try clip()
        defer { journal.close() }
        var files = stage
        // The metadata is written now; its file was `delay` seconds ago.
        let written = try #require(try FileLook.look(at: scene.root.appending("clip.mp4.yaml")).identity)
        let start = WallTime(nanoseconds: max(written.modified, written.changed)) + .milliseconds(1)
        for second in 0..<20 as Range<Int64> {
            let now = start + .seconds(second)
            let age = Duration.seconds(second + delay)
            let clip = try arrival(scene, "clip.mp4", age: age, at: now)
            let status = try await files.findCompanions(of: [clip], at: now).first?.get()
            guard case .main(let found, let isWhole, let quiet)? = status else {
                throw Unexpected(description: "no main file")
            }
            #expect(isWhole == (second >= 5) && found.count == (isWhole ? 1 : 0), "after \(second) s")
            if !isWhole { #expect(age < quiet, "it went without its metadata after \(second) s") }
        }
    }

    @Test func `a companion that was written to between the look and the probe has to be quiet anew`() throws {
        let (scene, journal, stage) = try clip()
        defer { journal.close() }
        var files = stage
        let now = WallTime.now
        let clip = try arrival(scene, "clip.mp4", age: .seconds(60), at: now)
        // As the first look found it, before its writer wrote the rest and closed it.
        var facts = CompanionContext()
        facts["clip.mp4.yaml"] = CompanionContext.File(
            try arrival(scene, "clip.mp4.yaml", age: .seconds(60), at: now).identity)
        #expect(files.companions.probed(for: clip, facts, at: now).map(\.path) == ["clip.mp4.yaml"])
        try files.probeCompanions(of: clip, &facts, at: now)
        guard case .main(let found, isWhole: false, _) = files.companions.status(of: clip, facts, at: now) else {
            throw Unexpected(description: "it goes with its file")
        }
        #expect(found.isEmpty)
    }

    @Test func `a companion that was written since the turn began has to be quiet`() async throws {
        let (scene, journal, stage) = try clip()
        defer { journal.close() }
        var files = stage
        let clip = try arrival(scene, "clip.mp4", age: .seconds(60), at: .now)
        let status = try await files.findCompanions(of: [clip], at: .now + .seconds(-60)).first?.get()
        guard case .main(let found, isWhole: false, _)? = status else {
            throw Unexpected(description: "it goes with its file")
        }
        #expect(found.isEmpty)
    }

    // MARK: - Markers

    /// Everything that came before has been looked at when this file is through.
    private func passSentinel(_ scene: Scene, _ stage: Stage) async throws {
        try scene.drop("sentinel.mp4")
        try await stage.process("sentinel.mp4.done", "")
    }

    private func jobs(_ stage: Stage, _ path: FilePath) async throws -> [Job] {
        try await stage.jobs().filter { $0.file.path == path }
    }

    @Test func `a marker that was kept says nothing of what is written over its file`() async throws {
        let scene = try Scene.marked()
        try await scene.run { stage in
            try scene.drop("clip.mp4", "one")
            try await stage.process("clip.mp4.done", "")
            try scene.drop("clip.mp4", "a part of two")
            try await passSentinel(scene, stage)
            #expect(try await jobs(stage, "clip.mp4").count == 1)
            try scene.drop("clip.mp4.done", "again")
            try await stage.job("clip.mp4", "sent again") { $0.file.identity.size == 13 && $0.file.finishedAt != nil }
            #expect(scene.here.record.orders.count { $0.key.hasPrefix("clip") } == 2)
        }
    }

    @Test func `nor does the marker of a file that changed while it was sent`() async throws {
        let scene = try Scene.marked()
        let gate = Gate()
        scene.here.script("clip.mp4", .hold(gate, .fail(.changed)))
        try await scene.run { stage in
            try scene.drop("clip.mp4", "one")
            try await stage.start("clip.mp4.done", "")
            try scene.drop("clip.mp4", "a part of two")
            gate.open()
            try await stage.finished("clip.mp4.done", .superseded)
            try await passSentinel(scene, stage)
            #expect(try await jobs(stage, "clip.mp4").count == 1)
            try scene.drop("clip.mp4.done", "again")
            try await stage.finished("clip.mp4")
        }
    }

    @Test func `a marker counts again for a file that the journal was told to forget`() async throws {
        let scene = try Scene.marked()
        try await scene.run { stage in
            try scene.drop("clip.mp4", "one")
            try await stage.process("clip.mp4.done", "")
            let first = try await stage.finished("clip.mp4")
            #expect(try await stage.journal.act(.forget, on: [first.file.id], at: .now).outcomes == [.done])
            try await stage.process("clip.mp4", "two")
        }
    }

    // MARK: - Mistakes

    @Test func `metadata that is put right has its file and all that was rejected with it taken again`() async throws {
        let scene = try scene(SidecarRule(metadata: true, extensions: ["xmp"], wait: .seconds(3600)))
        try scene.drop("clip.mp4.yaml", "label: [x")
        try scene.drop("clip.xmp")
        try scene.drop("clip.mp4")
        try await scene.run { stage in
            #expect(try await stage.finished("clip.mp4", .rejected).file.code == .badSidecar)
            try await stage.finished("clip.xmp", .rejected)
            try scene.drop("clip.mp4.yaml", "notes: [still")
            try await stage.job("clip.mp4", "rejected again") {
                $0.file.id > 3 && $0.file.finishedAt != nil && $0.file.state == .rejected
            }
            try scene.drop("clip.mp4.yaml", "label: x")
            for name in ["clip.mp4", "clip.mp4.yaml", "clip.xmp"] as [FilePath] { try await stage.finished(name) }
            #expect(try await stage.jobs().count == 3)
            #expect(scene.here.record.orders.first?.fields == ["label": "x"])
        }
    }

    @Test func `metadata that does not count puts nothing right`() async throws {
        let scene = try scene(SidecarRule(metadata: true, wait: .seconds(3600)))
        try scene.drop("clip.mp4.yaml", "label: [x")
        try scene.drop("clip.mp4")
        try await scene.run { stage in
            let main = try await stage.finished("clip.mp4", .rejected)
            try await stage.process("clip.mp4.yml", "label: x", as: .rejected)
            #expect(try await jobs(stage, "clip.mp4").map(\.file.id) == [main.file.id])
        }
    }

    // MARK: - Files that a person names

    /// The job of a sent file, once it is delivered.
    private func send(_ stage: Stage, _ path: FilePath, to destination: String? = nil) async throws -> Job {
        let answer = await stage.agent.control.send(path, to: destination)
        let id = try #require(answer.job, "\(answer)")
        try await eventually("it is sent") { try await stage.journal.job(id)?.file.state == .delivered }
        return try #require(try await stage.journal.job(id))
    }

    @Test func `a file that is named takes its metadata with it, where its route asks for that`() async throws {
        var scene = try scene(SidecarRule(metadata: true, wait: .seconds(3600)))
        let clip = try scene.directory.write([1], to: "elsewhere/clip.mp4")
        try scene.directory.write(Array("label: x".utf8), to: "elsewhere/clip.mp4.yml")
        let broken = try scene.directory.write([1], to: "elsewhere/broken.mp4")
        try scene.directory.write(Array("label: [".utf8), to: "elsewhere/broken.mp4.yaml")
        try await scene.run { stage in
            let job = try await send(stage, clip)
            #expect(job.deliveries.map(\.fields) == [["label": "x"]])
            let reason = try #require(await stage.agent.control.send(broken, to: nil).refusal)
            #expect(reason.contains("broken.mp4: broken.mp4.yaml:"), "\(reason)")
            #expect(try await stage.jobs().count == 1)
        }
        scene.route.sidecars.metadata = false
        try await scene.run { stage in
            let job = try await send(stage, broken)
            #expect(job.deliveries.map(\.fields) == [[:]])
        }
    }

    @Test(arguments: RouteUnit.allCases)
    func `a file that is named waits for no unit and no marker, and goes alone`(unit: RouteUnit) async throws {
        var scene = try Scene()
        scene.route.unit = unit
        scene.route.completion = .marker
        let file = try scene.drop("gigs/a")
        try await scene.run { stage in
            let job = try await send(stage, file)
            #expect(job.file.batchID == nil)
            #expect(scene.here.record.orders.count == 1)
        }
    }
}

/// The process dies in the midst of files that belong together; the next start brings all of them, once.
@Suite(.serialized) struct SetCrashTests {
    private static let files = ["clip.mp4", "clip.mp4.yaml", "clip.xmp", "raw/b.mp4", "raw/b.mp4.yaml", "raw/b.xmp"]

    /// A unit of clips with sidecars, closed by its marker, to a real folder.
    private static func scene(_ path: FilePath) throws -> Scene {
        var scene = try Scene(in: TemporaryDirectory(existing: path))
        let library = try scene.directory.makeDirectory("library")
        scene.destinations = [.folder("here", library)]
        scene.route = Route(
            name: "clips", match: RouteMatch(paths: [try GlobPattern("gigs/**")], extensions: ["mp4"]),
            key: try KeyTemplate("{dir}/{name}"), to: ["here"], onSuccess: .archive,
            sidecars: SidecarRule(metadata: true, extensions: ["xmp"], wait: .seconds(3600)), unit: .folder,
            completion: .marker)
        return scene
    }

    @Test(arguments: [
        "job.admitted", "batch.closed", "job.started", "job.delivered", "job.finished", "batch.ended",
    ])
    func `whatever the process was doing, all files arrive once`(event: String) async throws {
        let directory = try TemporaryDirectory()
        for name in Self.files { try directory.write(Array(name.utf8), to: FilePath("drop/gigs/X/\(name)")) }
        for name in ["clip.mp4.yaml", "raw/b.mp4.yaml"] {
            try directory.write(Array("label: x".utf8), to: FilePath("drop/gigs/X/\(name)"))
        }
        try directory.write([], to: "drop/gigs/X/DONE")
        let path = directory.path.string
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String, event = event as String] in
            var scene = try Self.scene(FilePath(path))
            scene.onEvent = { if $0.line.name == event { kill(getpid(), SIGKILL) } }
            try await scene.run { _ in try await Task.sleep(for: .seconds(60)) }
        }
        let scene = try Self.scene(directory.path)
        try await scene.run { stage in
            try await eventually("the batch has ended") {
                guard let job = try await stage.jobs().first else { return false }
                return try await stage.journal.batch(of: job.file.id)?.endedAt != nil
            }
            let jobs = try await stage.jobs()
            #expect(jobs.map(\.file.path.string).sorted() == (Self.files + ["DONE"]).map { "gigs/X/\($0)" }.sorted())
            #expect(Set(jobs.map(\.file.batchID)).count == 1)
            #expect(jobs.allSatisfy { $0.file.state == .delivered })
        }
        let library = directory.path.pushing("library/gigs/X")
        let stored = try FileManager.default.subpathsOfDirectory(atPath: library.string)
        #expect(stored.filter { $0.contains(".") }.sorted() == Self.files)
        let left = try FileManager.default.subpathsOfDirectory(atPath: directory.path.pushing("drop/gigs").string)
        #expect(left.sorted() == ["X", "X/raw"])
    }
}
