internal import FoundationEssentials
internal import InletCore
internal import InletLinux
internal import InletTransfer

/// The calls of a GigHive server besides tus. Every call is one request, never repeated here.
struct GigHiveAPI: Sendable {
    let settings: GigHiveSettings
    let service: ServiceClient

    /// Apache gives PHP 300 s, and the server hashes and probes the file before it answers.
    static let patience = Duration.seconds(330)

    init(settings: GigHiveSettings, client: HTTPClient) {
        self.settings = settings
        let login: ServiceLogin =
            switch settings.credentials {
            case .basic(let user, let password):
                .field(
                    name: "Authorization",
                    value: Secret(
                        "Basic " + Data("\(user):\(password.reveal())".utf8).base64EncodedString()))
            case .token(let token, _): .field(name: "X-Upload-Token", value: token)
            }
        service = ServiceClient(settings.url, client, login: login)
    }

    /// The one user who deletes by id, and gets no tokens.
    private var isAdmin: Bool { if case .basic("admin", _) = settings.credentials { true } else { false } }

    var isGuest: Bool { if case .token = settings.credentials { true } else { false } }

    /// `POST /api/uploads` with a file.
    func form(_ form: FormData, _ source: SourceFile, size: Int64) -> HTTPRequest {
        var request = HTTPRequest(
            "POST", settings.url.appending(path: "api/uploads"),
            headers: [("Content-Type", form.contentType)],
            body: .form(header: form.header, source, offset: 0, length: size, footer: form.footer),
            answerDeadline: Self.patience)
        request.silenceTimeout = Self.patience
        return request
    }

    /// `POST /api/uploads/finalize`.
    func finalize(_ upload: String, _ fields: GigHiveFields) -> HTTPRequest {
        var message = JSONLine()
        for (name, value) in fields.values { message.add(name, value) }
        message.add("upload_id", upload)
        if case .token(_, let name) = settings.credentials {
            message.add("tos_accepted", true)
            if let name { message.add("display_name", name) }
        }
        return post("api/uploads/finalize", message)
    }

    /// Deletes an asset with its token.
    ///
    /// - Throws: `.notFound` when the server deleted nothing, `.unauthorized` when it refuses the token.
    func delete(asset: Int64, token: String) async throws(DeliveryError) {
        let what = "deleting asset \(asset) at \(settings.url.redacted)"
        var message = JSONLine()
        if isAdmin {
            message.add("asset_ids", [asset])
        } else {
            message.add("asset_id", asset)
            message.add("delete_token", token)
        }
        var request = post("db/delete_media_files.php", message)
        request.secrets = [Secret(token)]
        let response = try await service.send(request) { GigHiveVerdict($0, at: .delete).error($0, what) }
        guard response.jsonBody?["deleted_count"]?.integer ?? 0 > 0 else {
            throw DeliveryError(
                .giveUp, .notFound, "\(what): the server deleted nothing: \(DeliveryError.excerpt(response))")
        }
    }

    /// `GET /api/uploads/{id}`; nil when there is none.
    func asset(_ id: Int64) async throws(DeliveryError) -> (size: Int64?, sha256: String?)? {
        let what = "looking at asset \(id) at \(settings.url.redacted)"
        let response = try await service.answer(to: fresh("GET", "api/uploads/\(id)"))
        if response.status == 404, response.isJSON { return nil }
        guard response.isSuccess else { throw GigHiveVerdict(response, at: .probe).error(response, what) }
        guard let said = response.jsonBody, said.object != nil, let size = said.integer(at: "size_bytes"),
            let sha256 = said.text(at: "checksum_sha256")
        else {
            throw DeliveryError(.retry(after: nil), .badAnswer, "\(what): the answer is not the JSON it should be")
        }
        return (size, sha256)
    }

    /// Whether the server accepts our credentials.
    func probe() async throws(DeliveryError) -> String {
        let what = "asking \(settings.url.redacted)"
        if case .token(let token, _) = settings.credentials {
            let request = fresh("GET", "api/upload-token.php", [("token", token.reveal())])
            try await look(request, what, isOpen: true)
        } else if settings.transport == .multipart {
            try await look(fresh("GET", "api/uploads/0"), what, mayBeMissing: true)
        } else {
            let said = try await look(fresh("OPTIONS", "files/"), what)
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
        _ request: HTTPRequest, _ what: String, isOpen: Bool = false, mayBeMissing: Bool = false
    ) async throws(DeliveryError) -> HTTPResponse {
        let response = try await service.answer(to: request, isOpen: isOpen)
        if response.isSuccess || mayBeMissing && response.status == 404 { return response }
        throw GigHiveVerdict(response, at: .probe).error(response, what)
    }

    /// With a random query, because mod_cache and Cloudflare cache answers.
    private func fresh(_ method: String, _ path: String, _ query: HTTPFields = []) -> HTTPRequest {
        let nonce = String(UInt64.random(in: .min ... .max), radix: 36)
        return service.request(method, path, query: query + [("r", nonce)])
    }

    private func post(_ path: String, _ message: JSONLine) -> HTTPRequest {
        service.request("POST", path, json: message.finished, patience: Self.patience)
    }
}
