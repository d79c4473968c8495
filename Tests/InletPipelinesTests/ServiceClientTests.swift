import Foundation
import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
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

/// Who keeps the connections that destinations share.
struct FactoryClientTests {
    private let factory = PipelineFactory(pool: BlockingPool(name: "clients", threads: 1), userAgent: "inlet-tests/1")
    private let settings = DestinationSettings(
        name: "store", type: "folder", values: section(["path": .string("/tmp")]))

    @Test func `a client is shared for as long as somebody uses it, and no longer`() throws {
        defer { factory.shutdown() }
        var one: HTTPClient? = try factory.client(.system, connections: 40, of: settings)
        weak let kept = one
        #expect(try factory.client(.system, connections: 40, of: settings) === one)
        #expect(try factory.client(.system, connections: 41, of: settings) !== one)
        // One that a limit holds has the same connections.
        var limited: HTTPClient? = try factory.client(for: settings, .system, connections: 40)
        one = nil
        #expect(kept != nil && limited != nil)
        #expect(try factory.client(.system, connections: 40, of: settings) === kept)
        limited = nil
        #expect(kept == nil)
    }

    @Test func `a destination is where its bucket is, however that is reached, and elsewhere in another one`() throws {
        defer { factory.shutdown() }
        func address(_ endpoint: String, _ bucket: String = "media", style: String = "path") throws -> String {
            let values: [String: ConfigValue] = [
                "endpoint": .string(endpoint), "bucket": .string(bucket), "style": .string(style),
                "allow_http": .boolean(true), "access_key": .secret(Secret("a")), "secret_key": .secret(Secret("b")),
            ]
            let made = try factory.make(DestinationSettings(name: "store", type: "s3", values: section(values)))
            return try #require(made.address)
        }
        let here = try address("https://store.example")
        #expect(try address("https://store.example/") == here)
        #expect(try address("http://store.example") == here)
        #expect(try address("https://store.example", style: "virtual") == here)
        #expect(try address("https://store.example", "other") != here)
        #expect(try address("https://other.example") != here)
        #expect(try address("https://store.example:9000") != here)
        let folder = try #require(try factory.make(settings).address)
        #expect(folder != here && folder.count == here.count)
    }
}

/// Which way destinations and notices go, as the factory makes them.
@Suite struct ProxyUseTests {
    private func proxy(_ address: String, noProxy: [String] = []) -> ConfigSection {
        section(["url": .secret(Secret(address)), "no_proxy": .list(noProxy.map { .string($0) })])
    }

    private func store(_ api: String, proxy: ConfigSection? = nil) -> DestinationSettings {
        var values = section([
            "api": .string(api), "api_key": .secret(Secret("canary")), "allow_http": .boolean(true),
        ])
        if let proxy { values.values["proxy"] = .section(proxy) }
        return DestinationSettings(name: "store", type: "r2", values: values)
    }

    private func withFactory(
        _ proxy: ConfigSection, _ body: (PipelineFactory) async throws -> Void
    ) async throws {
        let factory = PipelineFactory(
            pool: BlockingPool(name: "proxy", threads: 1), userAgent: "inlet-tests/1",
            proxy: try ProxySettings(Section(ProxyKeys(), proxy)))
        defer { factory.shutdown() }
        try await body(factory)
    }

    private func use(_ factory: PipelineFactory, _ settings: DestinationSettings) throws -> ProxyUse? {
        try factory.proxyUse(of: factory.make(settings), settings)
    }

    @Test func `a destination goes through its own proxy, or else through that of all`() async throws {
        let all = try ForwardProxy(to: 1)
        let own = try ForwardProxy(to: 1)
        try await withFactory(proxy(all.address, noProxy: ["near.test"])) { factory in
            let usual = try #require(try use(factory, store("http://store.test")))
            #expect(usual.proxy == all.address)
            try await usual.connect()
            #expect(try use(factory, store("http://store.test", proxy: proxy(own.address)))?.proxy == own.address)
            #expect(try use(factory, store("http://store.test", proxy: proxy("off")))?.proxy == nil)
            #expect(try use(factory, store("http://near.test"))?.choice == .direct(why: "'near.test' of no_proxy"))
            #expect(try use(factory, store("http://127.0.0.1:9"))?.proxy == nil)
            let folder = DestinationSettings(name: "f", type: "folder", values: section(["path": .string("/tmp")]))
            #expect(try use(factory, folder) == nil)
        }
    }

    @Test func `a proxy that is down is said before anything is sent`() async throws {
        let gone = try ChaosProxy(to: 1)
        gone.close()
        try await withFactory(proxy("http://127.0.0.1:\(gone.port)")) { factory in
            let use = try #require(try use(factory, store("http://store.test")))
            let error = await #expect(throws: DeliveryError.self) { try await use.connect() }
            #expect(error?.reason.contains("the proxy http://127.0.0.1:\(gone.port) does not answer") == true)
        }
    }

    @Test func `a destination's probe and a notice go through the proxy`() async throws {
        let origin = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.answer("200 OK", headers: "Connection: close\r\n", "{}")
        }
        let proxy = try ForwardProxy(to: origin.port)
        try await withFactory(self.proxy(proxy.address)) { factory in
            var settings = NotifySettings(
                name: "ops", receiver: .webhook(Secret("http://hooks.test/x")), timeout: .seconds(20))
            settings.allowsHTTP = true
            let webhook = try #require(try factory.webhook(settings))
            #expect(await webhook.post(Array("{}".utf8), id: "msg_1", at: .now) == .taken)
            _ = try? await factory.make(store("http://store.test")).pipeline.probe()
        }
        #expect(proxy.asked.first?.line == "POST http://hooks.test/x HTTP/1.1")
        #expect(proxy.asked.count > 1 && proxy.asked.allSatisfy { $0.line.contains(" http://") })
    }
}

