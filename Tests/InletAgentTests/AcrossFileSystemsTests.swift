import Foundation
import Glibc
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

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
        let listings = try Listings(of: shelf)
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
            listings.count()
        }
        #expect(listings.seen == 0)
        // It would have been seen.
        #expect(try names(in: shelf).count == files)
        listings.count()
        #expect(listings.seen > 0)
    }
}

/// How often the names of a folder are read, by inotify(7).
private final class Listings {
    private let news: CInt
    private(set) var seen = 0

    init(of folder: FilePath) throws {
        news = inotify_init1(CInt(IN_NONBLOCK | IN_CLOEXEC))
        try #require(inotify_add_watch(news, folder.string, UInt32(IN_ACCESS)) >= 0)
    }

    deinit { close(news) }

    func count() {
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let length = read(news, &bytes, bytes.count)
            if length <= 0 { return }
            bytes.withUnsafeBytes { all in
                var place = 0
                while place < length {
                    let mask = all.loadUnaligned(fromByteOffset: place + 4, as: UInt32.self)
                    let name = all.loadUnaligned(fromByteOffset: place + 12, as: UInt32.self)
                    if mask & UInt32(IN_ISDIR) != 0, name == 0 { seen += 1 }
                    place += 16 + Int(name)
                }
            }
        }
    }
}
