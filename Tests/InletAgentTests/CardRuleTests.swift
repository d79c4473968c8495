import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

/// What rules of the configuration mean on cards.
@Suite(.enabled(if: CardReader.isAvailable, "needs the right to mount")) struct CardRuleTests {
    private let reader: CardReader
    private let base: Scene

    init() throws {
        let directory = try TemporaryDirectory()
        reader = try CardReader(directory)
        base = try reader.scene()
    }

    @Test func `a card whose files are kept is done as soon as the last has arrived`() async throws {
        try reader.makeCard("A", with: "a.jpg")
        try await base.run { stage in
            try await reader.insert("A", at: "one", stage, done: 1)
            try reader.shoot("b.jpg", on: "A")
            try await eventually("it is safe again") { stage.events.count("volume.done") == 2 }
            #expect(base.here.record.stored.count == 2)
        }
    }

    @Test func `a unit of which half has come waits for its card, and goes as one from where that comes back`()
        async throws
    {
        var scene = base
        scene.route.match.paths = [try GlobPattern("gigs/**")]
        scene.route.key = try KeyTemplate("{folder[2]}/{name}")
        (scene.route.unit, scene.route.completion) = (.folder, .marker)
        for card in ["A", "B"] as [FilePath.Component] {
            try reader.makeCard(card)
            try reader.shoot("gigs/X/a", on: card, "\(card)")
        }
        try await scene.run { stage in
            try reader.insert("A", at: "one")
            try await stage.job("gigs/X/a")
            try await reader.pull("one", stage)
            // Another card in its place has a folder of the same name, which is complete.
            try reader.shoot("gigs/X/DONE", on: "B", "")
            try reader.insert("B", at: "one")
            try await eventually("the other is delivered") { stage.events.count("batch.ended") == 1 }
            #expect(scene.here.record.stored.values.map { String(decoding: $0, as: UTF8.self) } == ["B"])
            try reader.shoot("gigs/X/b", on: "A")
            try reader.insert("A", at: "two")
            try await eventually("the rest has come") {
                try await stage.jobs().count { $0.file.state == .pending } == 2
            }
            #expect(scene.here.record.stored.count == 1)
            try reader.shoot("gigs/X/DONE", on: "A", "")
            try await eventually("it is delivered") { stage.events.count("batch.ended") == 2 }
            let jobs = try await stage.jobs()
            #expect(Set(jobs.map(\.file.batchID)).count == 2)
            #expect(scene.here.record.stored.count == 3 && jobs.allSatisfy { $0.file.state == .delivered })
        }
    }

    @Test func `a card is not done while a file waits for its marker, and is as soon as that has come`()
        async throws
    {
        var scene = base
        scene.route.completion = .marker
        try reader.makeCard("A")
        for file in ["a.jpg", "a.jpg.done", "b.jpg"] as [FilePath] { try reader.shoot(file, on: "A") }
        try await scene.run { stage in
            try reader.insert("A", at: "one")
            try await stage.finished("a.jpg")
            try await eventually("one is missing") { stage.events.count("volume.unverified") > 0 }
            #expect(stage.events.count("volume.done") == 0)
            try reader.shoot("b.jpg.done", on: "A")
            try await stage.finished("b.jpg")
            try await eventually("it is safe") { stage.events.count("volume.done") == 1 }
        }
    }

    @Test(arguments: [WatchSettings.Existing.skip, .adopt])
    func `what was there first is asked of each card, not of its mount point`(_ existing: WatchSettings.Existing)
        async throws
    {
        var scene = base
        scene.watch[0].existing = existing
        for card in ["A", "B"] as [FilePath.Component] { try reader.makeCard(card) }
        try reader.shoot("old.jpg", on: "A")
        try await scene.run { stage in
            func isKnown() -> Bool { stage.agent.control.cards.first?.facts.stage == .known }
            try reader.insert("A", at: "one")
            try await eventually("all is known of it") { isKnown() }
            // After the first card's first day, and before its own.
            try reader.shoot("old.jpg", on: "B")
            try await reader.pull("one", stage)
            try reader.insert("B", at: "one")
            try await eventually("all is known of the other") { isKnown() }
            #expect(scene.here.record.stored.isEmpty)
            // Nothing proves that somebody has those files.
            #expect(stage.events.count("volume.done") == 0)
            try reader.shoot("new.jpg", on: "B")
            try await stage.finished("new.jpg")
            #expect(scene.here.record.stored.keys.sorted() == ["new.jpg"])
        }
    }

    @Test func `with a number, a card may go although a destination is down, and that waits for its return`()
        async throws
    {
        let slow = ScriptedPipeline()
        slow.always(.stall)
        var scene = base
        scene.watch[0].volumeDoneAfter = 1
        scene.destinations.append(.scripted("slow", slow))
        scene.route.to = ["here", "slow"]
        try reader.makeCard("A", with: "a.jpg")
        try await scene.run { stage in
            try await reader.insert("A", at: "one", stage, done: 1)
            #expect(try await stage.job("a.jpg").file.state == .pending)
            #expect(slow.record.stored.isEmpty)
        }
        slow.always(.deliver)
        try await scene.run { stage in
            try await stage.finished("a.jpg")
            #expect(slow.record.stored.count == 1 && scene.here.record.stored.count == 1)
        }
    }

    @Test(arguments: [false, true])
    func `nothing on a card is moved, deleted or written unless volume_writes says so`(_ writes: Bool) async throws {
        var scene = base
        scene.watch[0].volumeWrites = writes
        scene.route.validate.maxSize = 7
        (scene.route.onSuccess, scene.route.onFailure, scene.route.receipts) = (.delete, .quarantine, .sidecar)
        let card = try reader.makeCard("A")
        try reader.shoot("100/good.jpg", on: "A", "content")
        try reader.shoot("100/bad.jpg", on: "A", "too long")
        let before = try listing(card)
        #expect(before.count == 4)
        try await scene.run { stage in
            try reader.insert("A", at: "one")
            let good = try await stage.finished("100/good.jpg")
            let bad = try await stage.finished("100/bad.jpg", .rejected)
            #expect((good.file.disposition == Disposition.kept) == !writes)
            #expect((bad.file.disposition == Disposition.kept) == !writes)
        }
        let after = try listing(card)
        guard writes else {
            #expect(after == before)
            return
        }
        let failed = "DCIM/.inlet/failed/100/bad.jpg"
        #expect(after[failed]?.hasSuffix("too long") == true)
        #expect(
            after.keys.filter { $0.contains("jpg") }.sorted()
                == ["", ".inlet-receipt.json", ".reason.json"].map { failed + $0 })
    }

    /// All that is on a card: times and contents by name. Whatever is made in a folder, and be it for a moment, shows in the
    /// folder's time.
    private func listing(_ card: FilePath) throws -> [String: String] {
        var listing: [String: String] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: card.string) {
            let path = card.pushing(FilePath(name))
            var status = stat()
            try #require(lstat(path.string, &status) == 0)
            let isFile = status.st_mode & S_IFMT == S_IFREG
            let time = "\(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec)"
            listing[name] = try "\(time) \(isFile ? text(path) : "")"
        }
        return listing
    }
}

