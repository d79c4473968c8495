import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// Agents with state directories of their own that watch one folder.
@Suite struct StandbyTests {
    @Test func `of two agents one takes the files, and the other one says that it waits`() async throws {
        let first = try Scene()
        var second = try Scene()
        second.watch[0].path = first.root
        try await first.run { a in
            try await second.run { b in
                try await eventually("it stands by") { b.events.count("watch.standby") == 1 }
                for name in ["x", "y", "z"] as [FilePath] {
                    try first.drop(name)
                    try await a.finished(name)
                }
                #expect(try await b.jobs().isEmpty)
                let said = try #require(b.agent.control.live?.roots.first?.state)
                guard case .standby(let holder) = said else {
                    Issue.record("\(said)")
                    return
                }
                #expect(holder.contains("state_dir \(first.directory.path.appending("state").display)"))
                #expect(try RootHold(first.watch[0], stateDirectory: "/elsewhere").stranger() == holder)
                let own = RootHold(first.watch[0], stateDirectory: first.directory.path.appending("state"))
                #expect(try own.stranger() == nil)
            }
        }
    }

    @Test func `one that stands by takes over once the other one has ended and does not come back`() async throws {
        let scene = try Scene()
        var lock = try ours(scene.root)
        #expect(lock != nil)
        try scene.drop("a")
        try await scene.run { stage in
            try await eventually("it stands by") { stage.events.count("watch.standby") == 1 }
            lock = nil
            try await stage.finished("a")
            #expect(stage.events.count("watch.standby") == 1)
        }
        // It was let go of at the end.
        #expect(try WatchLock.holder(in: scene.root) == nil)
    }

    private func ours(_ root: FilePath) throws -> WatchLock? {
        if case .ours(let lock) = try WatchLock.take(in: root, as: "the other") { lock } else { nil }
    }

    @Test func `where several are meant to watch a folder, nobody waits and nothing is locked`() async throws {
        var scene = try Scene()
        scene.watch[0].isShared = true
        let taken = try WatchLock.take(in: scene.root, as: "the other")
        try await scene.run { stage in
            try scene.drop("a")
            try await stage.finished("a")
            #expect(stage.events.count("watch.standby") == 0)
        }
        withExtendedLifetime(taken) {}
    }

    @Test func `a folder whose lock cannot be had is watched without, and that is said`() async throws {
        let scene = try Scene()
        try scene.directory.makeDirectory("drop/.inlet/lock")
        try await scene.run { stage in
            try scene.drop("a")
            try await stage.finished("a")
            let said = stage.events.all.compactMap {
                if case .fileError(scene.root, let why) = $0 { why } else { nil }
            }
            #expect(said.count == 1 && said[0].contains(".inlet/lock"), "\(said)")
        }
    }

    @Test func `where somebody removed only its lock, a folder is locked anew and goes on`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            try scene.drop("a")
            try await stage.finished("a")
            try FileManager.default.removeItem(atPath: scene.root.appending(".inlet").string)
            try await eventually("it has a lock again") {
                try stage.events.count("watch.added") == 2 && WatchLock.holder(in: scene.root) != nil
            }
            try scene.drop("b")
            try await stage.finished("b")
        }
    }

    @Test func `an answer that does not come in time is done without, and what comes of it later is let go`()
        async throws
    {
        let root = try TemporaryDirectory()
        let (begins, ends) = (try Waker(), try Waker())
        let late = try LoopThread.result(name: "lock", within: .milliseconds(1)) { () throws(SystemError) in
            _ = try begins.wait(until: nil)
            defer { ends.wake() }
            return try WatchLock.take(in: root.path, as: "late")
        }
        #expect(late == nil)
        begins.wake()
        #expect(try ends.wait(until: .now.advanced(by: .seconds(30))))
        try await eventually("it is let go") { try WatchLock.holder(in: root.path) == nil }
    }
}
