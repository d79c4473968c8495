import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

/// What is told of a watched folder to those who wonder why a file is not there.
@Suite struct RootStatusTests {
    @Test func `a watched folder says how it is watched, with how many watches, and when it heard last`() async throws {
        let scene = try Scene()
        try scene.drop("early/a")
        try await scene.run { stage in
            func root() -> RootStatus? { stage.agent.control.live?.roots.first }
            try await stage.finished("early/a")
            try await eventually("it is watched") { root()?.state == .watching }
            #expect(root()?.mode == .inotify && root()?.watches == 2 && root()?.polled == 0)
            let before = WallTime.now
            try scene.drop("b")
            try await eventually("it has heard of it") { root()?.lastEvent.map { $0 >= before } ?? false }
        }
    }

    @Test
    func `a watched folder that is a symlink says where that leads, and is watched once a folder is there`()
        async throws
    {
        var scene = try Scene()
        let link = scene.directory.path.appending("link")
        try FileManager.default.createSymbolicLink(atPath: link.string, withDestinationPath: scene.root.string)
        let target = scene.root
        scene.watch[0].path = link
        try await scene.run { stage in
            func state() -> RootStatus.State? { stage.agent.control.live?.roots.first?.state }
            let reason =
                "a symlink to \(target.display), which is not followed; name the folder that it leads to in 'path'"
            try await eventually("it is said") { state() == .failing(reason) }
            try remove(link)
            try await eventually("nothing is there") { state() == .missing }
            try scene.directory.makeDirectory("link")
            try await eventually("it is watched") { state() == .watching }
            #expect(stage.events.count("watch.lost") == 2)
        }
    }

    @Test func `a polled folder has no watches, and hears of what its passes find`() async throws {
        var scene = try Scene()
        scene.watch[0].mode = .poll
        scene.watch[0].poll = .milliseconds(20)
        try await scene.run { stage in
            func root() -> RootStatus? { stage.agent.control.live?.roots.first }
            try await eventually("it is polled") { root()?.mode == .poll }
            #expect(root()?.watches == 0 && root()?.lastEvent == nil)
            try scene.drop("a")
            try await stage.finished("a")
            try await eventually("it has heard of it") { root()?.lastEvent != nil }
            let heard = root()?.lastEvent
            try await eventually("another pass has ended") { root()?.settling == 0 }
            #expect(root()?.lastEvent == heard)
        }
    }

    /// More than are listed between two looks at the events, so that the status is shown in the middle of the listing.
    @Test func `a folder is starting until its first listing has ended`() async throws {
        var scene = try Scene()
        for number in 0..<4500 { try scene.drop(FilePath("\(number)"), "") }
        scene.watch[0].existing = .skip
        let view = Mutex<AgentControl?>(nil)
        let states = Mutex<[RootStatus.State]>([])
        scene.onEvent = { event in
            guard case .watchAdded = event, let root = view.withLock({ $0?.live?.roots.first }) else { return }
            states.withLock { $0.append(root.state) }
        }
        let stage = try await Stage(scene)
        defer { stage.journal.close() }
        view.withLock { $0 = stage.agent.control }
        try await whileRunning(stage.agent.services) {
            try await eventually("it is watched") { stage.agent.control.live?.roots.first?.state == .watching }
            #expect(states.withLock { $0 } == [.starting])
        }
    }
}
