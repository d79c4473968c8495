import InletCore
import SystemPackage
import Testing

/// `match: { camera: … }`, `{camera}` and `{card.…}`: facts that a file's metadata and people give.
struct CameraRouteTests {
    private let canon = Camera(make: "Canon", model: "Canon EOS R5")
    private let unknown = Camera()

    private func arrival(_ path: FilePath) -> FoundFile {
        let identity = FileIdentity(size: 100, modified: 0, changed: 0, inode: 1, device: 1)
        return FoundFile(root: "/drop", path: path, identity: identity)
    }

    private func decide(_ table: RouteTable, _ change: (inout FileProperties) -> Void = { _ in }) -> RoutingResult {
        var facts = FileProperties()
        change(&facts)
        return table.plan(arrival("100CANON/a.jpg"), facts: facts, at: WallTime(milliseconds: 42), zone: "UTC")
    }

    private func needs(_ result: RoutingResult) -> Set<FileProperty>? {
        if case .needs(let facts) = result { facts } else { nil }
    }

    private func route(_ name: String, key: String = "{name}", cameras: String...) throws -> Route {
        var route = Route(name: name, key: try KeyTemplate(key), to: ["here"])
        route.match.cameras = try cameras.map(CameraPattern.init)
        return route
    }

    @Test func `the camera decides between routes, and is asked for only where it does`() throws {
        let table = RouteTable([try route("sony", cameras: "Sony"), try route("canon", cameras: "canon*", "DJI")])
        #expect(needs(decide(table)) == [.camera])
        let plain = RouteTable([try route("all")])
        #expect(!table.isByName && plain.isByName)
        #expect(decide(table) { $0.camera = canon }.made?.route == "canon")
        guard case .unmatched = decide(table, { $0.camera = unknown }) else {
            Issue.record("a file of an unknown camera was taken")
            return
        }
        #expect(table.candidates(for: "a.jpg", size: 1).map(\.name) == ["sony", "canon"])
        var facts = FileProperties()
        facts.camera = canon
        #expect(
            table.trace(arrival("a.jpg"), facts: facts).map(\.mismatch) == [
                "its camera is Canon EOS R5, not Sony", nil,
            ])
        facts.camera = unknown
        #expect(
            table.trace(arrival("a.jpg"), facts: facts).map(\.mismatch) == [
                "its camera is unknown; the route takes only Sony",
                "its camera is unknown; the route takes only canon* or DJI",
            ])
    }

    @Test func `a key asks for the camera, and drops its folder where nobody knows it`() throws {
        let table = RouteTable([try route("all", key: "{camera}/{name}")])
        #expect(needs(decide(table)) == [.camera])
        #expect(decide(table) { $0.camera = canon }.made?.key == "Canon_EOS_R5/a.jpg")
        #expect(decide(table) { $0.camera = unknown }.made?.key == "a.jpg")
        #expect(decide(table) { $0.camera = Camera(model: "../a/b") }.made?.key == ".._a_b/a.jpg")
    }

    @Test func `labels of the card are parts of keys, labels and fields, and are empty where nobody gave them`() throws
    {
        var route = try route("all", key: "{card.roll}/{card.operator}/{name}")
        route.labels = ["roll": try KeyTemplate("{card.roll}")]
        route.with = ["note": try KeyTemplate("by {card.operator}")]
        let table = RouteTable([route])
        let byCamera = RouteTable([try self.route("all", key: "{camera}")])
        #expect(table.usesCardLabels && !byCamera.usesCardLabels)
        #expect(needs(decide(table)) == [.card(.roll), .card(.operator)])
        let plan = decide(table) { $0.card = CardLabels(roll: "A 001", operator: "Ana") }.made
        #expect(plan?.key == "A_001/Ana/a.jpg" && plan?.labels == ["roll": "A 001"] && plan?.with["note"] == "by Ana")
        let bare = decide(table) { $0.card = CardLabels() }.made
        #expect(bare?.key == "a.jpg" && bare?.labels.isEmpty == true)
    }

    @Test(arguments: [
        (CardLabels(camera: "B"), Camera(make: "Canon", model: "EOS R5"), "B/a.jpg"),
        (CardLabels(), Camera(make: "Canon", model: "EOS R5"), "Canon_EOS_R5/a.jpg"), (CardLabels(), Camera(), "a.jpg"),
    ])
    func `the camera that a person named comes before the file's`(labels: CardLabels, camera: Camera, key: String)
        throws
    {
        let table = RouteTable([try route("all", key: "{card.camera}/{name}")])
        let plan = decide(table) { ($0.card, $0.camera) = (labels, camera) }.made
        #expect(plan?.key == key)
    }

    @Test(
        arguments: [
            ("{card.roll}", CardLabels(), nil, [.roll]), ("{card.roll}", CardLabels(roll: "A001"), nil, []),
            ("{card.roll}/{card.operator}", CardLabels(roll: "A001"), nil, [.operator]),
            ("{name}", CardLabels(), nil, []),
            // The file may tell its camera: it is asked first.
            ("{card.camera}", CardLabels(), nil, []), ("{card.camera}", CardLabels(), Camera(), [.camera]),
            ("{card.camera}", CardLabels(), Camera(model: "R5"), []),
            ("{card.camera}", CardLabels(camera: "B"), Camera(), []),
            ("{camera}", CardLabels(), Camera(), []),
        ] as [(String, CardLabels, Camera?, Set<CardLabels.Field>)])
    func `a file waits for the labels that its key needs, where it is to wait`(
        key: String, labels: CardLabels, camera: Camera?, awaited: Set<CardLabels.Field>
    ) throws {
        let table = RouteTable([try route("all", key: key)])
        var facts = FileProperties()
        (facts.card, facts.camera, facts.awaitsCard) = (labels, camera, true)
        #expect(table.awaitedLabels(of: arrival("a.jpg"), facts: facts) == awaited)
        if !awaited.isEmpty { #expect(needs(decide(table) { $0 = facts }) == Set(awaited.map { .card($0) })) }
        facts.awaitsCard = false
        #expect(table.awaitedLabels(of: arrival("a.jpg"), facts: facts).isEmpty)
    }

    @Test func `a file whose content decides its route waits for no label before that`() throws {
        let table = RouteTable([try route("rolls", key: "{card.roll}/{name}", cameras: "Sony"), try route("rest")])
        var facts = FileProperties()
        (facts.card, facts.awaitsCard) = (CardLabels(), true)
        #expect(table.awaitedLabels(of: arrival("a.jpg"), facts: facts).isEmpty)
        facts.camera = Camera(make: "SONY", model: "ILCE-7M4")
        #expect(table.awaitedLabels(of: arrival("a.jpg"), facts: facts) == [.roll])
        facts.camera = canon
        #expect(table.awaitedLabels(of: arrival("a.jpg"), facts: facts).isEmpty)
        #expect(decide(table) { $0 = facts }.made?.route == "rest")
    }

    @Test(arguments: 0..<8 as Range<UInt64>)
    func `a file that waits is planned once it has what it waits for, and never before`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let fields = ["{card.roll}", "{card.operator}", "{card.camera}", "{camera}", "{name}", "{dir}"]
        for _ in 0..<100 {
            let key = fields.shuffled(using: &random).prefix(Int.random(in: 1...4, using: &random)).joined(
                separator: "/")
            let table = RouteTable([try route("all", key: key)])
            var facts = FileProperties()
            facts.camera = Bool.random(using: &random) ? canon : unknown
            facts.card = CardLabels()
            if Bool.random(using: &random) { facts.card?.roll = "A001" }
            if Bool.random(using: &random) { facts.card?.operator = "Ana" }
            if Bool.random(using: &random) { facts.card?.camera = "B" }
            facts.awaitsCard = true
            let awaited = table.awaitedLabels(of: arrival("100CANON/a.jpg"), facts: facts)
            #expect((decide(table) { $0 = facts }.made == nil) == !awaited.isEmpty, "\(key)")
            for field in awaited {
                switch field {
                case .roll: facts.card?.roll = "A001"
                case .camera: facts.card?.camera = "B"
                case .operator: facts.card?.operator = "Ana"
                }
            }
            #expect(decide(table) { $0 = facts }.made != nil, "\(key)")
        }
    }
}
