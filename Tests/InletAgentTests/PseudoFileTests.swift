import Foundation
import InletAgent
import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

/// The kernel's own file systems, which have files of no use to anybody else.
@Suite struct PseudoFileTests {
    private func ignored(_ stage: Stage) -> [FilePath: String] {
        stage.events.all.reduce(into: [:]) { all, event in
            if case .fileIgnored(let path, let reason) = event { all[path] = reason }
        }
    }

    @Test func `a watched folder of proc is refused with its reason, and others go on`() async throws {
        var scene = try Scene()
        let root = FilePath("/proc/\(ProcessInfo.processInfo.processIdentifier)/net")
        scene.watch.append(WatchSettings(path: root, settle: .zero, rescan: nil))
        try await scene.run { [scene] stage in
            try scene.drop("a")
            try await stage.finished("a")
            var reason: String?
            try await eventually("it is said") {
                for case .watchLost(root, let text) in stage.events.all { reason = text }
                return reason != nil
            }
            #expect(reason?.contains("on proc") == true && reason?.contains("watch another folder") == true)
            #expect(try await stage.jobs().count == 1)
        }
    }

    @Test(.enabled(if: TestMount.isAllowed, "needs the right to mount"))
    func `mounts of proc below a watched folder are passed over and said once, those of folders are watched`()
        async throws
    {
        var scene = try Scene()
        scene.route.key = try KeyTemplate("{dir}/{name}")
        let elsewhere = try scene.directory.makeDirectory("elsewhere")
        try scene.directory.write([1], to: "elsewhere/sub/a")
        let mounts = [
            try TestMount(folder: "/proc/sys/kernel", at: scene.directory.makeDirectory("drop/kernel")),
            try TestMount(folder: elsewhere, at: scene.directory.makeDirectory("drop/bound")),
        ]
        defer { for mount in mounts { mount.unmount() } }
        let place = scene.root.appending("kernel")
        try await scene.run { [scene] stage in
            try await stage.finished("bound/sub/a")
            try await eventually("it is said") { ignored(stage)[place] != nil }
            #expect(ignored(stage)[place]?.contains("on proc") == true)
            try scene.directory.write([2], to: "elsewhere/b")
            try await stage.finished("bound/b")
            try scene.drop("last")
            try await stage.finished("last")
            #expect(stage.events.count("file.ignored") == 1 && stage.events.count("file.error") == 0)
            #expect(try await stage.jobs().count == 3)
        }
    }

    @Test(.enabled(if: TestMount.isAllowed, "needs the right to mount"))
    func `a file of proc that lies in a watched folder is not delivered as an empty one`() async throws {
        var scene = try Scene()
        scene.watch[0].settleEmpty = .zero
        let mount = try TestMount(folder: "/proc/version", at: scene.drop("version", ""))
        defer { mount.unmount() }
        try await scene.run { [scene] stage in
            try scene.drop("empty", "")
            try await stage.finished("empty")
            let path = stage.root.appending("version")
            try await eventually("it is said") { ignored(stage)[path] != nil }
            #expect(ignored(stage)[path]?.contains("more than its size") == true)
            #expect(Set(scene.here.record.stored.keys) == ["empty"])
        }
    }
}
