import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

/// Many small files that are sent together, by an agent that runs.
@Suite(.timeLimit(.minutes(15))) struct BurstTests {
    private static let connections = 16
    /// The most that a lane claims: more than are sent at once.
    private static let most = 2 * connections + 2 * LaneSlots.reserve
    private static let files = most + 8

    static func scene() throws -> (Scene, ScriptedBursts) {
        var scene = try Scene()
        let bursts = ScriptedBursts(scene.here, connections: Self.connections)
        scene.destinations = [
            Destination(
                name: "here", type: "scripted", pipeline: bursts, smallLimit: 1 << 20, connections: Self.connections)
        ]
        return (scene, bursts)
    }

    /// Drops files, and returns when the lane has all that it takes, and no further burst may begin.
    private func fill(_ scene: Scene, _ stage: Stage, _ bursts: ScriptedBursts) async throws {
        for number in 0..<Self.files { try scene.drop(FilePath("\(number)")) }
        try await eventually("the stock is full") {
            let claimed = try await stage.journal.deliveryCounts(.claimed)["here"]
            // One file for each connection and a burst beside them, but for the room that is too small for a burst.
            return claimed == Self.most && bursts.record.running > Self.connections + DeliveryBurst.most - 16
        }
    }

    /// What the next start finds: nothing claimed, and no attempt counted of what has not been delivered.
    private func expectAllGivenBack(_ scene: Scene, delivered: Int) async throws {
        let journal = try Journal(path: scene.journalPath, now: .now)
        defer { journal.close() }
        #expect(try await journal.deliveryCounts(.delivered)["here"] ?? 0 == delivered)
        #expect(try await journal.recover(destinations: ["here"], at: .now).freedClaims == 0)
        let open = try await journal.jobs(FileFilter(limit: 1000)).flatMap(\.deliveries).filter { $0.state == .ready }
        #expect(open.count == Self.files - delivered && open.allSatisfy { $0.attempts == 0 })
    }

    @Test func `small files are sent together, and all is said of each, once and in its order`() async throws {
        let (scene, bursts) = try Self.scene()
        for number in 0..<200 { try scene.drop(FilePath("\(number)"), "content \(number)") }
        try await scene.run { stage in
            try await eventually("all is finished") { stage.events.count("job.finished") == 200 }
            var said: [FilePath: [String]] = [:]
            for event in stage.events.all {
                switch event {
                case .jobStarted(let ref, _, _, _, _, _): said[ref.path, default: []].append("started")
                case .jobDelivered(let ref, _, _): said[ref.path, default: []].append("delivered")
                case .jobFinished(_, let path, _, _, _): said[path, default: []].append("finished")
                default: break
                }
            }
            #expect(said.count == 200 && Set(said.values) == [["started", "delivered", "finished"]])
        }
        let sent = bursts.record.sent
        #expect(sent.count == 200 && scene.here.record.orders.isEmpty)
        #expect(sent.allSatisfy { $0.content == Array("content \($0.order.key)".utf8) })
        #expect(bursts.record.bursts.contains { $0.count > 1 } && bursts.record.bursts.allSatisfy { $0.count <= 64 })
    }

    @Test func `one that never gets an answer holds up no other`() async throws {
        var (scene, bursts) = try Self.scene()
        scene.grace = .milliseconds(50)
        bursts.script("0", .never)
        let waiting = scene
        try await waiting.run { stage in
            for number in 0..<Self.files { try waiting.drop(FilePath("\(number)")) }
            try await eventually("all others have arrived") {
                try await stage.journal.deliveryCounts(.delivered)["here"] == Self.files - 1
            }
            #expect(bursts.record.running == 1)
            try waiting.drop("later")
            try await stage.finished("later")
        }
    }

    @Test func `status lists what is on its way`() async throws {
        let (scene, bursts) = try Self.scene()
        bursts.hold()
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("it is on its way") { bursts.record.running == 1 }
            let running = try #require(stage.agent.control.live?.inFlight)
            #expect(running.map(\.ref.destination) == ["here"] && running.map(\.size) == [7])
            #expect(running.map(\.ref.path) == [scene.root.pushing("a")])
            bursts.release()
            try await stage.finished("a")
            #expect(stage.agent.control.live?.inFlight.isEmpty == true)
        }
    }

    @Test func `one that a person cancels ends, and is not sent again`() async throws {
        let (scene, bursts) = try Self.scene()
        bursts.script("a", .never)
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("a is on its way") { bursts.record.running == 1 }
            let job = try await stage.job("a")
            #expect(try await stage.agent.control.act(.cancel, on: job.file.id) == .done)
            try await stage.finished("a", .cancelled)
            try scene.drop("b")
            try await stage.finished("b")
            #expect(bursts.record.count("a") == 1 && scene.here.record.orders.isEmpty)
        }
    }

    @Test(arguments: [true, false])
    func `one that gets no good answer goes on alone, with a note where it may have arrived`(
        _ mayHaveArrived: Bool
    ) async throws {
        let (scene, bursts) = try Self.scene()
        bursts.script("a", .go(.success(HTTPResponse(status: 503)), mayHaveArrived: mayHaveArrived))
        try await scene.run { stage in
            try scene.drop("a")
            try await stage.finished("a")
            let notes = stage.events.all.flatMap { event -> [String] in
                if case .jobCheckpoint(_, let notes) = event { notes } else { [] }
            }
            #expect(notes == (mayHaveArrived ? [CheckpointName.mayBeVisible] : []))
            #expect(stage.events.count("job.started") == 1)
        }
        #expect(bursts.record.count("a") == 1 && bursts.record.continued == ["a"])
        #expect(scene.here.attempts(at: "a") == 1)
    }

    /// Its attempt fails by the answer; the next one sends it alone, too.
    @Test func `a second attempt is not sent with others`() async throws {
        let (scene, bursts) = try Self.scene()
        bursts.script("a", .go(.failure(.passing), mayHaveArrived: false))
        try await scene.run { stage in
            try scene.drop("a")
            try await stage.finished("a")
        }
        #expect(bursts.record.count("a") == 1 && bursts.record.continued == ["a"])
        #expect(scene.here.attempts(at: "a") == 1)
    }

    @Test func `where no burst can be made, each file is sent alone`() async throws {
        let (scene, bursts) = try Self.scene()
        bursts.refuse(.passing)
        try await scene.run { stage in
            for number in 0..<20 { try scene.drop(FilePath("\(number)")) }
            try await eventually("all have arrived") { scene.here.record.stored.count == 20 }
        }
        #expect(bursts.record.sent.isEmpty && bursts.record.continued.isEmpty)
    }

    // MARK: - Down, paused, stopping

    @Test func `when a destination goes down, no further burst begins`() async throws {
        let (scene, bursts) = try Self.scene()
        bursts.hold()
        bursts.always(.go(.failure(.outage), mayHaveArrived: false))
        scene.here.failProbes(.outage, .outage, .outage)
        try await scene.run { stage in
            try await fill(scene, stage, bursts)
            bursts.release(try #require(bursts.record.sent.first?.order.key))
            // Its end may have made room for one more burst, which began before anybody knew what the answer says.
            try await eventually("what waited went back") {
                try await stage.journal.deliveryCounts(.claimed)["here"] == bursts.record.running
            }
            let begun = bursts.record.sent.count
            #expect(begun < Self.most - DeliveryBurst.most)
            bursts.release()
            try await eventually("all is given back") { try await stage.journal.deliveryCounts(.claimed).isEmpty }
            #expect(bursts.record.sent.count == begun && scene.here.record.orders.isEmpty)
            #expect(try await stage.journal.deliveryCounts(.ready) == ["here": Self.files])
            #expect(try await stage.jobs().flatMap(\.deliveries).allSatisfy { $0.attempts == 0 })
        }
    }

    /// The one who waits for room for another burst must not be forgotten while nothing may run.
    @Test func `a destination that is paused while bursts run gets the rest when it is resumed`() async throws {
        let (scene, bursts) = try Self.scene()
        bursts.hold()
        try await scene.run { stage in
            try await fill(scene, stage, bursts)
            let begun = bursts.record.sent.count
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            try await eventually("what waited went back") {
                try await stage.journal.deliveryCounts(.claimed)["here"] == begun
            }
            bursts.release()
            try await eventually("what ran has ended") { try await stage.journal.deliveryCounts(.claimed).isEmpty }
            #expect(bursts.record.sent.count == begun)
            _ = try await stage.agent.control.setPaused(false, "here", by: "test")
            try await eventually("all has arrived") {
                try await stage.journal.deliveryCounts(.delivered)["here"] == Self.files
            }
        }
        #expect(bursts.record.sent.count == Self.files && scene.here.record.orders.isEmpty)
    }

    @Test func `at the end what runs may end, and what waits at hand goes back untried`() async throws {
        var (scene, bursts) = try Self.scene()
        // The end comes by itself, and not by the grace.
        scene.grace = .seconds(3600)
        bursts.hold()
        let (ending, held) = (scene, bursts)
        var answers: Task<Void, any Error>?
        try await ending.run { stage in
            try await fill(ending, stage, held)
            answers = Task {
                try await eventually("it stops, and what waited at hand went back") {
                    try await stage.journal.deliveryCounts(.claimed)["here"] == held.record.sent.count
                }
                held.release()
            }
        }
        try await answers?.value
        let sent = held.record.sent.count
        #expect(sent < Self.most && scene.here.record.orders.isEmpty)
        try await expectAllGivenBack(ending, delivered: sent)
    }

    @Test func `after the grace what was ended is given back, too`() async throws {
        var (scene, bursts) = try Self.scene()
        scene.grace = .milliseconds(50)
        bursts.hold()
        let stalling = scene
        try await stalling.run { stage in try await fill(stalling, stage, bursts) }
        #expect(bursts.record.running == 0 && scene.here.record.orders.isEmpty)
        try await expectAllGivenBack(stalling, delivered: 0)
    }

    @Test func `services that end without being asked to give back what runs and what waits at hand`() async throws {
        let (scene, bursts) = try Self.scene()
        bursts.hold()
        struct Abandoned: Error {}
        await #expect(throws: Abandoned.self) {
            try await scene.run { stage in
                try await fill(scene, stage, bursts)
                throw Abandoned()
            }
        }
        #expect(bursts.record.running == 0 && scene.here.record.orders.isEmpty)
        try await expectAllGivenBack(scene, delivered: 0)
    }
}
