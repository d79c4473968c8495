internal import InletCore
internal import InletLinux
internal import InletTransfer

/// The meaning of a code: the one table of the `s3` destination.
struct S3Rule: Sendable {
    /// The subject of the refusal.
    var word: StepFailure.Word
    var code: ErrorCode
    /// The remedy; empty where there is none.
    var advice: String

    private init(_ word: StepFailure.Word, _ code: ErrorCode, _ advice: String = "") {
        self.word = word
        self.code = code
        self.advice = advice
    }

    /// The prospect of another attempt.
    func verdict(after: Duration?) -> DeliveryError.Verdict {
        switch word {
        case .passing: .retry(after: after)
        case .everybody, .foreign: .outage(after: after)
        case .credentials: .credentials
        case .object, .refusal: .giveUp
        }
    }

    /// Codes of AWS S3, and those that R2, MinIO and Ceph add. A fault that concerns every file alike is an outage: it
    /// pauses the destination and costs no attempts.
    fileprivate static let table: [String: S3Rule] = {
        var table: [String: S3Rule] = [:]
        func add(_ rule: S3Rule, _ codes: String...) { for code in codes { table[code] = rule } }
        let keys = "check access_key and secret_key of this destination"
        add(S3Rule(.credentials, .unauthorized, keys), "InvalidAccessKeyId", "SignatureDoesNotMatch", "Unauthorized")
        add(S3Rule(.credentials, .unauthorized, keys), "InvalidSecurity", "NotSignedUp", "AccountProblem")
        add(
            S3Rule(.credentials, .unauthorized, "these keys may not do this; check the policy of the bucket"),
            "AccessDenied", "AllAccessDisabled", "Forbidden")
        add(
            S3Rule(.credentials, .unauthorized, "the session token is no longer valid; renew it"), "ExpiredToken",
            "InvalidToken", "TokenRefreshRequired")
        add(
            S3Rule(.everybody, .clockSkewed, "set the clock of this machine (NTP)"), "RequestTimeTooSkewed",
            "RequestExpired")
        add(S3Rule(.everybody, .notFound, "create the bucket, or correct 'bucket'"), "NoSuchBucket")
        add(
            S3Rule(.everybody, .redirected, "correct 'endpoint' and 'region'"), "PermanentRedirect",
            "TemporaryRedirect", "Redirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException")
        add(
            S3Rule(.everybody, .throttled), "SlowDown", "SlowDownRead", "SlowDownWrite", "Throttling",
            "ThrottlingException", "TooManyRequests", "RequestLimitExceeded", "BandwidthLimitExceeded",
            "ServiceUnavailable.SlowDown")
        add(S3Rule(.everybody, .serverError), "ServiceUnavailable", "XMinioServerNotInitialized", "Busy")
        add(
            S3Rule(.everybody, .destinationFull, "make room, or raise the quota"), "QuotaExceeded", "XMinioStorageFull",
            "XMinioAdminBucketQuotaExceeded", "InsufficientStorage", "InsufficientCapacity")
        add(S3Rule(.passing, .serverError), "InternalError")
        add(S3Rule(.passing, .timedOut), "RequestTimeout")
        add(S3Rule(.passing, .connectionLost), "IncompleteBody")
        add(S3Rule(.passing, .conflict), "OperationAborted", "ConditionalRequestConflict", "BucketAlreadyExists")
        add(S3Rule(.passing, .uploadGone), "NoSuchUpload", "InvalidPart", "InvalidPartOrder")
        add(S3Rule(.passing, .notFound), "NoSuchKey", "NotFound", "NoSuchVersion")
        add(
            S3Rule(.passing, .digestMismatch), "BadDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch",
            "ContentSHA256Mismatch", "InvalidDigest")
        add(S3Rule(.object, .destinationExists), "PreconditionFailed", "InvalidObjectState", "ObjectAlreadyExists")
        add(S3Rule(.object, .tooLarge), "EntityTooLarge", "MaxMessageLengthExceeded")
        add(S3Rule(.object, .badRequest), "KeyTooLongError", "InvalidObjectName", "XMinioInvalidObjectName")
        add(
            S3Rule(.refusal, .badRequest, "the store wants larger parts: raise part_size of this destination"),
            "EntityTooSmall")
        add(S3Rule(.refusal, .badRequest), "InvalidArgument", "InvalidRequest")
        add(S3Rule(.refusal, .badRequest), "MalformedXML", "InvalidStorageClass", "MissingContentLength", "InvalidURI")
        add(S3Rule(.refusal, .badRequest, "correct 'bucket'"), "InvalidBucketName")
        add(
            S3Rule(.refusal, .badRequest, "this store does not support one of this destination's settings"),
            "NotImplemented", "MethodNotAllowed")
        return table
    }()

    /// The rule for a code that is not in the table, by the answer's status.
    fileprivate static func unknown(status: Int) -> S3Rule {
        switch status {
        case 401, 403: S3Rule(.credentials, .unauthorized)
        case 404: S3Rule(.passing, .notFound)
        case 502...504: S3Rule(.everybody, .serverError)
        case 200..<300, 500...: S3Rule(.passing, .serverError)
        default: S3Rule(.refusal, .badRequest)
        }
    }

