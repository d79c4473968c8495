/// Decides what a failed attempt means and what to do: the same rules for all destinations.
///
/// Pipelines report what they heard. The table (`ruling`) decides whom that concerns. The destination's breaker decides
/// whether it is the file's fault, the source's presence whether only its disk is away. The route's policy sets the
/// wait.
///
/// - An answer that is not in the service's own format never ends a file.
/// - A refusal of the object itself is the file's fault, however many files get it.
/// - Any other refusal ends a file if it comes again after the destination proved to work, by another delivery or a
///   probe. So does a refusal of the file's last attempt. The same refusal for two files in a row is an outage.
/// - Problems of this machine, a source that is away, an outage and a refused login cost no attempt.
package enum FailureClassifier {
    package enum Ruling: Sendable, Equatable {
        /// The file's fault: it fails.
        case file
        /// A passing problem: the attempt counts.
        case retry
        /// The file's or the destination's fault: other files and a probe decide.
        case refusal
        /// The destination's fault: the attempt does not count.
        case outage
        /// An outage answered by something other than the service; a file that is alone with it waits.
        case stranger
        /// An outage that lasts until the credentials change.
        case credentials
        /// It is unknown whether the request was carried out: check before repeating it.
        case unknownDelivered
        /// Neither the file's nor the destination's fault: cancelled, or the source changed.
        case own
    }

    /// The table: from the verdict and the kind of answer to the ruling.
    ///
    /// - Parameter isLast: whether this was the file's last attempt.
    package static func ruling(_ error: DeliveryError, isLast: Bool = false) -> Ruling {
        switch (error.verdict, error.heard?.word) {
        case (.cancelled, _), (.sourceChanged, _), (.sourceGone, _): .own
        // A firewall may object to one file's content; a proxy that demands a login concerns everyone.
        case (.credentials, .foreign) where error.heard?.status == 403: .stranger
        case (.credentials, _), (.giveUp, .credentials): .credentials
        case (.giveUp, .everybody), (.retry, .everybody): .outage
        case (_, .foreign) where error.heard?.passes == false: .stranger
        case (.outage, _): .outage
        case (.giveUp, nil), (.giveUp, .object): .file
        case (.giveUp, _): .refusal
        case (.retry, nil): isLast && error.code == .serverError ? .refusal : .retry
        case (.retry, _): isLast ? .refusal : .retry
        }
    }

    /// The same for a step that makes the file visible at its destination, or starts work that costs money.
    package static func ruling(ofCommit error: DeliveryError) -> Ruling {
        error.heard.map(mayBeDone) ?? false ? .unknownDelivered : ruling(error)
    }

    /// Whether the step may have been carried out despite this answer. A service's own refusal means that it was not;
    /// another server's answer, or a server error, leaves it unknown.
    package static func mayBeDone(_ heard: StepFailure) -> Bool {
        switch heard.word {
        case .foreign: !(300..<400).contains(heard.status)
        case .passing: heard.status >= 500
        case .object, .everybody, .credentials, .refusal: false
        }
    }

    // MARK: - Actions

    /// The pause after an uncounted attempt, so that a destination whose breaker stays up is not overloaded.
    private static let pause = Duration.seconds(1)
    private static let longestAsked = Duration.seconds(60)

    /// - Parameters:
    ///   - heard: why the attempt ended.
    ///   - presence: the result of looking for the source again, if the attempt found it missing or changed.
    ///   - breaker: the destination's breaker; called at most once with the event, for its action.
    package static func classify(
        _ heard: DeliveryError, _ attempt: FailedAttempt, _ presence: SourcePresence = .asSaid,
        using random: inout some RandomNumberGenerator,
        breaker: (CircuitBreaker.Event, DeliveryError) -> CircuitBreaker.Action
    ) -> FailureAction {
        var error = presence.corrected(heard)
        if let event = event(error, attempt) { error = weighed(error, attempt, breaker(event, error)) }
        func again(_ wait: Duration, countsAttempt: Bool = false) -> FailureAction {
            FailureAction(end: .again(after: wait, countsAttempt: countsAttempt), error: error)
        }
        switch error.verdict {
        case .retry(let asked):
            if attempt.isLast {
                let spent = attempt.number == 1 ? "1 attempt" : "\(attempt.number) attempts"
                let reason = "\(error.reason) (given up after \(spent))"
                return FailureAction(end: .ended(.failed), error: DeliveryError(.giveUp, error.code, reason))
            }
            let wait = attempt.policy.delay(afterAttempt: attempt.number, asked: asked, using: &random)
            return again(wait, countsAttempt: true)
        case .outage where error.isLocal: return again(LocalFaults.wait(after: attempt.localFaults, error.code))
        case .outage(let asked) where error.code == .sourceGone: return again(max(asked ?? .zero, pause))
        // The breaker does the real waiting; the server's request is limited here and there.
        case .outage(let asked): return again(min(max(asked ?? .zero, pause), longestAsked))
        case .credentials: return again(pause)
        case .giveUp: return FailureAction(end: .ended(.failed), error: error)
        case .sourceGone: return FailureAction(end: .ended(.gone), error: error)
        case .sourceChanged: return FailureAction(end: .ended(.superseded), error: error)
        case .cancelled:
            return attempt.isStopping ? again(.zero) : FailureAction(end: .ended(.cancelled), error: error)
        }
    }

    /// The event for the breaker; nil if the error says nothing about the destination.
    private static func event(_ error: DeliveryError, _ attempt: FailedAttempt) -> CircuitBreaker.Event? {
        if error.code == .sourceGone || error.code == .notConfigured || error.isLocal { return nil }
        if let after = error.timeAsked { return .throttled(after: after, file: attempt.file) }
        switch ruling(error, isLast: attempt.isLast) {
        case .file, .own, .unknownDelivered: return nil
        case .credentials: return .credentials
        case .stranger: return .stranger(file: attempt.file)
        case .refusal: return .refused(file: attempt.file, code: error.code, ends: true)
        case .outage: return error.mayBeOfFile ? .brokenOff(file: attempt.file) : .outage(after: error.asked)
        case .retry:
            let word = error.heard?.word
            guard error.code == .serverError || word == .refusal || word == .credentials else { return nil }
            return .refused(file: attempt.file, code: error.code, ends: false)
        }
    }

    /// The error after the breaker's action.
    ///
    /// A destination that asks for time asks everyone, and the attempt does not count. An answer that only this file
    /// gets is not an outage: its attempts count, so that it ends. But an answer that is not the service's own never
    /// ends a file.
    private static func weighed(
        _ error: DeliveryError, _ attempt: FailedAttempt, _ action: CircuitBreaker.Action
    ) -> DeliveryError {
        var error = error
        if let after = error.timeAsked {
            if action != .blameFile { error.verdict = .outage(after: after) }
            return error
        }
        switch (ruling(error, isLast: attempt.isLast), action) {
        case (.stranger, .blameFile):
            error.verdict = .outage(after: longestAsked)
            error.reason +=
                " (only for this file, and not in the service's own format; Inlet retries it from time to time)"
        case (.outage, .blameFile):
            error.verdict = .retry(after: error.asked)
            error.reason += " (again for this file only, so the attempt counts)"
        case (.refusal, .blameFile): error.reason += " (again for this file, while the destination works)"
        case (.refusal, .askFirst(let until)): error.verdict = .outage(after: max(until - attempt.time, .zero))
        case (.refusal, _), (.stranger, _), (.outage, _): error.verdict = .outage(after: error.asked)
        case (.credentials, _): error.verdict = .credentials
        default: break
        }
        return error
    }
}

