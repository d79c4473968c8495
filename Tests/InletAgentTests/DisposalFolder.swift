import Foundation
import Glibc
import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletAgent

/// A history on a real folder, with a real journal: what people do to a file on its way out, when its disk goes and comes back,
/// and after which steps the process dies.
struct DisposalFolder {
    enum Act: Sendable {
        case edit(restoringTimes: Bool)
        case replace(restoringTimes: Bool)
        case remove, rename, link
        case open
        case write(restoringTimes: Bool)
        case close
        /// A file is where the archive's folder should be.
        case block, unblock
        case diskGoes, diskComes
        case damageIntent
        case die(after: Int)
        case dispose
    }

    let bench: DisposalBench
    private let setting: DisposalModel.Setting
    /// Has the archive; on another disk, or below the watched folder.
    private let shelf: TemporaryDirectory?
    private var owed: Set<String> = ["content"]
    private var isTwice = false
    private var writer: FileDescriptor?
    private var isAway = false
    private var lastContent = 0

    static func acts(_ random: inout SeededGenerator) -> [Act] {
        (0..<Int.random(in: 1...7, using: &random)).map { _ in
            let (isRestored, steps) = (random.fraction() < 0.5, Int.random(in: 1...14, using: &random))
            return switch Int.random(in: 0..<17, using: &random) {
            case 0: .edit(restoringTimes: isRestored)
            case 1: .replace(restoringTimes: isRestored)
            case 2: .remove
            case 3: .rename
            case 4: .link
            case 5: .open
            case 6: .write(restoringTimes: isRestored)
            case 7: .close
            case 8: .block
            case 9: .unblock
            case 10: .diskGoes
            case 11: .diskComes
            case 12: steps == 1 ? .damageIntent : .dispose
            case 13: .dispose
            default: .die(after: steps)
            }
        }
    }

    init(_ setting: DisposalModel.Setting) async throws {
        self.setting = setting
        shelf = setting.isOtherDisk ? try TemporaryDirectory() : nil
        var bench = try await DisposalBench(
            setting.action == .delete ? .delete : .archive, hasChecksum: setting.hasChecksum,
            in: try TemporaryDirectory.inMemory())
        bench.places.hold = .zero
        if let shelf {
            bench.places.archive = shelf.path.appending("done")
            bench.places.quarantine = shelf.path.appending("failed")
        }
        self.bench = bench
    }

    // MARK: - What people do

    mutating func act(_ act: Act, _ dispose: () async throws -> Void) async throws {
        switch act {
        case .diskGoes where !isAway: try turn(away: true)
        case .diskComes where isAway: try turn(away: false)
        case .damageIntent:
            try await bench.journal.intend(bench.id, Array("{".utf8))
            // Nothing tells of a copy that was made by then.
            isTwice = true
        case .die(let steps): try await begin(steps)
        // What went wrong is tried again.
        case .dispose: try? await dispose()
        case .diskGoes, .diskComes: break
        case _ where isAway: break
        case .edit(let isRestored): try edit(bench.file, isRestored)
        case .replace(let isRestored): try replace(isRestored)
        case .remove: if let text = take(bench.file) { owed.remove(text) }
        case .rename: try again(bench.root.pushing("sub/b"), keepsName: false)
        case .link: try again(bench.root.pushing("sub/link"), keepsName: true)
        case .open:
            if writer == nil { writer = try? FileDescriptor.open(bench.file, .writeOnly, options: .closeOnExec) }
        case .write(let isRestored): try write(isRestored)
        case .close: try close()
        case .block, .unblock: try block(isBlocked(act))
        }
    }

    private func isBlocked(_ act: Act) -> Bool { if case .block = act { true } else { false } }

    /// Everything is as it should be from now on.
    mutating func calm() throws {
        if isAway { try turn(away: false) }
        try close()
        try block(false)
    }

    /// Some of the calls on its files fail meanwhile.
    func whileFailing<Value>(_ seed: UInt64, _ body: () async throws -> Value) async throws -> Value {
        let folders = [bench.root] + (shelf.map { [$0.path] } ?? [])
        let faults = KernelFaults.begin(KernelFaultPlan(below: folders, seed: seed, count: 8, every: 12))
        defer { KernelFaults.end(faults) }
        return try await body()
    }

    /// The first steps, and then the process dies.
    private func begin(_ steps: Int) async throws {
        let job = try await job()
        var disposal = Disposal(job, bench.places)
        var runner = bench.runner(job)
        var seen = DisposalStepResult.begun
        for _ in 0..<steps {
            let step = disposal.next(seen, at: .now)
            switch step {
            case .wait, .end, .fail: return
            default: seen = await runner.take(step)
            }
        }
    }

