import Foundation
import InletCore
import InletTestSupport
import InletTransfer
import Testing

@testable import InletPipelines

/// What every answer of a VOPI server means, line by line.
@Suite struct VOPIAnswerTests {
    private static func answer(_ status: Int, _ body: String, _ headers: HTTPFields = []) -> HTTPResponse {
        HTTPResponse(
            status: status, headers: [("content-type", "application/json; charset=utf-8")] + headers,
            body: Array(body.utf8))
    }

    private static func coded(_ status: Int, _ code: String, _ message: String = "x") -> HTTPResponse {
        answer(status, #"{"error":"\#(code)","message":"\#(message)"}"#)
    }

    private static func error(_ response: HTTPResponse, at endpoint: VOPIEndpoint = .read) -> DeliveryError {
        VOPIVerdict(response, at: endpoint)
            .error(response, "asking", hint: "log in", now: WallTime(milliseconds: 0))
    }

    // MARK: - The table

    static let codes: [(Int, String, String, VOPIEndpoint, VOPIVerdict)] = [
        (400, "VALIDATION_ERROR", "", .create, .giveUp(.badRequest)),
        (422, "VALIDATION_ERROR", "", .create, .giveUp(.badRequest)),
        (400, "BAD_REQUEST", "Callback URL", .create, .giveUp(.badRequest)),
        (400, "BAD_REQUEST", "Cannot cancel job in completed status.", .cancel, .giveUp(.conflict)),
        (400, "BAD_REQUEST", "Can only delete images from completed jobs", .delete, .giveUp(.conflict)),
        (400, "BAD_REQUEST", "Job has no results yet.", .downloads, .giveUp(.conflict)),
        (400, "VALIDATION_ERROR", "", .downloads, .giveUp(.badRequest)),
        (401, "ACCESS_TOKEN_EXPIRED", "", .read, .renew), (401, "ACCESS_TOKEN_MALFORMED", "", .create, .renew),
        (401, "ACCESS_TOKEN_INVALID", "not before", .read, .renew),
        (
            401, "ACCESS_TOKEN_INVALID", "Access token is invalid: connect ECONNREFUSED 1:5432", .read,
            .outage(.serverError)
        ),
        (401, "ACCESS_TOKEN_INVALID", "Connection terminated unexpectedly", .create, .outage(.serverError)),
        (401, "UNAUTHORIZED", "sorry, too many clients already", .read, .outage(.serverError)),
        (401, "ACCESS_TOKEN_WRONG_TYPE", "", .read, .credentials), (401, "USER_NOT_FOUND", "", .read, .credentials),
        (401, "JWT_SECRET_NOT_CONFIGURED", "", .read, .credentials),
        (401, "UNAUTHORIZED", "Missing API key", .read, .credentials),
        (402, "X", "", .read, .outage(.outOfCredits)),
        (403, "INSUFFICIENT_CREDITS", "", .create, .outage(.outOfCredits)),
        (403, "USAGE_LIMIT_EXCEEDED", "", .create, .credentials), (403, "FORBIDDEN", "", .read, .credentials),
        (404, "NOT_FOUND", "Job x not found", .read, .retry(.notFound)),
        (404, "Not Found", "Route GET:/x not found", .read, .giveUp(.badRequest)),
        (409, "CONFLICT", "", .delete, .giveUp(.conflict)), (413, "X", "", .create, .giveUp(.tooLarge)),
        (408, "X", "", .read, .retry(.timedOut)), (425, "X", "", .read, .retry(.throttled)),
        (429, "X", "", .read, .outage(.throttled)), (500, "RATE_LIMIT_EXCEEDED", "", .read, .outage(.throttled)),
        (500, "INTERNAL_ERROR", "", .create, .retry(.serverError)), (501, "X", "", .read, .giveUp(.badRequest)),
        (502, "X", "", .read, .outage(.serverError)), (503, "X", "", .read, .outage(.serverError)),
        (504, "X", "", .read, .outage(.serverError)), (522, "X", "", .read, .outage(.serverError)),
        (301, "X", "", .read, .giveUp(.redirected)), (415, "X", "", .create, .giveUp(.badRequest)),
    ]

    @Test(arguments: codes) func `each status and code has one meaning`(
        _ status: Int, _ code: String, _ message: String, _ endpoint: VOPIEndpoint, _ verdict: VOPIVerdict
    ) {
        #expect(VOPIVerdict(Self.coded(status, code, message), at: endpoint) == verdict)
    }

    static let refreshes: [(Int, String, String, VOPIVerdict)] = [
        (200, "", "", .done), (401, "REFRESH_TOKEN_EXPIRED", "", .credentials),
        (401, "REFRESH_TOKEN_INVALID", "jwt malformed", .credentials), (401, "REFRESH_TOKEN_REVOKED", "", .credentials),
        (401, "REFRESH_TOKEN_REUSED", "", .credentials), (401, "REFRESH_TOKEN_WRONG_TYPE", "", .credentials),
        (401, "USER_NOT_FOUND", "", .credentials), (401, "USER_DELETED", "", .credentials),
        (401, "UNAUTHORIZED", "anything at all", .outage(.serverError)),
        (401, "REFRESH_TOKEN_INVALID", "connect ECONNREFUSED 127.0.0.1:5432", .outage(.serverError)),
        (400, "VALIDATION_ERROR", "", .credentials), (404, "Not Found", "Route POST:/x not found", .credentials),
        (404, "NOT_FOUND", "", .outage(.serverError)), (403, "FORBIDDEN", "", .outage(.serverError)),
        (429, "X", "", .outage(.throttled)), (500, "INTERNAL_ERROR", "", .outage(.serverError)),
        (503, "X", "", .outage(.serverError)), (302, "X", "", .outage(.redirected)),
    ]

    @Test(arguments: refreshes) func `a login ends by a word that says so, and by nothing else`(
        _ status: Int, _ code: String, _ message: String, _ verdict: VOPIVerdict
    ) {
        #expect(VOPIVerdict(Self.coded(status, code, message), at: .refresh) == verdict)
    }

    static let foreign: [(Int, String, VOPIVerdict)] = [
        (401, "", .credentials), (401, "<html>no</html>", .credentials), (403, "<html>no</html>", .credentials),
        (404, "", .retry(.badAnswer)), (404, "<html>no</html>", .retry(.badAnswer)), (404, "[]", .retry(.badAnswer)),
        (404, #"{"message":"no Route matched with those values"}"#, .retry(.badAnswer)),
        (404, #"{"error":"DEPLOYMENT_NOT_FOUND"}"#, .retry(.badAnswer)),
        (400, "", .giveUp(.badRequest)), (500, "", .retry(.serverError)), (500, "{", .retry(.serverError)),
        (502, "<html>Bad Gateway</html>", .outage(.serverError)), (200, "", .done), (204, "", .done),
        (500, #"{"error":{},"message":0,"statusCode":"500","details":null}"#, .retry(.serverError)),
        (400, #"{"error":"","message":{}}"#, .giveUp(.badRequest)),
        (402, #"{"success":false,"newBalance":0,"error":"Not enough credits"}"#, .outage(.outOfCredits)),
    ]

    @Test(arguments: foreign) func `empty and foreign bodies are judged by their status`(
        _ status: Int, _ body: String, _ verdict: VOPIVerdict
    ) {
        #expect(VOPIVerdict(Self.answer(status, body), at: .read) == verdict)
    }

    @Test func `a refresh that answers with anything but its words keeps the login`() {
        for status in [401, 403, 404, 500, 502] {
            for body in ["", "{}", "null", "<html></html>", #"{"error":"SOMETHING_NEW"}"#] {
                let verdict = VOPIVerdict(Self.answer(status, body), at: .refresh)
                #expect(verdict == .outage(.serverError), "\(status) \(body)")
            }
        }
    }

    @Test func `no answer but a 2xx is a success, and none ends a login by chance`() {
        var generator = SeededGenerator(seed: 41)
        let words = [
            "{}", "\"\"", "0", "null", "[]", "\"NOT_FOUND\"", "\"Route GET:/x not found\"", "{\"a\":[]}", "\"x\"",
        ]
        for _ in 0..<3000 {
            let status = Int.random(in: 200...599, using: &generator)
            let fields = ["error", "message", "statusCode", "details"].compactMap { name in
                Bool.random(using: &generator)
                    ? "\"\(name)\":" + words[Int.random(in: 0..<words.count, using: &generator)] : nil
            }
            let answer = Self.answer(status, "{" + fields.joined(separator: ",") + "}")
            for endpoint in VOPIEndpoint.allCases {
                let verdict = VOPIVerdict(answer, at: endpoint)
                #expect((verdict == .done) == (status < 300))
                #expect(Self.error(answer, at: endpoint).reason.hasPrefix("asking was answered with \(status)"))
            }
            let isAboutUs = [400, 404, 422].contains(status)
            #expect(VOPIVerdict(answer, at: .refresh) != .credentials || isAboutUs)
        }
    }

    // MARK: - Waiting

    @Test func `a rate limit is seen behind its 500 and its wait is kept`() {
        let body = #"{"error":"INTERNAL_ERROR","message":"An unexpected error occurred","statusCode":500}"#
        for endpoint in VOPIEndpoint.allCases {
            let limited = Self.answer(500, body, [("retry-after", "60"), ("x-ratelimit-remaining", "0")])
            #expect(Self.error(limited, at: endpoint).verdict == .outage(after: .seconds(60)))
            #expect(Self.error(limited, at: endpoint).code == .throttled)
        }
        let silent = Self.answer(500, body, [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "42")])
        #expect(Self.error(silent).verdict == .outage(after: .seconds(42)))
        let free = Self.answer(500, body, [("x-ratelimit-remaining", "29"), ("x-ratelimit-reset", "42")])
        #expect(Self.error(free).verdict == .retry(after: nil) && Self.error(free).code == .serverError)
        #expect(Self.error(Self.answer(429, "")).verdict == .retry(after: nil))
        #expect(Self.error(Self.answer(429, "", [("Retry-After", "7")])).verdict == .outage(after: .seconds(7)))
    }

    @Test(arguments: [408, 429, 500, 502, 503, 504, 404]) func `what the server asks us to wait is kept`(
        _ status: Int
    ) {
        let error = Self.error(Self.answer(status, "", [("Retry-After", "11")]))
        #expect(error.verdict == .retry(after: .seconds(11)) || error.verdict == .outage(after: .seconds(11)))
    }

    @Test func `without credits the destination pauses for an hour`() {
        let error = Self.error(Self.coded(403, "INSUFFICIENT_CREDITS", "Required: 2, available: 0"), at: .create)
        #expect(error.verdict == .outage(after: .seconds(3600)) && error.code == .outOfCredits)
        #expect(error.reason.contains("Required: 2"))
    }

    @Test func `an error says what was asked and what to do, and no secret`() throws {
        let url = try HTTPURL("https://h.example", rules: .configured(allowHTTP: false))
        var answer = Self.coded(401, "UNAUTHORIZED", "no canary here")
        answer.sentCredentials = SentCredentials(HTTPRequest("GET", url, headers: [("x-api-key", "canary")]))
        let refused = Self.error(answer)
        #expect(refused.reason == "asking was answered with 401: UNAUTHORIZED: no *** here; log in")
        let link = Self.error(Self.coded(400, "BAD_REQUEST", "see https://s3.example/x?X-Amz-Signature=1"))
        #expect(!link.reason.contains("Amz") && link.reason.contains("[URL]"))
    }
}
