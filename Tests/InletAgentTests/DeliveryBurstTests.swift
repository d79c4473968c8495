import Foundation
import Glibc
import InletCore
import InletJournalSupport
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletJournal
@testable import InletPipelines

/// One burst of claims, without an agent.
@Suite struct DeliveryBurstTests {
    /// Files of a folder in a journal, and whatever sends them.
    private final class Bench: Sendable {
        let directory: TemporaryDirectory
        let root: FilePath
        let journal: Journal
        let bursts: ScriptedBursts
        let stage: DeliveryStage
        let burst: DeliveryBurst
        let reported = Mutex<(ended: [LaneSlots.Ended], alone: [DeliveryBurst.Alone])>(([], []))

        init(limit: Int = 1000, connections: Int = 8) throws {
            bursts = ScriptedBursts(ScriptedPipeline(), limit: limit, connections: connections)
            directory = try TemporaryDirectory()
            root = try directory.makeDirectory("drop")
            journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
            let destination = Destination(
                name: "here", type: "scripted", pipeline: bursts, smallLimit: 1 << 20, connections: 8)
            let shared = Shared.test(journal, try EventLog(nil), [destination])
            stage = DeliveryStage(shared, begun: [], patience: .zero, silence: .seconds(30))
            burst = try #require(DeliveryBurst(destination, stage))
        }

        /// Claims of files with these names, which are there.
        func claims(_ names: [FilePath]) async throws -> [Claim] {
            for name in names {
                let path = try directory.write(Array("content".utf8), to: FilePath("drop").pushing(name))
                let file = FoundFile(
                    root: root, path: name, identity: try #require(try FileLook.look(at: path).identity))
                let plan = Plan(
                    route: "all", category: "other", key: "\(name)", mediaType: "text/plain", destinations: ["here"])
                _ = try await journal.admit(
                    FileAdmission(file, plan: plan, lanes: ["here": .small], uptimes: ["here": 0]), at: .now)
            }
            let room = ClaimCapacity(destination: "here", limits: [.small: 100])
            return try await journal.exchange([], for: ClaimRequest(lane: .small, room: room, most: 100), at: .now)
                .claims
        }

        func start(_ claims: [Claim]) {
            burst.start(claims) { ended, alone in
                self.reported.withLock { $0 = ($0.ended + ended, $0.alone + alone) }
                Happening.ring()
            }
        }

        /// The keys of what was reported, once so many are.
        func ends(_ count: Int) async throws -> (ended: [String], alone: [String]) {
            try await eventually("all are reported") {
                self.reported.withLock { $0.ended.count + $0.alone.count } >= count
            }
            return reported.withLock { reported in
                let keys = { (claim: Claim) in claim.delivery.key ?? "" }
                return (reported.ended.map { keys($0.claim) }.sorted(), reported.alone.map { keys($0.claim) }.sorted())
            }
        }

        var firsts: [FirstAnswer?] { reported.withLock { $0.alone.map(\.first) } }
    }

    private static func changed(_ claim: Claim, _ change: (inout FileRow, inout DeliveryRow) -> Void) -> Claim {
        var (file, delivery) = (claim.file, claim.delivery)
        change(&file, &delivery)
        return Claim(file: file, delivery: delivery, checkpoint: claim.checkpoint, original: claim.original)
    }

    @Test func `only the first attempt at a small file that depends on nothing is sent with others`() async throws {
        let bench = try Bench()
        defer { bench.journal.close() }
        let usual = try #require(try await bench.claims(["a"]).first)
        #expect(bench.burst.takes(usual))
        let special: [(inout FileRow, inout DeliveryRow) -> Void] = [
            { file, _ in file.identity.size = 1001 }, { file, _ in file.root = "" },
            { _, delivery in delivery.attempts = 2 }, { _, delivery in delivery.crashes = 1 },
            { _, delivery in delivery.waits = 1 }, { _, delivery in delivery.key = nil },
            { _, delivery in delivery.afterID = 7 }, { _, delivery in delivery.closes = 7 },
        ]
        for (number, change) in special.enumerated() {
            #expect(!bench.burst.takes(Self.changed(usual, change)), "case \(number)")
        }
        #expect(bench.burst.takes(Self.changed(usual) { file, _ in file.identity.size = 1000 }))
        let (file, delivery) = (usual.file, usual.delivery)
        #expect(!bench.burst.takes(Claim(file: file, delivery: delivery, checkpoint: ["upload": [1]])))
        let original = Original(job: 1, path: "/in/b", proof: Proof(key: "b", size: 7, method: .size))
        #expect(!bench.burst.takes(Claim(file: file, delivery: delivery, checkpoint: [:], original: original)))
    }

