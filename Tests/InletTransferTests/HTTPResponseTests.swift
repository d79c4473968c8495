import Foundation
import InletCore
import InletTestSupport
import Testing

@testable import InletTransfer

struct HTTPResponseTests {
    /// 1994-11-06T08:49:37Z, the moment of RFC 9110's examples.
    private let example = WallTime(milliseconds: 784_111_777_000)

    @Test(
        arguments: [
            ("0", .zero), ("120", .seconds(120)), (" 7".trimming(), .seconds(7)),
            ("86401", .seconds(86_400)), ("99999999999999999999999", .seconds(86_400)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", .seconds(60)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", .seconds(60)), ("Sun, 06-Nov-1994 08:50:37 GMT", .seconds(60)),
            ("Sun, 06 Nov 94 08:50:37 GMT", .seconds(60)),
            ("Sun Nov  6 08:50:37 1994", .seconds(60)),
            ("Sun, 06 Nov 1994 08:49:36 GMT", .zero),
            ("Thu, 01 Jan 1970 00:00:00 GMT", .zero),
            ("Tue, 29 Feb 2050 00:00:00 GMT", .seconds(86_400)),
            ("-5", nil), ("1.5", nil), ("soon", nil), ("", nil), ("Sun, 06 Foo 1994 08:49:37 GMT", nil),
            ("Sun, 06 Nov 1994 25:49:37 GMT", nil), ("Sun, 06 Nov 1994 08:49 GMT", nil),
            ("Sun, 06 Nov 1994 08:49:37 CET", nil),
        ] as [(String, Duration?)])
    func `Retry-After is seconds or a date`(value: String, expected: Duration?) {
        let answer = HTTPResponse(status: 503, headers: [("retry-after", value)])
        #expect(answer.retryAfter(now: example) == expected)
    }

    @Test func `without the field there is no wait`() {
        #expect(HTTPResponse(status: 503).retryAfter(now: example) == nil)
    }

    private static let fields: HTTPFields = [
        ("ETag", "\"one\""), ("x-Empty", ""), ("etag", "\"two\""), ("X-ETag", "three"), ("ETagX", "four"),
        ("X-Colon", "a:b: c"), ("Date", "ä"),
    ]

    @Test(
        arguments: [
            ("etag", "\"one\""), ("ETAG", "\"one\""), ("X-EMPTY", ""), ("x-etag", "three"), ("etagx", "four"),
            ("x-colon", "a:b: c"), ("date", "ä"), ("tag", nil), ("eta", nil), ("x-", nil), ("", nil),
            ("x-colon:a", nil),
        ] as [(String, String?)])
    func `a field is found by its whole name in any case, and of several the first`(_ name: String, _ value: String?) {
        #expect(HTTPResponse(status: 200, headers: Self.fields).header(name) == value)
    }

    @Test func `fields keep their order, and their names as the server spelt them`() {
        let headers = HTTPResponse(status: 200, headers: Self.fields).headers
        #expect(headers.map(\.name) == Self.fields.map(\.name))
        #expect(headers.map(\.value) == Self.fields.map(\.value))
        #expect(HTTPResponse(status: 200).headers.isEmpty && HTTPResponse(status: 200).header("ETag") == nil)
    }

    @Test func `dates agree with RFC 3339 over the years`() {
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        for day in stride(from: Int64(0), to: 60_000, by: 17) {
            let time = WallTime(milliseconds: day * 86_400_000 + 3_723_000)
            let parts = time.rfc3339.prefix(10).split(separator: "-").map { Int($0) ?? 0 }
            let date = "Mon, \(parts[2]) \(months[parts[1] - 1]) \(parts[0]) 01:02:03 GMT"
            let answer = HTTPResponse(status: 503, headers: [("Retry-After", date)])
            #expect(answer.retryAfter(now: time + .seconds(-5)) == .seconds(5), "\(date)")
        }
    }
}

extension String {
    /// What is left of a field's value after a client has read it.
    fileprivate func trimming() -> String { String(drop(while: \.isWhitespace)) }
}

