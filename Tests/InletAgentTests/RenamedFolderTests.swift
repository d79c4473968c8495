import Foundation
import InletAgent
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

/// What becomes of files whose folders are renamed, and of those that leave the root and come back.
@Suite struct RenamedFolderTests {
    @Test func `a folder that is renamed again, after its files were recognised, still sends nothing`() async throws {
        var scene = try Scene()
        scene.route.key = try KeyTemplate("{dir}/{name}")
        try await scene.run { stage in
            try scene.drop("card/sub/a", "the same")
            let first = try await stage.finished("card/sub/a")
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
        scene.here.failProbes(.outage)
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
            try await eventually("its new name is seen") { stage.agent.control.live?.roots.first?.settling == 1 }
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
            try scene.drop("card/a", "the same")
            try await stage.finished("card/a")
            try move(stage.root.appending("card"), to: outside)
            try scene.drop("card/b")
            try await stage.finished("card/b")
            try remove(stage.root.appending("card"))
            try move(outside, to: stage.root.appending("card"))
            // Moved by itself it has another ctime: its content is looked at.
            let file = stage.root.pushing("card/a")
            try move(file, to: outside)
            try move(outside, to: file)
            try await eventually("it is recognised") { stage.events.count("job.unchanged") == 1 }
            try scene.drop("card/last")
            try await stage.finished("card/last")
            #expect(try await stage.jobs().count == 3)
        }
        #expect(scene.here.record.orders.map(\.key) == ["card/a", "card/b", "card/last"])
    }

    @Test func `a file that waits and is moved to another watched folder arrives once, from there`() async throws {
        var scene = try Scene()
        let other = try scene.directory.makeDirectory("other")
        scene.watch.append(WatchSettings(path: other, settle: .zero, rescan: nil))
        scene.here.failProbes(.outage)
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
            let time = Date(timeIntervalSince1970: 1_700_000_000)
            let draft = try scene.directory.write(Array("one".utf8), to: "draft")
            try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: draft.string)
            let file = stage.root.appending("a.txt")
            try move(draft, to: file)
            let first = try await stage.finished("a.txt")
            // Written into the same inode, and dated back: what a new file in an inode that was freed looks like.
            let writer = try FileDescriptor.open(file, .writeOnly, options: .closeOnExec)
            try writer.writeAll(Array("two".utf8))
            try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: file.string)
            try writer.close()
            let second = try await stage.job("a.txt", "delivered anew") { job in
                job.file.id != first.file.id && job.file.state == .delivered
                    && job.file.identity.modified == first.file.identity.modified
            }
            #expect(scene.here.record.stored[second.deliveries[0].key ?? ""] == Array("two".utf8))
        }
    }
}
