import Foundation
import InletConfig
import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletLinux
@testable import InletPipelines

/// Errors that pass: nothing is called gone, or known, that is not.
@Suite struct PassingErrorTests {
    private static let gone = DeliveryError(.sourceGone, .sourceGone, "the test's pipeline does not find it")

    @Test func `calls that fail now and then make no file gone, and cost no attempt`() async throws {
        var scene = try Scene()
        let library = try scene.directory.makeDirectory("library")
        scene.destinations = [try folder(library)]
        let names = (0..<6).map { "\($0)" }
        let root = scene.root
        try await scene.run { stage in
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            for name in names { try scene.drop(FilePath(name), name) }
            try await eventually("all are admitted") { try await stage.jobs().count == names.count }
            let seed = UInt64.random(in: 0...UInt64.max)
            let faults = KernelFaults.begin(KernelFaultPlan(below: [root], seed: seed, count: 12, every: 2))
            defer { KernelFaults.end(faults) }
            _ = try await stage.agent.control.setPaused(false, "here", by: "test")
            for name in names {
                let job = try await stage.finished(FilePath(name))
                #expect(job.deliveries.map(\.attempts) == [1], "seed \(seed)")
            }
            #expect(try await stage.jobs().count == names.count, "seed \(seed)")
        }
        #expect(try InletAgentTests.names(in: library) == names)
    }

    @Test func `a folder that could not be listed is listed again, and its files are delivered`() async throws {
        let scene = try Scene()
        try scene.directory.makeDirectory("drop/sub")
        try scene.drop("sub/a")
        let sub = scene.root.appending("sub")
        // The first look at the folder fails, whatever is asked of it.
        let faults = KernelFaults.begin(KernelFaultPlan(below: [sub], seed: 1, count: 1, every: 1))
        defer { KernelFaults.end(faults) }
        try await scene.run { stage in
            try await stage.finished("sub/a")
            #expect(KernelFaults.plan(faults)?.isSpent == true && stage.events.count("file.error") == 1)
        }
    }

    @Test func `gone is not believed of a file that is there as it was`() async throws {
        let scene = try Scene()
        scene.here.script("a", .fail(Self.gone))
        try await scene.run { stage in
            try scene.drop("a")
            let job = try await stage.finished("a")
            #expect(job.deliveries.map(\.attempts) == [1] && job.deliveries.map(\.key) == ["a"])
            #expect(try await stage.jobs().count == 1 && scene.here.attempts(at: "a") == 2)
        }
    }

    @Test func `what was gone for one destination, and came back while another had it still, goes on when that ends`()
        async throws
    {
        var scene = try Scene()
        let (other, isSought, isSent) = (ScriptedPipeline(), Gate(), Gate())
        scene.destinations.append(.scripted("other", other))
        scene.route.to = ["here", "other"]
        scene.route.key = try KeyTemplate("{name}")
        scene.here.script("a", .hold(isSought, .fail(Self.gone)))
        other.script("a", .hold(isSent, .deliver))
        try await scene.run { stage in
            try scene.drop("sub/a")
            try await eventually("it is on its way to both") { scene.here.record.running + other.record.running == 2 }
            // The file itself stays as it is.
            let (folder, away) = (stage.root.appending("sub"), scene.directory.path.appending("away"))
            try move(folder, to: away)
            isSought.open()
            try await stage.job("sub/a", "gone for one") { $0.deliveries.contains { $0.state == .gone } }
            try move(away, to: folder)
            // It was looked at once what came after it has been.
            try scene.drop("sub/b")
            try await stage.finished("sub/b")
            isSent.open()
            let job = try await stage.finished("sub/a")
            #expect(try await stage.jobs().count == 2 && job.deliveries.map(\.state) == [.delivered, .delivered])
            #expect(other.attempts(at: "a") == 1 && scene.here.attempts(at: "a") == 2)
        }
    }

