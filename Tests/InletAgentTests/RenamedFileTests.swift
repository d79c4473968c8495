import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

/// Renames inside a watched folder, by the two events that the kernel ties together.
@Suite struct RenamedFileTests {
    @Test func `a delivered file that is renamed is not sent again, nor after a restart`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let file = try scene.drop("a.txt", "the same")
            let first = try await stage.finished("a.txt")
            try move(file, to: stage.root.appending("b.txt"))
            let job = try await stage.job("b.txt")
            #expect(job.file.id == first.file.id && job.file.state == .delivered)
            try await eventually("it is said") { stage.events.count("job.renamed") == 1 }
        }
        try await scene.run { stage in
            try await stage.process("last")
            #expect(try await stage.jobs().map(\.file.path) == ["last", "b.txt"])
        }
        #expect(scene.here.record.orders.map(\.key) == ["a.txt", "last"])
    }

    @Test func `a folder of delivered files that is renamed sends nothing again, but what is new in it`() async throws {
        var scene = try Scene()
        scene.route.key = try KeyTemplate("{dir}/{name}")
        try await scene.run { stage in
            for name in ["card/a", "card/sub/b"] as [FilePath] { try await stage.process(name) }
            try move(stage.root.appending("card"), to: stage.root.appending("monday"))
            for name in ["monday/a", "monday/sub/b"] as [FilePath] { try await stage.job(name) }
            try await stage.process("monday/sub/c")
            #expect(try await stage.jobs().count == 3)
            #expect(scene.here.record.orders.map(\.key) == ["card/a", "card/sub/b", "monday/sub/c"])
        }
    }

    @Test func `a file that waits for its destination follows its new path, with one key and one row`() async throws {
        let scene = try Scene()
        scene.here.failProbes(.outage, .outage, .outage)
        scene.here.script("first.txt", .fail(.outage))
        try await scene.run { stage in
            try scene.drop("first.txt")
            try await eventually("the destination is down") { stage.events.names.contains("destination.down") }
            let file = try scene.drop("IMG_1.jpg", "picture")
            let job = try await stage.job("IMG_1.jpg")
            try move(file, to: stage.root.appending("wedding.jpg"))
            let renamed = try await stage.job("wedding.jpg")
            #expect(renamed.file.id == job.file.id && renamed.file.state == .pending)
            #expect(renamed.deliveries.map(\.key) == ["wedding.jpg"])
            #expect(try await stage.jobs().count == 2)
        }
        scene.here.forgetProbeErrors()
        try await scene.run { stage in
            try await stage.finished("wedding.jpg")
            #expect(scene.here.record.stored["wedding.jpg"] == Array("picture".utf8))
            #expect(scene.here.attempts(at: "IMG_1.jpg") == 0)
        }
    }

    @Test func `a file that is renamed while it is copied begins anew, and arrives under its new name alone`()
        async throws
    {
        var scene = try Scene()
        let library = try scene.directory.makeDirectory("library")
        scene.destinations = [.folder("here", library)]
        let (old, new) = (scene.root.appending("a.txt"), scene.root.appending("b.txt"))
        // Its copy is about to be begun.
        scene.onEvent = { event in if case .jobCheckpoint = event { _ = rename(old.string, new.string) } }
        try await scene.run { stage in
            #expect(try await stage.process("a.txt", as: .gone).file.code == .sourceGone)
            try await stage.finished("b.txt")
            #expect(stage.events.count("job.renamed") == 0)
            #expect(try await stage.jobs().count == 2)
        }
        #expect(try names(in: library) == ["b.txt"])
        #expect(try text(library.appending("b.txt")) == "content")
    }

    @Test func `a file that is renamed and changed is a new arrival`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let file = try scene.drop("a.txt", "one")
            let first = try await stage.finished("a.txt")
            try move(file, to: stage.root.appending("b.txt"))
            try await stage.job("b.txt")
            try Data("another".utf8).write(to: URL(fileURLWithPath: stage.root.appending("b.txt").string))
            let second = try await stage.job("b.txt", "delivered anew") { job in
                job.file.id != first.file.id && job.file.state == .delivered
            }
            #expect(scene.here.record.stored[second.deliveries[0].key ?? ""] == Array("another".utf8))
        }
    }

    @Test func `a file that another route takes under its new path is sent by that`() async throws {
        var scene = try Scene()
        let there = ScriptedPipeline()
        scene.destinations.append(.scripted("there", there))
        var approved = Route(name: "approved", key: try KeyTemplate("{name}"), to: ["there"])
        approved.match.paths = [try GlobPattern("ok/**")]
        scene.others = [scene.route]
        scene.route = approved
        try await scene.run { stage in
            let file = try await stage.process("a.txt").file.fullPath
            try scene.directory.makeDirectory("drop/ok")
            try move(file, to: stage.root.pushing("ok/a.txt"))
            try await stage.finished("ok/a.txt")
            #expect(there.record.stored.keys.sorted() == ["a.txt"])
            #expect(try await stage.jobs().count == 2)
        }
    }

    @Test func `a new link to a delivered file is no rename: both names are files`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let file = try await stage.process("a.txt", "linked").file.fullPath
            try makeLink(stage.root.appending("b.txt"), to: file)
            try await stage.finished("b.txt")
            #expect(scene.here.record.stored == ["a.txt": Array("linked".utf8), "b.txt": Array("linked".utf8)])
        }
    }

    /// Few kernels that run tests can fold case. exFAT through FUSE (`FoldingFolderTests`) gives each spelling an inode of its
    /// own.
    @Test func `a name that a folder still shows after a rename is no second one, unless it is a link`() {
        let file = FileIdentity(size: 1, modified: 1, changed: 1, inode: 7, device: 3)
        let (other, away) = (file.with(\.inode, 8), file.with(\.device, 4))
        #expect(FileLook.missing.isLeft(by: file) && FileLook.directory(file).isLeft(by: file))
        #expect(FileLook.symlink.isLeft(by: file) && FileLook.other.isLeft(by: file))
        #expect(FileLook.regular(file, owner: 0, links: 1).isLeft(by: file))
        #expect(!FileLook.regular(file, owner: 0, links: 2).isLeft(by: file))
        for another in [other, away] { #expect(FileLook.regular(another, owner: 0, links: 2).isLeft(by: file)) }
    }

    @Test func `of two links the one that is deleted takes nothing from the other`() async throws {
        var scene = try Scene()
        scene.route.onSuccess = .delete
        let file = try scene.drop("a.txt", "linked")
        try makeLink(scene.directory.path.appending("outside.txt"), to: file)
        try await scene.run { stage in try await stage.finished("a.txt") }
        #expect(!isThere(file))
        #expect(try text(scene.directory.path.appending("outside.txt")) == "linked")
    }
}

