import Foundation
import InletAgent
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// The process dies in the midst of files that belong together; the next start brings all of them, once.
@Suite(.serialized) struct SetCrashTests {
    private static let files = ["clip.mp4", "clip.mp4.yaml", "clip.xmp", "raw/b.mp4", "raw/b.mp4.yaml", "raw/b.xmp"]

    /// A unit of clips with sidecars, closed by its marker, to a real folder.
    private static func scene(_ path: FilePath) throws -> Scene {
        var scene = try Scene(in: TemporaryDirectory(existing: path))
        let library = try scene.directory.makeDirectory("library")
        let values = ConfigSection(
            values: ["path": .string(library.string)], positions: [:], position: SourcePosition(line: 1, column: 1))
        scene.destinations = [
            Destination(
                name: "here", type: "folder",
                pipeline: FolderPipeline(
                    settings: FolderSettings(values), pool: BlockingPool(name: "copy", threads: 2)),
                smallLimit: 1 << 20, connections: 2)
        ]
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
