import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import ServiceLifecycle
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

/// Folders of a pattern that become others under our hands, as when a card is mounted a moment after its folder was made.
@Suite struct PassingRootTests {
    /// Says when it has ended.
    private struct Ending: Service {
        let intake: RootRunner
        let ends: Count

        func run() async throws {
            await intake.run()
            ends.add()
            // A service that ends by itself ends the others.
            try await gracefulShutdown()
        }
    }

    private struct Watching: Service {
        let roots: VolumeRoots

        func run() async { await roots.run() }
    }

    private static func watch(_ media: FilePath) throws -> WatchSettings {
        var watch = WatchSettings(path: media.appending("*"), settle: .zero, rescan: nil)
        watch.pattern = try RootPattern(watch.path)
        return watch
    }

    @Test func `a folder that becomes another while it is listed is let go before a file of that is taken`()
        async throws
    {
        var scene = try Scene()
        let directory = scene.directory
        let slot = try directory.makeDirectory("media/slot")
        scene.watch = [try Self.watch(directory.path.appending("media"))]
        let starts = Count()
        scene.onEvent = { event in
            // It is listed next.
            guard case .watchMode(root: slot, _, _, _) = event, starts.add() == 1 else { return }
            try? move(slot, to: directory.path.appending("before"))
            _ = try? directory.makeDirectory("media/slot")
            _ = try? directory.write([1], to: "media/slot/b")
        }
        try await scene.run { stage in
            try await stage.finished("b")
            // The folder that is there now is watched anew. Nobody hears of a folder that went before it was shown as added.
            let before = stage.events.names.prefix { $0 != "job.admitted" }
            #expect(before.count { $0 == "watch.mode" } == 2)
        }
    }

    @Test func `a folder that has become another since it was taken up is not watched as what it was`() async throws {
        let directory = try TemporaryDirectory()
        let slot = try directory.makeDirectory("media/slot")
        let settings = try Self.watch(directory.path.appending("media")).at(slot)
        let place = try VolumeMount(of: slot, try #require(settings.pattern))
        #expect(place.isStill(at: slot))
        try move(slot, to: directory.path.appending("before"))
        try directory.makeDirectory("media/slot")
        try directory.write([1], to: "media/slot/b")
        #expect(!place.isStill(at: slot))
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        let log = try EventLog(nil)
        let events = EventRecord(log)
        let intake = try RootRunner(settings, shared(directory, journal, log), Settler.Places(), passing: place)
        let ends = Count()
        try await whileRunning([Ending(intake: intake, ends: ends)]) {
            try await eventually("it is let go") { ends.value == 1 }
        }
        #expect(events.count("watch.added") == 0)
        #expect(try await journal.jobs(FileFilter(limit: 10)).isEmpty)
    }

    /// Once while the first loop of a folder begins, and once while the one after it does.
    @Test func `a renewal that is asked for while a loop begins is not missed, and goes by the routes that hold then`()
        async throws
    {
        let directory = try TemporaryDirectory()
        try directory.write([1], to: "media/slot/a")
        let settings = try Self.watch(directory.path.appending("media"))
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        let log = try EventLog(nil)
        let events = EventRecord(log)
        let shared = try shared(directory, journal, log)
        let begun = Count()
        let roots = try VolumeRoots(settings, try #require(settings.pattern), shared, Settler.Places())
        let routed = try [2, 3].map { number in
            var settings = shared.settings.settings
            settings.routes = [Route(name: "\(number)", key: try KeyTemplate("{name}"), to: ["here"])]
            return settings
        }
        log.listen { event in
            guard case .watchMode = event, case let count = begun.add(), count <= 2 else { return }
            shared.settings.replace(routed[count - 1], former: [])
            roots.renew()
        }
        try await whileRunning([Watching(roots: roots)]) {
            try await eventually("the third is the one that watches") { events.count("job.admitted") == 1 }
            #expect(begun.value == 3 && shared.roots.statuses.count == 1)
            #expect(try await journal.jobs(FileFilter(limit: 10)).map(\.file.route) == ["3"])
        }
    }

    @Test func `a root is watched anew once for each time that it was asked, and never after its end`() throws {
        let mailbox = try RootMailbox("/in")
        #expect(!mailbox.beginsAnew())
        mailbox.look(again: "a")
        mailbox.publish(RootStatus(root: "/in", state: .watching))
        mailbox.renew()
        #expect(mailbox.isStopped && mailbox.beginsAnew())
        #expect(!mailbox.isStopped && mailbox.take().looks.isEmpty && mailbox.status.state == .starting)
        #expect(!mailbox.beginsAnew())
        mailbox.stop()
        mailbox.renew()
        #expect(mailbox.isStopped && !mailbox.beginsAnew())
    }

    private func shared(_ directory: TemporaryDirectory, _ journal: Journal, _ log: EventLog) throws -> Shared {
        let route = Route(name: "all", key: try KeyTemplate("{name}"), to: ["here"])
        return .test(journal, log, [.scripted("here", ScriptedPipeline())]) {
            ($0.stateDirectory, $0.routes) = (directory.path, [route])
        }
    }
}

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
                stage.rootStatus.map { $0.polled == 2 && $0.directories == 4 } ?? false
            }
            overlay.unmount()
            try await eventually("it is noticed that the mount has gone") { stage.rootStatus?.polled == 0 }
            try await stage.process("share/d")
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
            try await stage.process("share/sub/c")
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
            try await stage.process("disk/sub/b")
            try await stage.process("disk/sub/c")
            disk.unmount()
            try await stage.process("disk/sub/d")
            #expect(stage.modes == ["inotify", "inotify"])
        }
    }
}
