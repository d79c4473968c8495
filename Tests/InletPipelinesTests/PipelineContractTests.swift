import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// The contract of `Pipeline`, for every implementation: a new destination is one line in `Implementation.all`.
@Suite(.timeLimit(.minutes(15))) struct PipelineContractTests {
    private static let part = Place.part

    @Test(arguments: Implementation.all)
    func `bytes arrive whole, whatever their number`(_ implementation: Implementation) async throws {
        try await withPlace(implementation) { place in
            let counts = [1, Self.part, Self.part + 1, 3 * Self.part + 12_345]
            for count in (implementation.takesEmptyFiles ? [0] : []) + counts {
                let (path, order) = try place.file(count, key: "files/\(count).bin")
                let attempt = Notes().attempt()
                let proof = try await place.deliver(path, order, attempt).get()
                #expect(proof.key == order.key)
                #expect(proof.size == Int64(count))
                #expect(try place.visible()[order.key] == place.expected(order, count), "\(count) bytes")
                #expect(attempt.bytesSent == (implementation.sendsBytes ? Int64(count) : 0))
            }
            #expect(try place.visible().count == (implementation.takesEmptyFiles ? 5 : 4))
            #expect(try place.leftovers() == [])
        }
    }

    @Test(arguments: Implementation.all)
    func `delivering an order twice leaves one object`(_ implementation: Implementation) async throws {
        try await withPlace(implementation, isPublic: true) { place in
            for count in [2000, Self.part + 1] {
                let (path, order) = try place.file(count, key: "\(count)")
                let notes = Notes()
                _ = try await place.deliver(path, order, notes.attempt()).get()
                // Killed before the journal heard of it: the notes are still there.
                let again = try await place.deliver(path, order, notes.attempt()).get()
                #expect(again.key == order.key)
                #expect(try place.visible()[order.key] == place.expected(order, count))
            }
            #expect(try place.visible().count == 2)
            #expect(try place.leftovers() == [])
        }
    }

    @Test(arguments: Implementation.all)
    func `names that URLs and shells would change arrive as they are`(_ implementation: Implementation) async throws {
        let keys = ["a b/c d.mp4", "größe/日本語/é.bin", "100%/%41.bin", "#1?x=1+2&y=;.bin", "'\"$(x)`~!@^*{}|<>.bin"]
        try await withPlace(implementation) { place in
            for key in keys {
                let (path, order) = try place.file(100, key: key)
                #expect(try await place.deliver(path, order).get().key == key)
            }
            let all = keys.joined()
            let (path, order) = try place.file(Self.part + 1, key: all)
            #expect(try await place.deliver(path, order).get().key == all)
            #expect(Set(try place.visible().keys) == Set(keys + [all]))
        }
    }

    @Test(arguments: Implementation.all)
    func `a source that is not what was admitted stays out`(_ implementation: Implementation) async throws {
        try await withPlace(implementation) { place in
            for count in [1000, Self.part + 1] {
                let (path, order) = try place.file(count)
                try touch(path, at: 10)
                #expect(try await place.failure(path, order)?.verdict == .sourceChanged)
                let (grown, second) = try place.file(count)
                try truncate(grown, to: Int64(count + 1))
                #expect(try await place.failure(grown, second)?.verdict == .sourceChanged)
            }
            #expect(try place.visible() == [:])
            #expect(try place.leftovers() == [])
        }
    }

    @Test(arguments: Implementation.all)
    func `a source that was removed is gone, one that was replaced has changed, and one that cannot be seen is neither`(
        _ implementation: Implementation
    ) async throws {
        try await withPlace(implementation) { place in
            for count in [1000, Self.part + 1] {
                let (path, order) = try place.file(count)
                let source = try SourceFile(opening: path)
                func error() async throws -> DeliveryError {
                    try await #require(throws: DeliveryError.self) {
                        try await place.pipeline.deliver(source, order, Notes().attempt())
                    }
                }
                let faults = KernelFaults.begin(KernelFaultPlan(below: [path], seed: 1, count: 1000, every: 1))
                let unseen = try await error()
                KernelFaults.end(faults)
                #expect(unseen.isLocal, "\(unseen)")
                try FileManager.default.removeItem(atPath: path.string)
                #expect(try await error().verdict == .sourceGone)
                _ = FileManager.default.createFile(atPath: path.string, contents: Data(count: count))
                #expect(try await error().verdict == .sourceChanged)
            }
            #expect(try place.visible() == [:])
            #expect(try place.leftovers() == [])
        }
    }

    enum Change: CaseIterable {
        case overwritten
        case grown
        case cut
        case removed

        func make(_ path: FilePath, _ size: Int64) throws {
            switch self {
            case .overwritten: try touch(path, at: size - 2)
            case .grown: try truncate(path, to: size + 1)
            case .cut: try truncate(path, to: size / 2)
            case .removed: try FileManager.default.removeItem(atPath: path.string)
            }
        }
    }

    @Test(arguments: Implementation.staged, Change.allCases)
    func `a source that changes under way leaves nothing`(_ implementation: Implementation, _ change: Change)
        async throws
    {
        // The one PUT of S3 has no step before it that could wait for the change: S3DeliveryTests has that case.
        let counts = implementation.type == "s3" ? [2 * Self.part + 1] : [4 << 20, 2 * Self.part + 1]
        try await withPlace(implementation) { place in
            for count in counts {
                let (path, order) = try place.file(count)
                // R2 has been asked for URLs, the folder has noted that it copies; the reading is still to come.
                let gate = RequestGate()
                place.misbehave(.hold(gate), at: .create)
                // S3's one PUT has nothing before it: it is refused once, and asked to come back.
                let isAskedFirst = place.s3 == nil
                place.misbehave(isAskedFirst ? .hold(gate) : .status(503, retryAfter: 1), at: .presign)
                let before = place.count(.create) + place.count(.presign)
                async let changed: Void = {
                    defer { gate.open() }
                    guard !place.isLocal else { return }
                    try await eventually("URLs are asked for") {
                        place.count(.create) + place.count(.presign) > before
                    }
                    try change.make(path, Int64(count))
                }()
                let notes = Notes()
                let attempt = notes.attempt { names in
                    if names.contains("copying") { try? change.make(path, Int64(count)) }
                }
                let error = try await place.failure(path, order, attempt)
                try await changed
                #expect(error?.verdict == (change == .removed ? .sourceGone : .sourceChanged), "\(count)")
                place.behave()
                try await place.pipeline.abandon(order, checkpoint: notes.entries)
            }
            #expect(try place.visible() == [:])
            #expect(try place.leftovers() == [])
        }
    }

    @Test(arguments: Implementation.all)
    func `cancelling a stalled attempt ends it at once`(_ implementation: Implementation) async throws {
        for count in [1000, 2 * Self.part] {
            try await withPlace(implementation) { place in
                place.misbehave(.stall, at: .part, .single, times: nil)
                let (path, order) = try place.file(count)
                let notes = Notes()
                let isCopying = Switch()
                let attempt = notes.attempt { names in
                    guard names.contains("copying") else { return }
                    isCopying.turnOn()
                    // The folder's disk hangs, until it is too late.
                    try? await Task.sleep(for: .seconds(60))
                }
                let task = Task(executorPreference: BlockingPool(name: "cancelled", threads: 1)) {
                    (try await place.failure(path, order, attempt), ContinuousClock.now)
                }
                try await eventually("bytes are under way") {
                    isCopying.isOn || place.count(.part) + place.count(.single) > 0
                }
                let start = ContinuousClock.now
                task.cancel()
                let (error, end) = try await task.value
                #expect(error?.verdict == .cancelled)
                // Well before the minute after which it would end by itself.
                #expect(end - start < .seconds(40), "took \(end - start)")
                #expect(try place.visible() == [:])
                for _ in 1...2 { try await place.pipeline.abandon(order, checkpoint: notes.entries) }
                #expect(try place.leftovers() == [])
            }
        }
    }

    @Test(arguments: Implementation.all)
    func `a stopping agent begins nothing and forgets nothing`(_ implementation: Implementation) async throws {
        try await withPlace(implementation) { place in
            let (path, order) = try place.file(2 * Self.part)
            let notes = Notes()
            let before = place.requests
            let error = try await place.failure(path, order, notes.attempt(isStopping: { true }))
            #expect(error?.verdict == .cancelled)
            #expect(try place.visible() == [:])
            #expect(place.requests == before)
            // The next start goes on.
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(try place.visible()[order.key] == place.expected(order, 2 * Self.part))
        }
    }

    @Test(arguments: Implementation.all)
    func `abandoning what never began is success`(_ implementation: Implementation) async throws {
        try await withPlace(implementation) { place in
            let (_, order) = try place.file(10)
            for _ in 1...2 { try await place.pipeline.abandon(order, checkpoint: [:]) }
        }
    }

    @Test(arguments: Implementation.all)
    func `what never began cannot go on without its source`(_ implementation: Implementation) async throws {
        try await withPlace(implementation) { place in
            let (path, whole) = try place.file(10)
            // What a storage holds has left already.
            var order = whole
            order.upstream = []
            #expect(try await place.pipeline.conclude(path, order, Notes().attempt()) == nil)
            #expect(try place.visible().isEmpty)
        }
    }

    @Test(arguments: Implementation.all)
    func `a probe says what answers and leaves nothing`(_ implementation: Implementation) async throws {
        try await withPlace(implementation) { place in
            let said = try await place.pipeline.probe()
            #expect(!said.isEmpty)
            #expect(try place.visible() == [:])
            #expect(try place.leftovers() == [])
        }
    }
}
