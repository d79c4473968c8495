internal import InletCore
internal import InletLinux
internal import InletTransfer

/// The meaning of an answer from a GigHive server, or from something in front of it. Every status is decided here.
///
/// A 500 says little: the server uses it for wrong metadata, for passing races, and for being down. Its JSON
/// distinguishes them; other text comes from Apache, ModSecurity or Cloudflare, and is never parsed.
enum GigHiveVerdict: Sendable, Equatable {
    case done
    /// `/api/*`: the event already has these bytes; the checksum tells whether they are ours.
    case duplicate
    /// `/files/*`: the offsets differ, or another request is running: ask for the offset and continue there.
    case resync
    /// `/files/*`: no such upload. It may have been finalized.
    case gone
    /// `finalize`: the bytes are gone.
    case sendAgain
    /// The server will be ready soon: a hook, a move or another upload is running.
    case notYet
    /// The form is too large for something on the way; tus sends smaller requests.
    case useTus
    case retry(ErrorCode)
    case outage
    case credentials
    case giveUp(ErrorCode)

    init(_ response: HTTPResponse, at endpoint: GigHiveEndpoint) {
        switch response.status {
        case 200..<300: self = .done
        case 300..<400: self = .giveUp(.redirected)
        case 400: self = .badRequest(response, endpoint)
        // Cloudflare may cache somebody's 401 and serve it to everyone.
        case 401 where endpoint == .probe && response.header("cf-cache-status")?.uppercased() == "HIT":
            self = .retry(.unauthorized)
        case 401, 403: self = endpoint == .delete && response.status == 403 ? .giveUp(.unauthorized) : .credentials
        case 404, 410: self = .missing(response, endpoint)
        case 408, 524: self = .retry(.timedOut)
        case 409: self = endpoint == .files ? .resync : .duplicate
        case 413: self = endpoint == .form ? .useTus : .giveUp(.tooLarge)
        case 423: self = endpoint == .files ? .resync : .retry(.conflict)
        case 429: self = .retry(.throttled)
        case 500: self = .fault(response, endpoint)
        case 502, 503, 504, 521, 522, 523: self = .outage
        case 501, 505: self = .giveUp(.badRequest)
        case 506...: self = .retry(.serverError)
        default: self = .giveUp(.badRequest)
        }
    }

    private static func badRequest(_ response: HTTPResponse, _ endpoint: GigHiveEndpoint) -> GigHiveVerdict {
        let said = GigHiveErrorBody(response)
        if endpoint == .files, said.text.contains("ERR_UPLOAD_INTERRUPTED") { return .resync }
        if said.error == "invalid token" { return .credentials }
        return .giveUp(said.text.lowercased().contains("too large") ? .tooLarge : .badRequest)
    }

    private static func missing(_ response: HTTPResponse, _ endpoint: GigHiveEndpoint) -> GigHiveVerdict {
        // A page of its host does not prove that an upload is gone.
        if response.isPage || response.isHostsOwn { return .retry(.badAnswer) }
        if endpoint == .files { return .gone }
        return GigHiveErrorBody(response).error == "invalid or expired" ? .credentials : .retry(.notFound)
    }

    private static func fault(_ response: HTTPResponse, _ endpoint: GigHiveEndpoint) -> GigHiveVerdict {
        let said = GigHiveErrorBody(response)
        // ModSecurity's refusal of a body over its limit, when it only detects.
        guard said.isJSON else { return endpoint == .form ? .useTus : .retry(.serverError) }
        let rows: [(String, GigHiveVerdict)] = [
            // The database is away: the file is fine, and a probe of tus does not notice it.
            ("DB connection failed", .outage), ("SQLSTATE[HY000] [20", .outage), ("SQLSTATE[HY000] [1040]", .outage),
            ("SQLSTATE[HY000]: General error: 20", .outage), ("SQLSTATE[08", .outage),
            ("SQLSTATE[22", .giveUp(.badRequest)), ("SQLSTATE[01", .giveUp(.badRequest)),
            ("hook output has not been written", .notYet), ("Failed to move", .notYet), ("1062", .notYet),
            ("Upload not found", .sendAgain), ("Upload data missing on disk", .sendAgain),
            // PHP's UPLOAD_ERR_INI_SIZE and UPLOAD_ERR_FORM_SIZE.
            ("Upload failed with code 1", .useTus), ("Upload failed with code 2", .useTus),
        ]
        return rows.first { said.text.contains($0.0) }?.1 ?? .retry(.serverError)
    }

    /// The delivery error for an answer that ends an attempt; `what` is the step, such as `finalizing at host`.
    func error(_ response: HTTPResponse, _ what: String) -> DeliveryError {
        plainError(response, what).heard(heard(response), response, hasRemedy: response.status != 413)
    }

    /// The server's own forms: JSON, or tusd's plain text.
    private func heard(_ response: HTTPResponse) -> StepFailure {
        let isTus = response.header("Tus-Resumable") != nil || response.body.starts(with: "ERR_".utf8)
        let isOwn = !response.isPage && !response.isHostsOwn && (isTus || GigHiveErrorBody(response).isJSON)
        switch self {
        // A 401 asks for a login, from Apache and in HTML; a 403 in HTML is ModSecurity's.
        case .credentials where isOwn || response.status != 403: return StepFailure(response.status, .credentials)
        case .done: return StepFailure(response.status, .foreign)
        case .giveUp(.tooLarge) where isOwn: return StepFailure(response.status, .object)
        // The server reports wrong metadata as its own failure.
        case .giveUp where isOwn && response.status >= 500: return StepFailure(response.status, .refusal)
        default: return StepFailure(response.status, isOwn: isOwn)
        }
    }

