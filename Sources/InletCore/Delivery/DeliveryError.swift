/// Why an attempt ended without proof, and what the agent should do.
///
/// Pipelines know their service: they choose the `verdict` and report what they `heard`. `FailureClassifier` decides
/// for all of them whether it concerns the file or the destination.
package struct DeliveryError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The effect of another attempt.
    package enum Verdict: Sendable, Equatable {
        /// A passing problem; counts as an attempt. `after` is the server's Retry-After, if it sent one.
        case retry(after: Duration?)
        /// The destination is unreachable; pauses it and costs no attempt.
        case outage(after: Duration?)
        /// Repeating the request cannot help; the file fails with this reason, unless the answer concerns other files
        /// too.
        case giveUp
        /// The destination refuses our credentials; pauses it until they change, and costs no attempt.
        case credentials
        /// The file differs from the admitted one. Thrown only while nothing is visible under the key.
        case sourceChanged
        /// The file no longer exists. Thrown only while nothing is visible under the key.
        case sourceGone
        /// We ended it: a person cancelled it, or the agent is stopping.
        case cancelled
    }

    package var verdict: Verdict
    package var code: ErrorCode
    /// The reason for people, with the remedy if it is known. Contains no secrets.
    package var reason: String
    /// The answer behind the error; nil if no server answered.
    package var heard: StepFailure?

    package init(_ verdict: Verdict, _ code: ErrorCode, _ reason: String, heard: StepFailure? = nil) {
        self.verdict = verdict
        self.code = code
        self.reason = reason
        self.heard = heard
    }

    package var description: String { "\(reason) [\(code.rawValue)]" }

    /// Whether repeating the request may succeed.
    package var mayPass: Bool {
        switch verdict {
        case .retry, .outage: true
        case .giveUp, .credentials, .sourceChanged, .sourceGone, .cancelled: false
        }
    }

    /// How long the server asks us to wait.
    package var asked: Duration? {
        switch verdict {
        case .retry(let after), .outage(let after): after
        default: nil
        }
    }
}

extension ErrorCode {
    /// Causes that pass when a destination is back: it was away, full, or could not be written. A delivery that used up
    /// its attempts for one of these is sent again then, once. One that asks for time is not away.
    package static let ofOutages: [ErrorCode] = [
        .connectFailed, .nameNotFound, .timedOut, .stalled, .connectionLost, .proxyRefused, .outOfCredits, .serverError,
        .destinationFull, .destinationUnwritable,
    ]
}

/// All stable error codes, shared by log lines, the API and the command line.
package enum ErrorCode: String, Sendable, Codable, CaseIterable {
    // Transport
    case connectFailed = "connect_failed"
    case nameNotFound = "name_not_found"
    case timedOut = "timed_out"
    case stalled = "stalled"
    case tlsFailed = "tls_failed"
    case connectionLost = "connection_lost"
    case insecureURL = "insecure_url"
    case forbiddenURL = "forbidden_url"
    case redirected = "redirected"
    case proxyRefused = "proxy_refused"
    case answerTooLarge = "answer_too_large"
    // Answers
    case badAnswer = "bad_answer"
    case badRequest = "bad_request"
    case unauthorized = "unauthorized"
    case conflict = "conflict"
    case notFound = "not_found"
    case throttled = "throttled"
    case outOfCredits = "out_of_credits"
    case clockSkewed = "clock_skewed"
    case serverError = "server_error"
    // Multipart uploads
    case badPartList = "bad_part_list"
    case missingETag = "missing_etag"
    case foreignETag = "foreign_etag"
    case corrupted = "corrupted"
    case digestMismatch = "digest_mismatch"
    case urlExpired = "url_expired"
    case uplinkTooSlow = "uplink_too_slow"
    case uploadGone = "upload_gone"
    case tooLarge = "too_large"
    // Local files
    case sourceChanged = "source_changed"
    case sourceGone = "source_gone"
    case sourceUnreadable = "source_unreadable"
    case sourceForbidden = "source_forbidden"
    case notRegular = "not_a_regular_file"
    case badSidecar = "bad_sidecar"
    case destinationFull = "destination_full"
    case destinationUnwritable = "destination_unwritable"
    case destinationExists = "destination_exists"
    case readBackDiffers = "read_back_differs"
    case nameTooLong = "name_too_long"
    // The agent's own
    case rejected = "rejected"
    case expired = "expired"
    case cancelled = "cancelled"
    case heldByLimit = "held_by_limit"
    case notConfigured = "not_configured"
    case outOfResources = "out_of_resources"
    case agentCrashed = "agent_crashed"
    case dispositionFailed = "disposition_failed"
    case fleetAway = "fleet_away"
    case fleetKeyTaken = "fleet_key_taken"
    case internalFault = "internal_fault"
}
