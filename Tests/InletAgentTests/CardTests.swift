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
        defer { reader.close() }
        try reader.makeCard("A")
        try reader.shoot("100CANON/a.jpg", on: "A")
        try await scene.run { stage in
            try reader.insert("A", at: "one")
            let job = try await stage.finished("100CANON/a.jpg")
            // Nothing was asked of the card but to be read.
            #expect(job.file.disposition == Disposition.kept)
            #expect(isThere(job.file.fullPath))
            try await eventually("it is safe to remove") { stage.events.count("volume.done") == 1 }
            try reader.pull("one")
            try await eventually("it has gone") { stage.events.count("volume.removed") == 1 }
            try await eventually("nothing is watched") { stage.agent.view.live?.roots().isEmpty == true }
            try reader.shoot("100CANON/b.jpg", on: "A")
            try reader.insert("A", at: "two")
            try await stage.finished("100CANON/b.jpg")
            try await eventually("it is safe to remove again") { stage.events.count("volume.done") == 2 }
            #expect(scene.here.record.orders.map(\.path) == ["100CANON/a.jpg", "100CANON/b.jpg"])
        }
    }

    @Test func `two cards with the same names and times are two, in one reader or in two`() async throws {
        defer { reader.close() }
        for card in ["A", "B", "C"] as [FilePath.Component] {
            try reader.makeCard(card)
            try reader.shoot("a.jpg", on: card)
        }
        try await scene.run { stage in
            try reader.insert("A", at: "one")
            try reader.insert("B", at: "two")
            try await eventually("both are delivered") { stage.events.count("volume.done") == 2 }
            try reader.pull("one")
            try await eventually("it has gone") { stage.events.count("volume.removed") == 1 }
            try reader.insert("C", at: "one")
            try await eventually("the third is delivered") { stage.events.count("volume.done") == 3 }
            #expect(scene.here.record.stored.count == 3)
            #expect(Set(try await stage.jobs().compactMap(\.file.volume)).count == 3)
        }
    }

    @Test func `a card that is mounted twice is taken once, and that is said`() async throws {
        defer { reader.close() }
        try reader.makeCard("A")
        try reader.shoot("a.jpg", on: "A")
        try await scene.run { stage in
            try reader.insert("A", at: "one")
            try await eventually("it is safe") { stage.events.count("volume.done") == 1 }
            try reader.insert("A", at: "two")
            let second = reader.media.appending("two").appending("DCIM")
            func isSaid() -> Bool {
                stage.events.all.contains { if case .fileTrouble(path: second, _) = $0 { true } else { false } }
            }
            try await eventually("that is said") { isSaid() }
            // It is taken up there once the other has gone, and nothing is sent again.
            try reader.pull("one")
            try await eventually("it is safe there") { stage.events.count("volume.done") == 2 }
            #expect(scene.here.record.stored.count == 1)
        }
    }

    @Test func `a card that is pulled while it is read is waited for, wherever it comes back`() async throws {
        defer { reader.close() }
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
            try reader.pull("one")
            try await eventually("it has gone") { stage.events.count("volume.removed") == 1 }
            // Another one in its place has a file of the same name.
            try reader.insert("B", at: "one")
            try await eventually("the other is delivered") { stage.events.count("volume.done") == 1 }
            gate.open()
            try await eventually("the first waits for its card") {
                try await stage.jobs().contains { $0.deliveries.first?.code == .sourceGone }
            }
            #expect(stage.events.count("job.failed") == 0)
            try reader.insert("A", at: "two")
            try await eventually("both cards are done") { stage.events.count("volume.done") == 2 }
            #expect(try await stage.jobs().allSatisfy { $0.file.state == .delivered })
            #expect(Set(scene.here.record.stored.values.map { String(decoding: $0, as: UTF8.self) }).count == 2)
        }
    }

    @Test func `a card of which something is not proved is not called safe`() async throws {
        defer { reader.close() }
        try reader.makeCard("A")
        try reader.shoot("a.jpg", on: "A")
        try reader.shoot("b.jpg", on: "A")
        scene.here.script("b.jpg", .fail(.hopeless))
        try await scene.run { stage in
            try reader.insert("A", at: "one")
            try await eventually("that is said") { stage.events.count("volume.unproved") == 1 }
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
            try scene.drop("a")
            try await stage.finished("a")
            try reader.cover(stage.root)
            defer { try? reader.uncover(stage.root) }
            try await eventually("it is guarded") { stage.events.count("watch.guard") == 1 }
            try scene.drop("stranger")
            try reader.uncover(stage.root)
            try scene.drop("b")
            try await stage.finished("b")
            #expect(try await Set(stage.jobs().map(\.file.path)) == ["a", "b"])
        }
    }

    @Test func `a folder that is not mounted at the start is waited for, with what is pending of it`() async throws {
        scene.here.always(.stall)
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("it is on its way") { scene.here.record.running == 1 }
        }
        scene.here.always(.deliver)
        try reader.cover(scene.root)
        try await scene.run { stage in
            defer { try? reader.uncover(stage.root) }
            try await eventually("it is guarded") { stage.events.count("watch.guard") == 1 }
            #expect(try await stage.job("a").file.state == .pending)
            #expect(
                stage.agent.view.live?.roots().contains { if case .guarded = $0.state { true } else { false } } == true)
        }
        try await scene.run { stage in try await stage.finished("a") }
    }

    @Test func `a person can say that a folder is right as it is now`() async throws {
        try await scene.run { stage in
            try scene.drop("a")
            try await stage.finished("a")
            try reader.cover(stage.root)
            defer { try? reader.uncover(stage.root) }
            try await eventually("it is guarded") { stage.events.count("watch.guard") == 1 }
            try scene.drop("new")
            #expect(try await stage.agent.commands.resume(root: stage.root, by: "test"))
            try await stage.finished("new")
            #expect(stage.events.count("watch.resumed") == 1)
        }
    }
}