    @Test func `a destination that needs more than the file gets no bursts, nor does one that takes none now`() throws {
        let bench = try Bench()
        defer { bench.journal.close() }
        func isSent(_ pipeline: any Pipeline, _ change: (inout Destination) -> Void = { _ in }) -> Bool {
            var destination = Destination(
                name: "here", type: "scripted", pipeline: pipeline, smallLimit: 1, connections: 8)
            change(&destination)
            return DeliveryBurst(destination, bench.stage) != nil
        }
        #expect(isSent(bench.bursts))
        #expect(!isSent(bench.bursts) { $0.storage = ("there", { _, _ in true }) })
        #expect(!isSent(bench.bursts) { $0.closesBatches = true })
        #expect(!isSent(ScriptedBursts(ScriptedPipeline(), limit: nil)))
        #expect(!isSent(ScriptedPipeline()))
        #expect(DeliveryBurst(nil, bench.stage) == nil)
    }

    @Test(arguments: ["changed", "replaced", "gone", "symlink", "fifo"])
    func `a file that is no longer the admitted one is not sent`(_ kind: String) async throws {
        let bench = try Bench()
        defer { bench.journal.close() }
        let claims = try await bench.claims(["a", "sub/b", "sub/c"])
        let path = bench.root.pushing("sub/b")
        switch kind {
        case "changed": try Data("CONTENT".utf8).write(to: URL(fileURLWithPath: path.string))
        case "replaced": try move(try bench.directory.write(Array("content".utf8), to: "other"), over: path)
        default: try remove(path)
        }
        if kind == "symlink" { try makeSymlink(path, to: bench.root.appending("a")) }
        if kind == "fifo" { #expect(mkfifo(path.string, 0o600) == 0) }
        bench.start(claims)
        let (ended, alone) = try await bench.ends(3)
        #expect(ended == ["a", "sub/c"] && alone == ["sub/b"])
        // Its attempt says what is wrong: there is no answer to go on from.
        #expect(bench.firsts.allSatisfy { $0 == nil } && bench.bursts.record.count("sub/b") == 0)
    }

    @Test func `one that was cancelled before it was listed is not sent with others`() async throws {
        let bench = try Bench()
        defer { bench.journal.close() }
        let claims = try await bench.claims(["a", "b"])
        bench.stage.shared.transfers.cancel(claims[1].delivery.id)
        bench.start(claims)
        let (ended, alone) = try await bench.ends(2)
        #expect(ended == ["a"] && alone == ["b"] && bench.bursts.record.count("b") == 0)
    }

    @Test func `a burst that begins when the agent ends sends nothing`() async throws {
        let bench = try Bench()
        defer { bench.journal.close() }
        bench.bursts.always(.never)
        let claims = try await bench.claims(["a", "b"])
        await withTaskGroup(of: Void.self) { group in
            group.cancelAll()
            group.addTask { bench.start(claims) }
        }
        let (ended, alone) = try await bench.ends(2)
        #expect(ended.isEmpty && alone == ["a", "b"] && bench.bursts.record.sent.isEmpty)
    }

    /// Otherwise it would end as cancelled, though nobody cancelled it, once the limit is lifted.
    @Test func `what a limit of 0 ended is sent by its attempt`() async throws {
        let (scene, bursts) = try BurstTests.scene()
        bursts.script("a", .never)
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("it is on its way") { bursts.record.running == 1 }
            let shared = try #require(stage.agent.control.live?.shared)
            #expect(shared.transfers.sendBack(heldAt: "here"))
            try await stage.finished("a")
        }
        #expect(bursts.record.count("a") == 1 && scene.here.attempts(at: "a") == 1)
    }

    // MARK: - Places

    private func slots(_ claims: [Claim], _ limit: Int) -> LaneSlots {
        var slots = LaneSlots()
        slots.add(claims)
        slots.setLimit(limit)
        return slots
    }

    @Test func `as many are sent as have connections, and one burst waits beside them`() async throws {
        let bench = try Bench()
        defer { bench.journal.close() }
        let one = try #require(try await bench.claims(["a"]).first)
        let claims = (0..<200).map { id in Self.changed(one) { $1.id = Int64(id) } }
        var slots = slots(claims, 16)
        let isNew = [slots.beginBursting(bench.burst), slots.beginBursting(bench.burst)]
        #expect(isNew == [true, false])
        let first = slots.beginBurst(bench.burst)?.claims ?? []
        #expect(first.map(\.delivery.id) == Array(0..<64) && slots.running == 64)
        // Eight more would be a burst that is too small to be worth it.
        func next(_ ended: ArraySlice<Claim>) -> Int? {
            let told = slots.end(ended.map(LaneSlots.Ended.back), [])
            return told.hasRoom ? slots.beginBurst(bench.burst)?.claims.count : nil
        }
        let counts = [next(first[..<0]), next(first[..<7]), next(first[7..<8])]
        #expect(counts == [0, 0, 16] && slots.running == 8 + 64)
    }

