package import InletCore
package import InletLinux
internal import InletTransfer
internal import SystemPackage

/// Turns network and disk errors into delivery errors, and answers where a service has no rules of its own.
/// `FailureClassifier` decides what they mean for the file.
extension DeliveryError {
    /// A request without a usable answer.
    init(_ error: TransferError) {
        let verdict: Verdict =
            switch error.code {
            case .cancelled: .cancelled
            case .sourceChanged: .sourceChanged
            // A disk that cannot be read now.
            case .sourceUnreadable: .outage(after: nil)
            case .insecureURL, .forbiddenURL: .giveUp
            default: error.isOutage ? .outage(after: nil) : .retry(after: nil)
            }
        let heard: StepFailure? =
            switch error.code {
            // A server's URL, or an address, that is refused: the next file's would be too.
            case .insecureURL, .forbiddenURL: StepFailure(200, .everybody)
            case .connectionLost, .timedOut, .stalled, .badAnswer, .answerTooLarge: error.isOutage ? nil : .broken
            default: nil
            }
        self.init(verdict, error.code, error.reason, heard: heard)
    }

    /// A success status with content that the service would not send.
    static func misunderstood(_ text: String, _ status: Int = 200) -> DeliveryError {
        DeliveryError(.retry(after: nil), .badAnswer, text, heard: StepFailure(status, .foreign))
    }

    /// The same without credentials that a server put into a URL, which such errors quote.
    func redacted(by redactor: Redactor) -> DeliveryError {
        var error = self
        error.reason = redactor.redacted(reason)
        return error
    }

    /// A source that could not be opened or read. Only a missing one is gone, and only something that is not a file is
    /// hopeless. Any other error may pass: it is this machine's fault, and costs the file no attempt.
    package init(reading error: SystemError) {
        if error.isMissing {
            self.init(.sourceGone, .sourceGone, "\(error)")
        } else if error.isNotRegular {
            self.init(.giveUp, .notRegular, "\(error)")
        } else if error.isShortage {
            self.init(.outage(after: nil), .outOfResources, "\(error)")
        } else if error.isPermission {
            self.init(.outage(after: nil), .sourceForbidden, "\(error)")
        } else {
            self.init(.outage(after: nil), .sourceUnreadable, "\(error)")
        }
    }

    /// An error of writing to a folder destination, or of fetching into a folder. A disk that is full or not writable
    /// fails every file: an outage, not an attempt.
    init(writing error: SystemError) {
        if error.code == .canceled {
            self.init(.cancelled, .cancelled, "\(error)")
        } else if error.isShortage {
            self.init(.outage(after: nil), .outOfResources, "\(error)")
        } else if error.isFull {
            self.init(.outage(after: nil), .destinationFull, "\(error)")
        } else if error.code == .fileNameTooLong {
            self.init(.giveUp, .nameTooLong, "\(error)")
        } else if error.isPermission || error.code == .readOnlyFileSystem || error.code == .ioError {
            self.init(.outage(after: nil), .destinationUnwritable, "\(error)")
        } else {
            self.init(.retry(after: nil), .destinationUnwritable, "\(error)")
        }
    }

    /// A failed download, including errors of the disk it is written to.
    init(local error: TransferError) {
        switch error.code {
        case .destinationFull, .destinationUnwritable: self.init(.outage(after: nil), error.code, error.reason)
        case .destinationExists, .answerTooLarge: self.init(.giveUp, error.code, error.reason)
        default: self.init(error)
        }
    }

    /// The result of `call`; translates its errors.
    static func onTransfer<Value>(
        _ call: @autoclosure () async throws(TransferError) -> Value
    ) async throws(DeliveryError) -> Value {
        do { return try await call() } catch { throw DeliveryError(error) }
    }

    /// As `onTransfer`, for reading a source.
    static func onReading<Value>(_ call: @autoclosure () throws(SystemError) -> Value) throws(DeliveryError) -> Value {
        do { return try call() } catch { throw DeliveryError(reading: error) }
    }

    /// As `onTransfer`, for writing to a folder destination.
    static func onWriting<Value>(_ call: @autoclosure () throws(SystemError) -> Value) throws(DeliveryError) -> Value {
        do { return try call() } catch { throw DeliveryError(writing: error) }
    }

    /// As `onTransfer`, for reading the fields that a route gives to the file at `path`.
    static func onFields<Value>(
        of path: FilePath, _ call: @autoclosure () throws(SettingFault) -> Value
    ) throws(DeliveryError) -> Value {
        do { return try call() } catch {
            let fault = "\(error.key) \(error.message)"
            throw DeliveryError(.giveUp, .badRequest, "\(path.display): \(fault); correct 'with:' of its route")
        }
    }