/// Camera cards for tests: file systems in memory that stay as they are, and that are mounted in `media` when they are put in.
/// Only the hardware is missing, and FAT.
final class CardReader: Sendable {
    let directory: TemporaryDirectory
    var media: FilePath { directory.path.appending("media") }

    /// Whether this machine lets us mount, and gives file systems in memory an ID.
    static let isAvailable: Bool = {
        guard getuid() == 0, let reader = try? CardReader(TemporaryDirectory()) else { return false }
        guard let card = try? reader.makeCard("test"),
            let folder = try? VolumeFinder().identity(of: card), folder.fsid != nil
        else { return false }
        return (try? reader.insert("test", at: "slot")) != nil
    }()

    init(_ directory: TemporaryDirectory) throws {
        self.directory = directory
        try directory.makeDirectory("media")
        try directory.makeDirectory("cards")
    }

    /// An agent that watches `DCIM` of every card.
    func scene() throws -> Scene {
        var scene = try Scene(in: directory)
        var watch = WatchSettings(path: media.appending("*").appending("DCIM"), settle: .zero, rescan: nil)
        watch.pattern = try RootPattern(watch.path)
        // Scripted destinations compare no checksum.
        watch.card.acceptsSize = true
        scene.watch = [watch]
        return scene
    }

    /// A new card with pictures in its folder `DCIM`. - Returns: where it can be written to, mounted elsewhere or not.
    @discardableResult
    func makeCard(_ name: FilePath.Component, with pictures: FilePath...) throws -> FilePath {
        let card = try directory.makeDirectory(FilePath("cards").appending(name))
        try runProgram("/bin/mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", card.string])
        try directory.makeDirectory(FilePath("cards").appending(name).appending("DCIM"))
        for picture in pictures { try shoot(picture, on: name) }
        return card
    }

    /// A camera writes a picture. It is there at once with its time: one that gets it later would be another file by then.
    func shoot(_ picture: FilePath, on card: FilePath.Component, _ content: String = "content") throws {
        let place = FilePath("cards").appending(card)
        let draft = try directory.write(Array(content.utf8), to: place.appending("draft"))
        // Cameras whose clock was never set take their first pictures at the same time.
        try setTime(draft, Date(timeIntervalSince1970: 1_000_000_000))
        let path = directory.path.pushing(place).appending("DCIM").pushing(picture)
        try FileManager.default.createDirectory(
            atPath: path.removingLastComponent().string, withIntermediateDirectories: true)
        try DurableFile.rename(draft, to: path)
    }

    func insert(_ card: FilePath.Component, at slot: FilePath.Component) throws {
        let point = try directory.makeDirectory(FilePath("media").appending(slot))
        let source = directory.path.appending("cards").appending(card)
        try runProgram("/bin/mount", ["--bind", source.string, point.string])
    }

    /// Puts a card in, and waits until so many are done.
    func insert(_ card: FilePath.Component, at slot: FilePath.Component, _ stage: Stage, done count: Int) async throws {
        try insert(card, at: slot)
        try await eventually("it is done") { stage.events.count("volume.done") == count }
    }

    func pull(_ slot: FilePath.Component) throws {
        try runProgram("/bin/umount", ["-l", media.appending(slot).string])
        try remove(media.appending(slot))
    }

    /// Takes a card out, and waits until the agent has said so of that many.
    func pull(_ slot: FilePath.Component, _ stage: Stage, _ count: Int = 1) async throws {
        try pull(slot)
        try await eventually("it has gone") { stage.events.count("volume.removed") == count }
    }

    /// Takes everything out.
    deinit {
        for folder in ["media", "cards"] as [FilePath.Component] {
            let path = directory.path.appending(folder)
            for name in (try? names(in: path)) ?? [] {
                try? runProgram("/bin/umount", ["-l", path.appending(name).string])
            }
        }
    }

    /// Something is mounted over a folder.
    func cover(_ folder: FilePath) throws {
        try runProgram("/bin/mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", folder.string])
    }

    func uncover(_ folder: FilePath) throws { try runProgram("/bin/umount", ["-l", folder.string]) }
}