    @Test(arguments: [true, false])
    func `where only the numbers of a file changed its content decides`(_ isEdited: Bool) async throws {
        var scene = try Scene()
        let other = ScriptedPipeline()
        other.always(.prove)
        scene.destinations.append(.scripted("other", other))
        scene.route.to = ["here", "other"]
        let gate = Gate()
        scene.here.script("a", .hold(gate, .fail(.changed)))
        try await scene.run { stage in
            let file = scene.directory.path.appending("a")
            try Data("old".utf8).write(to: URL(filePath: file.string))
            try setTime(file)
            try move(file, to: stage.root.appending("a"))
            let first = try await stage.job("a", "proved at one") { $0.deliveries.contains { $0.state == .delivered } }
            try await eventually("it is on its way") { scene.here.record.running == 1 }
            if isEdited {
                try edit(stage.root.appending("a"), "new")
            } else {
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o600], ofItemAtPath: stage.root.appending("a").string)
            }
            gate.open()
            let last = try await stage.finished("a")
            #expect((last.file.id == first.file.id) == !isEdited)
            #expect(try await stage.jobs().count == (isEdited ? 2 : 1))
            #expect(Array(scene.here.record.stored.values) == [Array((isEdited ? "new" : "old").utf8)])
        }
    }

    @Test func `a file that may not be read waits, is counted, and goes on at once when its mode or owner changes`()
        async throws
    {
        let scene = try Scene()
        let forbidden = DeliveryError(
            reading: SystemError(call: "open", path: scene.root.appending("a"), code: .permissionDenied))
        // Waits of 1, 2, 4, 8, 16 seconds: nobody waits for the next one here.
        scene.here.script("a", .fail(forbidden), .fail(forbidden), .fail(forbidden))
        try await scene.run { stage in
            try scene.drop("a")
            try await stage.job("a", "tried") { $0.deliveries[0].code == .sourceForbidden }
            let waiting = try #require(try await stage.journal.forbidden())
            #expect(waiting.files == 1 && waiting.reason.contains("Permission denied"))
            try await eventually("it is tried twice more") { scene.here.attempts(at: "a") == 3 }
            let changed = [FileAttributeKey.posixPermissions: 0o644]
            try FileManager.default.setAttributes(changed, ofItemAtPath: stage.root.appending("a").string)
            let job = try await stage.finished("a")
            #expect(job.deliveries.map(\.attempts) == [1] && scene.here.attempts(at: "a") == 4)
            #expect(try await stage.jobs().count == 1)
            #expect(try await stage.journal.forbidden() == nil)
        }
    }

    /// Two files of one size and time.
    private func twins(_ scene: Scene) throws -> (old: FilePath, new: FilePath) {
        let twins = (scene.directory.path.appending("first"), scene.directory.path.appending("second"))
        for (path, text) in [(twins.0, "old"), (twins.1, "new")] {
            try Data(text.utf8).write(to: URL(filePath: path.string))
            try setTime(path)
        }
        return twins
    }

    @Test func `a file that is replaced while it is sent, with its size and time, is looked at again when that ends`()
        async throws
    {
        let scene = try Scene()
        let gate = Gate()
        scene.here.script("a", .after(.prove, gate))
        let (old, new) = try twins(scene)
        try await scene.run { stage in
            let file = stage.root.appending("a")
            try move(old, to: file)
            try await eventually("it is sent") { scene.here.record.stored["a"] == Array("old".utf8) }
            #expect(rename(new.string, file.string) == 0)
            try await eventually("the new one is looked at") { stage.events.count("job.unchanged") == 1 }
            gate.open()
            try await eventually("the new one is delivered") {
                scene.here.record.stored.values.contains(Array("new".utf8))
            }
            #expect(scene.here.record.stored["a"] == Array("old".utf8))
        }
    }

    @Test func `behind a part of a file that was sent, nothing of the one that replaced it is sent`() async throws {
        let scene = try Scene()
        // As a server that works on what it was sent.
        scene.here.script("a", .note(.wait(.seconds(3600))))
        let (old, new) = try twins(scene)
        try await scene.run { stage in
            let file = stage.root.appending("a")
            try move(old, to: file)
            let first = try await stage.job("a", "it waits") { $0.deliveries[0].waits == 1 }
            #expect(rename(new.string, file.string) == 0)
            try await eventually("the new one is looked at") { stage.events.count("job.unchanged") == 1 }
            #expect(try await stage.job("a").file.identity == first.file.identity)
            #expect(try await stage.agent.control.act(.cancel, on: first.file.id) == .done)
        }
    }

    @Test func `what was judged before its delivery ended is judged again, by what that has proved`() async throws {
        let bench = try await DisposalBench(.keep, hasChecksum: true)
        defer { bench.journal.close() }
        var files = try AdmissionStage.alone(in: bench.root, bench.journal)
        var seen = try #require(try await bench.journal.job(bench.id)).file
        (seen.state, seen.content) = (.pending, nil)
        try edit(bench.file, "CONTENT")
        let identity = try #require(try FileLook.look(at: bench.file).identity)
        let looked = Inspector.Looks(arrivals: [Arrival(root: bench.root, path: seen.path, identity: identity)])
        guard case .look(.comparedLater)? = await files.consider(looked, .success([.touched(seen)])).first?.1 else {
            Issue.record("it is taken for known")
            return
        }
        #expect(try await bench.journal.job(bench.id)?.file.identity == seen.identity)
    }

    private func folder(_ library: FilePath) throws -> Destination {
        let values: [String: ConfigValue] = ["path": .string(library.string)]
        let section = ConfigSection(values: values, positions: [:], position: SourcePosition(line: 1, column: 1))
        let pipeline = FolderPipeline(
            settings: FolderSettings(section), pool: BlockingPool(name: "passing", threads: 1))
        return Destination(
            name: "here", type: "folder", pipeline: pipeline, smallLimit: 1 << 20, connections: 4, maxInFlight: nil)
    }
}
