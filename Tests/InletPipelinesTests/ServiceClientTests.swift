import InletCore
import InletTestSupport
import InletTransfer
import Testing

@testable import InletPipelines

/// What all services share: who we are to them, what a refused token costs, and how their answers are read.
@Suite struct ServiceClientTests {
    private let http = HTTPClient(userAgent: "inlet-tests/1")

    private func service(_ server: VOPIServer, _ login: ServiceLogin) throws -> ServiceClient {
        ServiceClient(try HTTPURL(server.address + "/base", rules: .configured(allowHTTP: false)), http, login: login)
    }

    /// Gives `tokens` one after the other, the last one for good, and notes what it was asked with.
    private static func source(_ tokens: [String], _ asked: Listing<String?>) -> ServiceLogin {
        .tokens(
            { refused async throws(DeliveryError) in
                asked.add(refused?.reveal())
                return Secret(tokens[min(asked.all.count, tokens.count) - 1])
            }, isRefused: { $0.status == 401 })
    }

    @Test func `a request goes below the address with one login, and without it where it is open`() async throws {
        defer { http.shutdown() }
        let server = try VOPIServer { _, _ in .json(200, "{}") }
        let service = try service(server, .field(name: "X-Key", value: Secret("k")))
        let request = service.request("POST", "a/b", query: [("q", "x"), ("r", "y")], json: Array(#"{"n":1}"#.utf8))
        #expect(try await service.answer(to: request).isSuccess)
        _ = try await service.answer(to: service.request("GET", "ready"), isOpen: true)
        let (first, open) = (server.asked[0], server.asked[1])
        #expect(first.method == "POST" && first.target == "/base/a/b?q=x&r=y" && first.body == Array(#"{"n":1}"#.utf8))
        #expect(first.headers["x-key"] == "k" && first.headers["accept"] == "application/json")
        #expect(first.headers["content-type"] == "application/json")
        #expect(open.target == "/base/ready" && open.headers["accept"] == "application/json")
        #expect(open.headers["x-key"] == nil && open.headers["content-type"] == nil)
    }

    @Test(arguments: [
        (["old", "new"], ["Bearer old", "Bearer new"], 200), (["old", "bad"], ["Bearer old", "Bearer bad"], 401),
        (["old"], ["Bearer old"], 401), (["new"], ["Bearer new"], 200),
    ])
    func `a refused token is replaced once, and the call repeated where there is another`(
        _ tokens: [String], _ sent: [String], _ status: Int
    ) async throws {
        defer { http.shutdown() }
        let server = try VOPIServer { asked, _ in
            .json(asked.headers["authorization"] == "Bearer new" ? 200 : 401, "{}")
        }
        let asked = Listing<String?>()
        let service = try service(server, Self.source(tokens, asked))
        #expect(try await service.answer(to: service.request("GET", "x")).status == status)
        #expect(server.asked.map { $0.headers["authorization"] } == sent)
        #expect(asked.all == (tokens[0] == "old" ? [nil, "old"] : [nil]))
    }

    @Test func `what is no success is refused in the service's own way, and what is too long in ours`() async throws {
        defer { http.shutdown() }
        let server = try VOPIServer { asked, _ in
            .json(asked.path.hasSuffix("no") ? 409 : 200, String(repeating: "x", count: 100))
        }
        let service = try service(server, .none)
        let refused = await failure { () throws(DeliveryError) in
            try await service.send(service.request("GET", "no")) {
                DeliveryError(.giveUp, .conflict, "answered with \($0.status)")
            }
        }
        #expect(refused?.reason == "answered with 409")
        let long = await failure { () throws(DeliveryError) in
            try await service.answer(to: service.request("GET", "long", limit: 10))
        }
        #expect(long?.code == .answerTooLarge)
        #expect(server.asked.allSatisfy { $0.headers["authorization"] == nil })
    }

    @Test func `of a page its words are left, without our credentials`() throws {
        let url = try HTTPURL("https://h.example", rules: .configured(allowHTTP: false))
        var page = HTTPResponse(status: 502, body: Array("<h1>Bad\n <b>Gateway</b></h1>\t canary-1 tail".utf8))
        page.sentCredentials = SentCredentials(HTTPRequest("GET", url, headers: [("x-api-key", "canary-1")]))
        #expect(page.plainText(1000) == "Bad Gateway *** tail")
        #expect(page.plainText(7) == "Bad")
        #expect(!page.isSuccess && !page.isJSON && page.jsonBody == nil)
    }
}
