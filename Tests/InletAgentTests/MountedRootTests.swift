import Foundation
import InletAgent
import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

/// Real mounts at and below a watched folder. Nothing is rescanned.
@Suite struct MountedRootTests {
    private func scene() throws -> Scene {
        var scene = try Scene()
        scene.watch[0].poll = .milliseconds(20)
        scene.route.key = try KeyTemplate("{dir}/{name}")
        return scene
    }

    @Test(.enabled(if: TestMount.hasOverlays, "needs the right to mount an overlay"))
    func `files behind a mount that hides them are found, beside a local folder's events`() async throws {
        let scene = try scene()
        let overlay = try TestMount(layers: scene.directory, at: scene.directory.makeDirectory("drop/share"))
        try await scene.run { stage in
            try await eventually("the root is watched") { stage.events.names.contains("watch.added") }
            try scene.directory.write([1], to: "lower/a")
            try scene.directory.write([1], to: "lower/sub/b")
            try scene.drop("local/c")
            for name in ["share/a", "share/sub/b", "local/c"] as [FilePath] { try await stage.finished(name) }
            #expect(stage.modes == ["inotify", "poll"])
            try await eventually("the mount's two folders are polled") {
                stage.agent.control.live?.roots.first.map { $0.polled == 2 && $0.directories == 4 } ?? false
            }
            overlay.unmount()
            try await eventually("it is noticed that the mount has gone") {
                stage.agent.control.live?.roots.first?.polled == 0
            }
            try scene.drop("share/d")
            try await stage.finished("share/d")
        }
    }

    @Test(.enabled(if: TestMount.hasBindfs, "needs bindfs, /dev/fuse and the right to mount"))
    func `what is written on the other side of a FUSE mount is found by polling`() async throws {
        let scene = try scene()
        let other = try scene.directory.makeDirectory("other")
        try scene.directory.write([1], to: "other/early/a")
        let mount = try TestMount(bindfs: other, at: scene.root)
        defer { mount.unmount() }
        try await scene.run { stage in
            try await stage.finished("early/a")
            #expect(stage.modes == ["poll"])
            try scene.directory.write([1], to: "other/b")
            try scene.directory.write([1], to: "other/early/c")
            try scene.directory.write([1], to: "other/new/deep/d")
            for name in ["b", "early/c", "new/deep/d"] as [FilePath] { try await stage.finished(name) }
        }
    }

    @Test(.enabled(if: TestMount.hasBindfs, "needs bindfs, /dev/fuse and the right to mount"))
    func
        `a FUSE mount that comes over a watched folder is polled at once, also where it has folders of the same names`()
        async throws
    {
        let scene = try scene()
        let other = try scene.directory.makeDirectory("other")
        try scene.drop("share/sub/covered")
        try await scene.run { stage in
            try await stage.finished("share/sub/covered")
            let mount = try TestMount(bindfs: other, at: stage.root.appending("share"))
            defer { mount.unmount() }
            try await eventually("it is polled") { stage.modes == ["inotify", "poll"] }
            try scene.directory.write([1], to: "other/sub/a")
            try await stage.finished("share/sub/a")
            try scene.directory.write([1], to: "other/sub/b")
            try await stage.finished("share/sub/b")
            mount.unmount()
            try scene.drop("share/sub/c")
            try await stage.finished("share/sub/c")
        }
    }

    @Test(.enabled(if: TestMount.isAllowed, "needs the right to mount"))
    func `a disk that is mounted over a watched folder is listed and watched at once, and what it covered afterwards`()
        async throws
    {
        let scene = try scene()
        try scene.drop("disk/sub/a")
        try await scene.run { stage in
            try await stage.finished("disk/sub/a")
            let disk = try TestMount("tmpfs", at: stage.root.appending("disk"))
            defer { disk.unmount() }
            try scene.drop("disk/sub/b")
            try await stage.finished("disk/sub/b")
            try scene.drop("disk/sub/c")
            try await stage.finished("disk/sub/c")
            disk.unmount()
            try scene.drop("disk/sub/d")
            try await stage.finished("disk/sub/d")
            #expect(stage.modes == ["inotify", "inotify"])
        }
    }
}
