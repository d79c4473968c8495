package import InletCore
package import InletLinux
package import InletTransfer
package import SystemPackage

/// The calls of a VOPI server, of both generations. Each is one request, repeated once where its access token had to be
/// renewed. Answers are read without expectations: `{}`, `""`, 0 and missing fields are all "not set".
package final class VOPIAPI: Sendable {
    package let settings: VOPISettings
    let client: HTTPClient
    let login: VOPILogin
    let book: VOPIServerBook

    /// - Parameters:
    ///   - name: the destination's, which names its files in `tokens`.
    ///   - tokens: `state_dir/tokens`; made when there is something to keep.
    ///   - borrowing: an access token of the running agent, in place of a login of our own; given one that the server has
    ///     refused, another.
    package init(
        _ settings: VOPISettings, name: String, client: HTTPClient, pool: BlockingPool, tokens: FilePath,
        borrowing: (@Sendable (_ refused: Secret?) async throws(DeliveryError) -> Secret)? = nil
    ) {
        self.settings = settings
        self.client = client
        book = VOPIServerBook(folder: tokens, name: name, server: settings.url, pool: pool)
        switch settings.login {
        case .apiKey(let key): login = .key(key)
        case .tokens(let seed):
            if let borrowing {
                login = .borrowed(borrowing)
            } else {
                let store = VOPITokenStore(folder: tokens, name: name, seed: seed, pool: pool)
                login = .own(VOPITokens(server: settings.url, client: client, store: store))
            }
        }
    }

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
        var call = VOPICall("POST", "api/v1/uploads/presign", .presign, "asking for an upload URL")
        var members: [String: VOPIValue] = [
            "contentType": .text(contentType), "expiresIn": .integer(life.components.seconds),
        ]
        members["filename"] = filename.map { .text(String($0.suffix(255))) }
        call.body = .object(members)
        let answer = try await send(call)
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
        var call = VOPICall("POST", "api/v1/jobs", .create, "creating a job")
        call.body = job.json
        // The server adds the job to its queue before it answers, and its queue may hang.
        call.deadline = .seconds(60)
        let answer = try await send(call)
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
        var call = VOPICall("GET", "api/v1/jobs", .read, "listing jobs")
        if let status { call.query.append(("status", status)) }
        call.query.append(("limit", String(min(max(limit, 1), 100))))
        call.query.append(("offset", String(max(offset, 0))))
        call.answerLimit = 4 << 20
        let answer = try await send(call)
        guard let page = VOPIJobPage(answer.value) else { throw answer.misunderstood }
        return page
    }

    /// `GET /api/v1/jobs/:id`.
    /// - Throws: `.notFound` for a job that is not there, or somebody else's.
    package func job(_ id: String) async throws(DeliveryError) -> VOPIJob {
        try await one(id, try VOPICall("GET", job: id, "", .read, "looking at job"))
    }

    /// `GET /api/v1/jobs/:id/status`: without `error`, `result` and `config`.
    /// - Throws: as `job`.
    package func status(_ id: String) async throws(DeliveryError) -> VOPIJob {
        try await one(id, try VOPICall("GET", job: id, "/status", .read, "asking for the status of job"))
    }

    private func one(_ id: String, _ call: VOPICall) async throws(DeliveryError) -> VOPIJob {
        var call = call
        call.answerLimit = 4 << 20
        let answer = try await send(call)
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
        value = VOPIValue(response.body) ?? .null
    }

    /// The error for a caller who misses something in it.
    var misunderstood: DeliveryError {
        VOPIVerdict.done.error(response, what, hint: "", now: .now)
    }
}
