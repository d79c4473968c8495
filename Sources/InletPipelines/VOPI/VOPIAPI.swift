package import InletCore
package import InletLinux
package import InletTransfer
package import SystemPackage

/// The calls of a VOPI server, of both generations. Each is one request, repeated once where its access token had to be
/// renewed. Answers are read without expectations: `{}`, `""`, 0 and missing fields are all "not set".
package final class VOPIAPI: Sendable {
    package let settings: VOPISettings
    let service: ServiceClient
    /// The login that is renewed here; nil with an API key, and where the agent lends its own.
    let tokens: VOPITokens?
    let book: VOPIServerBook

    /// - Parameters:
    ///   - name: the destination's, which names its files in `tokens`.
    ///   - tokens: `state_dir/tokens`; made when there is something to keep.
    ///   - borrowing: an access token of the running agent, in place of a login of our own; given one that the server has
    ///     refused, another.
    package init(
        _ settings: VOPISettings, name: String, client: HTTPClient, pool: BlockingPool, tokens: FilePath,
        borrowing: TokenSource? = nil
    ) {
        self.settings = settings
        book = VOPIServerBook(folder: tokens, name: name, server: settings.url, pool: pool)
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
    ///   - filename: gives the object's extension; the last 255 characters of it.
    ///   - contentType: `video/mp4`, `video/quicktime` or `video/webm`.
    ///   - life: held to what the server takes, 60 s to a day.
    /// - Throws: `.forbiddenURL` and `.insecureURL` when the server names a place it must not.
    package func presign(
        filename: String?, contentType: String, life: Duration
    ) async throws(DeliveryError) -> VOPIUploadPlace {
        let life = Self.life(life)
        var members: [String: VOPIValue] = [
            "contentType": .text(contentType), "expiresIn": .integer(life.components.seconds),
        ]
        members["filename"] = filename.map { .text(String($0.suffix(255))) }
        let request = request("POST", "api/v1/uploads/presign", body: .object(members))
        let answer = try await send(request, .presign, "asking for an upload URL")
        let place: VOPIUploadPlace?
        do {
            place = try VOPIUploadPlace(answer.value, asked: life, rules: settings.linkRules)
        } catch {
            throw DeliveryError(error).redacted(by: answer.response.redactor)
        }
        guard let place else { throw answer.misunderstood }
        return place
    }

    /// `POST /api/v1/jobs`. Not idempotent, and no key makes it so: see `mayHaveCreated`.
    package func createJob(_ job: VOPINewJob) async throws(DeliveryError) -> VOPIJob {
        // The server adds the job to its queue before it answers, and its queue may hang.
        let request = request("POST", "api/v1/jobs", body: job.json, patience: .seconds(60))
        let answer = try await send(request, .create, "creating a job")
        guard let created = VOPIJob(answer.value) else { throw answer.misunderstood }
        return created
    }

    /// Whether a job may exist after `createJob` threw `error`: then it has to be looked for by its `videoURL` before
    /// another is made. A 500 may have left one, and so may every answer that was lost, or is not the server's own.
    package static func mayHaveCreated(_ error: DeliveryError) -> Bool {
        if let heard = error.heard { return FailureClassifier.mayBeDone(heard) }
        return switch error.code {
        // Of the request: it has not left this machine.
        case .connectFailed, .nameNotFound, .tlsFailed, .badRequest, .unauthorized, .outOfCredits, .proxyRefused: false
        default: true
        }
    }

    /// `GET /api/v1/jobs`: the caller's jobs, newest first.
    /// - Parameter limit: 1 to 100.
    package func jobs(
        status: String? = nil, limit: Int = 100, offset: Int = 0
    ) async throws(DeliveryError) -> VOPIJobPage {
        var query: HTTPFields = status.map { [("status", $0)] } ?? []
        query += [("limit", String(min(max(limit, 1), 100))), ("offset", String(max(offset, 0)))]
        let answer = try await send(request("GET", "api/v1/jobs", query: query, limit: 4 << 20), .read, "listing jobs")
        guard let page = VOPIJobPage(answer.value) else { throw answer.misunderstood }
        return page
    }

    /// `GET /api/v1/jobs/:id`.
    /// - Throws: `.notFound` for a job that is not there, or somebody else's.
    package func job(_ id: String) async throws(DeliveryError) -> VOPIJob {
        try await one(id, "", "looking at job")
    }

    /// `GET /api/v1/jobs/:id/status`: without `error`, `result` and `config`.
    /// - Throws: as `job`.
    package func status(_ id: String) async throws(DeliveryError) -> VOPIJob {
        try await one(id, "/status", "asking for the status of job")
    }

    private func one(_ id: String, _ rest: String, _ what: String) async throws(DeliveryError) -> VOPIJob {
        let answer = try await send(try request("GET", job: id, rest, limit: 4 << 20), .read, "\(what) \(id)")
        guard var job = VOPIJob(answer.value, asked: id) else { throw answer.misunderstood }
        job.hide(by: answer.response.redactor)
        return job
    }

    /// Seconds that the server takes for the life of a URL.
    static func life(_ asked: Duration) -> Duration { .seconds(min(max(asked.components.seconds, 60), 86_400)) }
}

/// The answer to a call that succeeded.
struct VOPIAnswer: Sendable {
    let response: HTTPResponse
    let what: String
    /// `.null` for an empty body and for what is no JSON.
    let value: VOPIValue

    init(_ response: HTTPResponse, _ what: String) {
        self.response = response
        self.what = what
        value = VOPIValue(response.jsonBody ?? .null)
    }

    /// The error for a caller who misses something in it.
    var misunderstood: DeliveryError {
        VOPIVerdict.done.error(response, what, hint: "", now: .now)
    }
}
