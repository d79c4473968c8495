import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// What a crash between any two steps leaves, and what the next start makes of it.
@Suite struct DisposalTests {
    /// What was done last before the process died.
    enum Step { case noted, renamed, moved, removed }

    @Test(
        arguments: [
            (.archive, .noted), (.archive, .renamed), (.archive, .moved), (.delete, .renamed), (.delete, .removed),
        ] as [(FinishAction, Step)])
    func `died after any step: the rest is done, and nothing twice`(_ action: FinishAction, _ last: Step) async throws {
        let isArchived = action == .archive
        let bench = try await DisposalBench(isArchived ? .archive : .delete)
        try await bench.intend(action)
        switch last {
        case .noted: break
        case .renamed: try move(bench.file, to: bench.privateFile)
        case .moved:
            try bench.directory.makeDirectory("drop/.inlet/done/sub")
            try move(bench.file, to: bench.archived)
        case .removed: try remove(bench.file)
        }
        let end = isArchived ? Disposition.archived(bench.archived.display) : Disposition.deleted
        #expect(try await bench.dispose().disposition == end)
        #expect(try names(in: bench.root.appending("sub")) == [])
        guard isArchived else { return }
        #expect(try names(in: bench.archived.removingLastComponent()) == ["a.txt"])
        #expect(try text(bench.archived) == "content")
    }

    @Test func `died between quarantine and its reason: the reason is written`() async throws {
        let bench = try await DisposalBench(.keep)
        let target = bench.root.pushing(".inlet/failed/sub/a.txt")
        try bench.directory.makeDirectory("drop/.inlet/failed/sub")
        try await bench.intend(.quarantine, target: target)
        try move(bench.file, to: target)
        #expect(try await bench.dispose().disposition == Disposition.quarantined(target.display))
        #expect(try names(in: target.removingLastComponent()) == ["a.txt", "a.txt.reason.json"])
    }

    @Test(.enabled(if: isOtherFileSystem("/dev/shm")), arguments: [true, false])
    func `died between the copy to another file system and the unlink: there is one copy`(_ isRenamed: Bool)
        async throws
    {
        let bench = try await DisposalBench(.archive)
        let memory = try TemporaryDirectory.inMemory()
        defer { withExtendedLifetime(memory) {} }
        let shelf = memory.path
        let copy = try FileCopy.copy(
            SourceFile(opening: bench.file), toTemporaryIn: shelf, name: "a.txt", isCancelled: { false },
            progress: { _ in })
        try move(copy, to: shelf.appending("a.txt"))
        // Otherwise it could not be removed, and has its own name again.
        if isRenamed { try move(bench.file, to: bench.privateFile) }
        try await bench.intend(.archive, target: shelf.appending("a.txt"))
        #expect(try await bench.dispose().disposition == Disposition.archived("\(shelf.display)/a.txt"))
        #expect(try names(in: shelf) == ["a.txt"])
        #expect(try names(in: bench.root.appending("sub")) == [])
    }

    @Test func `died after the unlink and another file came: that one stays`() async throws {
        let bench = try await DisposalBench(.delete)
        try await bench.intend(.delete)
        try remove(bench.file)
        try bench.directory.write(Array("another".utf8), to: "drop/sub/a.txt")
        _ = try await bench.dispose()
        #expect(try text(bench.file) == "another")
    }

    @Test func `a changed file is put back under its name`() async throws {
        let bench = try await DisposalBench(.delete)
        try await bench.intend(.delete)
        try move(bench.file, to: bench.privateFile)
        try Data("changed!".utf8).write(to: URL(fileURLWithPath: bench.privateFile.string))
        let ending = try await bench.dispose()
        #expect(ending.state == .superseded)
        #expect(try text(bench.file) == "changed!")
        #expect(try await bench.journal.job(bench.id)?.file.intent == nil)
    }

    @Test func `a file that is being written is put back under its name`() async throws {
        let bench = try await DisposalBench(.delete)
        try await bench.intend(.delete)
        try move(bench.file, to: bench.privateFile)
        try await whileWriting(bench.privateFile) {
            let ending = try await bench.dispose()
            #expect(ending.isWait)
            let job = try await bench.journal.job(bench.id)
            #expect(job?.file.intent == nil)
            #expect(try text(bench.file) == "content")
        }
    }