    func job() async throws -> Job {
        guard var job = try await bench.journal.job(bench.id) else { throw Unexpected() }
        if setting.action == .quarantine { (job.file.state, job.file.policy.onFailure) = (.failed, .quarantine) }
        return job
    }

    private mutating func turn(away: Bool) throws {
        let other = bench.directory.path.appending("away")
        try move(away ? bench.root : other, to: away ? other : bench.root)
        isAway = away
    }

    /// A text that nobody else writes, of the same length.
    private mutating func content() -> String {
        lastContent += 1
        return lastContent < 10 ? "edit 0\(lastContent)" : "edit \(lastContent)"
    }

    /// File times have the grain of the kernel's clock: two changes within one tick are one.
    private func awaitTick() throws {
        let path = bench.directory.path.appending("tick")
        func time() throws -> Int64? {
            try Data().write(to: URL(fileURLWithPath: path.string))
            return try FileLook.look(at: path).identity?.changed
        }
        let before = try time()
        while try time() == before {}
    }

    private mutating func edit(_ path: FilePath, _ isRestored: Bool) throws {
        guard isThere(path) else { return }
        let text = content()
        try awaitTick()
        owed.remove(try InletAgentTests.text(path))
        try InletAgentTests.edit(path, text)
        if !isRestored { try FileManager.default.setAttributes([.modificationDate: Date()], ofItemAtPath: path.string) }
        owed.insert(text)
        try awaitTick()
    }

    private mutating func write(_ isRestored: Bool) throws {
        guard let writer else { return }
        // Without a checksum nothing tells of such an edit after a crash: a limit that is known.
        let isRestored = isRestored && setting.hasChecksum
        try awaitTick()
        let text = content()
        var status = stat()
        fstat(writer.rawValue, &status)
        if let old = try? InletAgentTests.text(FilePath("/proc/self/fd/\(writer.rawValue)")) { owed.remove(old) }
        _ = try writer.writeAll(toAbsoluteOffset: 0, Array(text.utf8))
        if isRestored {
            futimens(writer.rawValue, [timespec](repeating: timespec(tv_sec: 1_700_000_000, tv_nsec: 0), count: 2))
        }
        // What has no name any more is nobody's to keep.
        if status.st_nlink > 0 { owed.insert(text) }
        try awaitTick()
    }

    private mutating func close() throws {
        try writer?.close()
        writer = nil
    }

    private mutating func replace(_ isRestored: Bool) throws {
        guard isThere(bench.file.removingLastComponent()) else { return }
        let text = content()
        let other = bench.directory.path.appending("other")
        try Data(text.utf8).write(to: URL(fileURLWithPath: other.string))
        if isRestored { try setTime(other) }
        if let old = take(bench.file) { owed.remove(old) }
        try move(other, over: bench.file)
        owed.insert(text)
        try awaitTick()
    }

    /// - Returns: what is gone with the name.
    private func take(_ path: FilePath) -> String? {
        guard case .regular(_, _, let links)? = try? FileLook.look(at: path), let text = try? InletAgentTests.text(path)
        else { return nil }
        unlink(path.string)
        return links > 1 ? nil : text
    }

    private mutating func again(_ path: FilePath, keepsName: Bool) throws {
        guard isThere(bench.file), !isThere(path) else { return }
        try awaitTick()
        if keepsName {
            try makeLink(path, to: bench.file)
        } else {
            try move(bench.file, to: path)
        }
        isTwice = true
        try awaitTick()
    }

    private func block(_ isBlocked: Bool) throws {
        guard setting.action != .delete else { return }
        let path = setting.action == .archive ? bench.places.archive : bench.places.quarantine
        if isBlocked {
            guard !isThere(path) else { return }
            try FileManager.default.createDirectory(
                atPath: path.removingLastComponent().string, withIntermediateDirectories: true)
            try Data("in the way".utf8).write(to: URL(fileURLWithPath: path.string))
        } else if (try? InletAgentTests.text(path)) == "in the way" {
            unlink(path.string)
        }
    }

    // MARK: - What is left

    /// All files, by their places below the folders of the history.
    private func files() throws -> [String: String] {
        var found: [String: String] = [:]
        for (name, folder) in [("drop", bench.root), ("shelf", shelf?.path)] {
            guard let folder, let all = FileManager.default.enumerator(atPath: folder.string) else { continue }
            for case let path as String in all {
                let place = folder.pushing(FilePath(path))
                // A reason tells what became of it, not what it is.
                guard try FileLook.look(at: place).identity != nil, !path.hasSuffix(".reason.json") else { continue }
                found["\(name)/\(path)"] = try text(place)
            }
        }
        return found
    }

