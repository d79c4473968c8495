import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// `ask: wait`: files are held until a person has said what their keys need.
@Suite(.enabled(if: CardReader.isAvailable, "needs the right to mount")) struct CardLabelTests {
    private let reader: CardReader
    private let scene: Scene

    init() throws {
        let directory = try TemporaryDirectory()
        reader = try CardReader(directory)
        var scene = try reader.scene()
        scene.watch[0].ask = .wait
        scene.route.key = try KeyTemplate("{card.roll}/{name}")
        self.scene = scene
    }

    private func label(_ slot: FilePath.Component, _ labels: CardLabels, _ stage: Stage) throws {
        let key = try VolumeFinder().identity(of: reader.media.appending(slot)).key
        try #require(stage.agent.control.live).shared.setCardLabels(labels, of: key)
    }

    private func reasons(_ stage: Stage) -> [String] {
        (stage.agent.control.live?.roots ?? []).flatMap(\.unsettled).compactMap(\.why)
    }

    private func isHeld(_ stage: Stage, _ count: Int) async throws {
        try await eventually("\(count) files wait for the roll") {
            reasons(stage).count { $0.contains("waiting for the card's roll: inlet cards label") } == count
        }
    }

    @Test func `files wait for the roll that their keys need, and go as soon as it is given`() async throws {
        try reader.makeCard("A", with: "100CANON/a.jpg", "100CANON/b.jpg")
        try await scene.run { stage in
            try reader.insert("A", at: "one")
            try await isHeld(stage, 2)
            #expect(reasons(stage).allSatisfy { $0.hasSuffix(" --roll A001") })
            // It is said once, and nothing is called done.
            #expect(stage.events.count("file.awaited") == 1 && stage.events.count("volume.done") == 0)
            #expect(try await stage.jobs().isEmpty)
            try label("one", CardLabels(operator: "Ana"), stage)
            try await isHeld(stage, 2)
            try label("one", CardLabels(roll: "A001"), stage)
            try await eventually("it is done") { stage.events.count("volume.done") == 1 }
            #expect(scene.here.record.stored.keys.sorted() == ["A001/a.jpg", "A001/b.jpg"])
        }
    }

    @Test func `files that wait are not lost by a restart, and labels that are there hold nothing up`() async throws {
        try reader.makeCard("A", with: "a.jpg")
        try reader.insert("A", at: "one")
        try await scene.run { stage in try await isHeld(stage, 1) }
        try await scene.run { stage in
            try await isHeld(stage, 1)
            try label("one", CardLabels(roll: "A001"), stage)
            try await stage.finished("a.jpg")
            try reader.shoot("b.jpg", on: "A")
            try await stage.finished("b.jpg")
            #expect(scene.here.record.stored.keys.sorted() == ["A001/a.jpg", "A001/b.jpg"])
        }
    }

    @Test func `another card's roll is not this one's`() async throws {
        try reader.makeCard("A", with: "a.jpg")
        try reader.makeCard("B", with: "b.jpg")
        try await scene.run { stage in
            try reader.insert("A", at: "one")
            try reader.insert("B", at: "two")
            try await isHeld(stage, 2)
            try label("two", CardLabels(roll: "B007"), stage)
            try await stage.finished("b.jpg")
            try await isHeld(stage, 1)
            #expect(Array(scene.here.record.stored.keys) == ["B007/b.jpg"])
        }
    }

    @Test func `only files whose route needs the roll wait, also where their content decides it`() async throws {
        var scene = scene
        scene.route.match.cameras = [try CameraPattern("Sony")]
        scene.others = [Route(name: "rest", key: try KeyTemplate("{camera}/{name}"), to: ["here"])]
        try reader.makeCard("A", with: "100MSDCF/a.jpg", "100CANON/b.jpg")
        try await scene.run { stage in
            try reader.insert("A", at: "one")
            try await stage.finished("100CANON/b.jpg")
            try await isHeld(stage, 1)
            try label("one", CardLabels(roll: "A001"), stage)
            try await stage.finished("100MSDCF/a.jpg")
            #expect(scene.here.record.stored.keys.sorted() == ["A001/a.jpg", "Canon/b.jpg"])
        }
    }

    @Test func `a companion waits with its file, and goes with it`() async throws {
        var scene = scene
        scene.route.match.extensions = ["mp4"]
        scene.route.sidecars = SidecarRule(extensions: ["xmp"], wait: .milliseconds(10))
        try reader.makeCard("A", with: "a.mp4", "a.xmp")
        try await scene.run { stage in
            try reader.insert("A", at: "one")
            try await isHeld(stage, 1)
            try label("one", CardLabels(roll: "A001"), stage)
            try await stage.finished("a.mp4")
            try await stage.finished("a.xmp")
            #expect(scene.here.record.stored.keys.sorted() == ["A001/a.mp4", "A001/a.xmp"])
        }
    }

    @Test(arguments: [CardQuestion.never, .offer])
    func `without 'wait' a missing roll is empty, and holds nothing up`(question: CardQuestion) async throws {
        var scene = scene
        scene.watch[0].ask = question
        try reader.makeCard("A", with: "a.jpg")
        try await scene.run { stage in
            try reader.insert("A", at: "one")
            try await stage.finished("a.jpg")
            #expect(Array(scene.here.record.stored.keys) == ["a.jpg"])
        }
    }
}

