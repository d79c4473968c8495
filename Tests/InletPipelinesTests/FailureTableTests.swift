import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// Every answer of the table at every destination: what each hears of it, and what the one rule makes of that.
@Suite struct FailureTableTests {
    @Test func `the table has forty answers and more, and no cell by default`() {
        #expect(FailureTable.rows.count >= 40)
        for row in FailureTable.rows { #expect(row.cells.count == FailureTable.kinds.count, "\(row)") }
        #expect(Set(FailureTable.rows.map(\.name)).count == FailureTable.rows.count)
    }

    @Test(arguments: FailureTable.rows)
    func `each answer means one thing at each destination`(_ row: FailureTable.Row) throws {
        for (kind, cell) in zip(FailureTable.kinds, row.cells) where cell != "-" {
            let error = try Self.error(row, at: kind)
            let ruling =
                row.step == .commit ? FailureClassifier.ruling(ofCommit: error) : FailureClassifier.ruling(error)
            #expect(Self.letter(ruling) == cell, "\(row) at \(kind): \(error)")
        }
    }

    private static func letter(_ ruling: FailureClassifier.Ruling) -> Character {
        switch ruling {
        case .file: "f"
        case .retry: "r"
        case .refusal: "?"
        case .outage: "o"
        case .stranger: "s"
        case .credentials: "c"
        case .unknownDelivered: "u"
        case .own: "!"
        }
    }

    private static func error(_ row: FailureTable.Row, at kind: String) throws -> DeliveryError {
        if let errno = row.errno {
            return DeliveryError(writing: SystemError(call: "write", path: "/x", code: errno))
        }
        let response = row.response
        let isSuccess = (200..<300).contains(response.status)
        switch kind {
        case "r2": return try spiral(row)
        case "s3":
            if isSuccess { return S3API.badAnswer(response, "asking") }
            return DeliveryError.ofS3(response, "asking", now: .now)
        case "gighive":
            let endpoint: GigHiveEndpoint = row.step == .commit ? .finalize : .files
            return GigHiveVerdict(response, at: endpoint).error(response, "asking")
        case "vopi":
            if row.step == .send { return VOPIDelivery.refusal(response, try url("https://store.example/v")) }
            let endpoint: VOPIEndpoint = row.step == .commit ? .create : .presign
            return VOPIVerdict(response, at: endpoint).error(response, "asking", hint: "log in", now: .now)
        default:
            if isSuccess { return RoboscopeAPI.unreadable("asking", "no object") }
            return RoboscopeAPI.error(response, "asking")
        }
    }

    private static func spiral(_ row: FailureTable.Row) throws -> DeliveryError {
        if row.step == .send {
            let target = PresignedTarget(url: try url("https://store.example/v"), headers: [])
            return target.refusal(row.response, "sending")
        }
        if (200..<300).contains(row.response.status) { return .misunderstood("asking: no JSON") }
        return DeliveryError(row.response, "asking", in: .json, secretsMatter: true, now: .now)
    }

    private static func url(_ text: String) throws -> HTTPURL {
        try HTTPURL(text, rules: .configured(allowHTTP: false))
    }

    // MARK: - What no server has said

    /// Two cells each, for reading a source and for writing at a destination. All outages of reading are this machine's.
    static let errnos: [(Errno, String)] = [
        (.noSuchFileOrDirectory, "!r"), (.notDirectory, "!r"), (.tooManyOpenFiles, "oo"), (.noMemory, "oo"),
        (.permissionDenied, "oo"), (.notPermitted, "oo"), (.ioError, "oo"), (.readOnlyFileSystem, "oo"),
        (.noSpace, "oo"),
        (.diskQuotaExceeded, "oo"), (.fileNameTooLong, "of"), (.canceled, "o!"), (.staleNFSFileHandle, "or"),
    ]

    @Test(arguments: errnos) func `each error of a disk means one thing`(_ errno: Errno, _ cells: String) {
        let error = SystemError(call: "open", path: "/x", code: errno)
        let (reading, writing) = (DeliveryError(reading: error), DeliveryError(writing: error))
        let letters = [reading, writing].map { Self.letter(FailureClassifier.ruling($0)) }
        #expect(String(letters) == cells)
        #expect(reading.isLocal == (letters[0] == "o"))
        #expect(writing.isLocal == (writing.code == .outOfResources))
    }

    @Test func `what is no file is hopeless`() {
        let error = DeliveryError(
            reading: SystemError(call: "open", path: "/x", code: .invalidArgument, refusal: .notRegular))
        #expect(FailureClassifier.ruling(error) == .file && error.code == .notRegular)
    }

    /// Two cells each: where the other side could be reached, and where not.
    static let lines: [(ErrorCode, String)] = [
        (.connectFailed, "ro"), (.nameNotFound, "ro"), (.tlsFailed, "ro"), (.timedOut, "so"), (.stalled, "so"),
        (.connectionLost, "so"), (.badAnswer, "so"), (.answerTooLarge, "so"), (.insecureURL, "oo"),
        (.forbiddenURL, "oo"),
        (.cancelled, "!!"), (.sourceChanged, "!!"), (.sourceUnreadable, "oo"),
    ]

    @Test(arguments: lines) func `each error of the line means one thing`(_ code: ErrorCode, _ cells: String) {
        let letters = [false, true].map {
            Self.letter(FailureClassifier.ruling(DeliveryError(TransferError(code, "why", isOutage: $0))))
        }
        #expect(String(letters) == cells)
    }

    // MARK: - Remedies

    @Test(arguments: [
        (
            400, "<html><center>The plain HTTP request was sent to HTTPS port</center>",
            "write https:// instead of http://"
        ),
        (400, "Client sent an HTTP request to an HTTPS server.\n", "write https:// instead of http://"),
        (
            413, "<html><title>413 Request Entity Too Large</title>",
            "raise client_max_body_size of the proxy in front of the store, or lower part_size"
        ),
        (401, "<html>log in</html>", "the proxy in front of the service, which wants a login"),
        (400, #"{"error":"EntityTooSmall: proposed upload is smaller"}"#, "raise part_size"),
    ]) func `an answer comes with what to do about it`(_ status: Int, _ body: String, _ remedy: String) {
        let response = HTTPResponse(status: status, body: Array(body.utf8))
        let error = DeliveryError(response, "asking", in: .json, secretsMatter: true, now: .now)
        #expect(error.reason.contains(remedy), "\(error.reason)")
        let store = DeliveryError.ofS3(response, "asking", now: .now)
        if !body.hasPrefix("{") { #expect(store.reason.contains(remedy), "\(store.reason)") }
        let isForOthers = status == 401 && !store.reason.contains("check access_key")
        #expect(status != 401 || isForOthers, "\(store.reason)")
    }

    @Test func `what a store says is its code and its message, and nothing of that is taken for an URL`() {
        let text =
            #"<?xml version="1.0"?><Error xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Code>EntityTooSmall</Code>"#
            + "<Message>Your proposed upload is too small.</Message><RequestId>1</RequestId></Error>"
        let error = DeliveryError.ofStore(HTTPResponse(status: 400, body: Array(text.utf8)), "part 1")
        #expect(
            error.reason.hasPrefix(
                "part 1 was answered with 400: EntityTooSmall: Your proposed upload is too small."), "\(error.reason)")
        #expect(error.reason.contains("raise part_size"), "\(error.reason)")
        let page = "<!DOCTYPE html><html lang=\"en\"><title>413 Request Entity Too Large</title>"
        let other = DeliveryError.ofStore(HTTPResponse(status: 413, body: Array(page.utf8)), "part 1")
        #expect(other.reason.contains("413: 413 Request Entity Too Large;"), "\(other.reason)")
    }

    @Test(arguments: [("0", "NotFound"), ("153", "ServiceUnavailable")])
    func `of a HEAD only the length tells a store's own 404 from a web page's`(_ length: String, _ code: String) {
        let fields = [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", length)]
        let response = HTTPResponse(status: 404, headers: fields)
        let error = DeliveryError.ofS3(response, "looking", isWordless: true, now: .now)
        #expect(error.reason.contains("with 404 \(code)"), "\(error.reason)")
        #expect((error.heard?.word == .foreign) == (code != "NotFound"))
    }

    @Test func `a link to a metadata address is not made right by allow_http`() throws {
        let api = try HTTPURL("http://127.0.0.1:8080", rules: .configured(allowHTTP: false))
        let error = #expect(throws: TransferError.self) {
            try HTTPURL("http://169.254.169.254/latest", rules: .sentByServer(at: api, allowHTTP: false))
        }
        #expect(error?.code == .forbiddenURL && error?.reason.contains("allow_http") == false, "\(error?.reason ?? "")")
    }
}

/// What the services, and what stands before them, answer on the wire, and what becomes of the file: no cell by default.
enum FailureTable {
    /// What was asked for.
    enum Step: Sendable {
        /// Opening an upload, or asking for an URL.
        case open
        /// The bytes.
        case send
        /// What makes them count, or begins work that is paid for.
        case commit
    }

    struct Row: Sendable, CustomStringConvertible {
        var name: String
        var step: Step
        var response = HTTPResponse(status: 0)
        /// What the kernel says, where no server is asked.
        var errno: Errno?
        /// One cell for each of `kinds`: `f`ile, `r`etry, `?` a refusal (an outage when two files hear it, the file's when it
        /// comes again after a good probe), `o`utage, `s`tranger (an outage that ends no file), `c`redentials (an outage until
        /// they change), `u`nknown whether it is delivered, `-` is never heard there.
        var cells: String

        var description: String { name }
    }

    static let kinds = ["r2", "s3", "gighive", "vopi", "roboscope", "folder"]

    private static func row(
        _ name: String, _ step: Step, _ status: Int, _ type: String, _ body: String, _ cells: String,
        _ headers: HTTPFields = []
    ) -> Row {
        let fields: HTTPFields = type.isEmpty ? headers : [("Content-Type", type)] + headers
        return Row(
            name: name, step: step, response: HTTPResponse(status: status, headers: fields, body: Array(body.utf8)),
            cells: cells)
    }

    private static let html = "text/html; charset=utf-8"
    private static let json = "application/json; charset=utf-8"
    private static let xml = "application/xml"

    private static func store(_ code: String) -> String {
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>\(code)</Code><Message>No.</Message></Error>"
    }

    private static func vopi(_ code: String) -> String { #"{"error":"\#(code)","message":"No.","statusCode":0}"# }

    private static let page = "<!DOCTYPE html><html><head><title>Not Found</title></head><body>nginx</body></html>"
    private static let railway =
        #"{"status":"error","code":404,"message":"Application not found","request_id":"x"}"#
    private static let cloudflare =
        #"{"type":"https://developers.cloudflare.com/","title":"Error 1003","status":403,"cloudflare_error":true}"#
    /// A byte above a mebibyte.
    private static let long = #"{"error":""# + String(repeating: "x", count: 1 << 20 - 11) + #""}"#
    private static let fallback: HTTPFields = [("X-Railway-Fallback", "true"), ("Server", "railway-edge")]
    private static let ray: HTTPFields = [("CF-RAY", "8c0"), ("Server", "cloudflare")]
    private static let tus: HTTPFields = [("Tus-Resumable", "1.0.0")]

    static let rows = strangers + gateways + passing + ownWords + stores + disks

    /// What is not the service's own.
    private static let strangers: [Row] = [
        row("a host's page for nothing there, opening", .open, 404, html, page, "sssss-"),
        row("a host's page for nothing there, sending", .send, 404, html, page, "sssss-"),
        row("a host's page for nothing there, committing", .commit, 404, html, page, "uuuuu-"),
        row("Railway without an application", .open, 404, json, railway, "sssss-", fallback),
        row("Railway without an application, committing", .commit, 404, json, railway, "uuuuu-", fallback),
        row("Traefik without a route", .open, 404, "text/plain", "404 page not found\n", "sssss-"),
        row("307 to another host", .open, 307, html, page, "sssss-", [("Location", "https://elsewhere.example/")]),
        row("302 to a login, committing", .commit, 302, html, "", "sssss-", [("Location", "/login")]),
        row("a captive portal's 200, opening", .open, 200, html, "<html>Sign in</html>", "sssss-"),
        row("a captive portal's 200, committing", .commit, 200, html, "<html>Sign in</html>", "uuuuu-"),
        row("200 with JSON that breaks off", .commit, 200, json, #"{"id":"#, "uuuuu-"),
        row("nginx's 400", .open, 400, html, "<html><title>400 Bad Request</title>", "sssss-"),
        row("a load balancer's 400, committing", .commit, 400, html, "<html>400</html>", "uuuuu-"),
        row("plain HTTP at a port of TLS", .open, 400, html, "The plain HTTP request was sent to HTTPS port", "sssss-"),
        row("nginx's 405", .open, 405, html, "<html><title>405 Not Allowed</title>", "sssss-"),
        row("400 in JSON that is longer than any refusal", .open, 400, json, long, "ssss?-"),
        row("Cloudflare's own 403", .send, 403, json, cloudflare, "sssss-", ray),
        row("a firewall's 403, sending", .send, 403, html, "<html>blocked</html>", "sssss-"),
        row("a proxy's login page with 401", .open, 401, html, "<html>log in</html>", "ccccc-"),
        row("nginx's 413, sending", .send, 413, html, "<html><title>413 Request Entity Too Large</title>", "sssss-"),
        row("Cloudflare's 413 has no body", .send, 413, "", "", "sss-f-", ray),
        row("410 of a host that was given up", .open, 410, html, page, "sssss-"),
    ]

    /// Gateways that say that the service is away.
    private static let gateways: [Row] = [
        row("502 of nginx", .open, 502, html, "<html>Bad Gateway</html>", "ooooo-"),
        row("502 of nginx, committing", .commit, 502, html, "<html>Bad Gateway</html>", "uuuuu-"),
        row("503 of Envoy", .open, 503, "text/plain", "no healthy upstream", "ooooo-"),
        row("504 of a load balancer, committing", .commit, 504, html, "<html>504</html>", "uuuuu-"),
        row("524 of Cloudflare", .commit, 524, html, "<html>A timeout occurred</html>", "uuuuu-", ray),
        row("500 page of Apache", .open, 500, html, "<html>Internal Server Error</html>", "rrrrr-"),
        row("500 page of Apache, committing", .commit, 500, html, "<html>Internal Server Error</html>", "uuuuu-"),
        row("408 of mod_reqtimeout", .send, 408, html, "<html>Request Timeout</html>", "rrrrr-"),
        row("429 of Cloudflare", .open, 429, html, "<html>Error 1015</html>", "rorrr-", ray),
    ]

    /// What passes, in the service's own words.
    private static let passing: [Row] = [
        row("500 of a database that is away", .open, 500, json, vopi("INTERNAL_ERROR"), "rrrrr-"),
        row("500 in JSON, committing", .commit, 500, json, vopi("INTERNAL_ERROR"), "uuuuu-"),
        row("429 in JSON, committing", .commit, 429, json, vopi("RATE_LIMIT_EXCEEDED"), "rurrr-"),
        row("VOPI's limit is a 500", .open, 500, json, vopi("INTERNAL_ERROR"), "rrror-", [("Retry-After", "60")]),
        row("503 in JSON", .open, 503, json, vopi("STRIPE_NOT_CONFIGURED"), "ooooo-"),
        row("tusd is locked", .send, 423, "text/plain", "ERR_UPLOAD_LOCKED: locked", "ssrs?-", tus),
        row("the hook of tusd is late", .commit, 500, json, hook, "uuuuu-"),
    ]

    private static let hook = #"{"error":"Server Error","message":"post-finish hook output has not been written yet"}"#

    /// Refusals in JSON and in plain words.
    private static let ownWords: [Row] = [
        row("400 in JSON", .open, 400, json, vopi("VALIDATION_ERROR"), "?s???-"),
        row("400 in JSON, committing", .commit, 400, json, vopi("BAD_REQUEST"), "?u???-"),
        row("400 in words", .commit, 400, "text/plain", "Failed to deserialize the JSON body", "uuuu?-"),
        row("401 in JSON", .open, 401, json, vopi("UNAUTHORIZED"), "ccccc-"),
        row("402 in JSON", .open, 402, json, vopi("PAYMENT"), "?s?o?-"),
        row("403 for want of credits", .commit, 403, json, vopi("INSUFFICIENT_CREDITS"), "cucoc-"),
        row("404 in JSON", .open, 404, json, vopi("NOT_FOUND"), "rsrr?-"),
        row("404 of a framework, without words", .open, 404, "", "", "ssss?-"),
        row("409 in JSON", .commit, 409, json, vopi("CONFLICT"), "?u???-"),
        row("413 in JSON", .commit, 413, json, vopi("TOO_LARGE"), "fufff-"),
        row("415 in JSON", .commit, 415, json, vopi("UNSUPPORTED"), "fufff-"),
        row("422 in JSON", .commit, 422, json, vopi("VALIDATION_ERROR"), "fufff-"),
        row(
            "wrong metadata at GigHive", .commit, 500, json, #"{"error":"Server Error","message":"SQLSTATE[22001]"}"#,
            "uu?uu-"),
        row("too large for GigHive", .commit, 400, json, tooLarge, "?uf??-"),
        row("tusd does not know the upload", .send, 404, "text/plain", "ERR_UPLOAD_NOT_FOUND: no", "rsrs?-", tus),
    ]

    private static let tooLarge =
        #"{"error":"Bad Request","message":"File too large (exceeds application limit)"}"#

    /// Stores, which R2 and VOPI have behind their presigned URLs.
    private static let stores: [Row] = [
        row("no such bucket", .send, 404, xml, store("NoSuchBucket"), "ro-o--"),
        row("a key that is too long", .send, 400, xml, store("KeyTooLongError"), "ff-f--"),
        row("an object that is too large", .send, 400, xml, store("EntityTooLarge"), "ff-f--"),
        row("parts that are too small", .send, 400, xml, store("EntityTooSmall"), "??-?--"),
        row("a condition that fails", .send, 412, xml, store("PreconditionFailed"), "ff-f--"),
        row("a name that MinIO does not take", .send, 400, xml, store("XMinioInvalidObjectName"), "ff-f--"),
        row("an argument that is refused", .send, 400, xml, store("InvalidArgument"), "??-?--"),
        row("something new", .send, 400, xml, store("SomethingNew"), "??-?--"),
        row("a signature that is refused", .send, 403, xml, store("SignatureDoesNotMatch"), "rc-r--"),
        row("an URL that has expired", .send, 403, xml, store("AccessDenied"), "rc-r--"),
        row("a bucket elsewhere", .send, 301, xml, store("PermanentRedirect"), "so-s--"),
        row("room is used up", .send, 507, xml, store("XMinioStorageFull"), "oo-o--"),
        row("a store that asks for time", .send, 503, xml, store("SlowDown"), "oo-o--"),
        row("a store that failed", .commit, 500, xml, store("InternalError"), "-u----"),
        row("a part that is not there", .commit, 400, xml, store("InvalidPart"), "-r----"),
    ]

    /// A folder's words are those of the kernel.
    private static let disks: [Row] = [
        row("no room", .noSpace, "-----o"), row("a quota", .diskQuotaExceeded, "-----o"),
        row("a disk that cannot be written", .readOnlyFileSystem, "-----o"),
        row("a disk that fails", .ioError, "-----o"),
        row("no right to write", .permissionDenied, "-----o"), row("no descriptors", .tooManyOpenFiles, "-----o"),
        row("a name that is too long", .fileNameTooLong, "-----f"),
        row("an NFS handle that is stale", .staleNFSFileHandle, "-----r"),
    ]

    private static func row(_ name: String, _ errno: Errno, _ cells: String) -> Row {
        Row(name: name, step: .send, errno: errno, cells: cells)
    }
}