    private func plainError(_ response: HTTPResponse, _ what: String) -> DeliveryError {
        let said = DeliveryError.excerpt(Array(GigHiveErrorBody(response).text.utf8))
        let text = DeliveryError.answered(what, response, said)
        let after = response.retryAfter(now: .now)
        switch self {
        case .credentials:
            return DeliveryError(.credentials, .unauthorized, "\(text); check this destination's credentials")
        case .outage: return DeliveryError(.outage(after: after), .serverError, text + Self.cloudflare(response))
        case .retry(let code): return DeliveryError(.retry(after: after), code, text + Self.cloudflare(response))
        case .giveUp(let code):
            return DeliveryError(.giveUp, code, text + DeliveryError.redirect(code) + Self.cloudflare(response))
        case .useTus where response.status == 413:
            return DeliveryError(.giveUp, .tooLarge, text + Self.cloudflare(response) + "; 'transport: tus' gets by")
        case .useTus: return DeliveryError(.retry(after: after), .serverError, text)
        case .gone, .sendAgain: return DeliveryError(.retry(after: after), .uploadGone, text)
        case .resync, .notYet: return DeliveryError(.retry(after: after), .conflict, text)
        case .duplicate: return DeliveryError(.giveUp, .conflict, text)
        case .done: return DeliveryError(.retry(after: nil), .badAnswer, "\(text), which cannot be understood")
        }
    }

    /// Names Cloudflare as the cause when it stands in front of the server (its `cf-ray` header) and limits it.
    static func cloudflare(_ response: HTTPResponse) -> String {
        guard response.header("cf-ray") != nil else { return "" }
        switch response.status {
        case 413: return " (Cloudflare stands before this server; it takes at most 100 MB in one request)"
        case 524: return " (Cloudflare stands before this server; it waits at most 100 s for an answer)"
        default: return ""
        }
    }
}

enum GigHiveEndpoint: Sendable, CaseIterable {
    /// `POST /api/uploads` with a form.
    case form
    case finalize
    /// tus, below `/files/`.
    case files
    /// A read-only GET.
    case probe
    case delete
}

/// The words of an answer, whatever its kind, without our own credentials.
struct GigHiveErrorBody: Sendable {
    /// `error` of the JSON.
    let error: String
    /// All words of the JSON, or the plain text, or the HTML without its tags.
    let text: String
    let isJSON: Bool

    init(_ response: HTTPResponse) {
        let (body, redactor) = (response.body.prefix(64 << 10), response.redactor)
        guard response.isJSON, let said = JSON.value(body), said.object != nil, let error = said.text(at: "error"),
            let message = said.text(at: "message")
        else {
            // Text that is not the server's JSON is shown unchanged.
            (isJSON, self.error, text) = (false, "", response.plainText(64 << 10))
            return
        }
        (isJSON, self.error) = (true, redactor.redacted(error ?? ""))
        text = redactor.redacted([error, message].compactMap(\.self).joined(separator: ": "))
    }
}

/// The server's record of a file: from a 201, or from a 409 about an existing one. Written into the checkpoint before
/// anything else, because the token for deleting it is given only once.
struct GigHiveReply: Sendable, Equatable, Codable {
    var status: Int
    /// `POST https://host/api/uploads`.
    var request: String
    /// The start of the answer without its secrets.
    var head: String
    var assetID: Int64?
    /// The server's own name of the file.
    var fileName: String?
    var checksum: String?
    var deleteToken: String?
    /// With it guests ask about their upload.
    var statusNonce: String?
    var isDuplicate: Bool

    /// nil when the answer does not have the expected form.
    init?(_ response: HTTPResponse, request: String) {
        guard response.isJSON, let said = response.jsonBody, let asset = said.integer(at: "asset_id"),
            let own = said.integer(at: "id"), let existing = said.integer(at: "existing_asset_id"),
            let checksum = said.text(at: "checksum_sha256"), let deleteToken = said.text(at: "delete_token"),
            let statusNonce = said.text(at: "status_nonce"), let id = asset ?? own ?? existing
        else { return nil }
        assetID = id
        fileName = said["file_name"]?.string
        self.checksum = checksum?.lowercased()
        (self.deleteToken, self.statusNonce) = (deleteToken, statusNonce)
        status = response.status
        self.request = request
        isDuplicate = response.status == 409
        let given = [deleteToken, statusNonce].compactMap(\.self).map { Secret($0) }
        let words = response.redactor(also: given).redacted(Array(response.body.prefix(64 << 10)))
        head = String(DisplayText.escape(words).prefix(500))
    }

    /// The journal's part: visible details, and secrets separately.
    func proof(_ order: DeliveryOrder, digest: Digest?, asset: HTTPURL?) -> Proof {
        var details = ["status": String(status), "request": request, "answer": head]
        details["asset_id"] = assetID.map { String($0) }
        details["name"] = fileName
        if isDuplicate { details["duplicate"] = "the server had it already, as this asset" }
        var secrets: [String: String] = [:]
        secrets[Self.deleteTokenName] = deleteToken
        secrets["status_nonce"] = statusNonce
        return Proof(
            key: order.key, size: order.source.size, method: digest == nil ? .size : .sha256,
            content: digest.map { ContentHash(digest: $0, partSize: nil) }, url: asset?.redacted, details: details,
            secrets: secrets.isEmpty ? nil : ProofSecrets(secrets))
    }

    static let noteName = "answer"
    static let deleteTokenName = "delete_token"
}
