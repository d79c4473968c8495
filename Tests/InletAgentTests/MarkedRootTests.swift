import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// Why a root of a test cannot be watched by fanotify here; nil when it can.
private let markRefusal: String? = {
    guard let folder = try? TemporaryDirectory() else { return "no folder" }
    return RootCheck.fanotifyRefusal(WatchSettings(path: folder.path, mode: .fanotify))
}()

private let tellsRenames = ProcessInfo.processInfo.isOperatingSystemAtLeast(
    OperatingSystemVersion(majorVersion: 5, minorVersion: 17, patchVersion: 0))

/// A root with `mode: fanotify`, on the file system of the tests' folders; skipped, and seen to be, where that cannot be had.
@Suite(.enabled(if: markRefusal == nil, "\(markRefusal ?? "")"))
struct MarkedRootTests {
    private func scene() throws -> Scene {
        var scene = try Scene()
        scene.watch[0].mode = .fanotify
        scene.route.key = try KeyTemplate("{dir}/{name}")
        return scene
    }

    @Test func `many folders made at once lose no file, and have no watch`() async throws {
        let scene = try scene()
        try scene.drop("before/a")
        try await scene.run { stage in
            try await stage.finished("before/a")
            #expect(stage.modes == ["fanotify"])
            let folders = Load.of(1000)
            for number in 0..<folders { try scene.drop(FilePath("\(number)/DCIM/100CANON/photo.jpg"), "\(number)") }
            try await eventually("all are delivered") { scene.here.record.stored.count == folders + 1 }
            #expect(scene.here.record.orders.count == folders + 1)
        }
    }

    @Test func `a folder that is moved in is taken whole, one that is moved out is forgotten`() async throws {
        let scene = try scene()
        try await scene.run { stage in
            let outside = scene.directory.path.appending("outside")
            try scene.directory.write([1], to: "outside/deep/a")
            try DurableFile.rename(outside, to: stage.root.appending("inside"))
            try await stage.finished("inside/deep/a")
            try await stage.process("inside/deep/b")
            try DurableFile.rename(stage.root.appending("inside"), to: scene.directory.path.appending("gone"))
            try scene.directory.write([2], to: "gone/deep/c")
            try await stage.process("last")
            #expect(try await stage.jobs().map(\.file.path) == ["last", "inside/deep/b", "inside/deep/a"])
        }
    }

    @Test func `a renamed folder is known under its new name, and one that takes the old name is its own`() async throws
    {
        let scene = try scene()
        try await scene.run { stage in
            try await stage.process("old/a", "first")
            try DurableFile.rename(stage.root.appending("old"), to: stage.root.appending("new"))
            try scene.drop("old/b", "second")
            try scene.drop("new/c", "third")
            try await stage.finished("old/b")
            try await stage.finished("new/c")
        }
    }

    @Test(.enabled(if: tellsRenames, "needs Linux 5.17, which tells both names of a rename together"))
    func `delivered files that are renamed, by themselves or with their folder, are recognised`() async throws {
        let scene = try scene()
        try await scene.run { stage in
            let job = try await stage.process("card/a", "first")
            let names: [FilePath] = ["monday/a", "tuesday/a", "tuesday/b"]
            try DurableFile.rename(stage.root.appending("card"), to: stage.root.appending("monday"))
            #expect(try await stage.job(names[0]).file.id == job.file.id)
            try DurableFile.rename(stage.root.appending("monday"), to: stage.root.appending("tuesday"))
            #expect(try await stage.job(names[1]).file.id == job.file.id)
            try DurableFile.rename(stage.root.pushing(names[1]), to: stage.root.pushing(names[2]))
            #expect(try await stage.job(names[2]).file.id == job.file.id)
            // Told once the journal has it.
            try await eventually("all three are told") { stage.events.count("job.renamed") == 3 }
        }
        #expect(scene.here.record.orders.map(\.key) == ["card/a"])
    }

