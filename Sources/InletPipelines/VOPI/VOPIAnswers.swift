internal import InletCore
internal import InletLinux
internal import InletTransfer

/// Classifies a VOPI server's answers. Every status and code is decided here.
///
/// A 401 is not always about the login: the server sends it when its database is down. A 500 may be its rate limit.
enum VOPIVerdict: Sendable, Equatable {
    case done
    /// The access token is invalid; a new one may work.
    case renew
    case retry(ErrorCode)
    case outage(ErrorCode)
    case credentials
    case giveUp(ErrorCode)

    init(_ response: HTTPResponse, at endpoint: VOPIEndpoint) {
        let said = VOPIErrorBody(response)
        if endpoint == .refresh {
            self = Self.refresh(response, said)
        } else if Self.isRateLimit(response, said) {
            self = .outage(.throttled)
        } else {
            self = Self.verdict(response, said, endpoint)
        }
    }

    /// Whether the server refused the access token and may accept another; the same at every endpoint.
    static func asksForRenewal(_ response: HTTPResponse) -> Bool { VOPIVerdict(response, at: .read) == .renew }

    private static func verdict(
        _ response: HTTPResponse, _ said: VOPIErrorBody, _ endpoint: VOPIEndpoint
    ) -> VOPIVerdict {
        switch response.status {
        case 200..<300: .done
        case 300..<400: .giveUp(.redirected)
        case 400: isAboutState(said, endpoint) ? .giveUp(.conflict) : .giveUp(.badRequest)
        case 401: unauthorized(said)
        case 402: .outage(.outOfCredits)
        case 403: said.code == "INSUFFICIENT_CREDITS" ? .outage(.outOfCredits) : .credentials
        case 404, 410: missing(said)
        case 408: .retry(.timedOut)
        case 409: .giveUp(.conflict)
        case 413: .giveUp(.tooLarge)
        case 425: .retry(.throttled)
        case 502...504, 520...524: .outage(.serverError)
        case 501, 505: .giveUp(.badRequest)
        case 500...: .retry(.serverError)
        default: .giveUp(.badRequest)
        }
    }

    /// 429 and its equivalent: this server signals its limit with a 500 that says when to retry.
    private static func isRateLimit(_ response: HTTPResponse, _ said: VOPIErrorBody) -> Bool {
        if response.status == 429 || said.code == "RATE_LIMIT_EXCEEDED" { return response.status >= 400 }
        let asksToWait = response.header("Retry-After") != nil || response.header("X-RateLimit-Remaining") == "0"
        return asksToWait && (response.status == 500 || response.status == 403 && said.code == nil)
    }

    /// Whether a 400 is about the job's state rather than the request.
    private static func isAboutState(_ said: VOPIErrorBody, _ endpoint: VOPIEndpoint) -> Bool {
        said.code == "BAD_REQUEST" && [.cancel, .delete, .downloads].contains(endpoint)
    }

    private static func unauthorized(_ said: VOPIErrorBody) -> VOPIVerdict {
        if said.isDatabaseFault { return .outage(.serverError) }
        guard let code = said.code, code.hasPrefix("ACCESS_TOKEN_"), code != "ACCESS_TOKEN_WRONG_TYPE" else {
            return .credentials
        }
        return .renew
    }

    /// Only the server's own answer proves that a job is gone: gateways send pages, other JSON or nothing while it
    /// restarts. A job wrongly taken for gone is sent and paid for again.
    private static func missing(_ said: VOPIErrorBody) -> VOPIVerdict {
        if said.isUnknownRoute { return .giveUp(.badRequest) }
        return said.code == "NOT_FOUND" ? .retry(.notFound) : .retry(.badAnswer)
    }

    /// Words that end a login for good. After any other failure the tokens are kept: they may still be valid.
    private static let ends: Set<String> = [
        "REFRESH_TOKEN_EXPIRED", "REFRESH_TOKEN_INVALID", "REFRESH_TOKEN_REVOKED", "REFRESH_TOKEN_REUSED",
        "REFRESH_TOKEN_WRONG_TYPE", "REFRESH_TOKEN_MALFORMED", "USER_NOT_FOUND", "USER_DELETED",
    ]

    /// Whether a renewal was refused because of the token itself.
    static func isEnd(_ said: VOPIErrorBody) -> Bool { said.code.map { ends.contains($0) } ?? false }

    private static func refresh(_ response: HTTPResponse, _ said: VOPIErrorBody) -> VOPIVerdict {
        switch response.status {
        case 200..<300: return .done
        case 300..<400: return .outage(.redirected)
        case 401 where isEnd(said) && !said.isDatabaseFault: return .credentials
        case 401 where said.code == "JWT_SECRET_NOT_CONFIGURED": return .credentials
        case 400 where said.isJSON, 422 where said.isJSON: return .credentials
        case 404 where said.isUnknownRoute: return .credentials
        case 429: return .outage(.throttled)
        default: return .outage(isRateLimit(response, said) ? .throttled : .serverError)
        }
    }

    /// How long a lack of credits pauses the destination.
    static let creditsPause = Duration.seconds(3600)

    /// The delivery error of an answer that ends a call.
    ///
    /// - Parameters:
    ///   - what: the step, e.g. `creating a job at host`.
    ///   - hint: the remedy for refused credentials.
    func error(_ response: HTTPResponse, _ what: String, hint: String, now: WallTime) -> DeliveryError {
        plainError(response, what, hint: hint, now: now).heard(heard(response), response)
    }

