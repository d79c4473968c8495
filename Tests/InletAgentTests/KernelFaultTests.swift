import Foundation
import InletCore
import InletDashboard
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

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
        let caution = RootCaution(root: root, journal: journal, roots: RootRegistry())
        let faults = KernelFaults.begin(KernelFaultPlan(below: [root], seed: 1, count: .max, every: 1))
        defer { KernelFaults.end(faults) }
        await #expect(throws: SystemError.self) { try await caution.objection() }
        let begin = ContinuousClock.now
        await caution.wait(try Waker(), atMost: .seconds(3600), untold: .milliseconds(1))
        #expect(ContinuousClock.now - begin < .seconds(1800))
    }

    @Test func `while nothing of a watched folder can be read, status does not say that all is well`() async throws {
        let scene = try Self.scene()
        try await scene.run { stage in
            try scene.drop("keep/early")
            try await stage.finished("keep/early")
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
