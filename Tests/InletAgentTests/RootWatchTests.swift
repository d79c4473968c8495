import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// Follows a folder as the loop of a root does, and remembers of each name what was seen there last.
private struct Follower: ~Copyable {
    let root: FilePath
    var watch: RootWatch
    var listing: Listing
    /// What the journal would know.
    var seen: [FilePath: FileIdentity] = [:]
    var events: [FileEvent] = []

    init(_ root: FilePath, mode: WatchSettings.Mode = .inotify) throws {
        self.root = root
        var settings = WatchSettings(path: root, rescan: nil)
        settings.mode = mode
        watch = try RootWatch(settings, ignore: IgnoreList(), log: EventLog(nil))
        listing = Listing(root: root, isRecursive: true)
        watch.begin()
        begin()
    }

    private mutating func begin() {
        watch.listingBegins()
        listing.begin()
    }

    /// Takes what has happened until now.
    mutating func follow() throws {
        repeat {
            for event in try watch.read() {
                events.append(event)
                apply(event)
            }
            while !listing.isIdle { list() }
            if listing.mayBegin { begin() }
        } while try !watch.isDrained() || !listing.isIdle
    }

    private mutating func list() {
        let step = listing.next(IgnoreList(), &watch) { (watch, directory, folder) throws(SystemError) in
            try watch.follow(directory, folder)
        }
        switch step {
        case .file(let path): look(path)
        case .trouble(let path, let error): Issue.record("\(path): \(error)")
        case .finished: watch.listingEnded()
        case .entered, .gone, .irregular, .passedOver, .reading: break
        }
    }

    private mutating func apply(_ event: FileEvent) {
        switch event {
        case .created(let path, let isFolder), .reached(let path, let isFolder, _):
            if isFolder { listing.add(path) } else { look(path) }
        case .changed(let path, let isFolder): if !isFolder { look(path) }
        // Two names that changed places are both left after they were reached.
        case .left(let path, false, _), .linked(let path): look(path)
        case .left(let path, true, _): seen = seen.filter { !$0.key.isWithin(path) }
        case .removed(let path, let isFolder): if !isFolder { seen[path] = nil }
        case .folder(let path): listing.add(path)
        case .lost(let reason): Issue.record("lost: \(reason)")
        case .overflow: listing.ask()
        }
    }

    private mutating func look(_ path: FilePath) {
        seen[path] = (try? FileLook.look(at: RootedPath(root, path)))?.identity
    }

    /// Looks at what nothing tells of, as a loop does now and then, and follows the folders that it finds.
    mutating func pass() throws {
        if let loss = watch.beginPass() { Issue.record("lost: \(loss)") }
        while watch.polls.isLooking {
            switch watch.nextPolled() {
            case .file(let path): look(path)
            case .directory(let path): listing.add(path)
            case .trouble(let path, let error): Issue.record("\(path): \(error)")
            case .gone, .irregular, .nothing, .finished: break
            }
        }
        watch.polls.turnEnded(took: .zero, hasMore: false)
        try follow()
    }

    /// The events since the last call.
    mutating func take() throws -> [FileEvent] {
        try follow()
        defer { events = [] }
        return events
    }
}

@Suite struct RootWatchTests {
    private let folder: TemporaryDirectory
    private let root: FilePath

    init() throws {
        folder = try TemporaryDirectory()
        root = try folder.makeDirectory("root")
    }

    typealias Mask = InotifyRecord.Mask

