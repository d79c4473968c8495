import Foundation
import InletConfig
import InletCore
import InletDashboard
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
        scene.destinations = [.folder("here", library)]
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
            let job = try await stage.process("a")
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
            try await stage.process("sub/b")
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
            try await eventually("it is tried twice more") { scene.here.attempts(at: "a") >= 3 }
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
        let looked = FileChecker.Looks(arrivals: [FoundFile(root: bench.root, path: seen.path, identity: identity)])
        guard case .look(.comparedLater)? = await files.consider(looked, .success([.touched(seen)])).first?.1 else {
            throw Unexpected(description: "it is taken for known")
        }
        #expect(try await bench.journal.job(bench.id)?.file.identity == seen.identity)
    }
}

/// Calls on files fail while an agent works, by a seed; `packaging/bench/faults.sh` does it to a process, with more writers.
@Suite struct KernelFaultTests {
    /// One that is always played, and a new one each time; `INLET_FAULT_SEED` plays that again.
    private static let seeds: [UInt64] =
        ProcessInfo.processInfo.environment["INLET_FAULT_SEED"].flatMap { UInt64($0) }.map { [$0] }
        ?? [20_261_125, .random(in: 1...1_000_000_000)]
    private static let count = 50

    /// Two destinations: one reads the source as a server's does, one is a folder whose calls fail as well.
    private static func scene() throws -> Scene {
        var scene = try Scene()
        let library = try scene.directory.makeDirectory("library")
        scene.here.always(.prove)
        scene.destinations.append(.folder("library", library))
        scene.route.to = ["here", "library"]
        scene.route.key = try KeyTemplate("{dir}/{name}")
        scene.route.match.paths = [try GlobPattern("keep/**")]
        // So many that what passes ends no file.
        (scene.route.retry.attempts, scene.route.retry.maxBackoff) = (1000, .milliseconds(200))
        var delete = scene.route
        (delete.name, delete.onSuccess, delete.match.paths) = ("delete", .delete, [try GlobPattern("delete/**")])
        scene.others = [delete]
        scene.pace = ProbePace(first: .milliseconds(100), interval: .milliseconds(200))
        // A folder that cannot be listed is left alone for ever longer: the whole is listed sooner.
        (scene.watch[0].poll, scene.watch[0].rescan) = (.milliseconds(100), .milliseconds(500))
        return scene
    }

    @Test(arguments: seeds)
    func `what fails in passing ends no file, deletes none unproved and sends none twice`(_ seed: UInt64) async throws {
        print("kernel faults: INLET_FAULT_SEED=\(seed)")
        let scene = try Self.scene()
        let library = scene.directory.path.appending("library")
        let faults = KernelFaults.begin(
            KernelFaultPlan(below: [scene.root, library], seed: seed, count: Self.count, every: 12))
        defer { KernelFaults.end(faults) }
        let list = WrittenList(scene, seed: seed)
        try await scene.run { stage in
            try await list.write(while: { KernelFaults.plan(faults)?.isSpent == false }) {
                // The next file comes when one was delivered or one more call has failed.
                (KernelFaults.plan(faults)?.injected.count ?? 0) + stage.events.count("job.finished")
            }
            do {
                try await eventually("all has arrived", within: .seconds(90)) {
                    let isThere = try list.missing(library, scene.here).isEmpty
                    let balance = try await stage.agent.control.balance()
                    return isThere && balance.pending == 0
                }
            } catch {
                try await list.tell(stage, library, "\(error)")
            }
            try await list.judge(stage, library)
        }
        #expect(KernelFaults.plan(faults)?.injected.count == Self.count)
    }

    @Test func `a folder that cannot be looked at is looked at again long before one that is not what it was`()
        async throws
    {
        let directory = try TemporaryDirectory()
        let root = try directory.makeDirectory("drop")
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        let runner = try RootRunner(
            WatchSettings(path: root), .test(journal, try EventLog(nil)), Settler.Places())
        let faults = KernelFaults.begin(KernelFaultPlan(below: [root], seed: 1, count: .max, every: 1))
        defer { KernelFaults.end(faults) }
        await #expect(throws: SystemError.self) { try await runner.objection() }
        let begin = ContinuousClock.now
        await runner.wait(atMost: .seconds(3600), untold: .milliseconds(1))
        #expect(ContinuousClock.now - begin < .seconds(1800))
    }

