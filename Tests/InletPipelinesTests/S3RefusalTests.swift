import InletCore
import InletTransfer
import Testing

@testable import InletPipelines

/// The one table that makes verdicts of S3's error codes.
@Suite struct S3RefusalTests {
    private static let now = WallTime(milliseconds: 1_795_240_800_000)  // 2026-11-21T06:00:00Z

    private static func error(
        _ status: Int, _ body: String = "", headers: HTTPFields = [], now: WallTime = now
    ) -> DeliveryError {
        let response = HTTPResponse(status: status, headers: headers, body: Array(body.utf8))
        return DeliveryError(S3Refusal(response, now: now), "sending k to https://s3.example/media/k", now: now)
    }

    private static func xml(_ code: String, _ more: String = "") -> String {
        "<?xml version=\"1.0\"?>\n<Error><Code>\(code)</Code><Message>What it says.</Message>\(more)</Error>"
    }

    static let table: [(Int, String, DeliveryError.Verdict, ErrorCode)] = [
        (403, "AccessDenied", .credentials, .unauthorized), (403, "InvalidAccessKeyId", .credentials, .unauthorized),
        (403, "SignatureDoesNotMatch", .credentials, .unauthorized), (401, "Unauthorized", .credentials, .unauthorized),
        (400, "ExpiredToken", .credentials, .unauthorized), (400, "InvalidToken", .credentials, .unauthorized),
        (403, "RequestTimeTooSkewed", .outage(after: nil), .clockSkewed),
        (404, "NoSuchBucket", .outage(after: nil), .notFound),
        (301, "PermanentRedirect", .outage(after: nil), .redirected),
        (307, "TemporaryRedirect", .outage(after: nil), .redirected),
        (400, "AuthorizationHeaderMalformed", .outage(after: nil), .redirected),
        (503, "SlowDown", .outage(after: nil), .throttled), (503, "SlowDownWrite", .outage(after: nil), .throttled),
        (429, "TooManyRequests", .outage(after: nil), .throttled),
        (503, "ServiceUnavailable", .outage(after: nil), .serverError),
        (500, "InternalError", .retry(after: nil), .serverError),
        (200, "InternalError", .retry(after: nil), .serverError),
        (400, "RequestTimeout", .retry(after: nil), .timedOut),
        (400, "IncompleteBody", .retry(after: nil), .connectionLost),
        (404, "NoSuchUpload", .retry(after: nil), .uploadGone), (400, "InvalidPart", .retry(after: nil), .uploadGone),
        (400, "BadDigest", .retry(after: nil), .digestMismatch),
        (400, "XAmzContentSHA256Mismatch", .retry(after: nil), .digestMismatch),
        (409, "OperationAborted", .retry(after: nil), .conflict),
        (409, "ConditionalRequestConflict", .retry(after: nil), .conflict),
        (412, "PreconditionFailed", .giveUp, .destinationExists), (400, "EntityTooLarge", .giveUp, .tooLarge),
        (400, "EntityTooSmall", .giveUp, .badRequest), (400, "KeyTooLongError", .giveUp, .badRequest),
        (501, "NotImplemented", .giveUp, .badRequest), (403, "QuotaExceeded", .outage(after: nil), .destinationFull),
        (507, "XMinioStorageFull", .outage(after: nil), .destinationFull),
        // Not in the table: the status decides.
        (400, "SomethingNew", .giveUp, .badRequest), (403, "SomethingNew", .credentials, .unauthorized),
        (404, "SomethingNew", .retry(after: nil), .notFound), (500, "SomethingNew", .retry(after: nil), .serverError),
        (503, "SomethingNew", .outage(after: nil), .serverError),
    ]

    @Test(arguments: table)
    func `a code has its verdict`(_ status: Int, _ code: String, _ verdict: DeliveryError.Verdict, _ error: ErrorCode) {
        let refusal = Self.error(status, Self.xml(code))
        #expect(refusal.verdict == verdict)
        #expect(refusal.code == error)
        #expect(refusal.reason.contains("sending k to https://s3.example/media/k was answered with \(status) \(code)"))
        #expect(refusal.reason.contains("What it says."))
    }