    /// The result of `call`; nil where it throws one of `codes`, which mean that the thing does not exist.
    @discardableResult
    static func ignoring<Value>(
        _ codes: ErrorCode..., in call: @autoclosure () async throws(DeliveryError) -> Value
    ) async throws(DeliveryError) -> Value? {
        do { return try await call() } catch {
            guard codes.contains(error.code) else { throw error }
            return nil
        }
    }

    /// Waits; `what` names the reason in case it is cancelled.
    static func sleep(for time: Duration, _ what: String) async throws(DeliveryError) {
        guard await Task.rest(for: time) else {
            throw DeliveryError(.cancelled, .cancelled, "cancelled while \(what)")
        }
    }

    /// An answer other than a success.
    ///
    /// - Parameters:
    ///   - what: the step, such as `creating the upload at api.example`.
    ///   - form: the service's form of refusals.
    ///   - secretsMatter: whether 401 and 403 concern our credentials, rather than a presigned URL.
    init(_ response: HTTPResponse, _ what: String, in form: ErrorFormat, secretsMatter: Bool, now: WallTime) {
        let heard = form.heard(response, secretsMatter: secretsMatter)
        let text = Self.answered(what, response, Self.said(response))
        let check = heard.word == .credentials ? "; check this destination's credentials" : ""
        self.init(response, text + Self.remedy(heard, response) + check, secretsMatter, now)
        self.heard = heard
        // A web page does not prove that an object is missing.
        if code == .notFound, response.isPage || response.isHostsOwn {
            (verdict, code) = (.outage(after: asked), .badAnswer)
        }
    }

    private init(_ response: HTTPResponse, _ text: String, _ secretsMatter: Bool, _ now: WallTime) {
        let after = response.retryAfter(now: now)
        switch response.status {
        case 300..<400:
            self.init(.giveUp, .redirected, "\(text) (a redirect, which is never followed; correct the address)")
        case 401 where secretsMatter, 403 where secretsMatter:
            self.init(.credentials, .unauthorized, text)
        case 404, 410: self.init(.retry(after: after), .notFound, text)
        case 408: self.init(.retry(after: after), .timedOut, text)
        case 409: self.init(.giveUp, .conflict, text)
        case 413: self.init(.giveUp, .tooLarge, text)
        case 429: self.init(.retry(after: after), .throttled, text)
        case 502, 503, 504: self.init(.outage(after: after), .serverError, text)
        case 500...: self.init(.retry(after: after), .serverError, text)
        case 401, 403: self.init(.retry(after: after), .unauthorized, text)
        default: self.init(.giveUp, .badRequest, text)
        }
    }

    /// The common start of every error about an answer.
    static func answered(_ what: String, _ response: HTTPResponse, _ said: String) -> String {
        "\(what) was answered with \(response.status)" + (said.isEmpty ? "" : ": \(said)")
    }

    /// The same error by a service's own rules: whose words it quotes, and the remedy.
    func heard(_ heard: StepFailure, _ response: HTTPResponse, hasRemedy: Bool = true) -> DeliveryError {
        var error = self
        error.heard = heard
        if hasRemedy { error.reason += Self.remedy(heard, response) }
        return error
    }

    /// Appended to the reason of a redirect; empty for other answers.
    static func redirect(_ code: ErrorCode) -> String {
        code == .redirected ? " (a redirect, which is never followed; correct the url)" : ""
    }

    /// The remedy for an answer, most of all one from something in the service's place; empty where none is known.
    static func remedy(_ heard: StepFailure, _ response: HTTPResponse) -> String {
        let said = String(decoding: response.body.prefix(2000), as: UTF8.self).lowercased()
        if said.contains("entitytoosmall") { return "; the store wants larger parts: raise part_size" }
        guard heard.word == .foreign else { return "" }
        if response.status == 400, plainAtTLS.contains(where: { said.contains($0) }) {
            return "; its port speaks TLS: write https:// instead of http://"
        }
        return switch response.status {
        case 413: "; raise client_max_body_size of the proxy in front of the store, or lower part_size"
        case 401: "; allow these requests at the proxy in front of the service, which wants a login"
        case 400, 403, 404, 405, 410: "; not the service's own answer: is it away, or does something else answer?"
        default: ""
        }
    }

