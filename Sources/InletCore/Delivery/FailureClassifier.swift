/// What the failure of an attempt means, and what is done about it: the one rule for all destinations.
///
/// Pipelines say what they heard. The table (`ruling`) says whom that is about, the destination's breaker whether it is the
/// file's own fault, the presence of the source whether only its disk is away, and the route's policy how long to wait.
///
/// * An answer that is not in the service's own form never ends a file.
/// * A refusal about the object itself is the file's own, however many files hear it.
/// * Any other refusal ends a file when it hears it again after the destination has shown that it is well: by another
///   delivery, or a probe. So does the last of a file's attempts. Two files in a row with the same one are an outage.
/// * What this machine lacks, a source that is away, an outage and a refused login cost no attempt.
package enum FailureClassifier {
    package enum Ruling: Sendable, Equatable {
        /// The file's own: it ends, as failed.
        case file
        /// Something passing: the attempt counts.
        case retry
        /// The file's own or everybody's: others and a probe tell.
        case refusal
        /// The destination's: no attempt counts.
        case outage
        /// The same, by an answer of something else than the service; whatever only one file hears of that kind, it waits.
        case stranger
        /// An outage that lasts until the credentials change.
        case credentials
        /// Whether what was asked for was done is not known: it is looked for before it is asked for again.
        case unknownDelivered
        /// Neither the file's nor the destination's: cancelled, or another source than was admitted.
        case own
    }

    /// The table: what trying again can do, and in whose words that was heard.
    ///
    /// - Parameter isLast: whether the attempt was the last that the file has.
    package static func ruling(_ error: DeliveryError, isLast: Bool = false) -> Ruling {
        switch (error.verdict, error.heard?.word) {
        case (.cancelled, _), (.sourceChanged, _), (.sourceGone, _): .own
        // A firewall may object to what is in one file; a login that a proxy asks for is everybody's.
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

    /// The same for a step that makes the file visible at its destination, or begins work that is paid for.
    package static func ruling(ofCommit error: DeliveryError) -> Ruling {
        error.heard.map(mayBeDone) ?? false ? .unknownDelivered : ruling(error)
    }

    /// Whether the step may have been done that was answered so. What a service refuses in its own form it has not done; of
    /// what another answers in its place, and of a server that failed, nobody knows.
    package static func mayBeDone(_ heard: StepFailure) -> Bool {
        switch heard.word {
        case .foreign: !(300..<400).contains(heard.status)
        case .passing: heard.status >= 500
        case .object, .everybody, .credentials, .refusal: false
        }
    }

    // MARK: - What is done about it

    /// How long an uncounted attempt stays away, so that a destination whose breaker stays up is not hammered.
    private static let pause = Duration.seconds(1)
    private static let longestAsked = Duration.seconds(60)

    /// - Parameters:
    ///   - heard: why the attempt ended.
    ///   - presence: what a fresh look found of the source, where the attempt missed it or found another.
    ///   - breaker: the destination's; told once at most, and asked what it makes of that.
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
        // The breaker does the real waiting; what a server asks for is bounded here as it is there.
        case .outage(let asked): return again(min(max(asked ?? .zero, pause), longestAsked))
        case .credentials: return again(pause)
        case .giveUp: return FailureAction(end: .ended(.failed), error: error)
        case .sourceGone: return FailureAction(end: .ended(.gone), error: error)
        case .sourceChanged: return FailureAction(end: .ended(.superseded), error: error)
        case .cancelled:
            return attempt.isStopping ? again(.zero) : FailureAction(end: .ended(.cancelled), error: error)
        }
    }

    /// What the error says about the destination rather than the file.
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

    /// The error once it is known what the destination's breaker makes of it.
    ///
    /// A destination that asks for time asks everybody: no attempt is counted for that. An answer that only this file gets
    /// is no outage: its attempts count, so that it ends; but what is not the service's own answer ends no file.
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
            error.reason += " (for this file alone, and not in the service's own words: it is tried again now and then)"
        case (.outage, .blameFile):
            error.verdict = .retry(after: error.asked)
            error.reason += " (again for this file, and for no other: the attempt counts)"
        case (.refusal, .blameFile): error.reason += " (again for this file, while the destination is well)"
        case (.refusal, .askFirst(let until)): error.verdict = .outage(after: max(until - attempt.time, .zero))
        case (.refusal, _), (.stranger, _), (.outage, _): error.verdict = .outage(after: error.asked)
        case (.credentials, _): error.verdict = .credentials
        default: break
        }
        return error
    }
}