    @Test(
        arguments: [
            (301, .outage(after: nil), .redirected), (400, .giveUp, .badRequest), (401, .credentials, .unauthorized),
            (403, .credentials, .unauthorized), (408, .retry(after: nil), .timedOut),
            (409, .retry(after: nil), .conflict), (412, .giveUp, .destinationExists), (413, .giveUp, .tooLarge),
            (429, .outage(after: nil), .throttled), (500, .retry(after: nil), .serverError),
            (502, .outage(after: nil), .serverError), (503, .outage(after: nil), .serverError),
            (507, .outage(after: nil), .destinationFull), (200, .giveUp, .badRequest),
        ] as [(Int, DeliveryError.Verdict, ErrorCode)],
        ["", "<html>proxy</html>", "not XML", "<Error></Error>"])
    func `without an S3 error the status decides`(
        _ expected: (Int, DeliveryError.Verdict, ErrorCode), _ body: String
    ) {
        let refusal = Self.error(expected.0, body)
        #expect(refusal.verdict == expected.1)
        #expect(refusal.code == expected.2)
    }

    @Test(arguments: ["404 page not found\n", "<html>proxy</html>", "<!doctype html><p>Gone", "{\"error\":404}"])
    func `a 404 in the words of a proxy is an outage, and says nothing of objects`(_ body: String) {
        let refusal = Self.error(404, body)
        #expect(refusal.verdict == .outage(after: nil))
        #expect(refusal.code == .serverError)
        #expect(refusal.reason.contains("404"))
        #expect(refusal.reason.contains("not an answer of an S3 store"))
    }

    @Test(arguments: ["", "<Error></Error>", "<Error><Code>NoSuchKey</Code></Error>"])
    func `a 404 without words, or in the store's own, is about an object`(_ body: String) {
        #expect(Self.error(404, body).verdict == .retry(after: nil))
        #expect(Self.error(404, body).code == .notFound)
    }

    @Test func `Retry-After is heeded`() {
        let slow = Self.error(503, Self.xml("SlowDown"), headers: [("Retry-After", "7")])
        #expect(slow.verdict == .outage(after: .seconds(7)))
    }

    @Test(arguments: ["RequestTimeTooSkewed", "AccessDenied", "SignatureDoesNotMatch"])
    func `a wrong clock is named, with its distance`(_ code: String) {
        let date: HTTPFields = [("Date", "Sat, 21 Nov 2026 06:00:00 GMT")]
        let ahead = Self.error(403, Self.xml(code), headers: date, now: Self.now + .seconds(3600))
        #expect(ahead.code == .clockSkewed)
        #expect(ahead.verdict == .outage(after: nil))
        #expect(ahead.reason.contains("the clock of this machine is 1h ahead of the store's"))
        let behind = Self.error(400, Self.xml(code), headers: date, now: Self.now + .seconds(-1830))
        #expect(behind.code == .clockSkewed)
        #expect(behind.reason.contains("30m30s behind the store's"))
    }

    @Test func `a clock that is a little off explains nothing`() {
        let date: HTTPFields = [("Date", "Sat, 21 Nov 2026 06:00:00 GMT")]
        let error = Self.error(403, Self.xml("AccessDenied"), headers: date, now: Self.now + .seconds(500))
        #expect(error.code == .unauthorized)
        #expect(
            Self.error(400, Self.xml("EntityTooLarge"), headers: date, now: Self.now + .seconds(9000)).code == .tooLarge
        )
    }

    @Test func `a bucket elsewhere is named with its region and endpoint`() {
        let more = "<Endpoint>media.s3.eu-west-1.amazonaws.com</Endpoint>"
        let moved = Self.error(
            301, Self.xml("PermanentRedirect", more), headers: [("x-amz-bucket-region", "eu-west-1")])
        #expect(moved.reason.contains("region 'eu-west-1'"))
        #expect(moved.reason.contains("media.s3.eu-west-1.amazonaws.com"))
        let wrong = Self.error(400, Self.xml("AuthorizationHeaderMalformed", "<Region>us-west-2</Region>"))
        #expect(wrong.reason.contains("region 'us-west-2'"))
    }

    @Test func `what a store says is safe to print`() {
        let body =
            "<Error><Code>Bad\u{1B}[31m</Code><Message>\(String(repeating: "x\u{7}", count: 500))</Message></Error>"
        let error = Self.error(400, body)
        #expect(!error.reason.unicodeScalars.contains { $0.value < 0x20 })
        #expect(error.reason.utf8.count < 2000)
    }
}