    @Test(
        arguments: [
            ([.created], 0, [.created("a", isFolder: false)]),
            ([.closedAfterWriting], 0, [.changed("a", isFolder: false)]),
            ([.attributes, .isDirectory], 0, [.changed("a", isFolder: true)]),
            ([.created, .closedAfterWriting], 0, [.created("a", isFolder: false)]),
            ([.deleted], 0, [.removed("a", isFolder: false)]),
            ([.deleted, .movedTo], 7, [.removed("a", isFolder: false)]),
            ([.deleted, .movedTo, .isDirectory], 0, [.removed("a", isFolder: true), .created("a", isFolder: true)]),
            ([.movedFrom, .isDirectory], 7, [.left("a", isFolder: true, rename: 7)]),
            ([.movedFrom, .movedTo, .isDirectory], 7, [.left("a", isFolder: true, rename: 7), .folder("a")]),
            ([.movedTo], 7, [.reached("a", isFolder: false, rename: 7)]),
            // A kernel that does not tell which halves belong together.
            ([.movedFrom, .deleted], 0, [.left("a", isFolder: false, rename: nil)]),
            ([.movedTo, .isDirectory], 0, [.created("a", isFolder: true)]),
        ] as [(Mask, UInt32, [FileEvent])])
    func `each record says one thing of its name, and what has gone comes first`(
        mask: Mask, cookie: UInt32, events: [FileEvent]
    ) throws {
        var watch = try RootWatch(WatchSettings(path: root, rescan: nil), ignore: IgnoreList(), log: EventLog(nil))
        let told = watch.translate(InotifyRecord(watch: 1, mask: mask, cookie: cookie, name: [0x61]), in: "")
        #expect(told == events)
    }

    @Test func `what happens to a name is told by that name, and a folder comes before what is in it`() throws {
        try folder.write([1], to: "root/sub/a")
        var follower = try Follower(root)
        _ = try follower.take()
        try folder.write([1], to: "root/sub/b")
        var events = try follower.take()
        #expect(events == [.created("sub/b", isFolder: false), .changed("sub/b", isFolder: false)])
        try remove(root.pushing("sub/b"))
        try folder.makeDirectory("root/other")
        events = try follower.take()
        #expect(events == [.removed("sub/b", isFolder: false), .created("other", isFolder: true)])
        try move(root.pushing("sub/a"), over: root.pushing("other/c"))
        events = try follower.take()
        guard case .left("sub/a", isFolder: false, let rename?)? = events.first else { throw Unexpected() }
        #expect(events.dropFirst() == [.reached("other/c", isFolder: false, rename: rename)])
        try remove(root.appending("other"))
        events = try follower.take()
        #expect(events == [.removed("other/c", isFolder: false), .removed("other", isFolder: true)])
        let seen = follower.seen
        #expect(seen.isEmpty)
    }

    @Test func `two names that change places are two renames, and both folders are listed`() throws {
        for name in ["a/one", "b/two"] as [FilePath] { try folder.write([1], to: FilePath("root").pushing(name)) }
        var follower = try Follower(root)
        _ = try follower.take()
        try #require(exchange(root.appending("a"), root.appending("b")))
        let events = try follower.take()
        let left = events.filter { if case .left(_, isFolder: true, rename: .some) = $0 { true } else { false } }
        let reached = events.filter { if case .reached(_, isFolder: true, _) = $0 { true } else { false } }
        #expect(left.count == 2 && reached.count == 2)
        let seen = follower.seen
        #expect(Set(seen.keys) == ["a/two", "b/one"])
        // Both have a watch under their new names.
        try folder.write([1], to: "root/a/three")
        let later = try follower.take()
        #expect(later.first == .created("a/three", isFolder: false))
    }

    @Test func `a root that is renamed away is told as lost`() throws {
        var watch = try RootWatch(WatchSettings(path: root, rescan: nil), ignore: IgnoreList(), log: EventLog(nil))
        try watch.follow("", try Folder(root))
        try move(root, to: folder.path.appending("away"))
        let events = try watch.read()
        guard case .lost = events.first else { throw Unexpected() }
    }