    @Test func `a changed file whose name is taken is kept beside it`() async throws {
        let bench = try await DisposalBench(.delete)
        try await bench.intend(.delete)
        try move(bench.file, to: bench.privateFile)
        try Data("changed!".utf8).write(to: URL(fileURLWithPath: bench.privateFile.string))
        try bench.directory.write(Array("new".utf8), to: "drop/sub/a.txt")
        let ending = try await bench.dispose()
        #expect(ending.state == .superseded)
        #expect(ending.disposition?.contains("a_2.txt") == true)
        #expect(try text(bench.file) == "new")
        #expect(try text(bench.root.pushing("sub/a_2.txt")) == "changed!")
    }

    @Test func `a held file waits for its time and then goes on`() async throws {
        let bench = try await DisposalBench(.archive)
        let held = bench.held
        try bench.directory.makeDirectory(FilePath("drop/.inlet/held/\(bench.id)"))
        try move(bench.file, to: held)
        try await bench.intend(.archive, at: held, heldUntil: .now + .seconds(3600))
        #expect(try await bench.dispose().isWait)
        #expect(isThere(held))
        try await bench.intend(.archive, at: held, heldUntil: .now)
        #expect(try await bench.dispose().disposition == "archived: \(bench.archived.display)")
        #expect(try text(bench.archived) == "content")
    }

    @Test func `a held file that changed comes back, even if its folder was cleaned away`() async throws {
        let bench = try await DisposalBench(.delete)
        let held = bench.held
        try bench.directory.makeDirectory(FilePath("drop/.inlet/held/\(bench.id)"))
        try move(bench.file, to: held)
        try remove(bench.root.appending("sub"))
        try Data("changed!".utf8).write(to: URL(fileURLWithPath: held.string))
        try await bench.intend(.delete, at: held, heldUntil: .now)
        #expect(try await bench.dispose().state == .superseded)
        #expect(try text(bench.file) == "changed!")
    }

    @Test func `nothing is concluded while the root is away`() async throws {
        for action in [FinishAction.archive, .delete] {
            let bench = try await DisposalBench(action == .archive ? .archive : .delete)
            try await bench.intend(action)
            try move(bench.file, to: bench.privateFile)
            let away = bench.directory.path.appending("away")
            try move(bench.root, to: away)
            #expect(try await bench.dispose().isWait)
            try move(away, to: bench.root)
            _ = try await bench.dispose()
            #expect(try names(in: bench.root.appending("sub")) == [])
        }
    }

    @Test func `an edited file whose size and time were put back is another one, by its checksum`() async throws {
        let bench = try await DisposalBench(.delete, hasChecksum: true)
        try edit(bench.file, "CONTENT")
        let ending = try await bench.dispose()
        #expect(ending.state == .superseded)
        #expect(try text(bench.file) == "CONTENT")
        #expect(try await bench.journal.job(bench.id)?.file.intent == nil)
    }

