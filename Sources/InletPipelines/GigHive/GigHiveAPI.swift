internal import FoundationEssentials
internal import InletCore
internal import InletLinux
internal import InletTransfer

/// The calls of a GigHive server besides tus. Every call is one request, never retried here.
struct GigHiveAPI: Sendable {
    let settings: GigHiveSettings
    let client: HTTPClient

    /// Apache gives PHP 300 s, and the server hashes and probes the file before it answers.
    static let patience = Duration.seconds(330)

    /// JSON only: with `text/html` among the accepted types the server answers with pages.
    var headers: HTTPFields {
        let credential =
            switch settings.credentials {
            case .basic(let user, let password):
                ("Authorization", "Basic " + Data("\(user):\(password.reveal())".utf8).base64EncodedString())
            case .token(let token, _): ("X-Upload-Token", token.reveal())
            }
        return [("Accept", "application/json"), credential]
    }

    /// The one user who deletes by ids, and is refused tokens.
    private var isAdmin: Bool { if case .basic("admin", _) = settings.credentials { true } else { false } }

    var isGuest: Bool { if case .token = settings.credentials { true } else { false } }

    /// `POST /api/uploads` with a file.
    func form(_ form: FormData, _ source: SourceFile, size: Int64) -> HTTPRequest {
        var request = HTTPRequest(
            "POST", settings.url.appending(path: "api/uploads"),
            headers: headers + [("Content-Type", form.contentType)],
            body: .form(header: form.header, source, offset: 0, length: size, footer: form.footer),
            answerDeadline: Self.patience)
        request.silenceTimeout = Self.patience
        return request
    }

    /// `POST /api/uploads/finalize`.
    func finalize(_ upload: String, _ fields: GigHiveFields) -> HTTPRequest {
        var message = fields.values.map { (JSONString.quote($0.name), JSONString.quote($0.value)) }
        message.append(("\"upload_id\"", JSONString.quote(upload)))
        if case .token(_, let name) = settings.credentials {
            message.append(("\"tos_accepted\"", "true"))
            if let name { message.append(("\"display_name\"", JSONString.quote(name))) }
        }
        return json("api/uploads/finalize", message)
    }

    /// Deletes an asset with the token that came with it.
    ///
    /// - Throws: `.notFound` when the server deleted nothing, `.unauthorized` when it refuses the token.
    func delete(asset: Int64, token: String) async throws(DeliveryError) {
        let what = "deleting asset \(asset) at \(settings.url.redacted)"
        var request = json(
            "db/delete_media_files.php",
            isAdmin
                ? [("\"asset_ids\"", "[\(asset)]")]
                : [
                    ("\"asset_id\"", String(asset)), ("\"delete_token\"", JSONString.quote(token)),
                ])
        request.secrets = [Secret(token)]
        let response = try await send(request)
        let verdict = GigHiveVerdict(response, at: .delete)
        guard verdict == .done else { throw verdict.error(response, what) }
        struct Deleted: Decodable { var deleted_count: Int? }
        // What is not that answer has deleted nothing, as is said below.
        let deleted = try? JSONDecoder().decode(Deleted.self, from: Data(response.body))
        guard deleted?.deleted_count ?? 0 > 0 else {
            throw DeliveryError(
                .giveUp, .notFound, "\(what): the server deleted nothing: \(DeliveryError.excerpt(response))")
        }
    }

    /// Whether the server takes our credentials.
    func probe() async throws(DeliveryError) -> String {
        // A random query, because mod_cache and Cloudflare keep answers.
        let nonce = String(UInt64.random(in: .min ... .max), radix: 36)
        let what = "asking \(settings.url.redacted)"
        if case .token(let token, _) = settings.credentials {
            let url = settings.url.appending(path: "api/upload-token.php")
                .appending(queryItem: "token", token.reveal()).appending(queryItem: "r", nonce)
            try await look(HTTPRequest("GET", url, headers: [("Accept", "application/json")]), what, fine: 200..<300)
        } else if settings.transport == .multipart {
            let url = settings.url.appending(path: "api/uploads/0").appending(queryItem: "r", nonce)
            try await look(HTTPRequest("GET", url, headers: headers), what, fine: 404..<405)
        } else {
            let url = settings.url.appending(path: "files/").appending(queryItem: "r", nonce)
            let said = try await look(HTTPRequest("OPTIONS", url, headers: headers), what, fine: 200..<300)
            guard said.header("Tus-Version")?.contains(Tus.version) == true else {
                throw DeliveryError(
                    .outage(after: nil), .badAnswer,
                    "\(what): no tus \(Tus.version) below /files/; set 'transport: multipart'")
            }
        }
        return "\(settings.url.redacted) answers and takes these credentials"
    }

    @discardableResult
    private func look(
        _ request: HTTPRequest, _ what: String, fine: Range<Int>
    ) async throws(DeliveryError) -> HTTPResponse {
        let response = try await send(request)
        if (200..<300).contains(response.status) || fine.contains(response.status) { return response }
        throw GigHiveVerdict(response, at: .probe).error(response, what)
    }

    private func json(_ path: String, _ message: [(String, String)]) -> HTTPRequest {
        let body = "{" + message.map { "\($0.0):\($0.1)" }.joined(separator: ",") + "}"
        return HTTPRequest(
            "POST", settings.url.appending(path: path), headers: headers + [("Content-Type", "application/json")],
            body: .bytes(Array(body.utf8)), answerDeadline: Self.patience, stallTimeout: Self.patience)
    }

    func send(_ request: HTTPRequest, meter: TransferMeter? = nil) async throws(DeliveryError) -> HTTPResponse {
        do {
            return try await client.send(request, meter: meter)
        } catch {
            throw DeliveryError(error)
        }
    }
}