    @Test func `while nothing of a watched folder can be read, status does not say that all is well`() async throws {
        let scene = try Self.scene()
        try await scene.run { stage in
            try await stage.process("keep/early")
            let plan = KernelFaultPlan(below: [scene.root], seed: 1, count: .max, every: 1)
            let faults = KernelFaults.begin(plan)
            try scene.drop("keep/late")
            try await eventually("it was looked at") {
                // By its name, or by the folder that it is in.
                KernelFaults.plan(faults)?.injected.isEmpty == false
            }
            try await eventually("status says so") { try await StatusReport(stage.agent.control).health?.state != .ok }
            KernelFaults.end(faults)
            try await stage.finished("keep/late")
            try await eventually("all is well again") {
                try await StatusReport(stage.agent.control).health?.state == .ok
            }
        }
    }
}

/// Files that a test drops, changes and takes away, and what must have become of them.
private final class WrittenList {
    private let scene: Scene
    private let seed: UInt64
    private var random: SeededGenerator
    private var number = 0
    /// What each file that is there, or was deleted by its route, holds.
    private var contents: [FilePath: String] = [:]
    /// How often a file was taken from its name.
    private var left: [FilePath: Int] = [:]

    init(_ scene: Scene, seed: UInt64) {
        (self.scene, self.seed) = (scene, seed)
        random = SeededGenerator(seed: seed)
    }

    /// - Parameter progress: grows; each growth lets one more file be written.
    func write(while isOpen: () -> Bool, _ progress: () -> Int) async throws {
        var seen = progress()
        while isOpen() {
            try writeOne()
            try await eventually("something happens") { !isOpen() || progress() > seen }
            seen = progress()
        }
    }

    private func writeOne() throws {
        number += 1
        let draw = random.fraction()
        let kept = contents.keys.filter { $0.starts(with: "keep") }.sorted { $0.string < $1.string }
        if draw < 0.25, let path = kept.randomElement(using: &random) {
            try replace(path)
        } else if draw < 0.35, let path = kept.randomElement(using: &random) {
            try remove(scene.root.pushing(path))
            contents[path] = nil
            left[path, default: 0] += 1
        } else {
            let folder = FilePath(draw < 0.7 ? "keep" : "delete").appending("\(number % 4)")
            try drop(folder.appending("f\(number)"))
        }
    }

    private var content: String { "\(seed) \(number)\n" }

    private func drop(_ path: FilePath) throws {
        try scene.drop(path, content)
        contents[path] = content
    }

    /// As rsync does it: by a whole file, of another inode.
    private func replace(_ path: FilePath) throws {
        let staged = try scene.directory.write(content.utf8, to: "staged")
        guard rename(staged.string, scene.root.pushing(path).string) == 0 else { throw Errno(rawValue: errno) }
        contents[path] = content
        left[path, default: 0] += 1
    }

    private func stored(_ library: FilePath) throws -> [String] {
        let all = FileManager.default.enumerator(atPath: library.string)?.compactMap { $0 as? String } ?? []
        // Not what is still being written.
        return try all.filter { !$0.contains(".inlet-") }
            .map { library.pushing(FilePath($0)) }.filter { try FileLook.look(at: $0).identity != nil }.map(text)
    }

    private func stored(_ here: ScriptedPipeline) -> [String] {
        here.record.stored.values.map { String(decoding: $0, as: UTF8.self) }
    }

    /// What is not at both destinations yet.
    func missing(_ library: FilePath, _ here: ScriptedPipeline) throws -> [FilePath] {
        let (there, here) = (Set(try stored(library)), Set(stored(here)))
        return contents.filter { !there.contains($0.value) || !here.contains($0.value) }.keys
            .sorted { $0.string < $1.string }
    }

    func tell(_ stage: Stage, _ library: FilePath, _ error: String) async throws {
        let missing = try missing(library, scene.here)
        let status = try await StatusReport(stage.agent.control)
        Issue.record("seed \(seed): \(error): \(missing); \(status.files); \(status.health?.sentence ?? "")")
        #expect(status.health?.state != .ok, "seed \(seed)")
    }

    func judge(_ stage: Stage, _ library: FilePath) async throws {
        let said: Comment = "seed \(seed)"
        let jobs = Dictionary(grouping: try await stage.jobs(), by: \.file.path)
        for (path, jobs) in jobs {
            #expect(jobs.count { $0.file.state == .gone } <= left[path, default: 0], "seed \(seed): \(path) is gone")
            #expect(jobs.allSatisfy { $0.file.state != .failed }, "seed \(seed): \(path) failed")
        }
        for (place, held) in [("library", try stored(library)), ("here", stored(scene.here))] {
            #expect(held.count == Set(held).count, "seed \(seed): \(place) has a file twice")
        }
        for (path, content) in contents where !isThere(scene.root.pushing(path)) {
            #expect(path.starts(with: "delete"), said)
            #expect(try stored(library).contains(content) && stored(scene.here).contains(content), said)
        }
        let status = try await StatusReport(stage.agent.control)
        #expect(status.seen == status.files.values.reduce(0, +) + status.ignored, said)
    }
}
