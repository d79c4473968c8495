internal import InletCore

/// Waiting between the tries that one step has within an attempt: five, a moment apart.
enum Retrying {
    static let tries = 5
    private static let waits = RetryPolicy(backoff: .milliseconds(200), maxBackoff: .seconds(5))
    /// A server that asks for more patience is come back to by the next attempt, instead of holding a worker.
    private static let longestWait = Duration.seconds(10)

    /// Waits before the next try, or throws what ends the attempt.
    ///
    /// - Parameters:
    ///   - final: what the same request again cannot get over.
    ///   - step: what is tried again, for people: `send`.
    static func pause(
        after failed: Int, _ error: DeliveryError, final: Set<ErrorCode> = [], to step: String,
        isStopping: () -> Bool = { false }
    ) async throws(DeliveryError) {
        guard error.mayPass, failed < tries, !final.contains(error.code), error.asked ?? .zero <= longestWait
        else { throw error }
        if isStopping() { throw .stopping }
        var random = SystemRandomNumberGenerator()
        let wait = waits.delay(afterAttempt: failed, asked: error.asked, using: &random)
        try await DeliveryError.sleep(for: wait, "waiting to \(step) again")
    }

    /// The same between two tries to send what is read from the source.
    ///
    /// - Parameter check: throws when the source is not what it was.
    static func pauseSending(
        after failed: Int, _ error: DeliveryError, _ attempt: Attempt, final: Set<ErrorCode>,
        check: () throws(DeliveryError) -> Void
    ) async throws(DeliveryError) {
        guard error.mayPass else {
            // To the reader of an open file a removal looks like a change; the guard knows better.
            if error.verdict == .sourceChanged { try check() }
            throw error
        }
        if attempt.isStopping() { throw .stopping }
        try await pause(after: failed, error, final: final, to: "send")
        try check()
    }
}
