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
                stage.agent.control.live?.roots.first?.polled == 4
            }
            try remove(stage.root.appending("new"))
            try await eventually("two are left") { stage.agent.control.live?.roots.first?.polled == 2 }
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
            let descriptor = try FileDescriptor.open(file, .writeOnly, options: [.append, .closeOnExec])
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
                stage.agent.control.live?.roots.first?.unsettled.first?.path.lastComponent == "card"
            }
            #expect(stage.events.count("batch.closed") == 0)
        }
    }
}