/// An attempt that failed, as far as it matters for what is done about that.
package struct FailedAttempt: Sendable {
    package var file: Int64
    /// Counts from 1.
    package var number: Int
    package var policy: RetryPolicy
    /// What is cancelled while the agent stops goes on at its next start.
    package var isStopping: Bool
    /// How often in a row, before this one, this machine could not do its part for the delivery.
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

/// What is done about an attempt that failed.
package struct FailureAction: Sendable, Equatable {
    package enum End: Sendable, Equatable {
        case again(after: Duration, countsAttempt: Bool)
        case ended(DeliveryState)
    }

    package var end: End
    /// As it is told: with what the breaker and the source's presence have made of it.
    package var error: DeliveryError

    /// Whether what is under the file's name now, or comes there, is looked at: while it was on its way nobody did.
    package var looksAgain: Bool { end == .ended(.gone) || end == .ended(.superseded) }
}

/// What a fresh look finds of the source of an attempt that missed it, or found another one. That a file is gone, or replaced,
/// ends its delivery for good: it is believed only of one whose folder and disk are there.
package enum SourcePresence: Sendable, Equatable {
    /// As the attempt says. So too where it says nothing of its source.
    case asSaid
    /// It is there as it was admitted.
    case untouched(name: String)
    /// Another one has its name.
    case replaced(name: String)
    /// It is left alone, or cannot be looked at now: what the look says counts.
    case refused(DeliveryError)
    /// Its folder or volume is not there, or is another: what is not mounted has not lost its files, and what is in its place
    /// is none of them. `isSoon` = somebody is about to look for it.
    case away(root: String, isVolume: Bool, isSoon: Bool)

    func corrected(_ said: DeliveryError) -> DeliveryError {
        guard said.verdict == .sourceGone || said.verdict == .sourceChanged else { return said }
        switch self {
        case .asSaid: return said
        case .refused(let error): return error
        case .untouched(let name):
            return DeliveryError(
                .outage(after: nil), .sourceUnreadable,
                "\(name): it is there as it was admitted, and is tried again (\(said.reason))")
        case .replaced(let name):
            if said.verdict == .sourceChanged { return said }
            return DeliveryError(
                .sourceChanged, .sourceChanged,
                "\(name): replaced before it was delivered; Inlet takes the new one once it is quiet")
        case .away(let root, let isVolume, let isSoon):
            // The return of a volume ends the wait; a folder's is looked for.
            let pause: Duration = isSoon ? .seconds(1) : isVolume ? .seconds(3600) : .seconds(30)
            return DeliveryError(
                .outage(after: pause), .sourceGone,
                "\(root) is not there or not mounted; its files are sent when it is back")
        }
    }
}

extension DeliveryError {
    /// This machine could not do its part: no descriptors or memory, a disk that fails, a journal that cannot be written.
    /// Neither the file nor the destination is to blame: nothing is paused, and no attempt is counted.
    package var isLocal: Bool {
        guard case .outage = verdict else { return false }
        return [.internalFault, .outOfResources, .sourceUnreadable, .sourceForbidden].contains(code)
    }

    /// An outage by its verdict that could be what a server does with this one file, and with no other.
    fileprivate var mayBeOfFile: Bool {
        guard case .outage(after: nil) = verdict else { return false }
        return switch code {
        case .serverError, .stalled, .timedOut, .connectionLost, .badAnswer: true
        default: false
        }
    }

    /// How long a destination wants everybody to wait that is there.
    fileprivate var timeAsked: Duration? {
        guard case .retry(let after) = verdict, code == .throttled else { return nil }
        return after
    }
}

/// What a step of a delivery heard that is no success, as its pipeline understands it.
package struct StepFailure: Sendable, Equatable {
    /// What the answer says, and in whose words.
    package enum Word: Sendable, Equatable, CaseIterable {
        /// Not in the service's own form: a host's or a proxy's page, a redirect, an answer that breaks off. It is the word of
        /// something that stands before the service, or of nobody.
        case foreign
        /// In the service's own form, as all below; about this object: its size, its name, its type, a condition on its key.
        case object
        /// About every file alike: the bucket, a clock, room.
        case everybody
        /// About who we are.
        case credentials
        /// A refusal that does not say for whose sake.
        case refusal
        /// What passes by itself.
        case passing
    }

    /// The status of HTTP; 0 where there is no whole answer.
    package var status: Int
    package var word: Word

    package init(_ status: Int, _ word: Word) {
        self.status = status
        self.word = word
    }

    /// An answer that had begun, and is not whole.
    package static let broken = StepFailure(0, .foreign)

    /// What a status says where no words of the service are known for it.
    ///
    /// - Parameter isOwn: whether the answer is in the service's own form.
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

    /// Whether it says that something is out of order for now, which whoever stands before a service may say in its place.
    var passes: Bool { word == .passing || word == .foreign && (status >= 500 || [408, 425, 429].contains(status)) }
}

/// What this machine could not do for deliveries, and what has been said of that already.
package struct LocalFaults: Sendable {
    /// In a row, by delivery.
    private var counts: [Int64: Int] = [:]
    private var said: Set<ErrorCode> = []

    /// More deliveries than this begin anew.
    private static let most = 10_000

    package init() {}

    /// How often in a row it could not do its part for a delivery.
    package func count(of delivery: Int64) -> Int { counts[delivery, default: 0] }

    /// How long a delivery stays away with which that has happened so often before: 1, 2, 4 s … half a minute; a whole one for
    /// what may not be read, which its ctime tells when it may; five for a device that fails.
    package static func wait(after count: Int, _ code: ErrorCode) -> Duration {
        let most =
            switch code {
            case .sourceUnreadable: 300
            case .sourceForbidden: 60
            default: 30
            }
        return .seconds(min(most, 1 << min(count, 9)))
    }

    /// Takes note of one. - Returns: whether it is news: of each file that cannot be read, and once of what concerns all.
    package mutating func note(_ code: ErrorCode, of delivery: Int64) -> Bool {
        let count = count(of: delivery)
        if counts.count >= Self.most { counts = [:] }
        counts[delivery] = count + 1
        return switch code {
        // The journal's health says it.
        case .internalFault: false
        // A device that fails may fail for this file alone.
        case .sourceUnreadable, .sourceForbidden: count == 0
        default: said.insert(code).inserted
        }
    }

    /// A delivery came to an end that has nothing to do with this machine.
    package mutating func worked(_ delivery: Int64) {
        if counts.isEmpty { return }
        counts[delivery] = nil
        said = []
    }
}
