internal import InletCore

/// Waits between the tries of one step within an attempt, longer each time.
enum Retrying {
    static let tries = 5
    private static let policy = RetryPolicy(
        attempts: tries, backoff: .milliseconds(200), maxBackoff: .seconds(5))
    /// Where a server asks for a longer wait the attempt ends and frees its worker; the next attempt returns.
    private static let longestWait = Duration.seconds(10)

    /// Waits before the next try, or throws the error that ends the attempt.
    ///
    /// - Parameters:
    ///   - final: errors that repeating the request cannot cure.
    ///   - step: the activity that a cancelled task names: `waiting to send again`.
    static func pause(
        after failed: Int, _ error: DeliveryError, by policy: RetryPolicy = policy, final: Set<ErrorCode> = [],
        _ step: String, isStopping: () -> Bool = { false }
    ) async throws(DeliveryError) {
        guard error.mayPass, failed < policy.attempts, !final.contains(error.code), error.asked ?? .zero <= longestWait
        else { throw error }
        if isStopping() { throw .stopping }
        var random = SystemRandomNumberGenerator()
        let wait = policy.delay(afterAttempt: failed, asked: error.asked, using: &random)
        try await DeliveryError.sleep(for: wait, step)
    }

    /// The same between two tries to send bytes of the source.
    ///
    /// - Parameter check: throws when the source has changed.
    static func pauseSending(
        after failed: Int, _ error: DeliveryError, _ attempt: Attempt, final: Set<ErrorCode>,
        check: () throws(DeliveryError) -> Void
    ) async throws(DeliveryError) {
        guard error.mayPass else {
            // To a reader of the open file a removal looks like a change; the guard knows better.
            if error.verdict == .sourceChanged { try check() }
            throw error
        }
        if attempt.isStopping() { throw .stopping }
        try await pause(after: failed, error, final: final, "waiting to send again")
        try check()
    }
}
