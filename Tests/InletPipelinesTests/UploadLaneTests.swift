import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import Synchronization
import SystemPackage
import Testing

@testable import InletPipelines

@Suite(.timeLimit(.minutes(15))) struct UploadLaneTests {
    private static let large: Int64 = 8 << 20

    /// Bodies that stay under way until they are let go.
    private final class Yard: Sendable {
        private struct State {
            var running = 0
            var most = 0
            var ended = 0
        }

        private let state = Mutex(State())
        private let exits = Seats(0)

        var running: Int { state.withLock { $0.running } }
        var most: Int { state.withLock { $0.most } }
        var ended: Int { state.withLock { $0.ended } }

        func stay() async {
            state.withLock { state in
                state.running += 1
                state.most = max(state.most, state.running)
            }
            await exits.take()
            state.withLock { state in
                state.running -= 1
                state.ended += 1
            }
        }

        func letGo(_ count: Int) { for _ in 0..<count { exits.leave() } }
    }

    private static func carry(
        _ lane: UploadLane, _ yard: Yard, bytes: Int64 = large, of delivery: Int64 = 1, isStopping: Bool = false
    ) async -> ErrorCode? {
        do throws(DeliveryError) {
            try await lane.carry(bytes, of: delivery, isStopping: { isStopping }) { () async throws(DeliveryError) in
                await yard.stay()
            }
            return nil
        } catch {
            return error.code
        }
    }

    @Test func `after a refusal two go at once, and all have their turn`() async throws {
        let (lane, yard) = (UploadLane(), Yard())
        lane.refused(since: .now)
        try await withThrowingTaskGroup(of: ErrorCode?.self) { group in
            for _ in 0..<12 { group.addTask { await Self.carry(lane, yard) } }
            try await eventually("all are there") { lane.wanted == 12 }
            try await eventually("two are under way") { yard.running == 2 }
            yard.letGo(12)
            for try await code in group { #expect(code == nil) }
        }
        #expect(yard.ended == 12 && yard.most == 2 && lane.wanted == 0)
    }

    /// Four hold the lane while `body` runs.
    private func whileFull(_ lane: UploadLane, _ body: @Sendable (Yard) async throws -> Void) async throws {
        let yard = Yard()
        try await withThrowingTaskGroup(of: ErrorCode?.self) { group in
            for _ in 0..<UploadPace.start { group.addTask { await Self.carry(lane, yard) } }
            try await eventually("the lane is full") { yard.running == UploadPace.start }
            try await body(yard)
            yard.letGo(UploadPace.start)
            for try await code in group { #expect(code == nil) }
        }
        #expect(lane.wanted == 0)
    }

    @Test func `who is cancelled while it waits leaves the line, and takes nobody's turn`() async throws {
        let (lane, late) = (UploadLane(), Yard())
        try await whileFull(lane) { _ in
            await withTaskGroup(of: ErrorCode?.self) { group in
                group.addTask { await Self.carry(lane, late) }
                group.cancelAll()
                for await code in group { #expect(code == .cancelled) }
            }
            #expect(lane.wanted == UploadPace.start && late.most == 0)
        }
        late.letGo(1)
        #expect(await Self.carry(lane, late) == nil)
        #expect(late.ended == 1)
    }

    @Test func `when the agent stops, whose turn comes does not begin`() async throws {
        let (lane, late) = (UploadLane(), Yard())
        try await whileFull(lane) { yard in
            try await withThrowingTaskGroup(of: ErrorCode?.self) { group in
                group.addTask { await Self.carry(lane, late, isStopping: true) }
                try await eventually("it waits") { lane.wanted == UploadPace.start + 1 }
                yard.letGo(1)
                for try await code in group { #expect(code == .cancelled) }
            }
        }
        #expect(late.most == 0 && lane.wanted == 0)
    }

    @Test func `a file of one body passes the waiting parts of a larger one`() async throws {
        let (lane, parts, single) = (UploadLane(), Yard(), Yard())
        single.letGo(1)
        try await whileFull(lane) { yard in
            try await withThrowingTaskGroup(of: ErrorCode?.self) { group in
                for _ in 0..<6 { group.addTask { await Self.carry(lane, parts) } }
                try await eventually("six parts wait") { lane.wanted == UploadPace.start + 6 }
                group.addTask { await Self.carry(lane, single, of: 2) }
                try await eventually("the file waits") { lane.wanted == UploadPace.start + 7 }
                yard.letGo(1)
                try await eventually("the file has gone") { single.ended == 1 }
                // Its place went to the part that came first.
                try await eventually("one part is under way") { parts.running == 1 }
                #expect(parts.most == 1)
                parts.letGo(6)
                for try await code in group { #expect(code == nil) }
            }
        }
    }

    @Test func `a body begins even where the system gives it no thread`() async throws {
        let (lane, waiting) = (UploadLane(), Yard())
        waiting.letGo(1)
        try await whileFull(lane) { yard in
            await withTaskGroup(of: ErrorCode?.self) { group in
                group.addTask(executorPreference: ImmediateExecutor.shared) { await Self.carry(lane, waiting) }
                #expect(lane.wanted == UploadPace.start + 1)
                yard.letGo(1)
                for await code in group { #expect(code == nil) }
            }
            #expect(waiting.ended == 1)
        }
    }

    @Test func `a small body waits for no large one`() async throws {
        let (lane, small) = (UploadLane(), Yard())
        small.letGo(1)
        try await whileFull(lane) { _ in
            #expect(await Self.carry(lane, small, bytes: UploadLane.smallest - 1) == nil)
            #expect(small.ended == 1)
        }
    }
}

/// Deliveries of all kinds whose destination may send nothing for a while.
@Suite(.timeLimit(.minutes(15))) struct ThrottledDeliveryTests {
    @Test(arguments: [Contender.r2Parts, .r2Other, .r2Single, .s3Parts, .s3Single, .form, .tus, .markers])
    func `nothing arrives at a rate of 0, and the file once and whole when it is lifted`(contender: Contender)
        async throws
    {
        try await withMatrix(contender, longestStall: .seconds(5)) { place in
            let throttle = try #require(place.factory?.throttle)
            // The name that the factory of these tests gives to all.
            throttle.set(0, for: "here")
            let notes = Notes()
            let attempt = notes.attempt()
            let first = try deliver(place, attempt)
            try await eventually("it waits, and notes that") { throttle.isHolding("here") && attempt.isHeld }
            try place.check(false)
            // Others are not held.
            #expect(!throttle.isHolding("there"))
            throttle.set(8 << 20, for: "here")
            var outcome = try await first.value.get()
            #expect(!attempt.isHeld)
            for _ in 1...100 {
                guard case .waiting = outcome else { break }
                outcome = try await deliver(place, notes.attempt()).value.get()
            }
            #expect(try outcome.proof().key == place.order.key)
            try place.check(true)
        }
    }

    @Test(arguments: [Contender.r2Parts, .s3Single, .form, .tus])
    func `an attempt that waits for its limit is cancelled at once, and leaves nothing`(contender: Contender)
        async throws
    {
        try await withMatrix(contender, longestStall: nil) { place in
            let throttle = try #require(place.factory?.throttle)
            throttle.set(0)
            let held = try deliver(place, Notes().attempt())
            try await eventually("it waits") { throttle.isHolding("here") }
            held.cancel()
            let result = await held.value
            let error = #expect(throws: DeliveryError.self) { try result.get() }
            #expect(error?.verdict == .cancelled)
            try place.check(false)
        }
    }

    private func deliver(
        _ place: MatrixPlace, _ attempt: Attempt
    ) throws -> Task<Result<DeliveryOutcome, DeliveryError>, Never> {
        let source = try SourceFile(opening: place.source)
        return Task {
            await attempt.noting {
                do throws(DeliveryError) {
                    return .success(try await place.pipeline.deliver(source, place.order, attempt))
                } catch { return .failure(error) }
            }
        }
    }
}

/// The order of one file's parts.
struct PartQueueTests {
    private static func part(_ number: Int) throws -> HashedPart {
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write([1], to: "f"))
        return HashedPart(number: number, sums: [:], visit: CacheVisit(source, 0..<1))
    }

    @Test func `parts are hashed while others are sent, some ahead and no more`() throws {
        var queue = PartQueue(Array(1...7), atOnce: 2, ahead: 3)
        #expect([queue.nextToHash(), queue.nextToHash(), queue.nextToHash(), queue.nextToHash()] == [1, 2, 3, nil])
        #expect(queue.nextToSend() == nil)
        for number in 1...3 { queue.end(.hashed(try Self.part(number))) }
        // Hashed, but not yet sent.
        #expect(queue.nextToHash() == nil)
        #expect([queue.nextToSend()?.number, queue.nextToSend()?.number, queue.nextToSend()?.number] == [1, 2, nil])
        #expect([queue.nextToHash(), queue.nextToHash(), queue.nextToHash()] == [4, 5, nil])
        queue.end(.sent(2, UploadRecord.VerifiedPart(etag: "e")))
        #expect(queue.nextToSend()?.number == 3)
        #expect([queue.nextToHash(), queue.nextToHash()] == [6, nil])
    }

    @Test(arguments: [(8, 8), (64, 4), (256, 1), (4096, 1), (5, 8)] as [(Int64, Int)])
    func `parts hashed ahead fill the lanes, but not a small machine's page cache`(_ size: Int64, _ ahead: Int) {
        let plan = PartPlan(fileSize: 64 << 30, configured: size << 20, mostParts: 100_000)
        #expect(PartQueue.ahead(plan, atOnce: 8) == ahead)
    }
}