    /// The words of nginx, Go and Apache for plain HTTP at a TLS port.
    private static let plainAtTLS = [
        "plain http request was sent to https port", "http request to an https server",
        "speaking plain http to an ssl-enabled server port",
    ]

    /// The agent is stopping, so no new step begins.
    static let stopping = DeliveryError(
        .cancelled, .cancelled, "the agent is stopping; this continues at its next start")

    /// The answer's words, without our own credentials: a store's Code and Message, or the start of its text.
    static func said(_ response: HTTPResponse) -> String {
        guard let error = response.storeError else {
            return response.isPage ? excerpt(Array(response.plainText(16 << 10).utf8)) : excerpt(response)
        }
        let words = ["Code", "Message"].compactMap { error.text(of: $0) }.map { response.redactor.redacted($0) }
        return excerpt(Array(words.joined(separator: ": ").utf8))
    }

    /// The start of an answer's text, without our own credentials.
    static func excerpt(_ response: HTTPResponse) -> String {
        excerpt(response.redactor.redacted(Array(response.body.prefix(16 << 10))))
    }

    /// The start of an answer's text, safe to print and without anything that may be part of a presigned URL.
    static func excerpt(_ body: [UInt8]) -> String {
        let text = DisplayText.escape(body.prefix(300))
        let words = text.split(separator: " ").map { isSecretive($0) ? "[URL]" : String($0) }
        return String(words.joined(separator: " ").prefix(200))
    }

    /// JSON may spell the slashes of a URL `\/`.
    private static func isSecretive(_ word: Substring) -> Bool {
        let lower = word.lowercased()
        return ["://", ":\\/", "x-amz-", "signature"].contains { lower.contains($0) }
            || lower.contains("?") && lower.contains("=")
    }
}

extension KeyedMutex {
    /// - Throws: `.cancelled` when the task is cancelled before its turn, and the errors of `body`.
    func alone<Value>(
        _ name: String, _ body: () async throws(DeliveryError) -> Value
    ) async throws(DeliveryError) -> Value {
        guard let value = try await holding(name, body) else { throw .stopping }
        return value
    }
}

/// Does optional work: the comment at each call says why nothing is lost where it fails.
func bestEffort(_ call: @autoclosure () async throws -> Void) async {
    do { try await call() } catch {}
}

extension Result {
    init(of call: @autoclosure () async throws(Failure) -> Success) async {
        do { self = .success(try await call()) } catch { self = .failure(error) }
    }
}

/// The form of a service's refusals: any other words come from something in front of it, or in its place.
enum ErrorFormat: Sendable {
    case json
    /// JSON or plain words; an answer without any comes from its framework.
    case words
    case xml

    func isOwn(_ response: HTTPResponse) -> Bool {
        if response.isHostsOwn || response.isPage { return false }
        switch self {
        case .json: return response.said?.object != nil
        case .words: return true
        case .xml: return response.storeError != nil
        }
    }

    /// The meaning of an answer with this status where the service has no words of its own.
    func heard(_ response: HTTPResponse, secretsMatter: Bool = false) -> StepFailure {
        let isOwn = isOwn(response)
        if secretsMatter, isOwn, response.status == 401 || response.status == 403 {
            return StepFailure(response.status, .credentials)
        }
        return StepFailure(response.status, isOwn: isOwn)
    }
}

extension HTTPResponse {
    /// Whether it is a web page, or claims to be.
    var isPage: Bool {
        if header("Content-Type")?.lowercased().contains("html") ?? false { return true }
        let head = String(decoding: body.prefix(200), as: UTF8.self).drop { $0.isWhitespace }.lowercased()
        return head.hasPrefix("<!doctype html") || head.hasPrefix("<html") || head.hasPrefix("<head")
    }

    /// Whether a platform or router has answered for the service behind it: Railway while there is none, Cloudflare in
    /// its own JSON, Traefik and Envoy in plain words.
    var isHostsOwn: Bool {
        if header("X-Railway-Fallback") != nil { return true }
        let head = String(decoding: body.prefix(40), as: UTF8.self)
        if Self.routersWords.contains(where: head.hasPrefix) { return true }
        return header("cf-ray") != nil && said?["cloudflare_error"]?.boolean == true
    }

    /// A refusal in an S3 store's form; nil for other answers.
    var storeError: XMLElement? { xmlBody.flatMap { $0.name == "Error" ? $0 : nil } }

    /// A refusal as JSON; nil for one longer than any real one.
    fileprivate var said: JSONValue? { body.count <= 1 << 20 ? jsonBody : nil }

    private static let routersWords = ["404 page not found", "no healthy upstream", "upstream connect error"]
}
