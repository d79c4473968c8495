internal import InletCore
internal import InletJournal
internal import InletLinux

/// Turns the error of an attempt into what the journal and the log are told.
struct AttemptJudge: Sendable {
    let ref: AgentEvent.JobRef
    let file: FileRow
    /// Counts from 1.
    let attempt: Int
    let isStopping: Bool
    var clock = AgentClock()
    /// How long a delivery stays away that this machine could not do its part for.
    var localWait = Duration.seconds(1)

    /// How long an uncounted attempt stays away, so that a destination whose breaker stays up is not hammered.
    private static let pause = Duration.seconds(1)
    private static let longestAsked = Duration.seconds(60)

    func failed(_ error: DeliveryError) -> (Settlement, DeliverOne.Report) {
        switch error.verdict {
        case .retry(let after): return retry(error, after)
        case .outage where error.isLocal: return again(error, wait: localWait)
        case .outage(let after) where error.code == .sourceGone:
            return again(error, wait: max(after ?? .zero, Self.pause))
        case .outage(let after):
            // The breaker does the real waiting; what a server asks for is bounded here as it is there.
            return again(error, wait: min(max(after ?? .zero, Self.pause), Self.longestAsked))
        case .credentials: return again(error, wait: Self.pause)
        case .giveUp: return ended(.failed, error)
        case .sourceGone: return endedForLook(.gone, error)
        case .sourceChanged: return endedForLook(.superseded, error)
        case .cancelled: return isStopping ? again(error, wait: .zero) : ended(.cancelled, error)
        }
    }

    /// What the error says about the destination rather than the file.
    func breakerEvent(_ error: DeliveryError) -> CircuitBreaker.Event? {
        if error.code == .sourceGone || error.isLocal { return nil }
        if let after = error.timeAsked { return .throttled(after: after, file: file.id) }
        switch FailureClassifier.ruling(error, isLast: isLast) {
        case .file, .own, .unknownDelivered: return nil
        case .credentials: return .credentials
        case .stranger: return .stranger(file: file.id)
        case .refusal: return .refused(file: file.id, code: error.code, ends: true)
        case .outage: return error.mayBeOfFile ? .brokenOff(file: file.id) : .outage(after: error.asked)
        case .retry: return passing(error)
        }
    }

    private func passing(_ error: DeliveryError) -> CircuitBreaker.Event? {
        if error.code == .serverError { return .serverFault(file: file.id) }
        guard let word = error.heard?.word, word == .refusal || word == .credentials else { return nil }
        return .refused(file: file.id, code: error.code, ends: false)
    }

    /// No attempt is left after this one.
    private var isLast: Bool { attempt >= file.policy.retry.attempts }

    /// The error once it is known what the destination's breaker makes of it.
    ///
    /// A destination that asks for time asks everybody: no attempt is counted for that. An answer that only this file gets
    /// is no outage: its attempts count, so that it ends; but what is not the service's own answer ends no file.
    func weighed(_ error: DeliveryError, _ action: CircuitBreaker.Action) -> DeliveryError {
        var error = error
        if error.isLocal { return error }
        if let after = error.timeAsked {
            if action != .blameFile { error.verdict = .outage(after: after) }
            return error
        }
        switch (FailureClassifier.ruling(error, isLast: isLast), action) {
        case (.stranger, .blameFile):
            error.verdict = .outage(after: Self.longestAsked)
            error.reason += " (for this file alone, and not in the service's own words: it is tried again now and then)"
        case (.outage, .blameFile):
            error.verdict = .retry(after: error.asked)
            error.reason += " (again for this file, and for no other: the attempt counts)"
        case (.refusal, .blameFile): error.reason += " (again for this file, while the destination is well)"
        case (.refusal, .askFirst(let until)): error.verdict = .outage(after: max(until - clock.now(), .zero))
        case (.refusal, _), (.stranger, _), (.outage, _): error.verdict = .outage(after: error.asked)
        case (.credentials, _): error.verdict = .credentials
        default: break
        }
        return error
    }

    private func retry(_ error: DeliveryError, _ asked: Duration?) -> (Settlement, DeliverOne.Report) {
        let policy = file.policy.retry
        guard attempt < policy.attempts else {
            let spent = attempt == 1 ? "after 1 attempt" : "after \(attempt) attempts"
            return ended(.failed, DeliveryError(.giveUp, error.code, "\(error.reason) (given up \(spent))"))
        }
        var random = SystemRandomNumberGenerator()
        let wait = policy.delay(afterAttempt: attempt, asked: asked, using: &random)
        return (
            .again(at: clock.now() + wait, countsAttempt: true, code: error.code, reason: error.reason),
            DeliverOne.Report(event: .jobRetry(ref, error, attempt: attempt, wait: wait))
        )
    }

    private func again(_ error: DeliveryError, wait: Duration) -> (Settlement, DeliverOne.Report) {
        (
            .again(at: clock.now() + wait, countsAttempt: false, code: error.code, reason: error.reason),
            DeliverOne.Report(event: .jobRetry(ref, error, attempt: attempt, wait: wait))
        )
    }

    /// What is under its name now, or comes there, is looked at: while it was on its way nobody did.
    private func endedForLook(_ state: DeliveryState, _ error: DeliveryError) -> (Settlement, DeliverOne.Report) {
        var result = ended(state, error)
        result.1.wantsLook = file
        return result
    }

    private func ended(_ state: DeliveryState, _ error: DeliveryError) -> (Settlement, DeliverOne.Report) {
        (
            .ended(state, code: error.code, reason: error.reason),
            DeliverOne.Report(event: .jobFailed(ref, state: state, error))
        )
    }
}

extension DeliveryError {
    /// How long a destination wants everybody to wait that is there.
    fileprivate var timeAsked: Duration? {
        guard case .retry(let after) = verdict, code == .throttled else { return nil }
        return after
    }
}
