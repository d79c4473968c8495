package import InletCore
internal import InletTransfer

/// A service that is spoken to in HTTP and JSON: where it is, and who we are to it.
///
/// What an answer means, each service's own table says; the rest is here: paths below one address, one login, answers bounded
/// in size and time by their requests. A call is one request, and repeated only where the service no longer takes an access
/// token that can be renewed.
struct ServiceClient: Sendable {
    let url: HTTPURL
    let http: HTTPClient
    let login: ServiceLogin

    /// What ids and tokens of services are made of, none of which leads anywhere in a path: base64url (RFC 4648, section 5).
    static let idBytes = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    init(_ url: HTTPURL, _ http: HTTPClient, login: ServiceLogin = .none) {
        self.url = url
        self.http = http
        self.login = login
    }

    /// A request below the service's address; our login is added when it is sent.
    ///
    /// - Parameters:
    ///   - json: the body. Without one there is no Content-Type either: servers take an empty body with one for a fault.
    ///   - limit: of the answer's body, in bytes.
    ///   - patience: how long the answer may take in all, and how long nothing may move.
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

    /// The answer to a call that succeeded; `refusal` says what every other one means.
    func send(
        _ request: HTTPRequest, meter: TransferMeter? = nil, refusal: (HTTPResponse) -> DeliveryError
    ) async throws(DeliveryError) -> HTTPResponse {
        let response = try await answer(to: request, meter: meter)
        guard response.isSuccess else { throw refusal(response) }
        return response
    }

    /// The answer, whatever its status.
    /// - Parameter isOpen: whether it is asked for without our login.
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
        // JSON only: with other types among those that are accepted, some services answer with pages.
        request.headers = [("Accept", "application/json")] + [login].compactMap(\.self) + request.headers
        return try await http.exchange(request, meter: meter)
    }

    private static func bearer(_ token: Secret) -> (name: String, value: String) {
        ("Authorization", "Bearer " + token.reveal())
    }
}

/// Who we are to a service: one header field, never two.
enum ServiceLogin: Sendable {
    case none
    /// A field that stays what it is.
    case field(name: String, value: Secret)
    /// Access tokens, which are renewed: `isRefused` tells the answer after which another one may help.
    case tokens(TokenSource, isRefused: @Sendable (HTTPResponse) -> Bool)
}

/// Gives an access token; after `refused`, which the service no longer takes, another one, or the same where there is none.
package typealias TokenSource = @Sendable (_ refused: Secret?) async throws(DeliveryError) -> Secret

extension HTTPClient {
    /// As `send`, with the agent's errors.
    func exchange(
        _ request: HTTPRequest, meter: TransferMeter? = nil
    ) async throws(DeliveryError) -> HTTPResponse {
        try await DeliveryError.onTransfer(await send(request, meter: meter))
    }
}

/// How the answers of all services are read.
extension HTTPResponse {
    var isSuccess: Bool { (200..<300).contains(status) }

    /// Whether it calls itself JSON.
    var isJSON: Bool { header("Content-Type")?.lowercased().hasPrefix("application/json") ?? false }

    /// Its body as JSON that is not ours to know; nil for what is none.
    var jsonBody: JSONValue? { JSON.value(body) }

    /// Its body as XML; nil for what is none.
    var xmlBody: XMLElement? { XMLElement(body) }

    /// The beginning of its text without our own credentials, without anything between `<` and `>`, and with single blanks.
    /// - Parameter limit: how many bytes of the body are looked at.
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