/// A failed attempt, as far as it matters for the action.
package struct FailedAttempt: Sendable {
    package var file: Int64
    /// Counts from 1.
    package var number: Int
    package var policy: RetryPolicy
    /// A delivery cancelled while the agent stops continues at the next start.
    package var isStopping: Bool
    /// How many times in a row this machine has failed the delivery before.
    package var localFaults: Int
    package var time: WallTime

    package init(
        file: Int64, number: Int, policy: RetryPolicy, isStopping: Bool = false, localFaults: Int = 0, time: WallTime
    ) {
        self.file = file
        self.number = number
        self.policy = policy
        self.isStopping = isStopping
        self.localFaults = localFaults
        self.time = time
    }

    var isLast: Bool { number >= policy.attempts }
}

/// What to do about a failed attempt.
package struct FailureAction: Sendable, Equatable {
    package enum End: Sendable, Equatable {
        case again(after: Duration, countsAttempt: Bool)
        case ended(DeliveryState)
    }

    package var end: End
    /// The error to report, after the breaker and the source's presence were considered.
    package var error: DeliveryError

    /// Whether to look at the file's path again: nothing watched it during the delivery.
    package var looksAgain: Bool { end == .ended(.gone) || end == .ended(.superseded) }
}

/// The result of looking again for a missing or changed source. A missing or replaced file ends its delivery for good,
/// so Inlet believes it only if the folder and disk are there.
package enum SourcePresence: Sendable, Equatable {
    /// As the attempt reports, or the attempt reports nothing about its source.
    case asSaid
    /// The admitted file is there unchanged.
    case untouched(name: String)
    /// Another file has its name.
    case replaced(name: String)
    /// Inlet ignores the file, or cannot look at it now: this result counts.
    case refused(DeliveryError)
    /// Its folder or volume is missing, or another one is in its place. An unmounted volume has not lost its files.
    /// `isSoon`: Inlet is about to look for it.
    case away(root: String, isVolume: Bool, isSoon: Bool)

    func corrected(_ said: DeliveryError) -> DeliveryError {
        guard said.verdict == .sourceGone || said.verdict == .sourceChanged else { return said }
        switch self {
        case .asSaid: return said
        case .refused(let error): return error
        case .untouched(let name):
            return DeliveryError(
                .outage(after: nil), .sourceUnreadable,
                "\(name): the file is unchanged; Inlet retries it (\(said.reason))")
        case .replaced(let name):
            if said.verdict == .sourceChanged { return said }
            return DeliveryError(
                .sourceChanged, .sourceChanged,
                "\(name): replaced before it was delivered; Inlet takes the new file when it is complete")
        case .away(let root, let isVolume, let isSoon):
            // The return of a volume ends the wait; a folder must be polled.
            let pause: Duration = isSoon ? .seconds(1) : isVolume ? .seconds(3600) : .seconds(30)
            return DeliveryError(
                .outage(after: pause), .sourceGone,
                "\(root) is missing or not mounted; Inlet sends its files when it is back")
        }
    }
}

