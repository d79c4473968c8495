import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import Testing

@testable import InletPipelines

/// Deliveries of all kinds whose destination may send nothing for a while.
@Suite(.timeLimit(.minutes(8))) struct ThrottledDeliveryTests {
    @Test(arguments: [Contender.r2Parts, .r2Other, .r2Single, .s3Parts, .s3Single, .form, .tus, .markers])
    func `nothing arrives at a rate of 0, and the file once and whole when it is lifted`(
        contender: Contender
    ) async throws {
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
            #expect(proof(outcome)?.key == place.order.key)
            try place.check(true)
        }
    }

    @Test(arguments: [Contender.r2Parts, .s3Single, .form, .tus])
    func `an attempt that waits for its limit is cancelled at once, and leaves nothing`(
        contender: Contender
    ) async throws {
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

    private func proof(_ outcome: DeliveryOutcome) -> Proof? {
        if case .delivered(let proof) = outcome { proof } else { nil }
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