/// Where relative redirects lead.
@Suite(.timeLimit(.minutes(15))) struct URIReferenceTests {
    /// RFC 3986, sections 5.4.1 and 5.4.2; the fragments, which are never sent, left out of the results.
    private static let examples = [
        ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"), ("//g", "http://g/"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q"), ("g#s", "http://a/b/c/g"), ("g?y#s", "http://a/b/c/g?y"),
        (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"), ("g;x?y#s", "http://a/b/c/g;x?y"),
        ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"),
        ("../", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../", "http://a/"),
        ("../../g", "http://a/g"), ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"),
        ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"),
        ("g..", "http://a/b/c/g.."), ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"),
        ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"),
        ("g;x=1/./y", "http://a/b/c/g;x=1/y"), ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/./x", "http://a/b/c/g?y/./x"), ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("g#s/../x", "http://a/b/c/g"), ("http:g", "http:g"),
    ]

    @Test func `a reference means what RFC 3986 says it means`() {
        for (reference, meaning) in Self.examples {
            #expect(HTTPURL.resolved(reference, at: "http://a/b/c/d;p?q") == meaning, "'\(reference)'")
        }
        #expect(HTTPURL.resolved("g", at: "http://a") == "http://a/g")
        // Nothing that came is written otherwise, whatever may stand beside an escape.
        let kept = ["/x%2Fy?s=a%2Bb%3D|c", "/x?f=[1]", "/50%", "/x%2Fy?s=a%2Bb%3D"]
        for text in kept { #expect(HTTPURL.resolved(text, at: "http://a/b?f=[1]") == "http://a" + text) }
        // These are no addresses.
        for text in ["/a\\b", "/a b", "///g", "http:///g"] { #expect(HTTPURL.resolved(text, at: "http://a/b") == text) }
        #expect(HTTPURL.resolved("https://c/d?sig=A%2FB&f={x}", at: "http://a/b") == "https://c/d?sig=A%2FB&f={x}")
        // A colon behind a slash or a question mark begins no address.
        #expect(HTTPURL.resolved("g/a:b", at: "http://a/b") == "http://a/g/a:b")
        #expect(HTTPURL.resolved("?at=10:30", at: "http://a/b") == "http://a/b?at=10:30")
    }

    @Test func `a file behind a redirect without a leading slash is fetched`() async throws {
        let server = try ScriptedServer { connection in
            while true {
                let request = try connection.readRequest()
                if request.line.contains(" /shop/latest ") {
                    try connection.answer("302 Found", headers: "Location: v2/model.glb?id=7\r\n", "")
                } else if request.line.contains(" /shop/v2/model.glb?id=7 ") {
                    let body = request.line.hasPrefix("HEAD") ? "" : "abc"
                    try connection.answer("200 OK", headers: "ETag: \"v\"\r\n", body)
                } else {
                    try connection.answer("404 Not Found", "no")
                }
            }
        }
        let directory = try TemporaryDirectory()
        let target = directory.path.appending("model.glb")
        let web = WebFetch(userAgent: "inlet-tests/1")
        defer { web.shutdown() }
        let fetched = try await web.fetch("http://127.0.0.1:\(server.port)/shop/latest", FetchOrder(file: target))
        #expect(fetched.size == 3)
        #expect(try String(contentsOfFile: target.string, encoding: .utf8) == "abc")
    }

    @Test(arguments: ["https://169.254.169.254/latest/meta-data", "https://168.63.129.16/p", "https://cdn.test:25/p"])
    func `a redirect to where a cloud keeps its credentials, or to another protocol's port, is refused`(
        target: String
    ) async throws {
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.answer("302 Found", headers: "Location: \(target)\r\n", "")
        }
        let directory = try TemporaryDirectory()
        let web = WebFetch(userAgent: "inlet-tests/1")
        defer { web.shutdown() }
        let error = await #expect(throws: DeliveryError.self) {
            try await web.fetch(
                "http://127.0.0.1:\(server.port)/p", FetchOrder(file: directory.path.appending("file")))
        }
        #expect(error?.code == .forbiddenURL && error?.verdict == .giveUp)
    }
}

@Suite(.timeLimit(.minutes(15))) struct ConnectionReuseTests {
    /// A store that takes everything and keeps its connections open.
    private static func store() throws -> ScriptedServer {
        try ScriptedServer { connection in
            while true {
                _ = try connection.readRequest()
                try connection.answer(headers: "ETag: \"0\"\r\n")
            }
        }
    }

    @Test(arguments: [1, 6])
    func `files of one destination share its connections, however many they are`(_ atOnce: Int) async throws {
        let (server, files) = (try Self.store(), try TemporaryDirectory())
        let factory = PipelineFactory(pool: BlockingPool(name: "reuse", threads: 2), userAgent: "inlet-tests/1")
        defer { factory.shutdown() }
        let pipeline = try factory.place(
            "s3",
            [
                "endpoint": .string("http://127.0.0.1:\(server.port)"), "bucket": .string("sandbox"),
                "access_key": .secret(Secret(S3Account.accessKey)), "secret_key": .secret(S3Account.secretKey),
                "verify": .string("size"),
            ])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in 0..<atOnce {
                group.addTask {
                    for number in 0..<20 {
                        let path = try files.write([1, 2, 3], to: FilePath("\(lane)-\(number)"))
                        let source = try SourceFile(opening: path)
                        let order = DeliveryOrder(
                            id: 1, destination: "here", key: "\(lane)/\(number)", mediaType: "video/mp4", fields: [:],
                            source: source.opened)
                        _ = try await pipeline.deliver(source, order, Notes().attempt())
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect((1...atOnce).contains(server.connections), "\(20 * atOnce) files")
    }
}