    @Test func `the bytes of all destinations that are on their way are bounded, too`() async throws {
        let bench = try Bench(limit: 200_000, connections: 500)
        defer { bench.journal.close() }
        let one = try #require(try await bench.claims(["a"]).first)
        let claims = (0..<200).map { id in Self.changed(one) { $1.id = Int64(id) } }
        var slots = slots(claims, 16)
        bench.burst.stage.burstBytes.add(6 << 20, ordering: .relaxed)
        let (first, second) = (slots.beginBurst(bench.burst), slots.beginBurst(bench.burst))
        #expect(first?.claims.count == 4 && second?.claims.isEmpty == true, "each destination has a few")
        bench.burst.stage.burstBytes.subtract(6 << 20, ordering: .relaxed)
        let third = slots.beginBurst(bench.burst)
        #expect(third?.claims.count == 64)
    }

    @Test func `a special file does not wait for the end of those that are sent together`() async throws {
        let bench = try Bench()
        defer { bench.journal.close() }
        let one = try #require(try await bench.claims(["a"]).first)
        let claims = (0..<100).map { id in
            Self.changed(one) { ($1.id, $1.attempts) = (Int64(id), id < 98 ? 1 : 2) }
        }
        var slots = slots(claims, 1)
        let sent = slots.beginBurst(bench.burst)
        let (special, other) = (slots.begin(besides: bench.burst), slots.begin(besides: bench.burst))
        #expect(sent?.claims.count == 64 && special?.claim.delivery.id == 98 && other == nil)
    }

    @Test func `whoever waits for room for a burst hears of another limit, and ends where that is 0`() async throws {
        let bench = try Bench()
        defer { bench.journal.close() }
        let claims = try await bench.claims(["a", "b", "c"])
        var slots = slots(claims, 2)
        let (isNew, first) = (slots.beginBursting(bench.burst), slots.beginBurst(bench.burst))
        #expect(isNew && first?.claims.count == 3)
        let isNews = [2, 4, 4, 0].map { slots.setLimit($0) }
        #expect(isNews == [false, true, false, true])
        let next = slots.beginBurst(bench.burst)
        #expect(next == nil && !slots.isBursting)
        let isLater = slots.setLimit(2)
        #expect(!isLater)
    }

    @Test func `the urgent ones go first, and expired ones do not go`() async throws {
        let bench = try Bench()
        defer { bench.journal.close() }
        let one = try #require(try await bench.claims(["a"]).first)
        let claims = (0..<100).map { id in
            Self.changed(one) { _, delivery in
                (delivery.id, delivery.priority) = (Int64(id), id >= 90 ? .high : .normal)
                delivery.expiresAt = id < 10 ? 5 : nil
            }
        }
        var slots = slots(claims, 8)
        slots.endExpired(5)
        let first = slots.beginBurst(bench.burst)?.claims.map(\.delivery.id)
        #expect(first == Array(90..<100) + Array(10..<64))
        #expect(slots.ended.map(\.claim.delivery.id) == Array(0..<10))
    }

    /// They keep their places, and begin before what is at hand.
    @Test func `what goes on alone begins as an attempt, as many at once as may`() async throws {
        let bench = try Bench()
        defer { bench.journal.close() }
        let claims = try await bench.claims(["a", "b", "c", "d"])
        var slots = slots(Array(claims[..<3]), 2)
        let sent = slots.beginBurst(bench.burst)
        slots.add([claims[3]])
        #expect(sent?.claims.count == 3)
        let answer = FirstAnswer(.failure(.passing), from: "memory", mayHaveArrived: true)
        let isAwaited = slots.end([], claims[..<3].map { ($0, answer) }).isAwaited
        #expect(isAwaited)
        let begun = (0..<3).compactMap { _ in slots.begin() }
        #expect(begun.map(\.claim.delivery.key) == ["a", "b"] && begun.allSatisfy { $0.first === answer })
        slots.end(.back(begun[0].claim))
        let (next, none) = (slots.begin(), slots.begin())
        #expect(next?.claim.delivery.key == "c" && none == nil)
    }
}