    @Test func `what was read while it was asked whether all is read is not lost`() throws {
        var follower = try Follower(root)
        _ = try follower.take()
        var isDrained = try follower.watch.isDrained()
        #expect(isDrained)
        try folder.write([1], to: "root/a")
        isDrained = try follower.watch.isDrained()
        #expect(!isDrained)
        let events = try follower.take()
        #expect(events.first == .created("a", isFolder: false))
    }

    /// Nothing is rescanned, and what happens is read at any time in between.
    @Test(arguments: 0..<Load.of(100))
    func `whatever is renamed, exchanged, made and removed, what each name has in the end was seen`(seed: Int) throws {
        let modes: [WatchSettings.Mode] = [.inotify, .poll] + (isMarkable ? [.fanotify] : [])
        for mode in modes {
            let place = try folder.makeDirectory(FilePath("\(mode)/root"))
            let outside = try folder.makeDirectory(FilePath("\(mode)/outside"))
            var random = SeededGenerator(seed: UInt64(seed))
            var storm = FolderStorm(seed: UInt64(seed), root: place, outside: outside)
            for _ in 0..<20 { try storm.step() }
            var follower = try Follower(place, mode: mode)
            try follower.follow()
            for _ in 0..<100 {
                try storm.step()
                if Int.random(in: 0..<4, using: &random) > 0 { continue }
                if mode == .poll { try follower.pass() } else { try follower.follow() }
            }
            if mode == .poll { try follower.pass() } else { try follower.follow() }
            let (seen, files) = (follower.seen, try FolderStorm.content(of: place).files)
            #expect(files.allSatisfy { seen[$0] == $1 }, "\(mode)")
            // Nothing tells a pass which file has gone.
            #expect(seen.count == files.count || mode == .poll, "\(mode)")
        }
    }
}

/// Whether the file system of the tests' folders can be watched by fanotify.
private let isMarkable: Bool = {
    guard let folder = try? TemporaryDirectory() else { return false }
    return RootCheck.fanotifyRefusal(WatchSettings(path: folder.path, mode: .fanotify)) == nil
}()

@Suite struct WatchTableTests {
    @Test func `a watch stands for its folder until it is removed`() {
        var table = WatchTable()
        table.add(1, "")
        table.add(2, "a")
        #expect(table.path(of: 2) == "a" && table.contains("a") && table.count == 2)
        table.remove(2)
        table.remove(2)
        #expect(table.path(of: 2) == nil && !table.contains("a") && table.count == 1)
    }

    @Test func `a folder that was renamed keeps its watch and stands for its new path`() {
        var table = WatchTable()
        table.add(2, "old")
        table.add(2, "new")
        #expect(table.path(of: 2) == "new" && !table.contains("old") && table.count == 1)
    }

    @Test func `a path that got another watch survives the end of the first`() {
        var table = WatchTable()
        table.add(2, "a")
        table.add(3, "a")
        table.remove(2)
        #expect(table.contains("a") && table.path(of: 3) == "a")
    }

    @Test func `a folder that was deleted is forgotten alone`() {
        var table = WatchTable()
        for (watch, path) in [(1, ""), (2, "a"), (3, "a/b")] as [(Int32, FilePath)] { table.add(watch, path) }
        table.remove("a")
        table.remove("never there")
        #expect(!table.contains("a") && table.path(of: 2) == nil)
        #expect(table.contains("a/b") && table.count == 2)
    }

    @Test func `removing a folder removes all below it, and no neighbour with a longer name`() {
        var table = WatchTable()
        for (watch, path) in [(1, ""), (2, "a"), (3, "a/b"), (4, "ab"), (5, "a/b/c")] as [(Int32, FilePath)] {
            table.add(watch, path)
        }
        #expect(Set(table.remove(below: "a")) == [2, 3, 5])
        #expect(table.count == 2 && table.contains("ab"))
        #expect(Set(table.remove(below: "")) == [1, 4] && table.count == 0)
    }
}