/// What servers say about an answer beside its body, against `ResponseBuffer`'s rules.
@Suite(.timeLimit(.minutes(15))) struct AnswerHeadTests {
    /// What a GET gets from a server that says `words` and then waits.
    private func answer(_ words: String...) async throws -> Result<HTTPResponse, TransferError> {
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            for word in words { try connection.write(word) }
            connection.waitForEnd()
        }
        do throws(TransferError) {
            return .success(try await makeClient().send(HTTPRequest("GET", try url(server))))
        } catch { return .failure(error) }
    }

    private func url(_ server: ScriptedServer) throws(TransferError) -> HTTPURL {
        try HTTPURL("http://127.0.0.1:\(server.port)/", rules: .configured(allowHTTP: false))
    }

    private func error(_ words: String...) async throws -> TransferError? {
        guard case .failure(let error) = try await answer(words.joined()) else { return nil }
        return error
    }

    /// "a", deflated (RFC 1950), in bytes that are ASCII.
    private static let deflated = "\u{78}\u{01}\u{4B}\u{04}\u{00}\u{00}\u{62}\u{00}\u{62}"

    @Test(arguments: ["deflate", "gzip", "deflate, chunked", "chunked, chunked", "identity", "br"])
    func `a body that is coded on the way by more than chunks is refused`(coding: String) async throws {
        let body = coding.hasSuffix("chunked") ? "9\r\n\(Self.deflated)\r\n0\r\n\r\n" : Self.deflated
        let error = try await error("HTTP/1.1 200 OK\r\nTransfer-Encoding: \(coding)\r\n\r\n", body)
        #expect(error?.code == .badAnswer && error?.isOutage == false)
        #expect(error?.reason.contains("Transfer-Encoding: \(coding)") == true)
    }

    @Test func `so is one whose codings come in fields of their own`() async throws {
        let error = try await error(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: deflate\r\ntransfer-encoding: chunked\r\n\r\n",
            "9\r\n\(Self.deflated)\r\n0\r\n\r\n")
        #expect(error?.code == .badAnswer)
        #expect(error?.reason.contains("Transfer-Encoding: deflate, chunked") == true)
    }

    @Test func `chunks are put together, and what the content is coded with stays`() async throws {
        let response = try await answer(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nContent-Encoding: deflate\r\n\r\n",
            "9\r\n\(Self.deflated)\r\n0\r\n\r\n"
        ).get()
        #expect(response.body == Array(Self.deflated.utf8))
    }

    @Test func `what follows a chunked body is no field of its head`() async throws {
        let response = try await answer(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nETag: \"head\"\r\n\r\n",
            "5\r\nhello\r\n0\r\nETag: \"trailer\"\r\nContent-MD5: AAAA\r\n\r\n"
        ).get()
        #expect(response.body == Array("hello".utf8))
        #expect(response.headers.map(\.name) == ["Transfer-Encoding", "ETag"])
        #expect(response.header("ETag") == "\"head\"")
    }

    @Test func `it is counted against the head's bounds`() async throws {
        let lines = (0..<300).map { "X-\($0): y\r\n" }.joined()
        let error = try await error(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\n0\r\n\(lines)\r\n")
        #expect(error?.code == .answerTooLarge)
    }

    @Test func `a few interim heads are passed over, a flood of them is refused`() async throws {
        let (hint, end) = ("HTTP/1.1 103 Early Hints\r\nETag: \"hint\"\r\n\r\n", "HTTP/1.1 204 Done\r\n\r\n")
        let response = try await answer(hint, hint, hint, end).get()
        #expect(response.status == 204 && response.headers.isEmpty)
        let error = try await error(String(repeating: hint, count: 500), end)
        #expect(error?.code == .answerTooLarge && error?.isOutage == false)
    }

    @Test func `a change of protocol that nobody asked for is refused`() async throws {
        let error = try await error(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n")
        #expect(error?.code == .badAnswer && error?.isOutage == false)
    }
}

struct FieldNameTests {
    @Test(arguments: [
        ("ETag", "etag", true), ("etag", "etag", true), ("X-AMZ-Date", "x-amz-date", true), ("", "", true),
        ("ETag ", "etag", false), ("ETaG", "etam", false), ("E[ag", "e{ag", false), ("E@ag", "e`ag", false),
        ("ETäg", "etäg", true), ("ETÄG", "etäg", false),
    ]) func `names are the same in any case of ASCII letters`(_ name: String, _ lower: String, _ isSame: Bool) {
        #expect(FieldName.isSame(name, lower) == isSame)
    }

    @Test func `what a token is made of`() {
        let bytes = (UInt8.min...UInt8.max).filter(FieldName.isTokenByte)
        let tokens = "!#$%&'*+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ^_`abcdefghijklmnopqrstuvwxyz|~"
        #expect(String(decoding: bytes, as: UTF8.self) == tokens)
    }

    @Test(arguments: ["", "a", "größer", String(repeating: "x", count: 1000)])
    func `bytes are those of the text`(_ text: String) {
        #expect(FieldName.bytes(of: text) { Array($0) } == Array(text.utf8))
    }

    @Test(arguments: [
        ("a/b c", "", "a%2Fb%20c"), ("a/b", "/", "a/b"), ("", "/", ""), ("-._~", "", "-._~"),
        ("ü\u{1}", "", "%C3%BC%01"),
    ]) func `what needs it is percent-encoded, with two digits`(_ text: String, _ kept: String, _ encoded: String) {
        #expect(Percent.encode(text[...], keeping: kept) == encoded)
        #expect(Percent.encode("x\(text)x".dropFirst().dropLast(), keeping: kept) == encoded)
    }
}

/// Which credentials of a request are hidden in its answer.
struct SentCredentialsTests {
    private func shown(
        _ text: String, _ headers: HTTPFields = [], query: String = "", proxy: ProxyServer? = nil
    ) throws -> String {
        let url = try HTTPURL("https://h.example/p\(query)", rules: .configured(allowHTTP: false))
        var answer = HTTPResponse(status: 400)
        answer.sentCredentials = SentCredentials(HTTPRequest("GET", url, headers: headers), proxy: proxy)
        return answer.redactor.redacted(text)
    }

    @Test(arguments: [
        ("Authorization", "Bearer canary-1"), ("authorization", "canary-1"), ("X-API-Key", "canary-1"),
        ("x-api-key", "canary-1"), ("X-Upload-Token", "canary-1"), ("x-amz-security-token", "canary-1"),
        ("Cookie", "canary-1"), ("webhook-signature", "canary-1"),
        ("Authorization", "AWS4-HMAC-SHA256 Credential=canary-1/20261121/auto/s3/aws4_request, Signature=ab12cd34"),
    ])
    func `a field that says who we are is hidden`(_ name: String, _ value: String) throws {
        #expect(try shown("no canary-1 here", [(name, value)]) == "no *** here")
    }

    @Test func `a login is hidden with the password in it`() throws {
        let word = Data("up:pass-canary".utf8).base64EncodedString()
        let said = try shown("\(word) up:pass-canary pass-canary up", [("Authorization", "Basic \(word)")])
        #expect(said == "*** *** *** up")
    }

    @Test func `a signature is hidden, and not the names around it`() throws {
        let value =
            "AWS4-HMAC-SHA256 Credential=AKID9/20261121/auto/s3/aws4_request, SignedHeaders=host, Signature=ab12cd34"
        let said = try shown("AKID9/20261121/auto host ab12cd34 AWS4-HMAC-SHA256", [("Authorization", value)])
        #expect(said == "***/20261121/auto host *** AWS4-HMAC-SHA256")
    }

    @Test func `credentials of a query are hidden as they were sent and as they were read`() throws {
        let said = try shown("a/b+c a%2Fb%2Bc plain", query: "?token=a%2Fb%2Bc&r=plain")
        #expect(said == "*** *** plain")
    }

    @Test func `what signs an address is hidden, whatever the signer calls it`() throws {
        let said = try shown(
            "a%2Bcanary a+canary jwt-canary film.mov 2026-11-23",
            query: "?se=2026-11-23&sig=a%2Bcanary&key=film.mov&J%57T=jwt-canary")
        #expect(said == "*** *** *** film.mov 2026-11-23")
    }

    @Test func `a proxy's login is hidden too`() throws {
        let proxy = try ProxyServer("http://me:proxy-canary@proxy.example:3128", usualPort: false)
        let word = Data("me:proxy-canary".utf8).base64EncodedString()
        #expect(try shown("Proxy-Authorization: Basic \(word), proxy-canary", proxy: proxy).contains("Basic ***, ***"))
    }

    @Test func `other fields stay readable`() throws {
        let said = try shown("application/json 12345 host", [("Content-Type", "application/json"), ("X-Id", "12345")])
        #expect(said == "application/json 12345 host")
    }

    @Test func `an answer brings along what was sent`() async throws {
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.answer("400 Bad", "you said canary-key-1")
        }
        let client = HTTPClient(userAgent: "inlet-tests/1")
        defer { client.shutdown() }
        let url = try HTTPURL("http://127.0.0.1:\(server.port)/", rules: .configured(allowHTTP: false))
        let answer = try await client.send(HTTPRequest("GET", url, headers: [("X-API-Key", "canary-key-1")]))
        #expect(answer.redactor.redacted(String(decoding: answer.body, as: UTF8.self)) == "you said ***")
    }
}