    private func heard(_ response: HTTPResponse) -> StepFailure {
        guard VOPIErrorBody(response).isJSON, !response.isHostsOwn else {
            return StepFailure(response.status, .foreign)
        }
        return switch self {
        case .credentials: StepFailure(response.status, .credentials)
        case .outage(.outOfCredits): StepFailure(response.status, .everybody)
        case .done: StepFailure(response.status, .foreign)
        default: StepFailure(response.status, isOwn: true)
        }
    }

    private func plainError(_ response: HTTPResponse, _ what: String, hint: String, now: WallTime) -> DeliveryError {
        let text = DeliveryError.answered(what, response, VOPIErrorBody(response).text)
        let after = Self.wait(response, now: now)
        switch self {
        case .done: return DeliveryError(.retry(after: nil), .badAnswer, "\(text), which cannot be understood")
        case .renew:
            return DeliveryError(
                .outage(after: after), .unauthorized, "\(text); renewing the access token did not help")
        case .credentials: return DeliveryError(.credentials, .unauthorized, "\(text); \(hint)")
        case .retry(let code): return DeliveryError(.retry(after: after), code, text)
        case .outage(.outOfCredits):
            return DeliveryError(
                .outage(after: after ?? Self.creditsPause), .outOfCredits, "\(text); the account has no credits left")
        case .outage(.throttled) where after == nil: return DeliveryError(.retry(after: nil), .throttled, text)
        case .outage(let code): return DeliveryError(.outage(after: after), code, text + DeliveryError.redirect(code))
        case .giveUp(let code): return DeliveryError(.giveUp, code, text + DeliveryError.redirect(code))
        }
    }

    /// The wait that the server asks for, on any answer; from the rate limit's headers where only they give it.
    private static func wait(_ response: HTTPResponse, now: WallTime) -> Duration? {
        if let after = response.retryAfter(now: now) { return after }
        guard response.header("X-RateLimit-Remaining") == "0" else { return nil }
        return response.header("X-RateLimit-Reset").flatMap { Int64($0) }.map { .seconds(min(max($0, 0), 3600)) }
    }
}

enum VOPIEndpoint: Sendable, CaseIterable {
    case presign
    case create
    /// A read-only GET.
    case read
    case cancel
    /// DELETE, whatever it means to the server.
    case delete
    case downloads
    /// `POST /auth/refresh`.
    case refresh
}

/// The words of a failed answer. The server sends three shapes, and proxies before it send others: `{error, message,
/// statusCode, details?}`, the same without `statusCode`, and `{success, newBalance, error}`. Our own credentials are
/// removed.
struct VOPIErrorBody: Sendable, Equatable {
    /// `error` where it is a code, such as `NOT_FOUND`; it may also be prose.
    let code: String?
    let message: String
    /// The invalid fields and the reasons; the server sends a list or nested objects.
    let details: [String]
    let isJSON: Bool

    init(_ response: HTTPResponse) {
        let body = Array(response.body.prefix(256 << 10))
        guard let value = VOPIValue(body), value.isObject else {
            code = nil
            details = []
            isJSON = false
            message = response.plainText(4096)
            return
        }
        isJSON = true
        let error = value["error"].text
        code = error.flatMap { Self.isCode($0) ? response.redactor.redacted($0) : nil }
        let prose = code == nil ? error : nil
        let redactor = response.redactor
        message = redactor.redacted(value["message"].text ?? prose ?? "")
        details = Self.details(value["details"]).map { redactor.redacted($0) }
    }

    private static func isCode(_ text: String) -> Bool {
        text.utf8.allSatisfy { (0x41...0x5A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F }
    }

    /// Whether the server lacks this route, in its framework's words.
    var isUnknownRoute: Bool { isJSON && code == nil && message.hasPrefix("Route ") && message.hasSuffix(" not found") }

    /// Whether the text reports a database or network failure within the server.
    var isDatabaseFault: Bool {
        let signs = [
            "econnrefused", "econnreset", "etimedout", "ehostunreach", "enetunreach", "enotfound", "eai_again", "epipe",
            "connection terminated", "terminating connection", "too many clients", "remaining connection slots",
            "timeout exceeded when trying to connect", "connection timeout", "the database system is",
        ]
        let text = message.lowercased()
        return signs.contains { text.contains($0) }
    }

    /// All words for a person, safe to print.
    var text: String {
        let words = [code, message.isEmpty ? nil : message].compactMap(\.self).joined(separator: ": ")
        let text = ([words] + details.prefix(5)).filter { !$0.isEmpty }.joined(separator: "; ")
        return DeliveryError.excerpt(Array(text.utf8))
    }

    private static func details(_ value: VOPIValue) -> [String] {
        if value.isList { return value.list.prefix(20).compactMap(line) }
        return nested(value, at: "", depth: 0)
    }

    /// One objection of a list: its place (`instancePath` or `path`) and its text.
    private static func line(_ value: VOPIValue) -> String? {
        guard let message = value["message"].text ?? value.text else { return nil }
        let path = value["path"].list.compactMap { $0.text ?? $0.integer.map { String($0) } }.joined(separator: "/")
        let place = value["instancePath"].text ?? path
        return place.isEmpty ? message : "\(place) \(message)"
    }

    /// Objections below their fields' names, in lists named `_errors`.
    private static func nested(_ value: VOPIValue, at path: String, depth: Int) -> [String] {
        guard depth < 8 else { return [] }
        let members = value.members.sorted { $0.key < $1.key }
        return members.flatMap { name, member in
            if name == "_errors" {
                member.list.compactMap(\.text).map { path.isEmpty ? $0 : "\(path) \($0)" }
            } else if member.isObject {
                nested(member, at: "\(path)/\(name)", depth: depth + 1)
            } else {
                member.text.map { ["\(path)/\(name) \($0)"] } ?? []
            }
        }
    }
}
