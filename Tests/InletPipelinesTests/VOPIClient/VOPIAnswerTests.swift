import Foundation
import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
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

    @Test(arguments: foreign)
    func `empty and foreign bodies are judged by their status`(_ status: Int, _ body: String, _ verdict: VOPIVerdict) {
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
        for _ in 0..<1000 {
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

    @Test(arguments: [408, 429, 500, 502, 503, 504, 404]) func `what the server asks us to wait is kept`(_ status: Int)
    {
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

/// The three shapes of error bodies, and what is none of them.
@Suite struct VOPISaidTests {
    private static func said(_ body: String) -> VOPIErrorBody {
        VOPIErrorBody(HTTPResponse(status: 400, body: Array(body.utf8)))
    }

    @Test func `a code and a message are told apart from prose`() {
        let plain = Self.said(#"{"error":"NOT_FOUND","message":"Job x not found","statusCode":404}"#)
        #expect(plain.code == "NOT_FOUND" && plain.message == "Job x not found" && plain.details == [])
        let short = Self.said(#"{"error":"UNAUTHORIZED","message":"m"}"#)
        #expect(short.code == "UNAUTHORIZED" && short.message == "m")
        let spend = Self.said(#"{"success":false,"newBalance":0,"error":"Not enough credits"}"#)
        #expect(spend.code == nil && spend.message == "Not enough credits")
    }

    @Test func `details are read as a list of the schema's objections`() {
        let said = Self.said(
            """
            {"error":"VALIDATION_ERROR","message":"Request validation failed","statusCode":400,"details":[
            {"instancePath":"/expiresIn","schemaPath":"#/x","keyword":"maximum","params":{},"message":"must be <= 86400"},
            {"code":"too_big","message":"too long","path":["a",0,"b"]},{"keyword":"only"},7,"text",null]}
            """)
        #expect(said.details == ["/expiresIn must be <= 86400", "a/0/b too long", "text"])
        #expect(said.text.contains("must be <= 86400"))
    }

    @Test func `details are read as nested objects too`() {
        let said = Self.said(
            """
            {"error":"VALIDATION_ERROR","details":{"_errors":["all"],"config":{"_errors":[],"stack":
            {"_errors":["Expected object"]}},"expiresIn":{"_errors":["Expected integer","second"]},"odd":"word"}}
            """)
        #expect(
            said.details == [
                "all", "/config/stack Expected object", "/expiresIn Expected integer", "/expiresIn second", "/odd word",
            ])
    }

    @Test(arguments: [
        "", " ", "{", "[]", "null", "7", "<html><b>Bad</b> Gateway</html>", "{}", #"{"error":null}"#,
        #"{"error":{"code":1},"message":["x"],"details":7}"#, #"{"details":[[[]]]}"#,
        #"{"details":{"a":{"b":{"c":{}}}}}"#,
        "\u{0}\u{1}\u{FFFD}", #"{"error":"x"#,
    ])
    func `no body makes it fail`(_ body: String) {
        let said = Self.said(body)
        #expect(said.code == nil)
        #expect(said.details == [])
        #expect(!said.isUnknownRoute)
    }

    @Test func `nesting without end is cut`() {
        let deep = String(repeating: #"{"a":"#, count: 5000) + "{}" + String(repeating: "}", count: 5000)
        #expect(Self.said(#"{"error":"X","details":\#(deep)}"#).isJSON == false)
        let low = String(repeating: #"{"a":"#, count: 40) + #"{"_errors":["x"]}"# + String(repeating: "}", count: 40)
        #expect(Self.said(#"{"error":"X","details":\#(low)}"#).details == [])
    }

    @Test func `random bytes are never taken for a code`() {
        var generator = SeededGenerator(seed: 2401)
        for _ in 0..<500 {
            let body = (0..<Int.random(in: 0...60, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            let said = VOPIErrorBody(HTTPResponse(status: 500, body: body))
            #expect(said.code == nil, "\(body)")
            #expect(said.text.utf8.count <= 2000)
        }
    }
}

/// Lists that are longer than one answer, and longer than they should be.
@Suite struct VOPIListTests {
    private static let publicURL = "https://store.example/uploads/1.mp4"

    /// Sixty-five jobs of which one is ours, thirty to a page whatever was asked for.
    private static func page(_ target: String) -> String {
        let offset = target.firstMatch(of: /offset=(\d+)/).flatMap { Int($0.1) } ?? 0
        let jobs = (offset..<min(offset + 30, 65)).map { number in
            let video = number == 60 ? publicURL : "https://store.example/uploads/other\(number).mp4"
            return #"{"id":"job-\#(number)","status":"pending","videoUrl":"\#(video)"}"#
        }
        return #"{"jobs":[\#(jobs.joined(separator: ","))],"total":65}"#
    }

    @Test func `a job is found behind pages that are shorter than was asked for`() async throws {
        let place = try VOPIClientPlace { asked, _ in
            asked.path == "/api/v1/jobs" ? .json(200, Self.page(asked.target)) : .json(200, #"{"status":"pending"}"#)
        }
        try await place.keep()
        let now = WallTime.now
        var record = VOPIRecord()
        record.upload = VOPIRecord.Upload(
            url: "", publicURL: Self.publicURL, expires: now.milliseconds, contentType: "video/mp4")
        record.sent = VOPIRecord.Sent(md5: "00", etag: nil, isProved: false)
        record.creating = VOPIRecord.Creating(sentAt: now.milliseconds, lookAt: 0)
        let notes = Notes(record.entries)
        let path = try place.folder.write("video".utf8, to: "clip.mp4")
        let source = try SourceFile(opening: path)
        let order = DeliveryOrder(
            id: 1, destination: "here", key: "clip.mp4", mediaType: "video/mp4", fields: [:], source: source.opened)
        let pool = BlockingPool(name: "list", threads: 2)
        let pipeline = VOPIPipeline(api: try place.api(), client: place.client, pool: pool)
        guard case .waiting = try await pipeline.deliver(source, order, notes.attempt()) else {
            Issue.record("does not wait for the job")
            return
        }
        #expect(VOPIRecord(notes.entries).job?.id == "job-60")
        #expect(!place.server.asked.contains { $0.method == "POST" })
    }

    @Test func `a server that speaks of files without end gets none of them fetched`() async throws {
        let links = (0...20_000).map { #"{"frameId":"f\#($0)","downloadUrl":"http://127.0.0.1:81/f\#($0)?s=1"}"# }
        let answer = #"{"jobId":"job-1","frames":[\#(links.joined(separator: ","))]}"#
        let place = try VOPIClientPlace { asked, _ in
            .json(200, asked.path.hasSuffix("/download-urls") ? answer : #"{"id":"job-1","status":"completed"}"#)
        }
        try await place.keep()
        let folder = place.folder.path.appending("results")
        let results = VOPIResults(
            api: try place.api(), client: place.client, pool: BlockingPool(name: "list", threads: 2))
        let error = await failure { () throws(DeliveryError) in try await results.fetch(job: "job-1", into: folder) }
        #expect(error?.verdict == .giveUp && error?.code == .answerTooLarge)
        #expect(!FileManager.default.fileExists(atPath: folder.string))
    }

    @Test func `a picture that somebody else has fetched meanwhile is there`() async throws {
        let folder = try TemporaryDirectory()
        let target = "images/hero/solid.gif"
        let address = Listing<String>()
        let place = try VOPIClientPlace { asked, _ in
            if asked.path.hasSuffix("/download-urls") {
                let link = (address.all.first ?? "") + "/store/solid.gif?s=1"
                return .json(200, #"{"jobId":"job-1","commercialImages":{"hero":{"solid":"\#(link)"}}}"#)
            }
            if asked.path.hasPrefix("/store/") {
                try folder.write("GIF89a picture".utf8, to: FilePath(target))
                return .init(headers: [("content-type", "image/gif")], body: "GIF89a picture")
            }
            return .json(200, #"{"id":"job-1","status":"completed"}"#)
        }
        address.add(place.server.address)
        try await place.keep()
        let results = VOPIResults(
            api: try place.api(), client: place.client, pool: BlockingPool(name: "list", threads: 2))
        let summary = try await results.fetch(job: "job-1", into: folder.path)
        #expect(summary.files == [target, "product.json"] && summary.missing == [])
        // No half of our own is left beside it.
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path.appending("images/hero").string)
        #expect(names == ["solid.gif"])
    }
}