extension FileIdentity {
    fileprivate func with(_ part: WritableKeyPath<FileIdentity, UInt64>, _ value: UInt64) -> FileIdentity {
        var identity = self
        identity[keyPath: part] = value
        return identity
    }
}

/// What becomes of files whose folders are renamed, and of those that leave the root and come back.
@Suite struct RenamedFolderTests {
    @Test func `a folder that is renamed again, after its files were recognised, still sends nothing`() async throws {
        var scene = try Scene()
        scene.route.key = try KeyTemplate("{dir}/{name}")
        try await scene.run { stage in
            let first = try await stage.process("card/sub/a", "the same")
            var place: FilePath = "card"
            for name in ["monday", "tuesday", "card"] as [FilePath] {
                try move(stage.root.pushing(place), to: stage.root.pushing(name))
                let job = try await stage.job(name.pushing("sub/a"))
                #expect(job.file.id == first.file.id && job.file.state == .delivered)
                place = name
            }
            #expect(try await stage.jobs().count == 1)
        }
        #expect(scene.here.record.orders.map(\.key) == ["card/sub/a"])
    }

    @Test func `files that wait go along with their folder, each with one key and one row`() async throws {
        var scene = try Scene()
        scene.route.key = try KeyTemplate("{dir}/{name}")
        scene.here.failProbes(.outage, .outage, .outage)
        scene.here.script("first", .fail(.outage))
        let names: [FilePath] = ["a", "sub/b"]
        try await scene.run { stage in
            try scene.drop("first")
            try await eventually("the destination is down") { stage.events.names.contains("destination.down") }
            var old: [Int64] = []
            for name in names {
                try scene.drop(FilePath("card").pushing(name), name.string)
                old.append(try await stage.job(FilePath("card").pushing(name)).file.id)
            }
            try move(stage.root.appending("card"), to: stage.root.appending("wedding"))
            for (name, id) in zip(names, old) {
                let job = try await stage.job(FilePath("wedding").pushing(name))
                #expect(job.file.id == id && job.file.state == .pending)
                #expect(job.deliveries.map(\.key) == ["wedding/\(name)"])
            }
            #expect(try await stage.jobs().count == 3)
        }
        scene.here.forgetProbeErrors()
        try await scene.run { stage in
            for name in names { try await stage.finished(FilePath("wedding").pushing(name)) }
            #expect(scene.here.record.stored["wedding/sub/b"] == Array("sub/b".utf8))
            #expect(scene.here.attempts(at: "card/a") + scene.here.attempts(at: "card/sub/b") == 0)
        }
    }

