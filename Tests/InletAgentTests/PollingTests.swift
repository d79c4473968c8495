import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

@Suite struct PollingTests {
    private static func polled() throws -> Scene {
        var scene = try Scene()
        scene.watch[0].mode = .poll
        scene.watch[0].poll = .milliseconds(20)
        return scene
    }

    @Test func `what is polled is found at the start and later, in old folders and new ones`() async throws {
        let scene = try Self.polled()
        try scene.drop("early/a")
        try await scene.run { stage in
            try await stage.finished("early/a")
            try scene.drop("b")
            try scene.drop("early/c")
            try scene.drop("new/deep/d")
            for name in ["b", "early/c", "new/deep/d"] as [FilePath] { try await stage.finished(name) }
            try await eventually("four folders are polled") {
                stage.agent.view.live?.roots().first?.polled == 4
            }
            try remove(stage.root.appending("new"))
            try await eventually("two are left") { stage.agent.view.live?.roots().first?.polled == 2 }
            try scene.drop("new/deep/e")
            try await stage.finished("new/deep/e")
            #expect(scene.here.record.orders.count == 5)
            #expect(stage.modes == ["poll"])
        }
    }

    @Test func `a file that goes on growing after it was sent is sent again, though its folder is unchanged`()
        async throws
    {
        let scene = try Self.polled()
        try await scene.run { stage in
            let file = try scene.drop("a", "half")
            try await stage.finished("a")
            let descriptor = try FileDescriptor.open(file, .writeOnly, options: .append)
            try descriptor.writeAll(Array(" and half".utf8))
            try descriptor.close()
            try await stage.job("a", "whole") { $0.file.identity.size == 13 && $0.file.state == .delivered }
        }
    }

    @Test func `a polled folder that is lost is waited for`() async throws {
        let scene = try Self.polled()
        try await scene.run { stage in
            try scene.drop("a")
            try await stage.finished("a")
            try remove(stage.root)
            try await eventually("its loss is said") { stage.events.count("watch.lost") >= 1 }
            try scene.drop("b")
            try await stage.finished("b")
        }
    }

    @Test func `a unit in a polled folder is closed with all of its files, after a pass that found no more`()
        async throws
    {
        var scene = try Self.polled()
        scene.route.unit = .folder
        for name in ["card/a", "card/x/b", "card/y/c"] as [FilePath] { try scene.drop(name) }
        try await scene.run { stage in
            for name in ["card/a", "card/x/b", "card/y/c"] as [FilePath] { try await stage.finished(name) }
            let closed = stage.events.all.compactMap { event -> Int? in
                if case .batchClosed(_, _, _, let files) = event { files } else { nil }
            }
            #expect(closed == [3])
        }
    }

    @Test func `a unit in a polled folder stays open until a pass has followed, however quiet it is`() async throws {
        var scene = try Self.polled()
        scene.route.unit = .folder
        scene.watch[0].poll = .seconds(3600)
        try scene.drop("card/a")
        try scene.drop("loose")
        try await scene.run { stage in
            try await stage.job("card/a")
            try await stage.finished("loose")
            try await eventually("the status shows it") {
                stage.agent.view.live?.roots().first?.unsettled.first?.path.lastComponent == "card"
            }
            #expect(stage.events.count("batch.closed") == 0)
        }
    }

    @Test(.enabled(if: ReadOnlyOverlay.isAvailable, "needs the right to mount an overlay"))
    func `files behind a mount that hides them are found, beside a local folder's events`() async throws {
        var scene = try Scene()
        scene.watch[0].poll = .milliseconds(20)
        try scene.directory.makeDirectory("drop/share")
        let overlay = try ReadOnlyOverlay(at: scene.root.appending("share"), layers: scene.directory)
        defer { overlay.unmount() }
        try await scene.run { stage in
            try await eventually("the root is watched") { stage.events.names.contains("watch.added") }
            try scene.directory.write([1], to: "lower/a")
            try scene.directory.write([1], to: "lower/sub/b")
            try scene.drop("local/c")
            for name in ["share/a", "share/sub/b", "local/c"] as [FilePath] { try await stage.finished(name) }
            #expect(stage.modes == ["inotify", "poll"])
            try await eventually("the mount's two folders are polled") {
                stage.agent.view.live?.roots().first.map { $0.polled == 2 && $0.directories == 4 } ?? false
            }
            overlay.unmount()
            try await eventually("it is said that the mount has gone") {
                stage.agent.view.live?.roots().first?.polled == 0
            }
            try scene.drop("share/d")
            try await stage.finished("share/d")
        }
    }
}

/// A mount whose changes are all made behind it: an overlay of two folders, `lower` and `upper`, without a layer to write to.
private final class ReadOnlyOverlay: Sendable {
    private let point: FilePath

    static let isAvailable: Bool = {
        guard getuid() == 0, let folder = try? TemporaryDirectory(),
            let point = try? folder.makeDirectory("point"),
            let overlay = try? ReadOnlyOverlay(at: point, layers: folder)
        else { return false }
        overlay.unmount()
        return true
    }()

    init(at point: FilePath, layers: TemporaryDirectory) throws {
        self.point = point
        let (upper, lower) = (try layers.makeDirectory("upper"), try layers.makeDirectory("lower"))
        try Self.run("/bin/mount", ["-t", "overlay", "overlay", "-o", "lowerdir=\(upper):\(lower)", point.string])
    }

    /// Doing it again does no harm.
    func unmount() { try? Self.run("/bin/umount", ["-l", point.string]) }

    private static func run(_ program: String, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw CocoaError(.executableLoad) }
    }
}

extension Stage {
    /// What `watch.mode` said, in its order.
    fileprivate var modes: [String] {
        events.all.compactMap { event in if case .watchMode(_, _, let mode, _) = event { mode.rawValue } else { nil } }
    }
}
