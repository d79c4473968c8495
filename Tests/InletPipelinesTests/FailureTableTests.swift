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

    @Test(arguments: FailureTable.rows) func `each answer means one thing at each destination`(
        _ row: FailureTable.Row
    ) throws {
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
            return DeliveryError(S3Refusal(response, now: .now), "asking", now: .now)
        case "gighive":
            let endpoint: GigHiveEndpoint = row.step == .commit ? .finalize : .files
            return GigHiveVerdict(response, at: endpoint).error(response, "asking")
        case "vopi":
            if row.step == .send { return VOPIDelivery.refusal(response, try url("https://store.example/v")) }
            let endpoint: VOPIEndpoint = row.step == .commit ? .create : .presign
            return VOPIVerdict(response, at: endpoint).error(response, "asking", hint: "log in", now: .now)
        default:
            if isSuccess { return RoboscopeAnswer.unreadable("asking", "no object") }
            return RoboscopeAnswer.error(response, "asking")
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
            "raise client_max_body_size there, or lower part_size"
        ),
        (401, "<html>log in</html>", "a proxy before the service wants a login"),
        (400, #"{"error":"EntityTooSmall: proposed upload is smaller"}"#, "raise part_size"),
    ]) func `an answer comes with what to do about it`(_ status: Int, _ body: String, _ remedy: String) {
        let response = HTTPResponse(status: status, body: Array(body.utf8))
        let error = DeliveryError(response, "asking", in: .json, secretsMatter: true, now: .now)
        #expect(error.reason.contains(remedy), "\(error.reason)")
        let store = DeliveryError(S3Refusal(response, now: .now), "asking", now: .now)
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
        let said = S3Refusal(HTTPResponse(status: 404, headers: fields), isWordless: true, now: .now)
        #expect(said.code == code && said.isOwn == (code == "NotFound"))
    }

    @Test func `a link to a metadata address is not made right by allow_http`() throws {
        let api = try HTTPURL("http://127.0.0.1:8080", rules: .configured(allowHTTP: false))
        let error = #expect(throws: TransferError.self) {
            try HTTPURL("http://169.254.169.254/latest", rules: .sentByServer(at: api, allowHTTP: false))
        }
        #expect(error?.code == .forbiddenURL && error?.reason.contains("allow_http") == false, "\(error?.reason ?? "")")
    }
}
