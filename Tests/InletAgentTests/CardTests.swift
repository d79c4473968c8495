import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

@Suite(.enabled(if: CardReader.isAvailable, "needs the right to mount")) struct CardTests {
    private let reader: CardReader
    private let scene: Scene

    init() throws {
        let directory = try TemporaryDirectory()
        reader = try CardReader(directory)
        var scene = try reader.scene()
        scene.route.onSuccess = .delete
        self.scene = scene
    }

    @Test func `a card is taken as it comes, and at its return only what is new`() async throws {
        try reader.makeCard("A", with: "100CANON/a.jpg")
        try await scene.run { stage in
            try reader.insert("A", at: "one")
            let job = try await stage.finished("100CANON/a.jpg")
            // Nothing was asked of the card but to be read.
            #expect(job.file.disposition == Disposition.kept)
            #expect(isThere(job.file.fullPath))
            try await eventually("it is safe to remove") { stage.events.count("volume.done") == 1 }
            try await reader.pull("one", stage)
            try await eventually("nothing is watched") { stage.agent.control.live?.roots.isEmpty == true }
            try reader.shoot("100CANON/b.jpg", on: "A")
            try reader.insert("A", at: "two")
            try await stage.finished("100CANON/b.jpg")
            try await eventually("it is safe to remove again") { stage.events.count("volume.done") == 2 }
            #expect(scene.here.record.orders.map(\.path) == ["100CANON/a.jpg", "100CANON/b.jpg"])
        }
    }

    @Test func `two cards with the same names and times are two, in one reader or in two`() async throws {
        for card in ["A", "B", "C"] as [FilePath.Component] {
            try reader.makeCard(card, with: "a.jpg")
        }
        try await scene.run { stage in
            try reader.insert("A", at: "one")
            try await reader.insert("B", at: "two", stage, done: 2)
            try await reader.pull("one", stage)
            try await reader.insert("C", at: "one", stage, done: 3)
            #expect(scene.here.record.stored.count == 3)
            #expect(Set(try await stage.jobs().compactMap(\.file.volume)).count == 3)
        }
    }

    @Test func `a card that is mounted twice is taken once, and that is said`() async throws {
        try reader.makeCard("A", with: "a.jpg")
        try await scene.run { stage in
            try await reader.insert("A", at: "one", stage, done: 1)
            try reader.insert("A", at: "two")
            let second = reader.media.appending("two").appending("DCIM")
            func isSaid() -> Bool {
                stage.events.all.contains { if case .fileError(path: second, _) = $0 { true } else { false } }
            }
            try await eventually("that is said") { isSaid() }
            // It is taken up there once the other has gone, and nothing is sent again.
            try reader.pull("one")
            try await eventually("it is safe there") { stage.events.count("volume.done") == 2 }
            #expect(scene.here.record.stored.count == 1)
        }
    }

    @Test func `a card that is pulled while it is read is waited for, wherever it comes back`() async throws {
        try reader.makeCard("A")
        try reader.makeCard("B")
        try reader.shoot("a.jpg", on: "A")
        try reader.shoot("a.jpg", on: "B", "another picture")
        let gate = Gate()
        let unreadable = DeliveryError(.outage(after: nil), .sourceUnreadable, "I/O error")
        scene.here.script("a.jpg", .hold(gate, .fail(unreadable)))
        try await scene.run { stage in
            try reader.insert("A", at: "one")
            try await eventually("it is being read") { scene.here.record.running == 1 }
            try await reader.pull("one", stage)
            // Another one in its place has a file of the same name.
            try await reader.insert("B", at: "one", stage, done: 1)
            gate.open()
            try await eventually("the first waits for its card") {
                try await stage.jobs().contains { $0.deliveries.first?.code == .sourceGone }
            }
            #expect(stage.events.count("job.failed") == 0)
            try await reader.insert("A", at: "two", stage, done: 2)
            #expect(try await stage.jobs().allSatisfy { $0.file.state == .delivered })
            #expect(Set(scene.here.record.stored.values.map { String(decoding: $0, as: UTF8.self) }).count == 2)
        }
    }

    @Test(arguments: ["one", "two"])
    func `a file whose end comes after its card came back goes on from there at once`(_ back: String) async throws {
        try reader.makeCard("A", with: "a.jpg")
        let gate = Gate()
        scene.here.script("a.jpg", .hold(gate, .fail(DeliveryError(.sourceGone, .sourceGone, "it is not there"))))
        try await scene.run { stage in
            try reader.insert("A", at: "one")
            try await eventually("it is being read") { scene.here.record.running == 1 }
            try await reader.pull("one", stage)
            try reader.insert("A", at: #require(FilePath.Component(back)))
            try await eventually("it is back") { stage.events.count("volume.added") == 2 }
            gate.open()
            let job = try await stage.finished("a.jpg")
            #expect(job.file.root == reader.media.appending(back).appending("DCIM"))
        }
    }

    @Test func `what else is on a card holds it up until a person lets it stay, and an empty one is called empty`()
        async throws
    {
        try reader.makeCard("A")
        try reader.makeCard("EMPTY")
        try reader.shoot("a.jpg", on: "A")
        try reader.shoot("../PRIVATE/CLIP/outside.mov", on: "A")
        try await scene.run { stage in
            try reader.insert("A", at: "one")
            try await eventually("that is told") { stage.events.count("volume.unverified") == 1 }
            #expect(stage.events.volumeEnds.map(\.verdict) == ["others_left"])
            #expect(stage.events.volumeEnds.map(\.files) == [1] && stage.events.volumeEnds.map(\.others) == [1])
            let card = try #require(stage.agent.control.cards.first)
            #expect(card.lines.contains { $0.mark == .bad && $0.text.contains("PRIVATE/CLIP") }, "\(card.lines)")
            try await stage.agent.control.leaveOthers(on: card.insertion.card.name, by: "test")
            try await eventually("it is safe") { stage.events.count("volume.done") == 1 }
            try await reader.insert("EMPTY", at: "two", stage, done: 2)
            #expect(stage.events.volumeEnds.last?.verdict == "empty")
        }
    }

    @Test func `of a card that comes back destinations are asked, and one that has lost its files is said`()
        async throws
    {
        var scene = scene
        let library = try reader.directory.makeDirectory("library")
        scene.destinations = [.folder("here", library)]
        scene.destinations[0].folder = library
        try reader.makeCard("A", with: "a.jpg", "b.jpg")
        try await scene.run { stage in
            for (slot, count) in [("one", 1), ("two", 2)] as [(FilePath.Component, Int)] {
                try await reader.insert("A", at: slot, stage, done: count)
                try await reader.pull(slot, stage, count)
            }
            try FileManager.default.removeItem(atPath: library.appending("a.jpg").string)
            try reader.insert("A", at: "three")
            try await eventually("that is said") { stage.events.count("volume.unverified") == 1 }
            let ends = stage.events.volumeEnds
            #expect(ends.map(\.files) == [2, 2, 1] && ends.map(\.missing) == [0, 0, 1])
            #expect(ends.last?.headline == "CALL SOMEBODY: 1 file is no longer at here: send again?")
            try await #expect(stage.agent.control.resendMissing(on: ends[2].volume, by: "test") == 1)
            try await eventually("it is safe again") { stage.events.count("volume.done") == 3 }
            #expect(isThere(library.appending("a.jpg")))
        }
    }

    @Test func `a card that was formatted is told by what is on it now`() async throws {
        let card = try reader.makeCard("A", with: "a.jpg", "b.jpg")
        try await scene.run { stage in
            try await reader.insert("A", at: "one", stage, done: 1)
            try await reader.pull("one", stage)
            for name in ["a.jpg", "b.jpg"] {
                try FileManager.default.removeItem(atPath: card.appending("DCIM").appending(name).string)
            }
            try reader.shoot("b.jpg", on: "A", "another picture")
            try await reader.insert("A", at: "one", stage, done: 2)
            #expect(stage.events.volumeEnds.map(\.files) == [2, 1])
            #expect(stage.events.volumeEnds.last?.bytes == Int64("another picture".utf8.count))
        }
    }

    @Test func `a card of which something is not proved is not called safe`() async throws {
        try reader.makeCard("A", with: "a.jpg", "b.jpg")
        scene.here.script("b.jpg", .fail(.hopeless))
        try await scene.run { stage in
            try reader.insert("A", at: "one")
            try await eventually("that is said") { stage.events.count("volume.unverified") == 1 }
            #expect(stage.events.count("volume.done") == 0)
        }
    }
}

@Suite(.enabled(if: CardReader.isAvailable, "needs the right to mount")) struct UnmountedSourceTests {
    private let reader: CardReader
    private let scene: Scene

    init() throws {
        scene = try Scene()
        reader = try CardReader(scene.directory)
    }

    @Test func `what is mounted over a watched folder is not taken for it`() async throws {
        try await scene.run { stage in
            try await stage.process("a")
            try reader.cover(stage.root)
            defer { try? reader.uncover(stage.root) }
            try await eventually("it is guarded") { stage.events.count("watch.paused") == 1 }
            try scene.drop("stranger")
            try reader.uncover(stage.root)
            try await stage.process("b")
            #expect(try await Set(stage.jobs().map(\.file.path)) == ["a", "b"])
        }
    }

    @Test func `a folder that is not mounted at the start is waited for, with what is pending of it`() async throws {
        scene.here.always(.stall)
        try await scene.run { stage in
            try await stage.start("a")
        }
        scene.here.always(.deliver)
        try reader.cover(scene.root)
        try await scene.run { stage in
            defer { try? reader.uncover(stage.root) }
            try await eventually("it is guarded") { stage.events.count("watch.paused") == 1 }
            #expect(try await stage.job("a").file.state == .pending)
            #expect(stage.isGuarded)
        }
        try await scene.run { stage in try await stage.finished("a") }
    }

    @Test func `a person can say that a folder is right as it is now`() async throws {
        try await scene.run { stage in
            try await stage.process("a")
            try reader.cover(stage.root)
            defer { try? reader.uncover(stage.root) }
            try await eventually("it is guarded") { stage.events.count("watch.paused") == 1 }
            try scene.drop("new")
            #expect(try await stage.agent.control.resume(root: stage.root, by: "test"))
            try await stage.finished("new")
            #expect(stage.events.count("watch.resumed") == 1)
        }
    }
}

@Suite struct VolumeNoticeTests {
    @Test func `a notice of a paused folder says which and why`() throws {
        let payload = NotificationText.pausedRoot("/srv/drop", reason: "it is empty")
        let said = String(decoding: payload, as: UTF8.self)
        for part in [#""path":"/srv/drop""#, #""state":"paused""#, "it is empty"] {
            #expect(said.contains(part), "\(said)")
        }
        let environment = NotificationEnvironment(.rootPaused, payload).environment("root_paused")
        #expect(environment.contains { $0.name == "INLET_PATH" && $0.value == Array("/srv/drop".utf8) })
        #expect(environment.contains { $0.name == "INLET_STATE" && $0.value == Array("paused".utf8) })
    }

    private func end(_ change: (inout VolumeReport) -> Void = { _ in }) -> VolumeReport {
        var end = VolumeReport(root: "/media/EOS/DCIM", volume: "EOS")
        (end.files, end.bytes, end.isSafe, end.insertion) = (4, 400, true, 1)
        (end.headline, end.verdict) = (CardVerdict.safe.headline, CardVerdict.safe.word)
        end.lines = [CardLine(.good, "at nas 4 of 4, proved")]
        change(&end)
        return end
    }

    @Test func `a notice of a card says which, where and how much, to webhooks and programs`() throws {
        let payload = String(decoding: NotificationText.volume(end()), as: UTF8.self)
        for part in [
            #""name":"EOS""#, #""path":"/media/EOS/DCIM""#, #""files":4"#, #""bytes":400"#, #""others":0"#,
            #""state":"safe""#, #""text":"EOS: SAFE TO REMOVE""#, #""lines":["at nas 4 of 4, proved"]"#,
        ] {
            #expect(payload.contains(part), "\(payload)")
        }
        let environment = NotificationEnvironment(.volumeDone, Array(payload.utf8)).environment("volume_done")
        #expect(environment.contains { $0.name == "INLET_VOLUME" && $0.value == Array("EOS".utf8) })
        #expect(environment.contains { $0.name == "INLET_PATH" && $0.value == Array("/media/EOS/DCIM".utf8) })
    }

    @Test func `the same is told once of a volume, also after a restart, and again when it came anew`() async throws {
        let directory = try TemporaryDirectory()
        func journal() throws -> Journal {
            try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        }
        func told(_ journal: Journal, _ ends: VolumeReport...) async throws -> Int {
            let ops = NotificationReceiver(
                NotifySettings(name: "ops", receiver: .exec(["/bin/true"]), events: [.volumeDone]), webhook: nil,
                pool: BlockingPool(name: "hook", threads: 1))
            let sender = try await NotificationSender([ops], journal: journal, log: try EventLog(nil))
            for end in ends { sender.hear(.volumeDone(end)) }
            #expect(await sender.flush())
            return try await journal.outboxBacklog().waiting
        }
        let first = try journal()
        #expect(try await told(first, end(), end()) == 1)
        first.close()
        let second = try journal()
        defer { second.close() }
        #expect(try await told(second, end { $0.lines = [] }) == 1)
        #expect(try await told(second, end { $0.files = 5 }) == 2)
        #expect(try await told(second, end { ($0.files, $0.insertion) = (5, 2) }) == 3)
    }
}

extension EventRecord {
    fileprivate var volumeEnds: [VolumeReport] {
        all.compactMap { event in if case .volumeDone(let end) = event { end } else { nil } }
    }
}

@Suite struct AwaitedFilesTests {
    @Test func `files that wait for their marker are counted once, and no longer when they have gone`() {
        var awaited = AwaitedFiles(most: 2)
        for _ in 0..<2 { for path in ["a", "b"] as [FilePath] { awaited.insert(path) } }
        #expect(awaited.count { _ in true } == 2)
        awaited.insert("c")
        #expect(awaited.count { _ in true } == 3)
        awaited.remove("a")
        #expect(awaited.count { _ in true } == 2)
        // Of what there was no room for, the next listing knows.
        #expect(awaited.count { _ in false } == 1)
    }
}
