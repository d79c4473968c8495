import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

@Suite struct TreeScanTests {
    private struct Found: Equatable {
        var files: Set<FilePath> = []
        var directories: Set<FilePath> = []
        var irregular: Set<FilePath> = []
        var troubles: Set<FilePath> = []
    }

    private func expect(idle: Bool, _ scan: borrowing TreeScan) {
        let isIdle = scan.isIdle
        #expect(isIdle == idle)
    }

    private func walk(
        _ root: FilePath, recursive: Bool = true, ignore: IgnoreList = IgnoreList(), from start: FilePath = ""
    ) -> Found {
        var scan = TreeScan(root: root, isRecursive: recursive)
        var found = Found()
        expect(idle: true, scan)
        scan.add(start)
        while true {
            switch scan.next(ignore) {
            case .file(let path): found.files.insert(path)
            case .enter(let path):
                found.directories.insert(path)
                if case .trouble(let path, _)? = scan.open() { found.troubles.insert(path) }
            case .irregular(let path): found.irregular.insert(path)
            case .trouble(let path, _): found.troubles.insert(path)
            case .reading: continue
            case .finished:
                expect(idle: true, scan)
                return found
            }
        }
    }

    @Test func `every file of a tree is found once, links and FIFOs apart`() throws {
        let directory = try TemporaryDirectory()
        for name in ["a", "x/b", "x/y/c", "x/y/z/d"] as [FilePath] { try directory.write([1], to: name) }
        try directory.makeDirectory("empty")
        try FileManager.default.createSymbolicLink(
            atPath: directory.path.appending("link").string, withDestinationPath: "x")
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
        var scan = TreeScan(root: directory.path, isRecursive: true, most: 2000)
        scan.add("")
        _ = scan.next(IgnoreList())
        _ = scan.open()
        guard case .reading = scan.next(IgnoreList()) else { throw Errno.badMessage }
        scan.stop()
        guard case .finished = scan.next(IgnoreList()) else { throw Errno.badMessage }
        scan.add("")
        var found = 0
        while !Self.isFinished(&scan, &found) {}
        #expect(found == 3000)
    }

    private static func isFinished(_ scan: inout TreeScan, _ found: inout Int) -> Bool {
        switch scan.next(IgnoreList()) {
        case .file: found += 1
        case .enter: _ = scan.open()
        case .reading: break
        case .finished: return true
        case .irregular, .trouble: Issue.record("there is none")
        }
        return false
    }

    @Test func `the end is told of also where the last folder has gone before it was listed`() throws {
        let directory = try TemporaryDirectory()
        try directory.write([1], to: "a/b")
        var scan = TreeScan(root: directory.path, isRecursive: true)
        scan.add("")
        guard case .enter("") = scan.next(IgnoreList()), case nil = scan.open(),
            case .enter("a") = scan.next(IgnoreList())
        else { throw Errno.badMessage }
        try FileManager.default.removeItem(atPath: directory.path.appending("a").string)
        guard case nil = scan.open() else { throw Errno.badMessage }
        expect(idle: false, scan)
        guard case .finished = scan.next(IgnoreList()) else { throw Errno.badMessage }
        expect(idle: true, scan)
    }

    @Test(.enabled(if: TestMount.hasBindfs, "bindfs mounts nothing here"))
    func `a folder that fails in the midst of its listing is told of, after what was read of it`() throws {
        let directory = try TemporaryDirectory()
        let names = Set((0..<6000).map { FilePath("a name of some length \($0)") })
        for name in names { try directory.write([], to: FilePath("real").pushing(name)) }
        let mount = try TestMount(bindfs: directory.path.appending("real"), at: directory.makeDirectory("mounted"))
        var scan = TreeScan(root: mount.path, isRecursive: true, most: 500)
        scan.add("")
        var (found, troubles): (Set<FilePath>, [FilePath]) = ([], [])
        while true {
            switch scan.next(IgnoreList()) {
            case .file(let path): if found.insert(path).inserted, found.count == 1 { mount.end() }
            case .enter: if case .trouble(let path, let error)? = scan.open() { Issue.record("\(path): \(error)") }
            case .trouble(let path, _): troubles.append(path)
            case .reading, .irregular: continue
            case .finished:
                #expect(troubles == [""])
                #expect(found.count >= 500 && found.count < names.count && found.isSubset(of: names))
                return expect(idle: true, scan)
            }
        }
    }

    private static func files(_ root: FilePath, most: Int = NameRun.most) -> [FilePath] {
        var scan = TreeScan(root: root, isRecursive: true, most: most)
        scan.add("")
        var found: [FilePath] = []
        while true {
            switch scan.next(IgnoreList()) {
            case .file(let path): found.append(path)
            case .enter: if case .trouble(let path, _)? = scan.open() { Issue.record("\(path)") }
            case .reading: break
            case .finished: return found
            case .irregular, .trouble: Issue.record("there is none")
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
        #expect(walk(directory.path, from: "gone") == Found(directories: ["gone"]))
        #expect(walk(directory.path, from: "file").files.isEmpty)
    }

    @Test func `a stopped scan is idle and can begin anew`() throws {
        let directory = try TemporaryDirectory()
        for number in 0..<10 { try directory.write([1], to: FilePath("\(number)/a")) }
        var scan = TreeScan(root: directory.path, isRecursive: true)
        scan.add("")
        _ = scan.next(IgnoreList())
        _ = scan.open()
        _ = scan.next(IgnoreList())
        expect(idle: false, scan)
        scan.stop()
        expect(idle: true, scan)
        guard case .finished = scan.next(IgnoreList()) else {
            Issue.record("a stopped scan goes on")
            return
        }
    }
}

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
