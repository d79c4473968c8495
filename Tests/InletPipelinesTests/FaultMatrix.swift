import InletCore
import InletSandbox
import InletTestSupport

/// A way of delivering that meets every trouble of `FaultMatrix`.
enum Contender: String, CaseIterable, Sendable {
    /// Dialect v1, two parts.
    case r2Parts
    /// Dialect r2, one part.
    case r2Other
    /// Dialect v1, one presigned PUT.
    case r2Single
    case s3Parts
    case s3Single
    /// GigHive's one form.
    case form
    case tus
    /// VOPI's older servers.
    case vopiKey
    case vopiBearer
    /// Roboscope: a stored model is registered.
    case model
    /// Roboscope: a file of markers is imported.
    case markers
    case folder
}

/// What happens to a delivery once; the list.
enum Trouble: String, CaseIterable, Sendable {
    case refused
    /// RST within the first bytes of the first request.
    case resetInHead
    /// RST in the middle of the bytes.
    case resetInBody
    /// RST before the first answer has told its status.
    case resetInAnswer
    /// No byte moves any more; the sender must notice by itself.
    case stalled
    /// The same, and the agent stops in the middle of it.
    case stopped
    case slow
    /// The connection ends in the first answer's head.
    case cutInHead
    /// The connection ends in the body of the answer that matters.
    case truncated
    case throttledUntil
    case throttled
    case unavailableUntil
    case unavailable
    case faultAfterBody
    /// Complete, finalize, create job: done, and not answered.
    case lostAnswer
    case wrongETag
    case expiredURL
    case noTLS
    case redirected
    case tooLong
    case tooShort
    case webPage
}

/// The steps of a delivery, whatever each service calls them.
enum MatrixStep: Sendable {
    /// The first request of the delivery proper.
    case open
    /// The bytes.
    case send
    /// What makes them count.
    case commit
}

/// What the end of an attempt is to the agent.
enum VerdictKind: Sendable, Hashable {
    case retry
    case outage
    case giveUp
    case credentials
    case cancelled
    case source

    init(_ error: DeliveryError) {
        self =
            switch FailureClassifier.ruling(error) {
            case .retry: .retry
            case .outage, .stranger: .outage
            case .file, .refusal, .unknownDelivered: .giveUp
            case .credentials: .credentials
            case .own: error.verdict == .cancelled ? .cancelled : .source
            }
    }
}

/// How a delivery that met a trouble goes on; where it is delivered, it is so once and whole.
enum MatrixEnd: Sendable, Equatable {
    /// Delivered, and no attempt failed.
    case absorbed
    /// Delivered after one attempt that failed so.
    case after(VerdictKind, ErrorCode)
    /// Given up, and nothing arrived.
    case givenUp(ErrorCode)
    /// Cannot happen to this one.
    case never(because: String)
}

/// How a trouble is made.
enum MatrixMeans: Sendable {
    /// Nothing listens, until the first attempt has failed.
    case closed
    /// The first two connections meet this: parts go side by side.
    case line(LineFault)
    /// As `line`; the first attempt is cancelled when it has happened.
    case cancelled(LineFault)
    /// The server does this, so many times.
    case server(FaultAction, at: MatrixStep, times: Int)
    /// The configuration wants TLS where the port has none, until the first attempt has failed.
    case plainPort
}

extension Trouble {
    /// Beyond what any sender waits within an attempt.
    static let asked = 30

    /// What is asked for with `Retry-After`.
    var wait: Duration? { [.throttledUntil, .unavailableUntil].contains(self) ? .seconds(Self.asked) : nil }

    /// How long a connection may stand still; nil = as long as each request allows. Elsewhere a busy machine would stall.
    var longestStall: Duration? { self == .stalled ? .seconds(1) : nil }

    /// - Parameter random: Chooses the byte where it is one of many.
    func means(using random: inout SeededGenerator) -> MatrixMeans {
        switch self {
        case .refused: .closed
        case .resetInHead: .line(.reset(.request, after: Int.random(in: 1..<60, using: &random)))
        case .resetInBody: .line(.reset(.request, after: Int.random(in: 8000..<20_000, using: &random)))
        case .resetInAnswer: .line(.reset(.answer, after: Int.random(in: 0..<15, using: &random)))
        case .stalled: .line(.stall(.request, after: Int.random(in: 1..<60, using: &random)))
        case .stopped: .cancelled(.stall(.request, after: Int.random(in: 1..<60, using: &random)))
        case .slow: .line(.slow(piece: Int.random(in: 16_000..<32_000, using: &random)))
        case .cutInHead: .line(.cut(.answer, after: Int.random(in: 30..<40, using: &random)))
        case .truncated: .server(.truncateAnswer(afterBytes: 3), at: .commit, times: 1)
        case .throttledUntil: .server(.status(429, retryAfter: Self.asked), at: .open, times: 1)
        case .throttled: .server(.status(429), at: .open, times: 1)
        case .unavailableUntil: .server(.status(503, retryAfter: Self.asked), at: .open, times: 1)
        case .unavailable: .server(.status(503), at: .open, times: 1)
        case .faultAfterBody: .server(.status(500), at: .send, times: 1)
        case .lostAnswer: .server(.loseAnswer, at: .commit, times: 1)
        case .wrongETag: .server(.wrongETag(.random), at: .send, times: 2)
        case .expiredURL: .server(.expiredURLs, at: .open, times: 1)
        case .noTLS: .plainPort
        case .redirected: .server(.redirect(to: "http://127.0.0.1:1/elsewhere"), at: .open, times: 1)
        case .tooLong: .server(.wrongLength(by: 10), at: .commit, times: 1)
        case .tooShort: .server(.wrongLength(by: -3), at: .commit, times: 1)
        case .webPage: .server(.html, at: .open, times: 1)
        }
    }
}