    @Test func `what is archived below the root is not taken again`() async throws {
        var scene = try scene()
        scene.route.onSuccess = .archive
        try await scene.run { stage in
            for name in ["a", "x/b"] as [FilePath] {
                try await stage.process(name)
                try await eventually("\(name) is archived") { isThere(stage.root.pushing(".inlet/done").pushing(name)) }
            }
            #expect(try await stage.jobs().count == 2)
        }
    }

    @Test func `a root that is renamed away is lost, and found again when it is back`() async throws {
        let scene = try scene()
        try await scene.run { stage in
            let away = scene.directory.path.appending("away")
            try DurableFile.rename(stage.root, to: away)
            try await eventually("it is lost") { stage.events.names.contains("watch.lost") }
            try scene.directory.write([1], to: "away/a")
            try DurableFile.rename(away, to: stage.root)
            try await stage.finished("a")
        }
    }
}

/// `mode: fanotify` where it is of no use, or cannot be had.
@Suite struct UnmarkedRootTests {
    @Test func `one folder without those below it is watched by inotify, which is said`() async throws {
        var scene = try Scene()
        scene.watch[0].mode = .fanotify
        scene.watch[0].recursive = false
        try await scene.run { stage in
            try await stage.process("a")
            #expect(stage.modes == ["inotify"])
        }
    }
}

/// Mounts below a root, which have file systems of their own.
@Suite(.enabled(if: markRefusal == nil && TestMount.hasOverlays, "needs fanotify and the right to mount"))
struct MarkedMountTests {
    @Test func `a mount below the root has its own mark, and one that cannot be marked is watched by inotify`()
        async throws
    {
        var scene = try Scene()
        scene.watch[0].mode = .fanotify
        scene.route.key = try KeyTemplate("{dir}/{name}")
        let memory = try TestMount("tmpfs", at: scene.directory.makeDirectory("drop/memory"))
        defer { memory.unmount() }
        let store = try TestMount("tmpfs", at: scene.directory.makeDirectory("store"))
        defer { store.unmount() }
        let layers = try ["lower", "upper", "work"].map { try store.path.appending($0).making() }
        let options = zip(["lowerdir", "upperdir", "workdir"], layers).map { "\($0)=\($1)" }.joined(separator: ",")
        let overlay = try TestMount("overlay", at: scene.directory.makeDirectory("drop/layers"), options: options)
        defer { overlay.unmount() }
        try await scene.run { stage in
            try await eventually("all are watched") { stage.events.names.contains("watch.added") }
            let modes = stage.modePaths
            #expect(modes[stage.root] == .fanotify)
            #expect(modes[memory.path] == .fanotify)
            #expect(modes[overlay.path] == .inotify)
            for name in ["memory/new/a", "layers/new/b", "c"] as [FilePath] { try await stage.process(name) }
        }
    }

    @Test func `a mount that comes over a folder of the root is marked at once, and its end is seen`() async throws {
        var scene = try Scene()
        scene.watch[0].mode = .fanotify
        scene.route.key = try KeyTemplate("{dir}/{name}")
        try scene.drop("disk/sub/a")
        try await scene.run { stage in
            try await stage.finished("disk/sub/a")
            let disk = try TestMount("tmpfs", at: stage.root.appending("disk"))
            defer { disk.unmount() }
            try await eventually("it is marked") { stage.modePaths[disk.path] == .fanotify }
            try await stage.process("disk/sub/b")
            disk.unmount()
            try await stage.process("disk/sub/c")
        }
    }

    @Test func `what a disk that was unmounted here goes on with elsewhere costs no listing`() async throws {
        var scene = try Scene()
        scene.watch[0].mode = .fanotify
        let place = try scene.directory.makeDirectory("drop/disk")
        let elsewhere = try TestMount("tmpfs", at: scene.directory.makeDirectory("elsewhere"))
        defer { elsewhere.unmount() }
        let disk = try TestMount(folder: elsewhere.path, at: place)
        defer { disk.unmount() }
        try await scene.run { stage in
            try scene.directory.write([1], to: "elsewhere/a")
            try await stage.finished("disk/a")
            disk.unmount()
            try FileManager.default.removeItem(atPath: place.string)
            try scene.directory.write([1], to: "elsewhere/b")
            try await stage.process("c")
            #expect(!stage.events.names.contains("watch.overflow"))
            #expect(try await stage.jobs().count == 2)
        }
    }
}

