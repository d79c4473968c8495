import Foundation
import Glibc
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

@Suite struct ListingTests {
    private struct Found: Equatable {
        var files: Set<FilePath> = []
        var directories: Set<FilePath> = []
        var irregular: Set<FilePath> = []
        var gone: Set<FilePath> = []
        var troubles: Set<FilePath> = []
    }

    private func expect(idle: Bool, _ listing: borrowing Listing) {
        let isIdle = listing.isIdle
        #expect(isIdle == idle)
    }

    private func walk(
        _ root: FilePath, recursive: Bool = true, ignore: IgnoreList = IgnoreList(), from start: FilePath = ""
    ) -> Found {
        var listing = Listing(root: root, isRecursive: recursive)
        var found = Found()
        expect(idle: true, listing)
        listing.add(start)
        while true {
            switch listing.next(ignore) {
            case .file(let path): found.files.insert(path)
            case .entered(let path): found.directories.insert(path)
            case .gone(let path): found.gone.insert(path)
            case .irregular(let path): found.irregular.insert(path)
            case .passedOver(let path, _), .trouble(let path, _): found.troubles.insert(path)
            case .reading: continue
            case .finished:
                expect(idle: true, listing)
                return found
            }
        }
    }

    @Test func `every file of a tree is found once, links and FIFOs apart`() throws {
        let directory = try TemporaryDirectory()
        for name in ["a", "x/b", "x/y/c", "x/y/z/d"] as [FilePath] { try directory.write([1], to: name) }
        try directory.makeDirectory("empty")
        try makeSymlink(directory.path.appending("link"), to: "x")
        let found = walk(directory.path)
        #expect(found.files == ["a", "x/b", "x/y/c", "x/y/z/d"])
        #expect(found.directories == ["", "x", "x/y", "x/y/z", "empty"])
        #expect(found.irregular == ["link"])
        #expect(found.troubles.isEmpty)
    }

    @Test func `a folder is listed by name, by the bytes of it, before what is below it`() throws {
        let directory = try TemporaryDirectory()
        let names = ["Z", "a", "a b", "a-", "b", "z", "ä", "\u{7F}"] as [FilePath]
        for name in names.shuffled() { try directory.write([1], to: name) }
        try directory.write([1], to: "c/0")
        let byBytes = names.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
        #expect(Self.files(directory.path) == byBytes + ["c/0"])
    }

    @Test func `a folder with more names than are held at once comes in several runs, each by name and none twice`()
        throws
    {
        let directory = try TemporaryDirectory()
        let names = Set((0..<5000).map { FilePath("\($0)") })
        for name in names { try directory.write([], to: name) }
        let found = Self.files(directory.path, most: 2000)
        #expect(found.count == names.count && Set(found) == names)
        let descents = zip(found, found.dropFirst()).count { $0.string > $1.string }
        #expect((1...2).contains(descents))
    }

    @Test func `a scan that is stopped amid a folder forgets what it has read of it`() throws {
        let directory = try TemporaryDirectory()
        for number in 0..<3000 { try directory.write([], to: FilePath("\(number)")) }
        var listing = Listing(root: directory.path, isRecursive: true, most: 2000)
        listing.add("")
        _ = listing.next(IgnoreList())
        guard case .reading = listing.next(IgnoreList()) else { throw Errno.badMessage }
        listing.stop()
        guard case .finished = listing.next(IgnoreList()) else { throw Errno.badMessage }
        listing.add("")
        #expect(Self.files(&listing).count == 3000)
    }

    @Test func `the end is told of also where the last folder has gone before it was listed`() throws {
        let directory = try TemporaryDirectory()
        try directory.write([1], to: "a/b")
        try directory.write([1], to: "c/d")
        var listing = Listing(root: directory.path, isRecursive: true)
        listing.add("")
        guard case .entered("") = listing.next(IgnoreList()) else { throw Errno.badMessage }
        guard case .entered("a") = listing.next(IgnoreList()) else { throw Errno.badMessage }
        try FileManager.default.removeItem(atPath: directory.path.appending("c").string)
        guard case .file("a/b") = listing.next(IgnoreList()) else { throw Errno.badMessage }
        guard case .gone("c") = listing.next(IgnoreList()) else { throw Errno.badMessage }
        expect(idle: false, listing)
        guard case .finished = listing.next(IgnoreList()) else { throw Errno.badMessage }
        expect(idle: true, listing)
    }

    @Test(.enabled(if: TestMount.hasBindfs, "bindfs mounts nothing here"))
    func `a folder that fails in the midst of its listing is told of, after what was read of it`() throws {
        let directory = try TemporaryDirectory()
        let names = Set((0..<6000).map { FilePath("a name of some length \($0)") })
        for name in names { try directory.write([], to: FilePath("real").pushing(name)) }
        let mount = try TestMount(bindfs: directory.path.appending("real"), at: directory.makeDirectory("mounted"))
        var listing = Listing(root: mount.path, isRecursive: true, most: 500)
        listing.add("")
        var (found, troubles): (Set<FilePath>, [FilePath]) = ([], [])
        while true {
            switch listing.next(IgnoreList()) {
            case .file(let path): if found.insert(path).inserted, found.count == 1 { mount.end() }
            case .trouble(let path, _): troubles.append(path)
            case .gone(let path), .passedOver(let path, _): Issue.record("\(path)")
            case .entered, .reading, .irregular: continue
            case .finished:
                #expect(troubles == [""])
                #expect(found.count >= 500 && found.count < names.count && found.isSubset(of: names))
                return expect(idle: true, listing)
            }
        }
    }