@Suite struct VolumeNoticeTests {
    @Test func `a notice of a paused folder says which and why`() throws {
        let payload = NoticeText.pausedRoot("/srv/drop", reason: "it is empty")
        let said = String(decoding: payload, as: UTF8.self)
        for part in [#""path":"/srv/drop""#, #""state":"paused""#, "it is empty"] {
            #expect(said.contains(part), "\(said)")
        }
        let environment = NoticeDetails(folder: payload).environment("root_paused")
        #expect(environment.contains { $0.name == "INLET_PATH" && $0.value == Array("/srv/drop".utf8) })
        #expect(environment.contains { $0.name == "INLET_STATE" && $0.value == Array("paused".utf8) })
    }

    @Test func `a notice of a card says which, where and how much, to webhooks and programs`() throws {
        var standing = VolumeStanding()
        (standing.proved, standing.bytes) = (4, 400)
        func end(unproved: Int = 0, unread: Int = 0, ignored: Int = 0) -> VolumeEnd {
            VolumeEnd(
                root: "/media/EOS/DCIM", volume: "EOS", standing, unproved: unproved, unread: unread, ignored: ignored)
        }
        // What could not be read may be the only copy.
        #expect(end().isSafe && !end(unproved: 1).isSafe && !end(unread: 1).isSafe)
        let payload = String(decoding: NoticeText.volume(end()), as: UTF8.self)
        for part in [#""name":"EOS""#, #""path":"/media/EOS/DCIM""#, #""files":4"#, #""bytes":400"#, "safe to remove"] {
            #expect(payload.contains(part), "\(payload)")
        }
        let environment = NoticeDetails(volume: Array(payload.utf8)).environment("volume_done")
        #expect(environment.contains { $0.name == "INLET_VOLUME" && $0.value == Array("EOS".utf8) })
        #expect(environment.contains { $0.name == "INLET_PATH" && $0.value == Array("/media/EOS/DCIM".utf8) })
        let partly = String(decoding: NoticeText.volume(end(ignored: 2)), as: UTF8.self)
        #expect(partly.contains("On it alone are 2 files that no route takes"))
    }
}
