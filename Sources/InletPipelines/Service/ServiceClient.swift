package import InletCore
internal import InletTransfer

/// A service that speaks HTTP and JSON: its address, and our login.
///
/// Each service's own table gives answers their meaning; the rest is here: paths below one address, one login, answers
/// bounded in size and time. A call is one request, repeated only where the service refuses an access token that can be
/// renewed.
struct ServiceClient: Sendable {
    let url: HTTPURL
    let http: HTTPClient
    let login: ServiceLogin

    /// The characters of services' ids and tokens, which are harmless in a path: base64url (RFC 4648, section 5).
    static let idBytes = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    init(_ url: HTTPURL, _ http: HTTPClient, login: ServiceLogin = .none) {
        self.url = url
        self.http = http
        self.login = login
    }

    /// A request below the service's address; our login is added when it is sent.
    ///
    /// - Parameters:
    ///   - json: the body. Without one there is no Content-Type either: some servers refuse an empty body with one.
    ///   - limit: of the answer's body, in bytes.
    ///   - patience: the total time for the answer, and the longest time without progress.
    func request(
        _ method: String, _ path: String, query: HTTPFields = [], json: [UInt8]? = nil, limit: Int = 1 << 20,
        patience: Duration = .seconds(60)
    ) -> HTTPRequest {
        var url = url.appending(path: path)
        for item in query { url = url.appending(queryItem: item.name, item.value) }
        return HTTPRequest(
            method, url, headers: json == nil ? [] : [("Content-Type", "application/json")],
            body: json.map { .bytes($0) } ?? .none, answerLimit: limit, answerDeadline: patience,
            stallTimeout: patience)
    }

    /// The answer to a successful call; `refusal` interprets every other.
    func send(
        _ request: HTTPRequest, meter: TransferMeter? = nil, refusal: (HTTPResponse) -> DeliveryError
    ) async throws(DeliveryError) -> HTTPResponse {
        let response = try await answer(to: request, meter: meter)
        guard response.isSuccess else { throw refusal(response) }
        return response
    }

    /// The answer, whatever its status.
    /// - Parameter isOpen: whether the request goes without our login.
    func answer(
        to request: HTTPRequest, isOpen: Bool = false, meter: TransferMeter? = nil
    ) async throws(DeliveryError) -> HTTPResponse {
        switch isOpen ? .none : login {
        case .none: return try await exchange(request, nil, meter)
        case .field(let name, let value): return try await exchange(request, (name, value.reveal()), meter)
        case .tokens(let give, let isRefused):
            let token = try await give(nil)
            let response = try await exchange(request, Self.bearer(token), meter)
            guard isRefused(response) else { return response }
            let other = try await give(token)
            return other == token ? response : try await exchange(request, Self.bearer(other), meter)
        }
    }

    private func exchange(
        _ request: HTTPRequest, _ login: (name: String, value: String)?, _ meter: TransferMeter?
    ) async throws(DeliveryError) -> HTTPResponse {
        var request = request
        // JSON only: some services answer with pages when other types are accepted too.
        request.headers = [("Accept", "application/json")] + [login].compactMap(\.self) + request.headers
        return try await http.exchange(request, meter: meter)
    }

    private static func bearer(_ token: Secret) -> (name: String, value: String) {
        ("Authorization", "Bearer " + token.reveal())
    }
}

/// Our login at a service: one header field, never two.
enum ServiceLogin: Sendable {
    case none
    /// A fixed field.
    case field(name: String, value: Secret)
    /// Access tokens that are renewed: `isRefused` recognises an answer after which another token may help.
    case tokens(TokenSource, isRefused: @Sendable (HTTPResponse) -> Bool)
}

/// Returns an access token. After `refused`, which the service no longer accepts, returns another, or the same where
/// there is none.
package typealias TokenSource = @Sendable (_ refused: Secret?) async throws(DeliveryError) -> Secret

extension HTTPClient {
    /// As `send`, with the agent's errors.
    func exchange(
        _ request: HTTPRequest, meter: TransferMeter? = nil
    ) async throws(DeliveryError) -> HTTPResponse {
        try await DeliveryError.onTransfer(await send(request, meter: meter))
    }
}

/// How every service's answers are read.
extension HTTPResponse {
    var isSuccess: Bool { (200..<300).contains(status) }

    /// Whether it claims to be JSON.
    var isJSON: Bool { header("Content-Type")?.lowercased().hasPrefix("application/json") ?? false }

    /// Its body as JSON of unknown shape; nil for other content.
    var jsonBody: JSONValue? { JSON.value(body) }

    /// Its body as XML; nil for other content.
    var xmlBody: XMLElement? { XMLElement(body) }

    /// The start of its text without our credentials, without anything between `<` and `>`, and with single blanks.
    /// - Parameter limit: the number of bytes of the body to look at.
    func plainText(_ limit: Int) -> String {
        let text = String(decoding: redactor.redacted(Array(body.prefix(limit))), as: UTF8.self)
        var isTag = false
        var result = ""
        for character in text {
            switch character {
            case "<": isTag = true
            case ">":
                isTag = false
                result.append(" ")
            default: if !isTag { result.append(character) }
            }
        }
        return result.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
}
