import Foundation
import InletAgent
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@Suite struct WatchingTests {
    @Test func `files that are there at the start are delivered, in every folder`() async throws {
        let scene = try Scene()
        for name in ["a", "x/b", "x/y/c"] as [FilePath] { try scene.drop(name) }
        try await scene.run { stage in
            for name in ["a", "x/b", "x/y/c"] as [FilePath] { try await stage.finished(name) }
        }
    }

    @Test func `a thousand folders made at once lose no file`() async throws {
        var scene = try Scene()
        scene.route.key = try KeyTemplate("{dir}/{name}")
        try await scene.run { stage in
            for number in 0..<1000 { try scene.drop(FilePath("\(number)/DCIM/100CANON/photo.jpg"), "\(number)") }
            try await eventually("all are delivered") { scene.here.record.stored.count == 1000 }
            #expect(scene.here.record.orders.count == 1000)
        }
    }

    @Test func `a storm of renames, exchanges and new folders, with nothing rescanned, loses no file`() async throws {
        var scene = try Scene()
        scene.route.key = try KeyTemplate("{dir}/{name}")
        let outside = try scene.directory.makeDirectory("outside")
        try await scene.run { stage in
            var storm = FolderStorm(seed: 1, root: stage.root, outside: outside)
            for _ in 0..<Load.of(2000) { try storm.step() }
            let files = try FolderStorm.content(of: stage.root).files
            let names = Set(files.map { "\($0) \($1.size)" })
            try await eventually("what each name has in the end is delivered") {
                let delivered = try await stage.jobs().filter { $0.file.state == .delivered }
                return names.isSubset(of: delivered.map { "\($0.file.path) \($0.file.identity.size)" })
            }
        }
    }

    @Test func `a folder that is moved in is taken whole, one that is moved out is forgotten`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let outside = scene.directory.path.appending("outside")
            try scene.directory.write([1], to: "outside/deep/a")
            try move(outside, to: stage.root.appending("inside"))
            try await stage.finished("inside/deep/a")
            let gone = scene.directory.path.appending("gone")
            try move(stage.root.appending("inside"), to: gone)
            try scene.directory.write([2], to: "gone/deep/b")
            try await stage.process("last")
            #expect(try await stage.jobs().map(\.file.path) == ["last", "inside/deep/a"])
        }
    }

    @Test func `a renamed folder is watched under its new name`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            try await stage.process("old/a")
            try move(stage.root.appending("old"), to: stage.root.appending("new"))
            try await stage.process("new/b")
        }
    }

    @Test(arguments: ["b", "b.part"] as [FilePath])
    func `names that change places are looked at, both of them`(_ other: FilePath) async throws {
        var scene = try Scene()
        scene.watch[0].settle = .seconds(3)
        try await scene.run { stage in
            let (one, two) = (try scene.drop("a", "first"), try scene.drop(other, "the second"))
            try #require(exchange(two, one))
            try await stage.finished("a")
            if other == "b" { try await stage.finished("b") }
            // What has settled already is found under its new name as well.
            try #require(exchange(two, one))
            try await eventually("what each name has now is taken") {
                let sizes = try await stage.jobs().filter { $0.file.path == "a" }.map(\.file.identity.size)
                let others = try await stage.jobs().filter { $0.file.path == "b" }.map(\.file.identity.size)
                return sizes == [5, 10] && (others == [10, 5] || other != "b")
            }
        }
    }

    @Test func `an empty file that only holds a name is taken when it is whole, and once`() async throws {
        var scene = try Scene()
        scene.watch[0].settleEmpty = .seconds(3600)
        try await scene.run { stage in
            let file = try scene.drop("a.mov", "")
            try await unsettled("a.mov", "settle_empty", stage)
            try move(scene.drop("a.mov.tmp"), over: file)
            #expect(try await stage.finished("a.mov").file.identity.size == 7)
            #expect(try await stage.jobs().count == 1)
        }
    }

    @Test(arguments: ["a.mov.part", "a.Xy12Zw34.mov.part", "a.mov.crdownload"])
    func `an empty file waits as long as what it is to become is beside it`(_ part: String) async throws {
        var scene = try Scene()
        scene.watch[0].settleEmpty = .milliseconds(1)
        try await scene.run { stage in
            let fetched = try scene.drop(FilePath(part))
            let file = try scene.drop("a.mov", "")
            try await unsettled("a.mov", "\(part) is beside it", stage)
            try move(fetched, over: file)
            #expect(try await stage.finished("a.mov").file.identity.size == 7)
            #expect(try await stage.jobs().count == 1)
        }
    }

    private func unsettled(_ path: FilePath, _ why: String, _ stage: Stage) async throws {
        try await eventually("\(path) waits: \(why)") {
            let waiting = stage.rootStatus?.unsettled ?? []
            return waiting.contains { $0.path == stage.root.pushing(path) && $0.why?.contains(why) == true }
        }
    }

    @Test func `only regular files are taken; links and FIFOs are left alone and said once`() async throws {
        let scene = try Scene()
        let secret = try scene.directory.write([1], to: "secret")
        try await scene.run { stage in
            for name in ["one", "two"] { try makeSymlink(stage.root.appending(name), to: secret) }
            try makeFIFO(stage.root.appending("pipe"))
            try await stage.process("a")
            #expect(try await stage.jobs().map(\.file.path) == ["a"])
            try await eventually("all three are counted") { stage.rootStatus?.ignored == 3 }
            #expect(stage.events.count("file.ignored") == 1)
        }
    }

    @Test func `names are bytes: not UTF-8, with newlines, of 255 bytes`() async throws {
        var scene = try Scene()
        scene.route.onSuccess = .archive
        let hostile = [
            [0x61, 0xFF, 0xFE, 0x2E, 0x74], Array("new\nline\u{1B}[31m".utf8), [UInt8](repeating: 0x62, count: 255),
        ]
        try await scene.run { stage in
            for name in hostile {
                try overwrite(stage.root.pushing(FilePath(bytes: name)), "content", .create)
            }
            for name in hostile {
                try await stage.finished(FilePath(bytes: name))
                #expect(isThere(stage.root.pushing(".inlet/done").pushing(FilePath(bytes: name))))
            }
            for event in stage.events.all {
                for case (_, .text(let text)) in event.line.fields {
                    #expect(!text.contains("\n") && !text.contains("\u{1B}"))
                }
            }
        }
    }

    @Test func `a chmod, a touch of the inode or a restart sends nothing again`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let file = try await stage.process("a").file.fullPath
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.string)
            try await eventually("it is known") {
                try await stage.job("a").file.identity == FileLook.look(at: file).identity
            }
        }
        try await scene.run { stage in
            try await stage.process("b")
            #expect(try await stage.jobs().count == 2)
            #expect(scene.here.record.orders.count == 2)
        }
    }

    @Test func `a file that is open for writing waits, however old its time is`() async throws {
        let scene = try Scene()
        let file = try scene.drop("a", "whole")
        try setTime(file, Date(timeIntervalSince1970: 1e9))
        try await whileWriting(file) {
            try await scene.run { stage in
                try await stage.process("b")
                try await eventually("it is seen as busy") { stage.rootStatus?.unsettled.first?.busy == true }
                #expect(try await stage.jobs().map(\.file.path) == ["b"])
            }
        }
        try await scene.run { stage in try await stage.finished("a") }
    }

    /// How many events the kernel keeps for one inotify instance.
    private static let queuedEvents =
        (try? text("/proc/sys/fs/inotify/max_queued_events")).flatMap { Int($0.filter(\.isNumber)) } ?? 16_384

    @Test(.enabled(if: queuedEvents <= 50_000, "a longer queue takes minutes to fill"))
    func `when the kernel loses events, everything is listed again`() async throws {
        var scene = try Scene()
        let gate = DispatchSemaphore(value: 0)
        let held = Count()
        scene.onEvent = { event in
            guard event.line.name == "watch.added" else { return }
            held.add()
            _ = gate.wait(timeout: .now() + 180)
        }
        try scene.directory.makeDirectory("drop/sub")
        try await scene.run { stage in
            try await eventually("the intake's thread is held") { held.value == 1 }
            // The kernel's queue runs over, and the last file's event with it.
            let (one, two) = (try scene.drop("sub/one"), try scene.drop("sub/two"))
            for number in 0..<Self.queuedEvents {
                let mode: FilePermissions = number.isMultiple(of: 2) ? .ownerReadWrite : .ownerRead
                try setMode(mode, of: one)
                try setMode(mode, of: two)
            }
            try scene.drop("sub/late")
            gate.signal()
            try await stage.finished("sub/late")
            #expect(stage.events.count("watch.overflow") >= 1)
        }
    }

    @Test func `a missing root is said once and watched when it appears; others go on`() async throws {
        var scene = try Scene()
        let late = scene.directory.path.appending("late")
        scene.watch.append(WatchSettings(path: late, settle: .zero, rescan: nil))
        try await scene.run { stage in
            try await stage.process("a")
            try scene.directory.write([1], to: "late/b")
            try await stage.finished("b")
            try remove(late)
            try await eventually("its loss is said, with the cause") {
                let reasons = losses(stage)
                return reasons.count >= 2 && reasons.contains { $0.contains("removed") }
            }
            try await stage.process("c")
            try scene.directory.write([2, 2], to: "late/d")
            try await stage.finished("d")
            #expect(losses(stage).count <= 3, "\(losses(stage))")
        }
    }

    /// What was said of roots that went.
    private func losses(_ stage: Stage) -> [String] {
        stage.events.all.compactMap { event in if case .watchLost(_, let reason) = event { reason } else { nil } }
    }

    @Test func `what was there before the first start is skipped where asked for`() async throws {
        var scene = try Scene()
        scene.watch[0].existing = .skip
        let old = try scene.drop("old")
        try await outlast(old)
        for name in ["new", "newer"] {
            try await scene.run { stage in
                try await eventually("the root is watched") { stage.events.names.contains("watch.added") }
                try await stage.process(FilePath(name))
            }
        }
        #expect(scene.here.record.stored.keys.sorted() == ["new", "newer"])
    }

    @Test func `what no route takes is said once per folder and extension, and counted`() async throws {
        var scene = try Scene()
        scene.route.match.extensions = ["jpg"]
        try await scene.run { stage in
            for name in ["a.txt", "b.txt", "c.pdf"] as [FilePath] { try scene.drop(name) }
            try await stage.process("d.jpg")
            try await eventually("they are counted") { stage.rootStatus?.ignored == 3 }
            #expect(stage.events.count("file.ignored") == 2)
            let balance = try await stage.agent.control.balance()
            #expect(balance.seen == 4 && balance.ignored == 3 && balance.pending == 0)
        }
    }
}

private func setMode(_ mode: FilePermissions, of path: FilePath) throws {
    try FileManager.default.setAttributes([.posixPermissions: Int(mode.rawValue)], ofItemAtPath: path.string)
}

private func makeFIFO(_ path: FilePath) throws { try runProgram("/usr/bin/mkfifo", [path.string]) }
