import Foundation
import InletCore
import InletPipelines
import InletSandbox
import InletTestSupport
import Testing

/// One part that goes wrong, in an upload of two.
@Suite(.timeLimit(.minutes(8))) struct R2PartTests {
    private static let whole = Place.part + 1

    /// The faults that one more try of the part gets over.
    static let passing: [FaultAction] = [
        .status(500), .status(503), .status(429, retryAfter: 1), .status(408), .reset(afterBytes: 100_000),
        .reset(afterBytes: 0), .missingETag, .loseAnswer, .wrongETag(.random), .wrongETag(.constant),
    ]

    @Test(arguments: passing)
    func `what passes is got over by sending the part again`(_ action: FaultAction) async throws {
        try await withPlace(.r2("v1"), faults: Fault(action, at: .part, part: 1)) { place in
            let (path, order) = try place.file(Self.whole)
            let attempt = Notes().attempt()
            let start = ContinuousClock.now
            _ = try await place.deliver(path, order, attempt).get()
            #expect(place.count(.part) == 3)
            #expect(place.count(.create) == 1)
            #expect(attempt.bytesSent == Int64(Self.whole))
            #expect(try place.visible() == [order.key: content(Self.whole)])
            if action == .status(429, retryAfter: 1) { #expect(ContinuousClock.now - start >= .seconds(1)) }
        }
    }

    @Test func `a part has five tries, then the destination's own verdict counts`() async throws {
        try await withPlace(.r2("v1"), faults: Fault(.status(503), at: .part, part: 1, times: nil)) { place in
            let (path, order) = try place.file(Self.whole)
            let error = try await place.failure(path, order)
            #expect(error?.verdict == .outage(after: nil))
            #expect(place.sandbox?.traffic.partOrder.count { $0 == 1 } == 5)
            #expect(place.count(.create) == 1)
        }
    }

    @Test func `a long Retry-After gives the worker back`() async throws {
        try await withPlace(.r2("v1"), faults: Fault(.status(429, retryAfter: 600), at: .part, times: nil)) { place in
            let (path, order) = try place.file(Self.whole)
            let error = try await place.failure(path, order)
            #expect(error?.verdict == .retry(after: .seconds(600)))
            #expect(error?.code == .throttled)
            #expect(place.count(.part) <= 2)
        }
    }

    @Test func `a tag that is another one each time is damage`() async throws {
        try await withPlace(.r2("v1"), faults: Fault(.wrongETag(.random), at: .part, part: 1, times: nil)) { place in
            let (path, order) = try place.file(Self.whole)
            let notes = Notes()
            let error = try await place.failure(path, order, notes.attempt())
            #expect(error?.code == .corrupted)
            #expect(error?.verdict == .retry(after: nil))
            #expect(place.sandbox?.traffic.partOrder.count { $0 == 1 } == 2)
            #expect(try place.visible() == [:])
            #expect(try place.leftovers() == [])
            #expect(notes.entries == [:])
        }
    }

    @Test func `a tag that is always the same wrong one is a store without MD5`() async throws {
        let fault = Fault(.wrongETag(.constant), at: .part, times: nil)
        try await withPlace(.r2("v1"), faults: fault) { place in
            let (path, order) = try place.file(Self.whole)
            let error = try await place.failure(path, order)
            #expect(error?.code == .foreignETag)
            #expect(error?.verdict == .giveUp)
            #expect(error?.reason.contains("verify: size") == true)
        }
        try await withPlace(.r2("v1", verify: "size"), faults: fault) { place in
            let (path, order) = try place.file(Self.whole)
            let proof = try await place.deliver(path, order).get()
            #expect(proof.method == .size)
            #expect(proof.content == nil)
            #expect(try place.visible() == [order.key: content(Self.whole)])
        }
    }

    @Test(arguments: [Implementation.r2("v1"), .r2("v1", verify: "size")])
    func `a part without a tag is never taken`(_ implementation: Implementation) async throws {
        try await withPlace(implementation, faults: Fault(.missingETag, at: .part, part: 2, times: nil)) { place in
            let (path, order) = try place.file(Self.whole)
            #expect(try await place.failure(path, order)?.code == .missingETag)
            #expect(try place.visible() == [:])
        }
    }

    @Test func `a redirect of a part is never followed`() async throws {
        let fault = Fault(.redirect(to: "http://127.0.0.1:1/elsewhere"), at: .part, part: 1)
        try await withPlace(.r2("v1"), faults: fault) { place in
            let (path, order) = try place.file(Self.whole)
            let error = try await place.failure(path, order)
            #expect(error?.code == .redirected)
            #expect(error?.verdict == .giveUp)
        }
    }

    @Test(arguments: [FaultAction.endlessAnswer, .html, .garbage])
    func `an answer that is no store's is not believed`(_ action: FaultAction) async throws {
        try await withPlace(.r2("v1"), faults: Fault(action, at: .part, part: 1)) { place in
            let (path, order) = try place.file(Self.whole)
            _ = try await place.deliver(path, order).get()
            #expect(place.sandbox?.traffic.partOrder.count { $0 == 1 } == 2)
        }
    }

    @Test func `a source that changes after its first part is dropped with its upload`() async throws {
        try await withPlace(.r2("v1"), settings: ["parallel_parts": .integer(1)]) { place in
            let (path, order) = try place.file(3 * Place.part)
            let notes = Notes()
            let attempt = notes.attempt { if $0 == ["part:1"] { try? truncate(path, to: 20_000_000) } }
            #expect(try await place.failure(path, order, attempt)?.verdict == .sourceChanged)
            #expect(place.count(.part) <= 2)
            #expect(try place.leftovers() == [])
            #expect(notes.entries == [:])
        }
    }
}