    private static func files(_ root: FilePath, most: Int = NameRun.most) -> [FilePath] {
        var listing = Listing(root: root, isRecursive: true, most: most)
        listing.add("")
        return files(&listing)
    }

    private static func files(_ listing: inout Listing) -> [FilePath] {
        var found: [FilePath] = []
        while true {
            switch listing.next(IgnoreList()) {
            case .file(let path): found.append(path)
            case .entered, .reading: break
            case .finished: return found
            case .irregular, .gone, .passedOver, .trouble: Issue.record("there is none")
            }
        }
    }

    @Test func `without recursion only the first level is listed`() throws {
        let directory = try TemporaryDirectory()
        for name in ["a", "x/b"] as [FilePath] { try directory.write([1], to: name) }
        #expect(walk(directory.path, recursive: false) == Found(files: ["a"], directories: [""]))
    }

    @Test func `ignored names are neither found nor entered`() throws {
        let directory = try TemporaryDirectory()
        for name in ["a", "b.part", ".inlet/done/c", "@eaDir/d", "keep/e.bak"] as [FilePath] {
            try directory.write([1], to: name)
        }
        let ignore = IgnoreList(user: [try GlobPattern("*.bak")])
        #expect(walk(directory.path, ignore: ignore) == Found(files: ["a"], directories: ["", "keep"]))
    }

    @Test func `a folder below the root can be listed alone`() throws {
        let directory = try TemporaryDirectory()
        for name in ["a", "x/b", "x/y/c"] as [FilePath] { try directory.write([1], to: name) }
        #expect(walk(directory.path, from: "x") == Found(files: ["x/b", "x/y/c"], directories: ["x", "x/y"]))
    }

    @Test func `a folder that is gone is no trouble, one that is no folder is not followed`() throws {
        let directory = try TemporaryDirectory()
        try directory.write([1], to: "file")
        #expect(walk(directory.path, from: "gone") == Found(gone: ["gone"]))
        #expect(walk(directory.path, from: "file").files.isEmpty)
    }

    @Test func `a stopped scan is idle and can begin anew`() throws {
        let directory = try TemporaryDirectory()
        for number in 0..<10 { try directory.write([1], to: FilePath("\(number)/a")) }
        var listing = Listing(root: directory.path, isRecursive: true)
        listing.add("")
        _ = listing.next(IgnoreList())
        _ = listing.next(IgnoreList())
        expect(idle: false, listing)
        listing.stop()
        expect(idle: true, listing)
        guard case .finished = listing.next(IgnoreList()) else { throw Errno.badMessage }
    }

    @Test func `a folder is followed before it is listed: what comes in between shows up in one of the two`() throws {
        let directory = try TemporaryDirectory()
        try directory.write([1], to: "a/b")
        var listing = Listing(root: directory.path, isRecursive: true)
        listing.add("")
        var (followed, found): ([FilePath], [FilePath]) = ([], [])
        while !listing.isIdle {
            let step = listing.next(IgnoreList(), &followed) { (followed, path, _) throws(SystemError) in
                followed.append(path)
                // Nobody has told of it.
                _ = try? directory.write([1], to: path.appending("new"))
            }
            switch step {
            case .entered(let path): #expect(followed.last == path)
            case .file(let path): found.append(path)
            default: break
            }
        }
        #expect(followed == ["", "a"])
        #expect(Set(found) == ["new", "a/b", "a/new"])
    }

    @Test func `a folder that cannot be followed is told of, and not listed`() throws {
        let directory = try TemporaryDirectory()
        try directory.write([1], to: "a/b")
        var listing = Listing(root: directory.path, isRecursive: true)
        listing.add("")
        var (nobody, troubles): (Void, [FilePath]) = ((), [])
        while !listing.isIdle {
            let step = listing.next(IgnoreList(), &nobody) { (_, path, folder) throws(SystemError) in
                if path == "a" { throw SystemError(call: "inotify_add_watch", path: folder.path, code: .ioError) }
            }
            if case .trouble(let path, _) = step { troubles.append(path) }
            if case .file(let path) = step { Issue.record("\(path)") }
        }
        #expect(troubles == ["a"])
    }

