import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// Who may write in a watched folder puts a symlink in the place of a folder that was seen there. What the link leads to is
/// `outside`, which the agent may read and change and the dropper may not.
@Suite struct SwappedFolderTests {
    private static let secret = "nobody's but root's"

    /// A victim of that name outside, old and quiet.
    private static func victim(_ scene: Scene, _ name: FilePath, _ content: String = secret) throws -> FilePath {
        try scene.directory.write(Array(content.utf8), to: FilePath("outside").pushing(name))
    }

    /// Puts the symlink in the place of `folder`, which goes with all in it.
    private static func swap(_ folder: FilePath, _ scene: Scene, to target: FilePath = "outside") throws {
        let path = scene.root.pushing(folder)
        try remove(path)
        try FileManager.default.createSymbolicLink(
            atPath: path.string, withDestinationPath: scene.directory.path.pushing(target).string)
    }

    /// What was put in after the swap has gone through everything, and nothing of the victim has.
    private static func expectUntouched(_ victim: FilePath, _ stage: Stage, _ scene: Scene, jobs: Int) async throws {
        try scene.drop("later")
        try await stage.finished("later")
        #expect(try await stage.jobs().count == jobs + 1)
        #expect(!scene.here.record.stored.values.contains(Array(secret.utf8)))
        #expect(try text(victim) == secret)
    }

    @Test func `a file that changed is not looked at again behind a symlink`() async throws {
        let scene = try Scene()
        let victim = try Self.victim(scene, "shadow")
        let gate = Gate()
        scene.here.script("shadow", .hold(gate, .fail(.changed)))
        try await scene.run { stage in
            try scene.drop("sub/shadow", "bait")
            try await eventually("it is being sent") { scene.here.record.running == 1 }
            try Self.swap("sub", scene)
            gate.open()
            try await stage.finished("sub/shadow", .superseded)
            try await Self.expectUntouched(victim, stage, scene, jobs: 1)
        }
    }

    @Test func `a file that waits for its next attempt is gone when a symlink leads to another`() async throws {
        let scene = try Scene()
        let victim = try Self.victim(scene, "deep/shadow")
        let gate = Gate()
        scene.here.script("shadow", .hold(gate, .fail(.passing)))
        try await scene.run { stage in
            try scene.drop("sub/deep/shadow", "bait")
            try await eventually("it is being sent") { scene.here.record.running == 1 }
            try Self.swap("sub", scene)
            gate.open()
            try await stage.finished("sub/deep/shadow", .gone)
            try await Self.expectUntouched(victim, stage, scene, jobs: 1)
        }
    }

    @Test func `a polled folder is not looked into behind a symlink`() async throws {
        var scene = try Scene()
        scene.watch[0].mode = .poll
        scene.watch[0].poll = .milliseconds(20)
        let victim = try Self.victim(scene, "deep/shadow")
        try await scene.run { stage in
            try scene.drop("sub/deep/a")
            try await stage.finished("sub/deep/a")
            try await eventually("three folders are polled") { stage.agent.view.live?.roots().first?.polled == 3 }
            try Self.swap("sub", scene)
            try await eventually("one is left") { stage.agent.view.live?.roots().first?.polled == 1 }
            try await Self.expectUntouched(victim, stage, scene, jobs: 1)
        }
    }

    @Test func `a folder that is about to be listed is not listed behind a symlink`() throws {
        let scene = try Scene()
        _ = try Self.victim(scene, "deep/shadow")
        try scene.drop("sub/deep/a")
        var scan = TreeScan(root: scene.root, isRecursive: true)
        scan.add("")
        for directory in ["", "sub", "sub/deep"] as [FilePath] {
            guard case .enter(directory) = scan.next(IgnoreList()) else { throw Unexpected() }
            if directory == "sub/deep" { try Self.swap("sub", scene) }
            if case .trouble(let folder, let error)? = scan.open() { Issue.record("\(folder): \(error)") }
        }
        guard case .finished = scan.next(IgnoreList()) else { throw Unexpected() }
    }
}