extension DeliveryError {
    /// This machine failed: no descriptors or memory, a failing disk, an unwritable journal. Neither the file nor the
    /// destination is to blame, so nothing is paused and no attempt counts.
    package var isLocal: Bool {
        guard case .outage = verdict else { return false }
        return [.internalFault, .outOfResources, .sourceUnreadable, .sourceForbidden].contains(code)
    }

    /// An outage by verdict that a server may cause for this file only.
    fileprivate var mayBeOfFile: Bool {
        guard case .outage(after: nil) = verdict else { return false }
        return switch code {
        case .serverError, .stalled, .timedOut, .connectionLost, .badAnswer: true
        default: false
        }
    }

    /// How long a reachable destination wants everyone to wait.
    fileprivate var timeAsked: Duration? {
        guard case .retry(let after) = verdict, code == .throttled else { return nil }
        return after
    }
}

/// The failed answer to a step of a delivery, as its pipeline understands it.
package struct StepFailure: Sendable, Equatable {
    /// The subject of the answer, and its author.
    package enum Word: Sendable, Equatable, CaseIterable {
        /// Not in the service's own format: a host's or proxy's page, a redirect, a broken answer. It comes from
        /// something in front of the service, or from nothing.
        case foreign
        /// In the service's own format, like all below; about this object: its size, name, type, or a condition on its
        /// key.
        case object
        /// About all files: the bucket, a clock, storage space.
        case everybody
        /// About our identity.
        case credentials
        /// A refusal without a stated scope.
        case refusal
        /// A passing problem.
        case passing
    }

    /// The HTTP status; 0 without a complete answer.
    package var status: Int
    package var word: Word

    package init(_ status: Int, _ word: Word) {
        self.status = status
        self.word = word
    }

    /// An answer that began and is incomplete.
    package static let broken = StepFailure(0, .foreign)

    /// The meaning of a status if the service's own codes are unknown.
    ///
    /// - Parameter isOwn: whether the answer is in the service's own format.
    package init(_ status: Int, isOwn: Bool) {
        let word: Word =
            switch status {
            case _ where !isOwn: .foreign
            case ..<400: .foreign
            case 412, 413, 414, 415, 422: .object
            case 408, 425, 429, 500...: .passing
            default: .refusal
            }
        self.init(status, word)
    }

    /// Whether it reports a temporary problem, which anything in front of a service may report for it.
    var passes: Bool { word == .passing || word == .foreign && (status >= 500 || [408, 425, 429].contains(status)) }
}

/// This machine's failures in deliveries, and which of them were reported.
package struct LocalFaults: Sendable {
    /// Consecutive failures by delivery.
    private var counts: [Int64: Int] = [:]
    private var said: Set<ErrorCode> = []

    /// More deliveries than this start over.
    private static let most = 10_000

    package init() {}

    /// How many times in a row this machine failed the delivery.
    package func count(of delivery: Int64) -> Int { counts[delivery, default: 0] }

    /// The wait after `count` earlier failures: 1, 2, 4 s … up to 30 s. Up to 60 s for a forbidden file, whose ctime
    /// shows when that changes; up to 5 min for a failing device.
    package static func wait(after count: Int, _ code: ErrorCode) -> Duration {
        let most =
            switch code {
            case .sourceUnreadable: 300
            case .sourceForbidden: 60
            default: 30
            }
        return .seconds(min(most, 1 << min(count, 9)))
    }

    /// Notes a failure. - Returns: whether to report it: each unreadable file, and once for problems of all files.
    package mutating func note(_ code: ErrorCode, of delivery: Int64) -> Bool {
        let count = count(of: delivery)
        if counts.count >= Self.most { counts = [:] }
        counts[delivery] = count + 1
        return switch code {
        // The journal's health reports it.
        case .internalFault: false
        // A device may fail for this file only.
        case .sourceUnreadable, .sourceForbidden: count == 0
        default: said.insert(code).inserted
        }
    }

    /// A delivery ended for reasons outside this machine.
    package mutating func worked(_ delivery: Int64) {
        if counts.isEmpty { return }
        counts[delivery] = nil
        said = []
    }
}
