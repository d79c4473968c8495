import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

/// Small files that are sent together: with sixteen connections 64 are, and as many wait at hand.
@Suite(.timeLimit(.minutes(8))) struct BurstTests {
    private static let connections = 16

    private func scene(_ bursting: BurstingPipeline) throws -> Scene {
        var scene = try Scene()
        scene.destinations = [
            Destination(
                name: "here", type: "bursting", pipeline: bursting, smallLimit: 1 << 20, connections: Self.connections)
        ]
        return scene
    }

    @Test func `a pause ends what is sent together, and afterwards the rest is sent so`() async throws {
        let bursting = BurstingPipeline()
        let scene = try scene(bursting)
        let files = LaneSlots.most(Self.connections) + 8
        try await scene.run { stage in
            for number in 0..<files { try scene.drop(FilePath("\(number)")) }
            var sent = 0
            try await eventually("some are sent, and as many as may be are claimed") {
                sent = bursting.open.count
                let claimed = try await stage.journal.deliveryCounts(.claimed)["here"]
                return sent >= Self.connections && claimed == LaneSlots.most(Self.connections)
            }
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            try await eventually("what waited at hand is given back") {
                sent = bursting.open.count
                return try await stage.journal.deliveryCounts(.claimed)["here"] == sent
            }
            bursting.answer()
            try await eventually("nothing is on its way") { try await stage.journal.deliveryCounts(.claimed).isEmpty }
            #expect(bursting.open.isEmpty)
            _ = try await stage.agent.control.setPaused(false, "here", by: "test")
            try await eventually("all have arrived") {
                bursting.answer()
                return try await stage.journal.deliveryCounts(.delivered)["here"] == files
            }
        }
        #expect(bursting.alone.record.orders.isEmpty)
    }

    @Test func `after the grace what was sent together is given back`() async throws {
        let bursting = BurstingPipeline()
        var scene = try scene(bursting)
        scene.grace = .milliseconds(50)
        bursting.alone.always(.stall)
        try await scene.run { stage in
            for number in 0..<10 { try scene.drop(FilePath("\(number)")) }
            try await eventually("all are sent") { bursting.open.count == 10 }
        }
        let journal = try Journal(path: scene.journalPath, now: .now)
        defer { journal.close() }
        #expect(try await journal.recover(destinations: ["here"], at: .now).freedClaims == 0)
        let open = try await journal.jobs(FileFilter(limit: 100)).flatMap(\.deliveries)
        #expect(open.count == 10 && open.allSatisfy { $0.state == .ready && $0.attempts == 0 })
    }

    @Test func `one that a person cancels among others is not sent again`() async throws {
        let bursting = BurstingPipeline()
        let scene = try scene(bursting)
        try await scene.run { stage in
            for name in ["a", "b", "c"] { try scene.drop(FilePath(name)) }
            try await eventually("all are sent") { bursting.open.count == 3 }
            #expect(try await stage.agent.control.act(.cancel, on: try await stage.job("b").file.id) == .done)
            try await eventually("it was ended there") { bursting.open.sorted() == ["a", "c"] }
            bursting.answer()
            for name in ["a", "c"] { try await stage.finished(FilePath(name)) }
            try await stage.finished("b", .cancelled)
            try await eventually("its claim has ended, too") {
                try await stage.journal.deliveryCounts(.claimed).isEmpty
                    && stage.agent.control.live?.inFlight.isEmpty == true
            }
        }
        #expect(bursting.alone.record.orders.isEmpty)
    }

    @Test func `what did not go well together continues alone, and keeps its key where it may have arrived`()
        async throws
    {
        let bursting = BurstingPipeline()
        let scene = try scene(bursting)
        try await scene.run { stage in
            for name in ["a", "b"] { try scene.drop(FilePath(name)) }
            try await eventually("both are sent") { bursting.open.count == 2 }
            for (name, mayHaveArrived) in [("a", true), ("b", false)] {
                bursting.end(name, .continues(.of(.passing, mayHaveArrived: mayHaveArrived)))
            }
            for name in ["a", "b"] { try await stage.finished(FilePath(name)) }
            let noted = stage.events.all.compactMap { event in
                if case .jobCheckpoint(let ref, let notes) = event {
                    ref.path.lastComponent.map { ($0.string, notes) }
                } else {
                    nil
                }
            }
            #expect(noted.map(\.0) == ["a"] && noted.first?.1 == [CheckpointName.mayBeVisible])
            // Told once, when they were sent.
            #expect(stage.events.count("job.started") == 2)
        }
        #expect(bursting.alone.record.orders.map(\.key).sorted() == ["a", "b"])
    }
}

/// A destination in memory that takes small files together, and answers when the test says so.
private final class BurstingPipeline: BurstPipeline {
    private struct Sent {
        let key: String
        let end: @Sendable (BurstEnd) -> Void
    }

    /// Attempts of single files.
    let alone = ScriptedPipeline()
    let burstLimit: Int? = 1 << 20
    private let sent = Mutex<[Sent]>([])

    /// The keys without an answer.
    var open: [String] { sent.withLock { $0.map(\.key) } }

    func burst(
        _ files: [BurstFile], most: Int, ended: @escaping @Sendable ([(index: Int, end: BurstEnd)]) -> Void
    ) throws(DeliveryError) -> Burst {
        let all = files.enumerated().map { index, file in
            Sent(key: file.order.key) { ended([(index, $0)]) }
        }
        return Burst(
            start: { [self] in
                sent.withLock { $0 += all }
                Happening.ring()
            },
            cancel: { [self] in end(all[$0].key, .continues(.of(DeliveryError(.cancelled, .cancelled, "ended")))) })
    }

    /// All that were sent have arrived.
    func answer() {
        for key in open { end(key, .delivered(Proof(key: key, size: 7, method: .size))) }
    }

    func end(_ key: String, _ end: BurstEnd) {
        let one = sent.withLock { sent in
            sent.firstIndex { $0.key == key }.map { sent.remove(at: $0) }
        }
        one?.end(end)
        Happening.ring()
    }

    func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome { try await alone.deliver(source, order, attempt) }

    func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError) {
        try await alone.abandon(order, checkpoint: checkpoint)
    }

    func probe() async throws(DeliveryError) -> String { try await alone.probe() }
}

extension FirstAnswer {
    fileprivate static func of(_ error: DeliveryError, mayHaveArrived: Bool = false) -> FirstAnswer {
        FirstAnswer(.failure(error), from: "memory", mayHaveArrived: mayHaveArrived)
    }
}