    /// `NoSuchBucket`…; derived from the status where the answer has no XML (HEAD, proxies).
    fileprivate static func code(_ response: HTTPResponse, _ said: XMLElement?) -> String {
        said?.text(of: "Code").map { String(response.redactor.redacted($0).prefix(80)) } ?? code(of: response.status)
    }

    private static func code(of status: Int) -> String {
        switch status {
        case 300..<400: "PermanentRedirect"
        case 401: "Unauthorized"
        case 403: "AccessDenied"
        case 404: "NotFound"
        case 405, 501: "NotImplemented"
        case 408: "RequestTimeout"
        case 409: "OperationAborted"
        case 411: "MissingContentLength"
        case 412: "PreconditionFailed"
        case 413: "EntityTooLarge"
        case 429: "TooManyRequests"
        case 502...504: "ServiceUnavailable"
        case 507: "QuotaExceeded"
        case 500...: "InternalError"
        default: "InvalidRequest"
        }
    }
}

extension DeliveryError {
    /// Beyond this the stores refuse signatures; AWS and rclone set the limit at 15 minutes.
    private static let mostSkew = Duration.seconds(600)

    /// An S3 store's refusal: the `<Error>` of its answer ("Error responses", Amazon S3 API Reference). Its words are
    /// bounded, and without our own credentials, which some stores name.
    ///
    /// - Parameters:
    ///   - what: the step, such as `part 3 of 12 to https://s3.example/media/key`.
    ///   - isWordless: whether it answers a HEAD, which has no words.
    static func ofS3(
        _ response: HTTPResponse, _ what: String, isWordless: Bool = false, now: WallTime
    ) -> DeliveryError {
        let (status, said, redactor) = (response.status, response.storeError, response.redactor)
        func text(_ name: String, _ limit: Int) -> String? {
            said?.text(of: name).map { DisplayText.escape(String(redactor.redacted($0).prefix(limit))) }
        }
        // Frameworks also send pages for missing content.
        let isPage = response.isPage && !(isWordless && status == 404 && response.header("Content-Length") == "0")
        // A store names the missing thing. Other words come from a proxy, and say nothing about objects.
        let isForeign = said == nil && status == 404 && (!response.body.isEmpty || isPage)
        let isOwn = said != nil || isWordless && !isPage
        let code = isForeign ? "ServiceUnavailable" : S3Rule.code(response, said)
        var rule = S3Rule.table[code] ?? S3Rule.unknown(status: status)
        let skew = response.date.map { now - $0 }
        let isSkewed = skew.map { $0 > mostSkew || $0 < .zero - mostSkew } ?? false
        // Some stores refuse old signatures with their words for wrong ones.
        if isSkewed, rule.word == .credentials, let clock = S3Rule.table["RequestTimeTooSkewed"] { rule = clock }
        let remedy = isOwn ? "" : Self.remedy(StepFailure(status, .foreign), response).dropFirst(2)
        let message = isForeign ? "not an answer of an S3 store" : text("Message", 200) ?? String(remedy)
        var reason = "\(what) was answered with \(status) \(DisplayText.escape(code))"
        if !message.isEmpty { reason += ": \(message)" }
        if rule.code == .clockSkewed, let skew { reason += "; \(clocks(skew))" }
        if rule.code == .redirected {
            let region = response.header("x-amz-bucket-region").map { String(redactor.redacted($0).prefix(80)) }
            if let region = text("Region", 80) ?? region.map({ DisplayText.escape($0) }) {
                reason += "; the bucket is in region '\(region)'"
            }
            if let endpoint = text("Endpoint", 80) { reason += "; its endpoint is \(endpoint)" }
        }
        if !rule.advice.isEmpty, isOwn || message.isEmpty { reason += "; \(rule.advice)" }
        // Other APIs answer so to calls that they do not have.
        if said == nil, (401...405).contains(status), response.jsonBody?.object != nil {
            reason += "; a store answers in XML, and this is JSON: \(DestinationKinds.jsonRemedy)"
        }
        return DeliveryError(
            rule.verdict(after: response.retryAfter(now: now)), rule.code, reason,
            heard: StepFailure(status, isOwn ? rule.word : .foreign))
    }

    private static func clocks(_ skew: Duration) -> String {
        let amount = DurationText.format(.seconds(abs(skew.milliseconds / 1000)))
        return "the clock of this machine is \(amount) \(skew > .zero ? "ahead of" : "behind") the store's"
    }

    /// An answer to a presigned request, in the words of an S3 store.
    static func ofStore(_ answer: HTTPResponse, _ what: String) -> DeliveryError {
        var error = DeliveryError(answer, what, in: .xml, secretsMatter: false, now: .now)
        guard error.heard?.word != .foreign else { return error }
        if let rule = S3Rule.table[S3Rule.code(answer, answer.storeError)] {
            error.heard = StepFailure(answer.status, rule.word)
            if !rule.advice.isEmpty, rule.word != .credentials { error.reason += "; \(rule.advice)" }
        }
        return error
    }
}
