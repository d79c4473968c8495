internal import InletCore
internal import InletLinux

/// The tries that one body has within an attempt: five, a moment apart.
struct SendingTries: Sendable {
    let source: SourceFile
    let order: DeliveryOrder
    let attempt: Attempt
    /// What the same request again cannot get over.
    let final: Set<ErrorCode>

    private static let most = 5
    private static let waits = RetryPolicy(backoff: .milliseconds(200), maxBackoff: .seconds(5))
    /// A Retry-After beyond this ends the attempt instead of holding a worker.
    private static let longestWait = Duration.seconds(10)

    /// Waits before the next try, or throws what ends the attempt.
    func pause(after failed: Int, _ error: DeliveryError) async throws(DeliveryError) {
        let asked: Duration?
        switch error.verdict {
        case .retry(let after), .outage(let after): asked = after
        case .sourceChanged:
            // To the reader of an open file a removal looks like a change; the guard knows better.
            try SourceGuard.check(source, order)
            throw error
        default: throw error
        }
        if attempt.isStopping() { throw .stopping }
        guard failed < Self.most, !final.contains(error.code), asked ?? .zero <= Self.longestWait else { throw error }
        var random = SystemRandomNumberGenerator()
        do {
            try await Task.sleep(for: Self.waits.delay(afterAttempt: failed, asked: asked, using: &random))
        } catch {
            throw DeliveryError(.cancelled, .cancelled, "cancelled while waiting to send again")
        }
        try SourceGuard.check(source, order)
    }
}
