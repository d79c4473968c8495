package import InletCore
package import InletLinux
package import InletTransfer
package import SystemPackage

/// The calls of a VOPI server, for both generations. Each is one request, repeated once after renewing its access
/// token. Answers are read leniently: `{}`, `""`, 0 and missing fields all mean "not set".
package final class VOPIAPI: Sendable {
    package let settings: VOPISettings
    let service: ServiceClient
    /// The login to renew; nil with an API key, and where the agent lends its own.
    let tokens: VOPITokens?
    let serverInfo: VOPIServerInfoStore

    /// - Parameters:
    ///   - name: the destination's name, used for its files in `tokens`.
    ///   - tokens: `state_dir/tokens`; created when there is something to keep.
    ///   - borrowing: an access token of the running agent, in place of a login of our own; given one that the server has
    ///     refused, another.
    package init(
        _ settings: VOPISettings, name: String, client: HTTPClient, pool: BlockingPool, tokens: FilePath,
        borrowing: TokenSource? = nil
    ) {
        self.settings = settings
        serverInfo = VOPIServerInfoStore(folder: tokens, name: name, server: settings.url, pool: pool)
        let login: ServiceLogin
        switch (settings.login, borrowing) {
        case (.apiKey(let key), _):
            self.tokens = nil
            login = .field(name: "x-api-key", value: key)
        case (.tokens, let borrowing?):
            self.tokens = nil
            login = .tokens(borrowing, isRefused: VOPIVerdict.asksForRenewal)
        case (.tokens(let seed), nil):
            let store = VOPITokenStore(folder: tokens, name: name, seed: seed, pool: pool)
            let own = VOPITokens(server: settings.url, client: client, store: store)
            self.tokens = own
            login = .tokens(
                { refused async throws(DeliveryError) in try await own.access(after: refused) },
                isRefused: VOPIVerdict.asksForRenewal)
        }
        service = ServiceClient(settings.url, client, login: login)
    }

    var client: HTTPClient { service.http }

    // MARK: - Uploads and jobs

    /// `POST /api/v1/uploads/presign`.
    /// - Parameters:
    ///   - filename: gives the object its extension; only its last 255 characters are sent.
    ///   - contentType: `video/mp4`, `video/quicktime` or `video/webm`.
    ///   - life: clamped to the server's range, 60 s to 24 h.
    /// - Throws: `.forbiddenURL` and `.insecureURL` when the server names a forbidden address.
    package func presign(
        filename: String?, contentType: String, life: Duration
    ) async throws(DeliveryError) -> UploadPlace {
        let life = Self.life(life)
        let body = JSONValue.members([
            "contentType": .string(contentType), "expiresIn": .number(String(life.components.seconds)),
            "filename": filename.map { .string(String($0.suffix(255))) },
        ])
        let request = request("POST", "api/v1/uploads/presign", body: body)
        return try await send(request, .presign, "asking for an upload URL") { value, response throws(DeliveryError) in
            do throws(TransferError) {
                return try Self.uploadPlace(value, asked: life, rules: settings.linkRules)
            } catch {
                throw DeliveryError(error).redacted(by: response.redactor)
            }
        }
    }

    /// Where a video's bytes go: one PUT to a URL whose query is a credential. `publicURL` goes unchanged into the new
    /// job. Nobody can fetch it, but it is unique, so it identifies the job later. `expiresIn` counts from the arrival
    /// of the answer.
    package typealias UploadPlace = (uploadURL: HTTPURL, publicURL: String, expiresIn: Duration)

    /// - Returns: nil where a URL is missing.
    /// - Throws: `.forbiddenURL` or `.insecureURL` for an upload URL that `rules` refuse.
    static func uploadPlace(
        _ value: VOPIValue, asked: Duration, rules: URLRules
    ) throws(TransferError) -> UploadPlace? {
        guard let upload = value["uploadUrl"].text, let publicURL = value["publicUrl"].text else { return nil }
        let life = value["expiresIn"].number.map { Duration.seconds(max($0, 0)) } ?? asked
        return (try HTTPURL(upload, rules: rules), publicURL, life)
    }

    /// `POST /api/v1/jobs`. Not idempotent, and no key can make it so: see `mayHaveCreated`.
    package func createJob(_ job: VOPINewJob) async throws(DeliveryError) -> VOPIJob {
        // The server queues the job before it answers, and its queue may hang.
        let request = request("POST", "api/v1/jobs", body: job.json, patience: .seconds(60))
        return try await send(request, .create, "creating a job") { value, _ in VOPIJob(value) }
    }

    /// Whether a job may exist after `createJob` threw `error`. If so, look for it by its `videoURL` before creating
    /// another. A 500, a lost answer, or an answer from a gateway may all have left a job.
    package static func mayHaveCreated(_ error: DeliveryError) -> Bool {
        if let heard = error.heard { return FailureClassifier.mayBeDone(heard) }
        return switch error.code {
        // The request never left this machine.
        case .connectFailed, .nameNotFound, .tlsFailed, .badRequest, .unauthorized, .outOfCredits, .proxyRefused: false
        default: true
        }
    }

    /// `GET /api/v1/jobs`: the caller's jobs, newest first.
    /// - Parameter limit: 1 to 100.
    package func jobs(
        status: String? = nil, limit: Int = 100, offset: Int = 0
    ) async throws(DeliveryError) -> VOPIJob.Page {
        var query: HTTPFields = status.map { [("status", $0)] } ?? []
        query += [("limit", String(min(max(limit, 1), 100))), ("offset", String(max(offset, 0)))]
        let request = request("GET", "api/v1/jobs", query: query, limit: 4 << 20)
        return try await send(request, .read, "listing jobs") { value, _ in VOPIJob.page(value) }
    }

    /// `GET /api/v1/jobs/:id`.
    /// - Throws: `.notFound` for a job that does not exist or belongs to somebody else.
    package func job(_ id: String) async throws(DeliveryError) -> VOPIJob {
        try await one(id, "", "looking at job")
    }

    /// `GET /api/v1/jobs/:id/status`: without `error`, `result` and `config`.
    /// - Throws: as `job`.
    package func status(_ id: String) async throws(DeliveryError) -> VOPIJob {
        try await one(id, "/status", "asking for the status of job")
    }

    private func one(_ id: String, _ rest: String, _ what: String) async throws(DeliveryError) -> VOPIJob {
        let request = try request("GET", job: id, rest, limit: 4 << 20)
        return try await send(request, .read, "\(what) \(id)") { value, response in
            var job = VOPIJob(value, asked: id)
            job?.hide(by: response.redactor)
            return job
        }
    }

    /// Seconds that the server accepts for the life of a URL.
    static func life(_ asked: Duration) -> Duration { .seconds(min(max(asked.components.seconds, 60), 86_400)) }

    // MARK: - Results and credits

    /// `GET /api/v1/jobs/:id/download-urls`, the only way to the files; call it right before fetching.
    /// - Parameter life: clamped to the server's range, 60 s to 24 h.
    /// - Throws: `.conflict` when the job has no results yet, `.notFound` as `job`.
    package func downloadURLs(_ id: String, life: Duration) async throws(DeliveryError) -> VOPIDownloads {
        let life = Self.life(life)
        let request = try request(
            "GET", job: id, "/download-urls", query: [("expiresIn", String(life.components.seconds))], limit: 16 << 20,
            patience: .seconds(60))
        return try await send(request, .downloads, "asking for the results of job \(id)") { value, _ in
            VOPIDownloads(value, rules: settings.linkRules)
        }
    }

    /// `GET /api/v1/jobs/:id/metadata`: transcript, product and platform texts, unchanged; nil when there are none, or
    /// no such job.
    package func metadata(_ id: String) async throws(DeliveryError) -> VOPIValue? {
        let request = try request("GET", job: id, "/metadata", limit: 4 << 20)
        let what = "asking for the metadata of job \(id)"
        return try await DeliveryError.ignoring(.notFound, in: await send(request, .read, what))?.objectIfSet
    }

    /// `GET /api/v1/jobs/:id/frames`: every examined frame, thousands for a long video; with `/final` appended, the
    /// chosen ones.
    package func frames(_ id: String, final: Bool = false) async throws(DeliveryError) -> [VOPIValue] {
        // Unpaged: a video of 5 min has 3000 frames of about 400 bytes each.
        let request = try request(
            "GET", job: id, final ? "/frames/final" : "/frames", limit: 32 << 20, patience: .seconds(120))
        return try await send(request, .read, "listing the results of job \(id)") { value, _ in
            value.isList || value.isEmptyOfAnyKind ? value.list.filter(\.isObject) : nil
        }
    }

    /// `GET /api/v1/jobs/:id/images/grouped`: variant, then version, then URL in the private bucket. Empty for an
    /// unknown job.
    package func groupedImages(_ id: String) async throws(DeliveryError) -> [String: [String: String]] {
        let request = try request("GET", job: id, "/images/grouped", limit: 16 << 20)
        return try await send(request, .read, "listing the images of job \(id)") { value, _ in
            value.isObject || value.isEmptyOfAnyKind ? value.links : nil
        }
    }

    /// `DELETE /api/v1/jobs/:id/images/:frame/:version`.
    /// - Returns: the remaining images: variant, version, URL in the private bucket.
    /// - Throws: `.conflict` for an uncompleted job; `.notFound` for a missing image; as `delete`.
    package func deleteImage(
        _ id: String, frame: String, version: String
    ) async throws(DeliveryError) -> [String: [String: String]] {
        try Self.check(frame, "frame id")
        try Self.check(version, "version")
        let request = try request("DELETE", job: id, "/images/\(frame)/\(version)")
        try await requireDeleting()
        return try await send(request, .delete, "deleting an image of job \(id)")["commercialImages"].links
    }

    /// `GET /api/v1/credits/balance`: the credits left; nil where the server has no credits.
    package func balance() async throws(DeliveryError) -> Double? {
        let request = request("GET", "api/v1/credits/balance", query: [("includeHistory", "false")])
        return try await DeliveryError.ignoring(
            .notFound, .badRequest,
            in: await send(request, .read, "asking for the balance") { value, _ in value["balance"].number })
    }

    /// `GET /ready`, without credentials: whether the server's own parts are ready. A 503 reports them too.
    package func isReady() async throws(DeliveryError) -> Bool {
        let response = try await service.answer(to: request("GET", "ready"), isOpen: true)
        let value = VOPIValue(response.jsonBody ?? .null)
        let checks = value["checks"].members.compactMapValues(\.text)
        let isOwnAnswer = response.status == 503 && !checks.isEmpty
        guard response.isSuccess || isOwnAnswer else {
            throw VOPIVerdict(response, at: .read).error(
                response, "asking whether it is ready at \(settings.url.redacted)", hint: "it needs none", now: .now)
        }
        return response.status != 503 && !checks.values.contains("error")
    }

    // MARK: - Login and server check

    /// Checks that the server answers, accepts the login and has credits left.
    /// - Returns: a short summary of the answer.
    /// - Throws: `.outOfCredits` when none are left.
    package func probe() async throws(DeliveryError) -> String {
        _ = try await jobs(limit: 1)
        let taken = "\(settings.url.redacted) answers and takes this login"
        // An API key has no account with a balance.
        guard case .tokens = service.login, let credits = try await balance() else { return taken }
        guard credits > 0 else {
            throw DeliveryError(
                .outage(after: VOPIVerdict.creditsPause), .outOfCredits,
                "the account at \(settings.url.redacted) has no credits left; buy some; deliveries then continue automatically"
            )
        }
        return "\(taken); \(JSONValue(credits).text) credits left"
    }

    /// An access token for the command line.
    /// - Parameter refused: a token that the server no longer accepts; the result is a different one.
    /// - Throws: `.badRequest` with an API key, which is no secret between the two.
    package func accessToken(after refused: Secret? = nil) async throws(DeliveryError) -> Secret {
        guard case .tokens(let give, _) = service.login else {
            throw DeliveryError(.giveUp, .badRequest, "the destination has an api_key, and so no access tokens")
        }
        return try await give(refused)
    }

    // MARK: - Calls and failures

    func request(
        _ method: String, _ path: String, query: HTTPFields = [], body: JSONValue? = nil, limit: Int = 1 << 20,
        patience: Duration = .seconds(30)
    ) -> HTTPRequest {
        service.request(method, path, query: query, json: body?.bytes, limit: limit, patience: patience)
    }

    /// A request about one job.
    /// - Throws: `.badRequest` for an id that no server gives and that would change the path.
    func request(
        _ method: String, job id: String, _ rest: String = "", query: HTTPFields = [], limit: Int = 1 << 20,
        patience: Duration = .seconds(30)
    ) throws(DeliveryError) -> HTTPRequest {
        try Self.check(id, "job id")
        return request(method, "api/v1/jobs/\(id)\(rest)", query: query, limit: limit, patience: patience)
    }

    /// Ids that the server accepts in a path: `[A-Za-z0-9_.-]+`, but not dots alone, which would name a parent folder.
    static func check(_ text: String, _ what: String) throws(DeliveryError) {
        let isPlain = text.utf8.allSatisfy { $0 == UInt8(ascii: ".") || ServiceClient.idBytes.contains($0) }
        guard isPlain, (1...200).contains(text.utf8.count), text.contains(where: { $0 != "." }) else {
            let shown = DisplayText.escape(String(text.prefix(60)))
            throw DeliveryError(
                .giveUp, .badRequest, "'\(shown)' is no \(what): it takes letters, digits, '_', '.' and '-'")
        }
    }

    /// The answer to a successful call: `.null` for an empty body and for anything but JSON.
    /// - Parameters:
    ///   - what: for error texts: `creating a job`.
    ///   - read: returns nil where the answer lacks something needed.
    func send<Value>(
        _ request: HTTPRequest, _ endpoint: VOPIEndpoint, _ what: String,
        read: (VOPIValue, HTTPResponse) throws(DeliveryError) -> Value?
    ) async throws(DeliveryError) -> Value {
        let response = try await service.send(request) { refusal(VOPIVerdict($0, at: endpoint), $0, what) }
        if let value = try read(VOPIValue(response.jsonBody ?? .null), response) { return value }
        throw VOPIVerdict.done.error(response, "\(what) at \(settings.url.redacted)", hint: "", now: .now)
    }

    @discardableResult
    func send(
        _ request: HTTPRequest, _ endpoint: VOPIEndpoint, _ what: String
    ) async throws(DeliveryError) -> VOPIValue {
        try await send(request, endpoint, what) { value, _ in value }
    }

    /// The error of an answer that ends a call. Re-reads a refused login before the next call.
    func refusal(_ verdict: VOPIVerdict, _ response: HTTPResponse, _ what: String) -> DeliveryError {
        if verdict == .credentials { tokens?.doubt() }
        return verdict.error(
            response, "\(what) at \(settings.url.redacted)", hint: hint(VOPIErrorBody(response)), now: .now)
    }

    /// The remedy when the server refuses the login.
    private func hint(_ said: VOPIErrorBody) -> String {
        if case .tokens = service.login {
            return said.message.contains("Missing API key")
                ? "this server takes API keys only; set auth: { api_key: ... }"
                : "log in again, and put the new refresh token into refresh_token_file"
        }
        if said.code == "USAGE_LIMIT_EXCEEDED" { return "this API key has no uses left; give another" }
        return said.message.contains("User authentication required")
            ? "this server takes no API keys; set auth: { refresh_token_file: ... }" : "check the api_key"
    }
}