    @Test func `a file that was only touched goes, by its checksum, which is compared once`() async throws {
        let bench = try await DisposalBench(.delete, hasChecksum: true)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: bench.file.string)
        try await whileWriting(bench.file) {
            let ending = try await bench.dispose()
            #expect(ending.isWait)
        }
        let now = try FileLook.look(at: bench.file).identity
        #expect(try await bench.journal.job(bench.id)?.file.identity == now)
        // On some file systems a writer counts for a moment after it has closed.
        try await eventually("it is deleted") { try await bench.dispose().disposition == Disposition.deleted }
        #expect(!isThere(bench.file))
    }

    @Test func `a touched file of which no checksum is known is kept, and that is said`() async throws {
        for action in [Route.OnSuccess.delete, .archive] {
            let bench = try await DisposalBench(action)
            try edit(bench.file, "CONTENT")
            // What intake does with a known file that was touched.
            let now = try #require(try FileLook.look(at: bench.file).identity)
            let known = try #require(try await bench.journal.job(bench.id)).file
            try await bench.journal.refresh(known, identity: now, at: .now)
            let ending = try await bench.dispose()
            #expect(ending.state == nil)
            #expect(ending.disposition?.contains("no checksum shows") == true)
            #expect(try text(bench.file) == "CONTENT")
        }
    }

    @Test func `a file that another job is to send waits for that`() async throws {
        let bench = try await DisposalBench(.delete)
        let identity = try #require(try FileLook.look(at: bench.file).identity)
        let plan = Plan(route: "all", category: "other", key: "again", mediaType: "text/plain", destinations: ["here"])
        let again = FileAdmission(
            FoundFile(root: "", path: bench.file, identity: identity), plan: plan, lanes: ["here": .small],
            uptimes: [:])
        guard case .admitted(let other) = try await bench.journal.admit(again, at: .now) else { throw Unexpected() }
        guard case .wait(_, let note) = try await bench.dispose() else { throw Unexpected() }
        #expect(note == "waiting: job \(other) needs the file")
        #expect(isThere(bench.file))
        _ = try await bench.journal.act(.cancel, on: [other], at: .now)
        #expect(try await bench.dispose().disposition == Disposition.deleted)
    }

    @Test func `a newer job of the path that is not finished keeps the file`() async throws {
        let bench = try await DisposalBench(.delete, hasChecksum: true)
        var identity = try #require(try FileLook.look(at: bench.file).identity)
        identity.inode += 1
        let plan = Plan(route: "all", category: "other", key: "b", mediaType: "text/plain", destinations: ["here"])
        let newer = FileAdmission(
            FoundFile(root: bench.root, path: "sub/a.txt", identity: identity), plan: plan, lanes: ["here": .small],
            uptimes: [:])
        guard case .admitted = try await bench.journal.admit(newer, at: .now) else { throw Unexpected() }
        #expect(try await bench.dispose().isWait)
        #expect(try text(bench.file) == "content")
    }

    @Test func `what is renamed is made durable in the folder from which it came and in that to which it goes`()
        async throws
    {
        for (place, isPutBack) in [
            ("drop/sub", false), ("drop/.inlet", false), ("drop/sub", true), ("drop/.inlet", true),
        ] {
            let bench = try await DisposalBench(.delete)
            try bench.directory.makeDirectory(FilePath("drop/.inlet/held/\(bench.id)"))
            try move(bench.file, to: bench.held)
            var runner = try await bench.runner()
            guard case .found(let identity) = await runner.take(.look(.hidden, bench.held)) else { throw Unexpected() }
            if case .failed = await runner.take(isPutBack ? .putBack : .giveBack(identity)) { throw Unexpected() }
            #expect(isThere(bench.file))
            let folder = bench.directory.path.pushing(FilePath(place))
            let faults = KernelFaults.begin(KernelFaultPlan(below: [folder], seed: 1, count: 100, every: 1))
            defer { KernelFaults.end(faults) }
            guard case .failed = await runner.take(.synchronize) else { throw Unexpected() }
        }
    }

    @Test func `a file that was edited before its rename is looked at again, not called gone`() async throws {
        for action in [FinishAction.archive, .delete] {
            let bench = try await DisposalBench(action == .archive ? .archive : .delete)
            try await bench.intend(action)
            try Data("changed!".utf8).write(to: URL(fileURLWithPath: bench.file.string))
            #expect(try await bench.dispose().state == .superseded)
            #expect(try text(bench.file) == "changed!")
        }
    }

    /// Where a rename is a link and an unlink (NFS, older FUSE); the last one after a power cut that undid the one before.
    @Test(arguments: [(false, false), (true, true), (false, true)])
    func `died between link and unlink: it has one name, and that is in the archive`(
        _ isHidden: Bool, _ isMoving: Bool
    ) async throws {
        let bench = try await DisposalBench(.archive, hasChecksum: true)
        try bench.directory.makeDirectory("drop/.inlet/done/sub")
        if isHidden { try move(bench.file, to: bench.privateFile) }
        try makeLink((isMoving ? bench.archived : bench.privateFile), to: (isHidden ? bench.privateFile : bench.file))
        try await bench.intend(.archive, target: isMoving ? bench.archived : nil)
        #expect(try await bench.dispose().disposition == Disposition.archived(bench.archived.display))
        #expect(try names(in: bench.root.appending("sub")) == [])
        #expect(try names(in: bench.archived.removingLastComponent()) == ["a.txt"])
    }

    @Test func `a held file that was edited through an open descriptor comes back`() async throws {
        let bench = try await DisposalBench(.delete, hasChecksum: true)
        try bench.directory.makeDirectory(FilePath("drop/.inlet/held/\(bench.id)"))
        try move(bench.file, to: bench.held)
        let changed = try FileLook.look(at: bench.held).identity?.changed
        try await bench.intend(.delete, at: bench.held, heldUntil: .now, changed: changed)
        try edit(bench.held, "CONTENT")
        #expect(try await bench.dispose().state == .superseded)
        #expect(try text(bench.file) == "CONTENT")
    }

    @Test func `a file that gets its name back after an archive failed needs no checksum for the next try`()
        async throws
    {
        let bench = try await DisposalBench(.archive)
        try bench.directory.makeDirectory("drop/.inlet/done")
        try await bench.intend(.archive)
        try move(bench.file, to: bench.privateFile)
        try bench.directory.write(Array("in the way".utf8), to: "drop/.inlet/done/sub")
        await #expect(throws: (any Error).self) { try await bench.dispose() }
        #expect(try text(bench.file) == "content")
        try remove(bench.root.pushing(".inlet/done/sub"))
        #expect(try await bench.dispose().disposition == "archived: \(bench.archived.display)")
    }

    @Test(arguments: [
        (0, 0, 0, false, SourceStatus.same), (1, 0, 0, false, .changed), (0, 1, 0, false, .changed),
        (0, 0, 1, false, .unclear), (0, 0, 1, true, .same), (1, 0, 1, true, .changed),
    ])
    func `numbers tell a changed file, and what only a checksum tells`(
        _ size: Int64, _ modified: Int64, _ changed: Int64, _ isRenamed: Bool, _ standing: SourceStatus
    ) {
        let proved = FileIdentity(size: 7, modified: 7, changed: 7, inode: 7, device: 7)
        let now = FileIdentity(size: 7 + size, modified: 7 + modified, changed: 7 + changed, inode: 7, device: 7)
        #expect(SourceStatus(now, since: proved, ignoringChangeTime: isRenamed) == standing)
        var other = now
        other.inode += 1
        #expect(
            SourceStatus(other, since: proved, ignoringChangeTime: isRenamed)
                == (standing == .changed ? .changed : .unclear))
    }

    @Test(arguments: ["", "sub/", "held"])
    func `a damaged intent is not taken for none: the file gets its name back, and all begins anew`(
        _ place: String
    ) async throws {
        let bench = try await DisposalBench(.delete)
        try await bench.journal.intend(bench.id, Array("{".utf8))
        if place == "sub/" { try move(bench.file, to: bench.privateFile) }
        if place == "held" {
            try bench.directory.makeDirectory(FilePath("drop/.inlet/held/\(bench.id)"))
            try move(bench.file, to: bench.held)
        }
        #expect(try await bench.dispose().isWait)
        #expect(try text(bench.file) == "content")
        #expect(try await bench.journal.job(bench.id)?.file.intent == nil)
    }

    @Test func `a damaged intent of a file that is nowhere is said, and nothing is concluded from it`() async throws {
        let bench = try await DisposalBench(.archive)
        try await bench.journal.intend(bench.id, Array("{".utf8))
        try remove(bench.file)
        let error = await #expect(throws: DisposalError.self) { try await bench.dispose() }
        #expect(error.map { "\($0)" }?.contains("damaged") == true)
        #expect(try await bench.journal.job(bench.id)?.file.intent != nil)
    }

    @Test func `a file that was removed by somebody else is let go`() async throws {
        let bench = try await DisposalBench(.delete)
        try remove(bench.file)
        let ending = try await bench.dispose()
        #expect(ending.disposition == Disposition.untouched("it is no longer there"))
        #expect(ending.state == nil)
    }

    @Test func `an intent survives its own encoding, whatever bytes the name has`() throws {
        let intent = FinishIntent(
            action: .quarantine, privateFile: FilePath(bytes: [0x2F, 0xFF, 0x0A, 0x22]), target: "/x",
            heldUntil: WallTime(milliseconds: 5))
        #expect(try FinishIntent(intent.note) == intent)
        #expect(throws: (any Error).self) { try FinishIntent(Array("{".utf8)) }
    }

    @Test func `an intent of the version before is read, and written with the same members`() throws {
        let whole =
            #"{"action":"archive","changed":7,"copy":[47,97],"heldUntil":{"milliseconds":5},"isMoving":true,"#
            + #""privatePath":[47,255],"target":[47,120]}"#
        let intent = try FinishIntent(Array(whole.utf8))
        #expect(
            intent.privateFile == FilePath(bytes: [0x2F, 0xFF]) && intent.targetFile == "/x" && intent.copyFile == "/a")
        #expect(intent.isMoving == true && intent.changed == 7 && intent.heldUntil == WallTime(milliseconds: 5))
        #expect(try String(decoding: intent.note, as: UTF8.self) == whole)
        let bare = #"{"action":"delete","privatePath":[47]}"#
        #expect(try String(decoding: FinishIntent(Array(bare.utf8)).note, as: UTF8.self) == bare)
        // A later version's members are passed over.
        #expect(try FinishIntent(Array(#"{"action":"delete","later":[1],"privatePath":[47]}"#.utf8)).action == .delete)
    }

    @Test(arguments: [
        ("a.txt", "a_2.txt"), ("a", "a_2"), (".hidden", ".hidden_2"), ("a.tar.gz", "a.tar_2.gz"),
    ])
    func `a taken name gets its number before the extension`(_ name: String, _ numbered: String) throws {
        let taken = try #require(FilePath.Component(name))
        #expect(FinishFolders.numbered(taken, 1) == taken)
        #expect(FinishFolders.numbered(taken, 2) == FilePath.Component(numbered))
    }
}