    @Test func `the whole root is listed again when that is asked for, after the listing that runs`() throws {
        let directory = try TemporaryDirectory()
        try directory.write([1], to: "a")
        var listing = Listing(root: directory.path, isRecursive: true, pause: .seconds(100))
        let before = ContinuousClock.now
        listing.begin()
        let next = listing.next
        let due = try #require(next)
        #expect(before.duration(to: due) >= .seconds(75) && ContinuousClock.now.duration(to: due) <= .seconds(125))
        var isComplete = listing.isComplete
        #expect(!isComplete, "nobody knows what is there")
        listing.ask()
        var mayBegin = listing.mayBegin
        #expect(!mayBegin)
        while !listing.isIdle { _ = listing.next(IgnoreList()) }
        let isFirst = listing.ended()
        #expect(isFirst)
        listing.held = ["a"]
        mayBegin = listing.mayBegin
        #expect(!mayBegin, "a file waits for room")
        listing.held = []
        (mayBegin, isComplete) = (listing.mayBegin, listing.isComplete)
        #expect(mayBegin && !isComplete)
        listing.begin()
        while !listing.isIdle { _ = listing.next(IgnoreList()) }
        isComplete = listing.isComplete
        let isFirstAgain = listing.ended()
        #expect(isComplete && !isFirstAgain)
    }
}

/// Files that the journal knows cost a look and nothing else: no disk is woken for their bytes, and nobody's lease is broken.
@Suite struct KnownFileTests {
    @Test func `a listing of 10,000 known files opens none of them`() async throws {
        var scene = try Scene()
        scene.route.match.extensions = ["mp4"]
        scene.route.sidecars = SidecarRule(metadata: true, extensions: ["xmp"], wait: .seconds(3600))
        var known: [FileAdoption] = []
        for number in 0..<5000 {
            for ending in ["mp4", "xmp"] {
                let name = FilePath("clip\(number).\(ending)")
                let identity = try #require(try FileLook.look(at: try scene.drop(name, "")).identity)
                known.append(FileAdoption(FoundFile(root: scene.root, path: name, identity: identity), plan: nil))
            }
        }
        let journal = try Journal(path: scene.journalPath, now: .now)
        _ = try await journal.adopt(known, at: .now)
        journal.close()
        let opened = try KernelNews(of: scene.root, Int(IN_OPEN))
        try await scene.run { stage in
            try await eventually("all are listed") { stage.events.names.contains("watch.added") }
            // What comes after the listing has been looked at when it is through.
            for name in ["new.mp4.yaml", "new.xmp", "new.mp4"] as [FilePath] { try scene.drop(name, "label: x") }
            try await eventually("the new one is delivered") {
                try await stage.journal.newest(scene.root, ["new.mp4"]).first??.state == .delivered
            }
        }
        let names = Set(opened.take().filter { !$0.isFolder && !$0.name.isEmpty }.map(\.name))
        #expect(names.subtracting(["new.mp4", "new.mp4.yaml", "new.xmp"]).isEmpty)
        #expect(names.contains("new.mp4"), "nothing would be seen to be opened")
    }

    @Test func `what was read of a file that found no room is not read again while it is the same`() async throws {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        var files = try AdmissionStage.alone(in: directory.path, journal, limit: QueueLimit(files: 1))
        let one = try #require(try FileLook.look(at: try directory.write([1], to: "one")).identity)
        let two = try #require(try FileLook.look(at: try directory.write([2], to: "two")).identity)
        func admit(_ path: FilePath, _ identity: FileIdentity) async -> [AdmissionResult.Outcome] {
            let results = await files.admission.admit([files.candidate(path, identity)], .found, files.hashing)
            for result in results { files.remember(result) }
            return results.map(\.outcome)
        }
        #expect(await admit("one", one) == [.journal(.admitted(id: 1))])
        #expect(await admit("two", two) == [.journal(.full)])
        #expect(files.candidate("two", two).facts.sha256 != nil)
        var edited = two
        edited.changed += 1
        #expect(files.candidate("two", edited).facts.sha256 == nil)
    }
}

/// What the kernel says of a folder, by inotify(7).
final class KernelNews {
    private let descriptor: CInt

    init(of folder: FilePath, _ mask: Int) throws {
        descriptor = inotify_init1(CInt(IN_NONBLOCK) | CInt(IN_CLOEXEC))
        guard descriptor >= 0, inotify_add_watch(descriptor, folder.string, UInt32(mask)) >= 0 else {
            throw Errno(rawValue: errno)
        }
    }

    deinit { close(descriptor) }

    /// What was said since the last call, each with the name of a file in the folder, or none for the folder itself.
    func take() -> [(isFolder: Bool, name: String)] {
        var news: [(isFolder: Bool, name: String)] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return news }
            buffer.withUnsafeBytes { bytes in
                var offset = 0
                while offset < count {
                    let mask = bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
                    let length = Int(bytes.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self))
                    let name = bytes[(offset + 16)..<(offset + 16 + length)].prefix { $0 != 0 }
                    #expect(mask & UInt32(IN_Q_OVERFLOW) == 0, "the kernel has lost some")
                    news.append((mask & UInt32(IN_ISDIR) != 0, String(decoding: name, as: UTF8.self)))
                    offset += 16 + length
                }
            }
        }
    }
}