/// Changes in a folder as people and programs make them, drawn by a seed: files that are written, replaced, renamed and deleted;
/// folders that are made at once, renamed, exchanged, and moved out and in again. Each file has a size of its own.
struct FolderStorm {
    private var random: SeededGenerator
    private let root: FilePath
    /// Beside the root, on its file system.
    private let outside: FilePath
    private var number = 0

    init(seed: UInt64, root: FilePath, outside: FilePath) {
        random = SeededGenerator(seed: seed)
        (self.root, self.outside) = (root, outside)
    }

    /// What is in the folder, by paths relative to it, but for what is never a user's.
    static func content(of root: FilePath) throws -> (folders: [FilePath], files: [FilePath: FileIdentity]) {
        var (folders, files): ([FilePath], [FilePath: FileIdentity]) = ([""], [:])
        for name in FileManager.default.enumerator(atPath: root.string)?.compactMap({ $0 as? String }).sorted() ?? [] {
            let path = FilePath(name)
            if path.components.first == ".inlet" { continue }
            switch try FileLook.look(at: root.pushing(path)) {
            case .directory: folders.append(path)
            case .regular(let identity, _, _): files[path] = identity
            default: break
            }
        }
        return (folders, files)
    }

    mutating func step() throws {
        let content = try Self.content(of: root)
        let files = content.files.keys.sorted { $0.string < $1.string }
        let folder = content.folders.randomElement(using: &random) ?? ""
        switch Int.random(in: 0..<12, using: &random) {
        case 0..<4: try write(folder.appending("f\(Int.random(in: 0..<8, using: &random))"))
        case 4: try write(folder.pushing(FilePath("x\(next())/y/z/f")))
        case 5:
            if let file = files.randomElement(using: &random) { try move(root.pushing(file), over: free(in: folder)) }
        case 6: try exchangeTwo(of: files)
        case 7: try moveFolder(of: content.folders, to: folder)
        case 8: try exchangeTwo(of: content.folders.filter { !$0.isEmpty })
        case 9: if let file = files.randomElement(using: &random) { try remove(root.pushing(file)) }
        case 10: if let two = two(of: files) { try move(root.pushing(two.0), over: root.pushing(two.1)) }
        default: try moveOutOrIn(content.folders, folder)
        }
    }

    private mutating func next() -> Int {
        number += 1
        return number
    }

    private mutating func free(in folder: FilePath) -> FilePath {
        root.pushing(folder).appending("n\(next())")
    }

    private mutating func write(_ path: FilePath) throws {
        let file = root.pushing(path)
        try FileManager.default.createDirectory(
            atPath: file.removingLastComponent().string, withIntermediateDirectories: true)
        try Data(repeating: 1, count: next()).write(to: URL(fileURLWithPath: file.string))
    }

    private mutating func two(of paths: [FilePath]) -> (FilePath, FilePath)? {
        guard let one = paths.randomElement(using: &random), let other = paths.randomElement(using: &random),
            !one.isWithin(other), !other.isWithin(one)
        else { return nil }
        return (one, other)
    }

    private mutating func exchangeTwo(of paths: [FilePath]) throws {
        guard let (one, other) = two(of: paths) else { return }
        if !exchange(root.pushing(one), root.pushing(other)) { throw Errno.badAddress }
    }

    private mutating func moveFolder(of folders: [FilePath], to target: FilePath) throws {
        guard let folder = folders.randomElement(using: &random), !folder.isEmpty, !target.isWithin(folder) else {
            return
        }
        try move(root.pushing(folder), over: free(in: target))
    }

    private mutating func moveOutOrIn(_ folders: [FilePath], _ target: FilePath) throws {
        let away = try names(in: outside)
        if let name = away.randomElement(using: &random), Bool.random(using: &random) {
            return try move(outside.appending(name), over: free(in: target))
        }
        guard let folder = folders.randomElement(using: &random), !folder.isEmpty else { return }
        try move(root.pushing(folder), over: outside.appending("o\(next())"))
    }
}