extension FilePath {
    /// The folder of that path, made now.
    fileprivate func making() throws -> FilePath {
        try FileManager.default.createDirectory(atPath: string, withIntermediateDirectories: true)
        return self
    }
}

@Suite struct MarkedNewsTests {
    typealias Mask = InotifyRecord.Mask

    @Test(
        arguments: [
            ([.created, .closedAfterWriting], true, [.created, .closedAfterWriting]),
            ([.attributes], true, [.attributes]),
            ([.movedTo], true, [.movedTo]),
            ([.deleted], false, [.deleted]),
            ([.movedFrom], false, [.movedFrom]),
            // Created, deleted and created again, in any order: one record.
            ([.created, .closedAfterWriting, .deleted], true, [.closedAfterWriting]),
            ([.created, .closedAfterWriting, .deleted], false, [.deleted]),
            // Renamed away, and another has its name already.
            ([.movedFrom], true, [.closedAfterWriting]),
            ([.created, .isDirectory], true, [.isDirectory]),
            ([.movedTo, .isDirectory], true, [.movedTo, .isDirectory]),
            ([.deleted, .isDirectory], false, [.deleted, .isDirectory]),
            ([.created, .deleted, .isDirectory], true, [.deleted, .movedTo, .isDirectory]),
            ([.movedFrom, .isDirectory], true, [.movedFrom, .movedTo, .isDirectory]),
        ] as [(Mask, Bool, Mask)])
    func `what has gone is decided by what is there`(mask: Mask, isThere: Bool, meaning: Mask) {
        #expect(FanotifyMounts.meaning(mask) { isThere } == meaning)
    }

    @Test func `only what is said to have gone costs a look at the disk`() {
        var looks = 0
        for mask in [[.created], [.closedAfterWriting, .attributes], [.movedTo, .isDirectory]] as [Mask] {
            _ = FanotifyMounts.meaning(mask) {
                looks += 1
                return true
            }
        }
        #expect(looks == 0)
    }

    @Test func `a dot is the folder itself, and the root has nothing to say of itself`() {
        let name = Array("n".utf8)
        #expect(FanotifyMounts.subject("a/b", name).map { "\($0.directory) \($0.name)" } == "a/b \(name)")
        #expect(FanotifyMounts.subject("a/n", [0x2E]).map { "\($0.directory) \($0.name)" } == "a \(name)")
        #expect(FanotifyMounts.subject("", [0x2E]) == nil)
    }

    @Test func `a path is below a root by whole names`() {
        #expect(HandleReader.path(of: "/srv/drop/a/b", below: "/srv/drop") == "a/b")
        #expect(HandleReader.path(of: "/srv/drop", below: "/srv/drop") == "")
        #expect(HandleReader.path(of: "/srv/dropped/a", below: "/srv/drop") == nil)
        #expect(HandleReader.path(of: "/srv", below: "/srv/drop") == nil)
        #expect(HandleReader.path(of: "/srv/drop", below: "/") == "srv/drop")
        #expect(HandleReader.path(of: "/", below: "/") == "")
    }

    @Test func `what is remembered of folders is bounded, and can be forgotten`() {
        var places = HandleCache(limit: 10)
        for number in 0..<100 as Range<UInt8> {
            let handle = FileHandle(fileSystem: 1, type: 1, bytes: [number])
            let place: FilePath? = number % 2 == 0 ? nil : "a"
            places.remember(handle, place)
            #expect(places[handle] == .some(place))
            #expect(places.count <= 10)
        }
        places.forgetAll()
        #expect(places.count == 0)
    }
}
