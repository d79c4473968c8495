/// What a breaker is told, and what it wants done.
extension CircuitBreaker {
    package enum Event: Sendable, Equatable {
        case delivered(file: Int64)
        /// It has taken a delivery and works on it.
        case answered
        /// A 5xx other than 502 to 504 for this file: its own fault, or the server's. Two files in a row decide.
        case serverFault(file: Int64)
        /// Refused, unknown name, no connection: nothing that a file could cause. `after` is the server's Retry-After.
        case outage(after: Duration?)
        /// 502 to 504, a stall or a lost connection while it was about this file: an outage, unless it is the file's doing.
        case brokenOff(file: Int64)
        /// An answer for this file that is not the service's own: an outage for as long as nothing is delivered.
        case stranger(file: Int64)
        /// A refusal of this file that may be meant for all. `ends` = the file would fail of it; else its attempt counts.
        case refused(file: Int64, code: ErrorCode, ends: Bool)
        /// 429 with a Retry-After, for this file: it asks everybody for time.
        case throttled(after: Duration, file: Int64)
        case credentials
        case probeBegan
        case probeSucceeded
        case probeFailed(credentials: Bool)
        /// The configuration's secrets have new values.
        case secretsChanged
        /// Nothing happened; the time for which it asked may be over.
        case timePassed
    }

    package enum Action: Sendable, Equatable {
        case none
        /// Claim nothing for the destination; the next probe is due then.
        case pause(until: WallTime)
        /// Claim nothing for the destination until then.
        case slow(until: WallTime)
        case resume
        /// It is to be probed before the refused file is tried again, then; all others go on.
        case askFirst(until: WallTime)
        /// It was the file's own fault: the attempt counts, and nobody else has to wait.
        case blameFile
    }
}