struct CardLabelRegistryTests {
    private let labels = CardLabels(roll: "A001")

    @Test func `labels belong to the folders of their card, and to no card whose name begins alike`() {
        let registry = CardLabelsRegistry()
        _ = registry.set(labels, of: "device:/dev/sda1")
        #expect(registry.labels(of: "device:/dev/sda1/DCIM") == labels)
        #expect(registry.labels(of: "device:/dev/sda1/") == labels)
        #expect(registry.labels(of: "device:/dev/sda10/DCIM") == nil)
        _ = registry.set(nil, of: "device:/dev/sda1")
        #expect(registry.labels(of: "device:/dev/sda1/DCIM") == nil)
    }

    @Test func `files that wait are handed out once, and none is held for what is known`() {
        let registry = CardLabelsRegistry()
        #expect(registry.hold("a", for: [.roll], of: "uuid:1/DCIM", at: "/media/1"))
        #expect(registry.hold("b", for: [.roll, .operator], of: "uuid:2/DCIM", at: "/media/2"))
        #expect(registry.hold("a.xmp", with: ["b", "a"], of: "uuid:1/DCIM") == "a")
        #expect(registry.hold("c.xmp", with: ["c"], of: "uuid:1/DCIM") == nil)
        let freed = registry.set(labels, of: "uuid:1")
        #expect(freed.map(\.root) == ["/media/1"] && freed.map(\.files) == [["a", "a.xmp"]])
        #expect(registry.set(labels, of: "uuid:1").isEmpty && registry.set(nil, of: "uuid:1").isEmpty)
        _ = registry.set(labels, of: "uuid:2")
        #expect(!registry.hold("b", for: [.roll], of: "uuid:2/DCIM", at: "/media/2"))
        #expect(registry.hold("b", for: [.roll, .operator], of: "uuid:2/DCIM", at: "/media/2"))
        registry.release("uuid:2/DCIM")
        #expect(registry.set(nil, of: "uuid:2").isEmpty)
    }

    @Test(
        arguments: [
            ([.roll], "EOS_DIGITAL", "the card's roll: inlet cards label EOS_DIGITAL --roll A001"),
            ([.operator, .roll], "A", "the card's roll and operator: inlet cards label A --roll A001 --operator NAME"),
            ([.camera], "My 'card'", #"the card's camera: inlet cards label 'My '\''card'\''' --camera NAME"#),
        ] as [(Set<CardLabels.Field>, String, String)])
    func `the reason names the command that ends the wait`(missing: Set<CardLabels.Field>, card: String, reason: String)
    {
        #expect(LabelWait.reason(missing, card: card) == "waiting for \(reason)")
    }
}