    /// - Throws: what promise did not hold.
    func judge(_ end: String?) throws {
        let files = try files()
        func broken(_ text: String) -> DisposalHistory.Broken {
            DisposalHistory.Broken(description: "\(text): \(files)")
        }
        for name in files.keys where name.contains(".inlet-") || name.contains("/held/") {
            throw broken("\(name) is hidden for good")
        }
        for text in owed where !files.values.contains(text) {
            if text == "content", setting.action == .delete { continue }
            throw broken("'\(text)' is lost")
        }
        let prefix = "archived: "
        if let end, end.hasPrefix(prefix), try text(FilePath(String(end.dropFirst(prefix.count)))) != "content" {
            throw broken("what is archived was not proved")
        }
        for text in Set(files.values) where !isTwice {
            if files.values.count(where: { $0 == text }) > 1 { throw broken("'\(text)' is there twice") }
        }
    }
}

/// A delivered file whose finisher is driven step by step, as after a crash.
struct DisposalBench {
    let directory: TemporaryDirectory
    let root: FilePath
    let journal: Journal
    let id: Int64
    let pool = BlockingPool(name: "test", threads: 1)
    var places: FinishFolders
    var file: FilePath { root.pushing("sub/a.txt") }
    var privateFile: FilePath { root.pushing(FilePath("sub/.inlet-finishing-\(id).tmp")) }
    var held: FilePath { root.pushing(FilePath(".inlet/held/\(id)/a.txt")) }
    var archived: FilePath { root.pushing(".inlet/done/sub/a.txt") }

    /// - Parameter hasChecksum: whether what was delivered was proved by more than its length.
    init(
        _ onSuccess: Route.OnSuccess, hasChecksum: Bool = false, volume: Volume? = nil,
        in folder: TemporaryDirectory? = nil
    ) async throws {
        directory = try folder ?? TemporaryDirectory()
        root = directory.path.appending("drop")
        try directory.write(Array("content".utf8), to: "drop/sub/a.txt")
        try setTime(root.pushing("sub/a.txt"))
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        let identity = try #require(try FileLook.look(at: root.pushing("sub/a.txt")).identity)
        let plan = Plan(
            route: "all", category: "other", key: "a", mediaType: "text/plain", destinations: ["here"],
            onSuccess: onSuccess)
        let admission = FileAdmission(
            FoundFile(root: root, path: "sub/a.txt", identity: identity, volume: volume), plan: plan,
            lanes: ["here": .small],
            uptimes: [:])
        guard case .admitted(let id) = try await journal.admit(admission, at: .now) else { throw Unexpected() }
        self.id = id
        let rooms = [ClaimCapacity(destination: "here", limits: [.small: 1])]
        _ = try await journal.withClaim(.small, rooms: rooms, clock: { .now }) { _ in
            (.delivered(hasChecksum ? Self.proved : Proof(key: "a", size: 7, method: .size)), ())
        }
        places = FinishFolders(root: root, settings: nil)
    }

    private static let proved = Proof(
        key: "a", size: 7, method: .sha256,
        content: ContentHash(digest: Checksum.sha256(Array("content".utf8)), partSize: nil))

    func intend(
        _ action: FinishAction, at path: FilePath? = nil, heldUntil: WallTime? = nil, target: FilePath? = nil,
        copy: FilePath? = nil, changed: Int64? = nil
    ) async throws {
        var intent = FinishIntent(
            action: action, privateFile: path ?? privateFile, target: target ?? (action == .archive ? archived : nil),
            heldUntil: heldUntil)
        intent.isMoving = target == nil ? nil : true
        intent.copy = copy?.bytes
        intent.changed = changed
        try await journal.intend(id, try intent.note)
    }

    /// What the finisher makes of it now, as at the next start.
    func dispose() async throws -> DisposalStep {
        var runner = try await runner()
        return try await runner.run()
    }

    func runner() async throws -> DisposalRunner {
        runner(try #require(try await journal.job(id)))
    }

    func runner(_ job: Job) -> DisposalRunner {
        DisposalRunner(
            journal: journal, places: places, job: job, hashing: pool, roots: RootRegistry(),
            prove: { _ in .unproved("nobody is asked here") })
    }
}

extension DisposalStep {
    var disposition: String? { if case .end(let text, _, _) = self { text } else { nil } }
    var state: FileState? { if case .end(_, let state, _) = self { state } else { nil } }
    var isWait: Bool { disposition == nil }
}