    @Test func `a file that is renamed while it is sent is sent once`() async throws {
        let scene = try Scene()
        let gate = Gate()
        scene.here.script("a.txt", .hold(gate, .deliver))
        try await scene.run { stage in
            let file = try scene.drop("a.txt", "the same")
            try await eventually("it is being sent") { scene.here.attempts(at: "a.txt") == 1 }
            try move(file, to: stage.root.appending("b.txt"))
            try await eventually("its new name is seen") { stage.rootStatus?.settling == 1 }
            gate.open()
            let job = try await stage.job("b.txt", "delivered") { $0.file.state == .delivered }
            #expect(try await stage.jobs().map(\.file.id) == [job.file.id])
        }
        #expect(scene.here.record.orders.map(\.key) == ["a.txt"])
    }

    @Test func `a delivered file or folder that leaves the root and comes back is not sent again`() async throws {
        var scene = try Scene()
        scene.here.always(.prove)
        scene.route.key = try KeyTemplate("{dir}/{name}")
        let outside = scene.directory.path.appending("outside")
        try await scene.run { stage in
            try await stage.process("card/a", "the same")
            try move(stage.root.appending("card"), to: outside)
            try await stage.process("card/b")
            try remove(stage.root.appending("card"))
            try move(outside, to: stage.root.appending("card"))
            // Moved by itself it has another ctime: its content is looked at.
            let file = stage.root.pushing("card/a")
            try move(file, to: outside)
            try move(outside, to: file)
            try await eventually("it is recognised") { stage.events.count("job.unchanged") == 1 }
            try await stage.process("card/last")
            #expect(try await stage.jobs().count == 3)
        }
        #expect(scene.here.record.orders.map(\.key) == ["card/a", "card/b", "card/last"])
    }

    @Test func `a file that waits and is moved to another watched folder arrives once, from there`() async throws {
        var scene = try Scene()
        let other = try scene.directory.makeDirectory("other")
        scene.watch.append(WatchSettings(path: other, settle: .zero, rescan: nil))
        scene.here.failProbes(.outage, .outage, .outage)
        scene.here.script("first", .fail(.outage))
        try await scene.run { stage in
            try scene.drop("first")
            try await eventually("the destination is down") { stage.events.names.contains("destination.down") }
            let file = try scene.drop("a.txt", "moved")
            try await stage.job("a.txt")
            try move(file, to: other.appending("b.txt"))
            let moved = try await stage.job("b.txt")
            #expect(moved.file.root == other && moved.file.state == .pending)
        }
        scene.here.forgetProbeErrors()
        try await scene.run { stage in
            try await stage.finished("b.txt")
            try await stage.finished("a.txt", .gone)
        }
        #expect(scene.here.record.stored["b.txt"] == Array("moved".utf8) && scene.here.record.stored["a.txt"] == nil)
    }

    @Test func `another file with the same inode, size and time is another file`() async throws {
        let scene = try Scene()
        scene.here.always(.prove)
        try await scene.run { stage in
            let draft = try scene.directory.write(Array("one".utf8), to: "draft")
            try setTime(draft)
            let file = stage.root.appending("a.txt")
            try move(draft, to: file)
            let first = try await stage.finished("a.txt")
            // Written into the same inode, and dated back: what a new file in an inode that was freed looks like.
            let writer = try FileDescriptor.open(file, .writeOnly, options: .closeOnExec)
            try writer.writeAll(Array("two".utf8))
            try setTime(file)
            try writer.close()
            let second = try await stage.job("a.txt", "delivered anew") { job in
                job.file.id != first.file.id && job.file.state == .delivered
                    && job.file.identity.modified == first.file.identity.modified
            }
            #expect(scene.here.record.stored[second.deliveries[0].key ?? ""] == Array("two".utf8))
        }
    }
}
