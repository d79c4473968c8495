import Foundation
import Glibc
import InletCore
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

/// A watched folder `root` with `sub/deep/file`, and beside it `outside` with `deep/file`, which nobody must reach.
struct FolderTests {
    /// Both where this system has openat2(2).
    private static let ways = Set([PathResolver.here, .steps]).sorted { "\($0)" < "\($1)" }

    let place: TemporaryDirectory
    let root: FilePath
    let outside: FilePath

    init() throws {
        place = try TemporaryDirectory()
        root = try place.makeDirectory("root")
        outside = try place.makeDirectory("outside")
        try place.write([1], to: "root/sub/deep/file")
        try place.write([2, 2], to: "outside/deep/file")
    }

    private func link(_ path: FilePath, to target: FilePath, owner: uid_t = getuid()) throws {
        try #require(symlink(target.string, path.string) == 0)
        if owner != getuid() { try #require(lchown(path.string, owner, owner) == 0) }
    }

    private func size(_ file: FilePath, _ way: PathResolver) throws -> Int64? {
        let folder = try Folder(root, way: way).folder(file.removingLastComponent(), way: way)
        return try folder.look(try #require(file.lastComponent)).identity?.size
    }

    @Test(arguments: ways) func `a file is found below folders`(way: PathResolver) throws {
        #expect(try size("sub/deep/file", way) == 1)
        #expect(try Folder(root, way: way).folder("", way: way).path == root)
        let missing = try #require(throws: SystemError.self) { try size("sub/none/file", way) }
        #expect(missing.code == .noSuchFileOrDirectory && missing.path == root.pushing("sub/none"))
        let file = try #require(throws: SystemError.self) { try size("sub/deep/file/more", way) }
        #expect(file.code == .notDirectory)
    }

    /// Such paths cost a debug build dearly: as few of them are made as can be.
    @Test(arguments: ways)
    func `a folder deeper than a path can be long is opened, and no link in it leads out`(way: PathResolver) throws {
        let name = String(repeating: "d", count: 250)
        var deepest = open(root.string, O_RDONLY | O_DIRECTORY)
        for _ in 0..<17 {
            let above = deepest
            defer { close(above) }
            try #require(mkdirat(above, name, 0o755) == 0)
            deepest = openat(above, name, O_RDONLY | O_DIRECTORY)
        }
        defer { close(deepest) }
        try #require(symlinkat("/etc", deepest, "link") == 0)
        // Who cleans up after tests does so by paths: the lower half becomes a folder of its own.
        let (half, lower) = (Array(repeating: name, count: 9).joined(separator: "/"), place.path.appending("lower"))
        defer { #expect(rename(root.string + "/" + half, lower.string) == 0) }
        var status = stat()
        try #require(fstat(deepest, &status) == 0)
        let deep = Array(repeating: name, count: 17).joined(separator: "/")
        let top = try Folder(root, way: way)
        #expect(try top.folder(FilePath(deep), way: way).identity().inode == status.st_ino)
        let error = try #require(throws: SystemError.self) { try top.folder(FilePath(deep + "/link"), way: way) }
        #expect(error.isLinked)
    }

    @Test(arguments: ways, ["sub", "sub/deep"])
    func `a symlink at any level is not followed, wherever it leads`(way: PathResolver, level: FilePath) throws {
        let path = root.pushing(level)
        let moved = place.path.appending("moved")
        try FileManager.default.moveItem(atPath: path.string, toPath: moved.string)
        let own = level == "sub" ? outside : outside.appending("deep")
        // One that stays in the tree is none the better: the next one does not.
        try place.makeDirectory("root/other/deep")
        let inside: FilePath = level == "sub" ? "other" : "../other/deep"
        for target: FilePath in [own, "../outside", inside, "/proc/self/cwd", "/etc"] {
            try link(path, to: target)
            let error = try #require(throws: SystemError.self) { try size("sub/deep/file", way) }
            #expect(error.isLinked && error.isMissing, "\(target): \(error)")
            #expect(error.description.contains("a symlink is on the way"), "\(error)")
            #expect(try FileLook.look(at: RootedPath(root, "sub/deep/file")) == .missing)
            #expect(throws: SystemError.self) { try SourceFile(opening: RootedPath(root, "sub/deep/file")) }
            try FileManager.default.removeItem(atPath: path.string)
        }
    }

    @Test(arguments: ways) func `dots, absolute paths and magic links lead nowhere`(way: PathResolver) throws {
        let folder = try Folder(root, way: way)
        for path: FilePath in ["..", "../outside", "sub/../../outside", "/etc", "sub/..", "."] {
            let error = try #require(throws: SystemError.self) { try folder.folder(path, way: way) }
            #expect(error.code == .invalidArgument, "\(path)")
        }
        let process = try Folder(FilePath("/proc/\(getpid())"), way: way)
        let error = try #require(throws: SystemError.self) { try process.folder("cwd", way: way) }
        #expect(error.isLinked)
    }

    @Test(arguments: ways)
    func `an administrator's symlink is followed on the way to a root, nobody else's is`(way: PathResolver) throws {
        let links = try place.makeDirectory("links")
        try link(links.appending("own"), to: "../root")
        try link(links.appending("again"), to: links.appending("own"))
        #expect(try size("sub/deep/file", way) == 1)
        for name in ["own", "again", "again/sub/../"] {
            let folder = try Folder(links.pushing(FilePath(name)), way: way)
            #expect(try folder.folder("sub/deep", way: way).look("file").identity?.size == 1, "\(name)")
        }
        try link(links.appending("loop"), to: "loop")
        let loop = try #require(throws: SystemError.self) { try Folder(links.appending("loop"), way: way) }
        #expect(loop.code == .tooManySymbolicLinkLevels)
        guard getuid() == 0 else { return }
        try link(links.appending("others"), to: "../outside", owner: 65_534)
        for path in [links.appending("others"), links.pushing("others/deep")] {
            let error = try #require(throws: SystemError.self) { try Folder(path, way: way) }
            #expect(error.isLinked && error.path == path)
        }
    }

    @Test(.timeLimit(.minutes(2)), arguments: ways)
    func `ten thousand opens never leave the tree while a folder and a symlink change places`(way: PathResolver) throws
    {
        try link(root.appending("link"), to: outside)
        let isOver = Atomic(false)
        let (one, other) = (root.appending("sub"), root.appending("link"))
        let swapper = Thread {
            while !isOver.load(ordering: .relaxed) { _ = exchange(one, other) }
        }
        swapper.start()
        defer { isOver.store(true, ordering: .relaxed) }
        let folder = try Folder(root, way: way)
        var (found, refused) = (0, 0)
        // Until both were seen: on one processor the swapper has its turns seldom.
        while found + refused < 10_000 || found == 0 || refused == 0 {
            do {
                let deep = try folder.folder("sub/deep", way: way)
                let source = try SourceFile(opening: "file", in: deep)
                try #require(source.opened.size == 1, "what is outside was opened")
                found += 1
            } catch let error as SystemError {
                try #require(error.isLinked, "\(error)")
                refused += 1
            }
        }
    }

    @Test func `folders that are missing are made, and none through a symlink`() throws {
        let made = try Folder(root).folder("a/b/c", making: 0o700)
        #expect(made.path == root.pushing("a/b/c"))
        #expect(try Folder(root).folder("a/b/c", making: 0o755).identity().inode == made.identity().inode)
        try link(root.appending("out"), to: outside)
        let error = try #require(throws: SystemError.self) { try Folder(root).folder("out/x", making: 0o755) }
        #expect(error.isLinked)
        #expect(try FileLook.look(at: outside.appending("x")) == .missing)
        try place.write([], to: "root/plain")
        let plain = try #require(throws: SystemError.self) { try Folder(root).folder("plain/x", making: 0o755) }
        #expect(plain.code == .notDirectory)
    }

    @Test func `an open folder stays the one that it was, and its errors say where files are`() throws {
        let folder = try Folder(root).folder("sub/deep")
        try FileManager.default.moveItem(
            atPath: root.appending("sub").string, toPath: place.path.appending("moved").string)
        try link(root.appending("sub"), to: outside)
        try folder.rename("file", to: folder, "renamed")
        try folder.write([7], to: "more", mode: 0o600)
        try folder.synchronize()
        try folder.requireWritable()
        var names: Set<String> = []
        var stream = try folder.list()
        while let entry = try stream.next() { names.insert(entry.name.string) }
        #expect(names == ["renamed", "more"])
        #expect(try folder.read("more", limit: 1) == [7])
        try folder.remove("more")
        #expect(try FileLook.look(at: place.path.pushing("moved/deep/renamed")).identity?.size == 1)
        #expect(try FileLook.look(at: outside.pushing("deep/file")).identity?.size == 2)
        let taken = try #require(throws: SystemError.self) { try folder.rename("none", to: folder, "renamed") }
        #expect(taken.path == root.pushing("sub/deep/none") && taken.target == root.pushing("sub/deep/renamed"))
        try link(root.pushing("../moved/deep/link"), to: "renamed")
        #expect(throws: SystemError.self) { try folder.read("link", limit: 1) }
    }

    @Test func `a source that is moved away, or behind a symlink, is no longer what its name leads to`() throws {
        let source = try SourceFile(opening: RootedPath(root, "sub/deep/file"))
        #expect(try source.naming() == .it)
        #expect(source.path == root.pushing("sub/deep/file"))
        let moved = place.path.appending("moved")
        try FileManager.default.moveItem(atPath: root.appending("sub").string, toPath: moved.string)
        try link(root.appending("sub"), to: moved)
        #expect(try source.naming() == .nothing)
        #expect(WriterProbe.probe(RootedPath(root, "sub/deep/file")) != .free)
    }

    @Test func `a turn opens a folder once, and sees nothing through a symlink`() throws {
        try place.write([3, 3, 3], to: "root/sub/deep/other")
        var turn = FolderCache(root)
        let first = try turn.folder("sub/deep")
        #expect(try turn.look("sub/deep/file").identity?.size == 1)
        #expect(try turn.look("sub/deep/other").identity?.size == 3)
        #expect(try turn.folder("sub/deep") === first)
        #expect(try turn.look("sub/deep/none") == .missing && turn.look("none/file") == .missing)
        guard case .directory = try turn.look("") else { return #expect(Bool(false), "the root is a folder") }
        try link(root.appending("link"), to: outside)
        #expect(try turn.look("link") == .symlink)
        #expect(try turn.look("link/deep/file") == .missing)
    }

    @Test func `a watch of an open folder tells of that one`() throws {
        let inotify = try Inotify()
        let folder = try Folder(root).folder("sub")
        let watch = try inotify.add(folder)
        #expect(try inotify.add(root.appending("sub")) == watch)
        try place.write([1], to: "root/sub/new")
        #expect(try inotify.read().contains { $0.watch == watch && $0.nameBytes.elementsEqual("new".utf8) })
    }
}

struct DirectoryStreamTests {
    let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func entries(_ path: FilePath) throws -> Set<DirectoryEntry> {
        var stream = try DirectoryStream(path)
        var found: Set<DirectoryEntry> = []
        while let entry = try stream.next() { found.insert(entry) }
        return found
    }

    @Test func `a missing folder, a file and a symlink to a folder are refused`() throws {
        let file = try folder.write([1], to: "file")
        let link = folder.path.appending("link")
        try FileManager.default.createSymbolicLink(atPath: link.string, withDestinationPath: folder.path.string)
        for path in [folder.path.appending("none"), file, link] {
            let error = try #require(throws: SystemError.self) { try entries(path) }
            #expect(error.isMissing, "\(error)")
            #expect(error.call == "opendir")
        }
    }

    @Test func `names that are not UTF-8, that hold newlines or have 255 bytes come through unchanged`() throws {
        let names: [[UInt8]] = [
            [0xFF, 0xFE, 0x41], Array("new\nline".utf8), [0xC3], [UInt8](repeating: 0xE9, count: 255),
            Array(" ".utf8), Array("...".utf8), Array("é😀".utf8),
        ]
        for name in names {
            let path = folder.path.pushing(FilePath(bytes: name))
            try FileDescriptor.open(path, .writeOnly, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
                .close()
        }
        let found = try entries(folder.path)
        #expect(Set(found.map { FilePath(root: nil, [$0.name]).bytes }) == Set(names))
        #expect(found.allSatisfy { $0.kind == .regular })
        for entry in found {
            #expect(try FileLook.look(at: folder.path.appending(entry.name)).identity != nil)
        }
    }

    @Test func `the kinds are told apart`() throws {
        try folder.write([1], to: "file")
        try folder.makeDirectory("folder")
        try FileManager.default.createSymbolicLink(
            atPath: folder.path.appending("link").string, withDestinationPath: "nowhere")
        try run("/usr/bin/mkfifo", folder.path.appending("fifo").string)
        let kinds = Dictionary(uniqueKeysWithValues: try entries(folder.path).map { ($0.name.string, $0.kind) })
        #expect(kinds == ["file": .regular, "folder": .directory, "link": .symlink, "fifo": .other])
    }

    @Test func `a large folder is read whole, name by name`() throws {
        for number in 0..<3000 {
            try FileDescriptor.open(
                folder.path.appending("\(number)"), .writeOnly, options: [.create, .closeOnExec],
                permissions: .ownerReadWrite
            ).close()
        }
        #expect(try entries(folder.path).count == 3000)
    }

    @Test func `streams give their descriptors back`() throws {
        let before = try openDescriptors()
        for _ in 0..<50 {
            var stream = try DirectoryStream(folder.path)
            _ = try stream.next()
            _ = try SourceFile(opening: folder.write([1], to: "a"))
        }
        // Other tests open and close descriptors meanwhile, but not by the hundred.
        #expect(try openDescriptors() < before + 90)
    }

    private func openDescriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }
}

/// What tests leave behind, which is nothing, whatever becomes of them.
struct RunFolderTests {
    @Test func `what a killed process left is removed, what a running one has is not`() async throws {
        let base = try TemporaryDirectory()
        let (place, note) = (base.path.string, base.path.appending("note").string)
        await #expect(processExitsWith: .signal(SIGKILL)) { [place = place as String, note = note as String] in
            let run = try RunFolder.make(in: FilePath(place))
            try FileManager.default.createDirectory(
                atPath: run.path.string + "/1/deep", withIntermediateDirectories: true)
            try run.path.string.write(toFile: note, atomically: true, encoding: .utf8)
            kill(getpid(), SIGKILL)
        }
        let dead = try String(contentsOfFile: note, encoding: .utf8)
        #expect(isThere("\(dead)/1/deep"))
        let running = try RunFolder.make(in: base.path)
        #expect(!isThere(dead))
        RunFolder.sweep(base.path)
        #expect(isThere(running.path.string))
    }

    @Test func `folders of other names and links to other places are nobody's to remove`() throws {
        let base = try TemporaryDirectory()
        try base.write([1], to: "inlet-mine/file")
        try base.write([1], to: "elsewhere/file")
        let link = base.path.appending(RunFolder.prefix + "link").string
        try FileManager.default.createSymbolicLink(
            atPath: link, withDestinationPath: base.path.appending("elsewhere").string)
        RunFolder.sweep(base.path)
        #expect(isThere(base.path.appending("inlet-mine/file").string) && isThere("\(link)/file"))
    }

    @Test func `a folder's end is noticed by nobody but those in it`() throws {
        var folder: TemporaryDirectory? = try TemporaryDirectory()
        let other = try TemporaryDirectory()
        let path = try #require(folder?.path)
        #expect(isThere(path.string) && path != other.path)
        folder = nil
        #expect(!isThere(path.string) && isThere(other.path.string))
    }

    @Test(.enabled(if: TestMount.isAllowed, "needs the right to mount"))
    func `what is still mounted in a folder is taken off, not emptied`() throws {
        let outside = try TemporaryDirectory()
        try outside.write([1], to: "kept")
        var folder: TemporaryDirectory? = try TemporaryDirectory()
        let path = try #require(folder?.path)
        let inner = try TestMount("tmpfs", at: path)
        let deep = try TestMount(folder: outside.path, at: #require(folder).makeDirectory("a b/c"))
        folder = nil
        #expect(!isThere(path.string) && isThere(outside.path.appending("kept").string))
        #expect(try !MountTable.current().mounts.contains { $0.point.starts(with: path) })
        withExtendedLifetime((inner, deep)) {}
    }

    private func isThere(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }
}

struct LeashTests {
    @Test func `a program ends with the process that started it, when that is killed`() async throws {
        let folder = try TemporaryDirectory()
        let note = folder.path.appending("id").string
        await #expect(processExitsWith: .signal(SIGKILL)) { [note = note as String] in
            let program = Process()
            program.executableURL = URL(fileURLWithPath: "/bin/sh")
            program.arguments = ["-c", "trap '' HUP INT TERM; exec sleep 600"]
            (program.standardOutput, program.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
            try program.run()
            Leash.hold(program.processIdentifier)
            try "\(program.processIdentifier)".write(toFile: note, atomically: true, encoding: .utf8)
            kill(getpid(), SIGKILL)
        }
        let id = try #require(Int32(try String(contentsOfFile: note, encoding: .utf8)))
        try await eventually("it is gone") { !Leash.isRunning(id) }
    }

    @Test func `what still runs is known from what has ended, collected or not`() throws {
        #expect(Leash.isRunning(getpid()))
        let other = try OtherProcess("echo ready; read -r line")
        #expect(Leash.isRunning(other.id))
        other.kill()
        #expect(!Leash.isRunning(other.id))
    }
}
