import InletCore
import InletLinux
import InletTransfer
import Synchronization
import Testing

@testable import InletPipelines

/// A seventh kind, made as `Sources/InletPipelines/InletPipelines.docc/NewDestination.md` says: it keeps what it is sent in memory.
struct MemoryKind: DestinationKind {
    let room = Key("room", .bytes, default: "1GiB", "How much it holds.")
    let store = MemoryStore()

    var type: DestinationType {
        DestinationType(
            name: "memory", summary: "this process's memory, for tests",
            keys: specs)
    }

    var pipeline: any Pipeline.Type { MemoryPipeline.self }

    var setup: DestinationSetup {
        DestinationSetup(
            name: "memory", place: "Room in memory", questions: [.init("room", "How much may it hold?", need: .never)])
    }

    func make(_ destination: DestinationSettings, _ factory: PipelineFactory) throws(SettingFault) -> Destination {
        let values = Section(self, destination.values)
        let room = values.room
        guard room > 0 else { throw values.fault(\.room, "must not be 0") }
        var made = Destination(
            name: destination.name, type: destination.type,
            pipeline: MemoryPipeline(store: store, room: room, pool: factory.pool), smallLimit: .max, connections: 4,
            maxInFlight: nil)
        made.setAddress("here")
        return made
    }
}

/// What was delivered, by key.
final class MemoryStore: Sendable {
    private let objects = Mutex<[String: [UInt8]]>([:])

    var all: [String: [UInt8]] { objects.withLock { $0 } }

    func put(_ bytes: [UInt8], under key: String, room: Int64) throws(DeliveryError) {
        try objects.withLock { objects throws(DeliveryError) in
            if let there = objects[key] {
                guard there != bytes else { return }
                throw DeliveryError(.giveUp, .destinationExists, "'\(key)' is there and is another file")
            }
            let held = objects.values.reduce(0) { $0 + $1.count }
            guard Int64(held + bytes.count) <= room else {
                throw DeliveryError(.outage(after: nil), .destinationFull, "more than \(ByteText.format(room))")
            }
            objects[key] = bytes
        }
    }

    func damage(_ key: String) { objects.withLock { $0[key] = [0] } }
}

struct MemoryPipeline: Pipeline, DeliveryVerifying {
    let store: MemoryStore
    let room: Int64
    /// For what blocks.
    let pool: BlockingPool

    func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome {
        if attempt.isStopping() { throw .stopping }
        try source.requireUnchanged(since: order)
        try await attempt.checkpoint.put(["copying": []])
        if Task.isCancelled { throw DeliveryError(.cancelled, .cancelled, "cancelled while copying") }
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try await pool.run { () throws(SystemError) in try source.content(of: Int(order.source.size)) }
        } catch {
            throw DeliveryError(reading: error)
        }
        // Last: nothing may become visible of a source that is another one now.
        try source.requireUnchanged(since: order)
        try store.put(bytes, under: order.key, room: room)
        attempt.meter.add(Int64(bytes.count))
        let content = ContentHash(digest: Checksum.sha256(bytes), partSize: nil)
        return .delivered(Proof(key: order.key, size: order.source.size, method: .sha256, content: content))
    }

    /// A file is there or not: no attempt leaves half of one.
    func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError) {}

    func probe() async throws(DeliveryError) -> String { "\(ByteText.format(room)) of memory" }

    func verify(_ order: VerifyOrder) async throws(DeliveryError) -> Verification {
        guard let bytes = store.all[order.proof.key] else { return .missing("it is not in memory") }
        guard order.comparesBytes else { return order.compare(size: Int64(bytes.count), etag: nil) }
        var check = ContentCheck(order)
        bytes.withUnsafeBytes { check.update($0) }
        return check.finish()
    }
}

/// What others ask of a kind, of the seventh. `PipelineContractTests` has its pipeline.
@Suite struct MemoryKindTests {
    private let kind = MemoryKind()

    private func make(_ values: [String: ConfigValue]) throws -> Destination {
        let factory = PipelineFactory(
            pool: BlockingPool(name: "memory", threads: 1), userAgent: "inlet-tests/1",
            kinds: DestinationKinds.all + [kind])
        defer { factory.shutdown() }
        let settings = DestinationSettings(name: "here", type: "memory", values: section(values))
        let made = try factory.make(settings)
        #expect(try factory.proxyUse(of: made, settings) == nil)
        return made
    }

    @Test func `a kind that is listed is made, and its settings are its own to judge`() throws {
        let made = try make([:])
        #expect(made.type == "memory" && made.address != nil && made.takesSidecars)
        let fault = #expect(throws: SettingFault.self) { try make(["room": .bytes(0)]) }
        #expect(fault?.key == "room")
    }

    @Test func `what is full is out of order, and what was damaged shows`() async throws {
        try await withPlace(.memory, settings: ["room": .bytes(10)]) { place in
            let (path, order) = try place.file(8)
            let proof = try await place.deliver(path, order).get()
            let (other, second) = try place.file(8, key: "second")
            #expect(try await place.failure(other, second)?.verdict == .outage(after: nil))
            let verifier = try #require(place.pipeline as? any DeliveryVerifying)
            #expect(try await verifier.verify(VerifyOrder(proof: proof, readsBytes: true)).text.hasPrefix("same"))
            place.memory?.damage(order.key)
            // It has another length.
            #expect(try await verifier.verify(VerifyOrder(proof: proof)).text.hasPrefix("differs"))
        }
    }
}
