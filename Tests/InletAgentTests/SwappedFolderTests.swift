import Foundation
import Glibc
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
        try makeSymlink(path, to: scene.directory.path.pushing(target))
    }

    /// What was put in after the swap has gone through everything, and nothing of the victim has.
    private static func expectUntouched(_ victim: FilePath, _ stage: Stage, _ scene: Scene, jobs: Int) async throws {
        try await stage.process("later")
        #expect(try await stage.jobs().count == jobs + 1)
        #expect(!scene.here.record.stored.values.contains(Array(secret.utf8)))
        #expect(try text(victim) == secret)
    }

    @Test(
        arguments: [("shadow", .changed, .superseded), ("deep/shadow", .passing, .gone)]
            as [(FilePath, DeliveryError, FileState)])
    func `a file that changed, or waits for its next attempt, is not looked at behind a symlink`(
        _ path: FilePath, _ error: DeliveryError, _ end: FileState
    ) async throws {
        let scene = try Scene()
        let victim = try Self.victim(scene, path)
        let gate = Gate()
        scene.here.script("shadow", .hold(gate, .fail(error)))
        let bait = FilePath("sub").pushing(path)
        try await scene.run { stage in
            try await stage.start(bait, "bait")
            try Self.swap("sub", scene)
            gate.open()
            try await stage.finished(bait, end)
            try await Self.expectUntouched(victim, stage, scene, jobs: 1)
        }
    }

    @Test func `a polled folder is not looked into behind a symlink`() async throws {
        let scene = try Scene.polled()
        let victim = try Self.victim(scene, "deep/shadow")
        try await scene.run { stage in
            try await stage.process("sub/deep/a")
            try await eventually("three folders are polled") { stage.rootStatus?.polled == 3 }
            try Self.swap("sub", scene)
            try await eventually("one is left") { stage.rootStatus?.polled == 1 }
            try await Self.expectUntouched(victim, stage, scene, jobs: 1)
        }
    }

    @Test func `a folder that is about to be listed is not listed behind a symlink`() throws {
        let scene = try Scene()
        _ = try Self.victim(scene, "deep/shadow")
        try scene.drop("sub/deep/a")
        var listing = Listing(root: scene.root, isRecursive: true)
        listing.add("")
        var followed: [FilePath] = []
        while !listing.isIdle {
            let step = listing.next(IgnoreList(), &followed) { (followed, directory, _) throws(SystemError) in
                followed.append(directory)
                if directory == "sub/deep" { try? Self.swap("sub", scene) }
            }
            if case .file(let path) = step { Issue.record("\(path)") }
        }
        #expect(followed == ["", "sub", "sub/deep"])
        #expect(try FileLook.look(at: scene.root.appending("sub")) == .symlink)
        // One that was asked for before.
        listing.add("sub/deep")
        guard case .gone("sub/deep") = listing.next(IgnoreList()), case .finished = listing.next(IgnoreList()) else {
            throw Unexpected()
        }
    }

    @Test func `what is outside is not deleted behind a symlink, though it is the very file that was delivered`()
        async throws
    {
        let bench = try await DisposalBench(.delete)
        let outside = try bench.directory.makeDirectory("outside")
        try makeLink(outside.appending("a.txt"), to: bench.file)
        for isBegun in [false, true] {
            if isBegun { try await bench.intend(.delete, at: bench.root.pushing("sub/a.txt")) }
            try FileManager.default.removeItem(atPath: bench.root.appending("sub").string)
            try makeSymlink(bench.root.appending("sub"), to: outside)
            _ = try await bench.dispose()
            #expect(try text(outside.appending("a.txt")) == "content")
            #expect(try names(in: outside) == ["a.txt"])
        }
    }

    @Test(arguments: [".inlet", ".inlet/done", ".inlet/done/sub"])
    func `nothing is archived through a symlink: the file waits, and goes on without it`(_ level: String) async throws {
        let bench = try await DisposalBench(.archive)
        let outside = try bench.directory.makeDirectory("outside")
        let link = bench.root.pushing(FilePath(level))
        try FileManager.default.createDirectory(
            atPath: link.removingLastComponent().string, withIntermediateDirectories: true)
        try makeSymlink(link, to: outside)
        let error = try await #require(throws: SystemError.self) { try await bench.dispose() }
        #expect(error.isLinked)
        // Also when that was found too late.
        try await bench.intend(.archive)
        try move(bench.file, to: bench.privateFile)
        await #expect(throws: SystemError.self) { try await bench.dispose() }
        #expect(try text(bench.file) == "content")
        #expect(try names(in: outside) == [])
        try remove(link)
        #expect(try await bench.dispose().disposition == "archived: \(bench.archived.display)")
    }

    @Test(arguments: [".inlet", ".inlet/failed", ".inlet/failed/sub"])
    func `neither quarantine nor its reason goes through a symlink, and that is said`(_ level: String) async throws {
        var scene = try Scene()
        scene.route.onFailure = .quarantine
        scene.here.script("a", .fail(.hopeless))
        let outside = try scene.directory.makeDirectory("outside")
        let link = scene.root.pushing(FilePath(level))
        try FileManager.default.createDirectory(
            atPath: link.removingLastComponent().string, withIntermediateDirectories: true)
        try makeSymlink(link, to: outside)
        try await scene.run { stage in
            try scene.drop("sub/a")
            try await eventually("it is said") { stage.events.count("job.disposition_failed") == 1 }
            #expect(try names(in: outside) == [])
            #expect(try names(in: stage.root.appending("sub")) == ["a"])
        }
    }

    @Test func `what has the private name by the time of the move is put back, not archived`() async throws {
        let bench = try await DisposalBench(.archive)
        try move(bench.file, to: bench.privateFile)
        var runner = try await bench.runner()
        guard case .found(let identity) = await runner.take(.look(.hidden, bench.privateFile)) else {
            throw Unexpected()
        }
        // After it was looked at.
        try move(bench.privateFile, to: bench.directory.path.appending("kept"))
        try bench.directory.write(
            Array("another".utf8), to: FilePath("drop/sub").appending(try #require(bench.privateFile.lastComponent)))
        guard case .free = await runner.take(.chooseTarget(bench.archived, number: 1)),
            case .failed(let error as SystemError) = await runner.take(.move(identity))
        else { throw Unexpected() }
        #expect(error.code == .staleNFSFileHandle)
        #expect(try text(bench.privateFile) == "another")
        #expect(try names(in: bench.archived.removingLastComponent()) == [])
    }

    @Test func `a held file is taken back from where it is, not from where a symlink leads`() async throws {
        let bench = try await DisposalBench(.delete)
        let outside = try bench.directory.makeDirectory(FilePath("outside/\(bench.id)"))
        try bench.directory.makeDirectory(FilePath("drop/.inlet/held/\(bench.id)"))
        try move(bench.file, to: bench.held)
        try FileManager.default.copyItem(atPath: bench.held.string, toPath: outside.appending("a.txt").string)
        try await bench.intend(.delete, at: bench.held, heldUntil: .now)
        let held = bench.root.pushing(".inlet/held")
        try move(held, to: bench.directory.path.appending("moved"))
        try makeSymlink(held, to: outside.removingLastComponent())
        _ = try await bench.dispose()
        #expect(try names(in: outside) == ["a.txt"])
    }
}

/// An archive on another file system than the watched folder.
@Suite(.enabled(if: isOtherFileSystem("/dev/shm"))) struct AcrossFileSystemsTests {
    private let memory: TemporaryDirectory
    private var shelf: FilePath { memory.path }
    private var draft: FilePath { shelf.appending(".a.txt.inlet-0a1b2c3d.tmp") }

    init() throws { memory = try TemporaryDirectory.inMemory() }

    /// What a process leaves that is killed while it copies.
    private func killedInCopy(_ bench: DisposalBench) async throws {
        try move(bench.file, to: bench.privateFile)
        try memory.write(Array("con".utf8), to: ".a.txt.inlet-0a1b2c3d.tmp")
        // Of another agent that uses the same archive.
        try memory.write(Array("theirs".utf8), to: ".a.txt.inlet-11111111.tmp")
        try await bench.intend(.archive, target: shelf.appending("a.txt"), copy: draft)
    }

    @Test func `died in the middle of the copy: there is one copy, and nothing of the first try`() async throws {
        let bench = try await DisposalBench(.archive)
        try await killedInCopy(bench)
        #expect(try await bench.dispose().disposition == Disposition.archived("\(shelf.display)/a.txt"))
        #expect(try names(in: shelf) == [".a.txt.inlet-11111111.tmp", "a.txt"])
        #expect(try text(shelf.appending("a.txt")) == "content")
        #expect(try names(in: bench.root.appending("sub")) == [])
    }

    @Test func `died in the middle of the copy of a file that changed then: nothing of the copy is left`() async throws
    {
        let bench = try await DisposalBench(.archive)
        try await killedInCopy(bench)
        try Data("changed!".utf8).write(to: URL(fileURLWithPath: bench.privateFile.string))
        #expect(try await bench.dispose().state == .superseded)
        #expect(try names(in: shelf) == [".a.txt.inlet-11111111.tmp"])
        #expect(try text(bench.file) == "changed!")
    }

    @Test func `what was edited after it was judged is not copied, though its time was put back`() async throws {
        let bench = try await DisposalBench(.archive)
        try move(bench.file, to: bench.privateFile)
        var runner = try await bench.runner()
        guard case .found(let identity) = await runner.take(.look(.hidden, bench.privateFile)),
            case .free = await runner.take(.chooseTarget(shelf.appending("a.txt"), number: 1))
        else { throw Unexpected() }
        // Until its ctime tells: two changes within one tick of the kernel's clock are one.
        while try FileLook.look(at: bench.privateFile).identity == identity { try edit(bench.privateFile, "CONTENT") }
        guard case .failed = await runner.take(.copy(identity)) else { throw Unexpected() }
        #expect(try names(in: shelf) == [])
        #expect(try text(bench.privateFile) == "CONTENT")
    }

    @Test func `a name that another file took after the crash is left to it`() async throws {
        let bench = try await DisposalBench(.archive)
        try await killedInCopy(bench)
        try memory.write(Array("another".utf8), to: "a.txt")
        #expect(try await bench.dispose().disposition == Disposition.archived("\(shelf.display)/a_2.txt"))
        #expect(try names(in: shelf) == [".a.txt.inlet-11111111.tmp", "a.txt", "a_2.txt"])
        #expect(try text(shelf.appending("a.txt")) == "another")
    }

    @Test func `hundreds of files are archived without the archive being listed once`() async throws {
        let bench = try await DisposalBench(.archive)
        let news = try KernelNews(of: shelf, Int(IN_ACCESS))
        /// How often its names were read.
        func listings() -> Int { news.take().count { $0.isFolder && $0.name.isEmpty } }
        let files = Load.of(2000)
        for number in 0..<files {
            let hidden = try OpenName(
                bench.root.pushing("sub").appending(".inlet-finishing-\(number).tmp"), below: bench.root)
            try hidden.folder.create([1], as: hidden.name, mode: 0o600)
            let identity = try #require(try hidden.look().identity)
            let place = shelf.appending("\(number).txt")
            var runner = try await bench.runner()
            for step in [.look(.hidden, hidden.path), .chooseTarget(place, number: 1), .move(identity)]
                as [DisposalStep]
            {
                _ = await runner.take(step)
            }
            for step in [.copy(identity), .remove(identity), .synchronize] as [DisposalStep] {
                guard case .done = await runner.take(step) else { throw Unexpected() }
            }
            #expect(isThere(place) && !isThere(hidden.path))
            #expect(listings() == 0)
        }
        // It would have been seen.
        #expect(try names(in: shelf).count == files)
        #expect(listings() > 0)
    }
}
