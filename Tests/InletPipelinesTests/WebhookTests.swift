import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

@Suite struct WebhookTests {
    private static let now = WallTime(milliseconds: 1_614_265_330_000)
    private static let body = Array(#"{"test": 2432232314}"#.utf8)

    /// Posts once to a server that does what `script` says.
    private func post(
        _ script: @escaping ScriptedServer.Script, to path: String = "/path-canary?token=query-canary",
        secret: Secret? = nil, timeout: Duration = .seconds(20)
    ) async throws -> NotificationOutcome {
        let server = try ScriptedServer(script)
        let factory = PipelineFactory(pool: BlockingPool(name: "hook", threads: 1), userAgent: "inlet-tests/1")
        defer { factory.shutdown() }
        let url = Secret("http://127.0.0.1:\(server.port)\(path)")
        let settings = NotifySettings(name: "ops", receiver: .webhook(url), secret: secret, timeout: timeout)
        let webhook = try #require(try factory.webhook(settings))
        let outcome = await webhook.post(Self.body, id: "msg_p5jXN8AQM9LWM0D4loKWxJek", at: Self.now)
        #expect(!"\(outcome)".contains("canary"), "\(outcome)")
        _ = server.port
        return outcome
    }

    // The vectors of the Standard Webhooks libraries and of GitHub's documentation.
    @Test func `signatures are those of the specifications`() throws {
        let standard = try #require(WebhookSignature(Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")))
        let headers = standard.headers(id: "msg_p5jXN8AQM9LWM0D4loKWxJek", time: 1_614_265_330, body: Self.body)
        #expect(headers.first?.name == "webhook-signature")
        #expect(headers.first?.value == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
        let hub = try #require(WebhookSignature(Secret("It's a Secret to Everybody")))
        let fields = hub.headers(id: "x", time: 0, body: Array("Hello, World!".utf8))
        #expect(fields.last?.name == "X-Hub-Signature-256")
        #expect(
            fields.last?.value == "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")
        #expect(WebhookSignature(Secret("whsec_!")) == nil)
    }

    @Test func `a notice is posted once, as it is, with its signature`() async throws {
        let seen = Listing<ReceivedRequest>()
        let outcome = try await post(
            { connection in
                seen.add(try connection.readRequest())
                try connection.answer("204 No Content")
            }, secret: Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
        #expect(outcome == .taken)
        let request = try #require(seen.all.last)
        #expect(request.line == "POST /path-canary?token=query-canary HTTP/1.1" && request.body == Self.body)
        #expect(request.headers["content-type"] == "application/json")
        #expect(request.headers["webhook-id"] == "msg_p5jXN8AQM9LWM0D4loKWxJek")
        #expect(request.headers["webhook-timestamp"] == "1614265330")
        #expect(request.headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
        #expect(request.headers["x-hub-signature-256"]?.hasPrefix("sha256=") == true)
    }

    @Test func `without a secret nothing is signed`() async throws {
        let seen = Listing<ReceivedRequest>()
        let outcome = try await post({ connection in
            seen.add(try connection.readRequest())
            try connection.answer()
        })
        #expect(outcome == .taken)
        let names = try #require(seen.all.last).headers.keys
        #expect(!names.contains("webhook-signature") && !names.contains("x-hub-signature-256"))
        #expect(names.contains("webhook-id"))
    }

    @Test(arguments: [
        ("500 Oops", "", "unanswered nil"), ("503 Busy", "Retry-After: 120\r\n", "unanswered 120"),
        ("429 Slow", "Retry-After: 7\r\n", "unanswered 7"), ("408 Late", "", "unanswered nil"),
        ("400 Bad", "", "refused"), ("401 No", "", "refused"), ("404 None", "", "refused"), ("410 Gone", "", "gone"),
        ("302 Found", "Location: http://127.0.0.1:9/\r\n", "refused"), ("201 Made", "", "taken"),
    ])
    func `an answer says whether and when it is tried again`(
        _ status: String, _ headers: String, _ expected: String
    ) async throws {
        let outcome = try await post({ connection in
            _ = try connection.readRequest()
            try connection.answer(status, headers: headers)
        })
        let kind =
            switch outcome {
            case .taken: "taken"
            case .unanswered(let after, _): "unanswered \(after.map { String($0.components.seconds) } ?? "nil")"
            case .refused: "refused"
            case .gone: "gone"
            case .cancelled: "cancelled"
            }
        #expect(kind == expected)
    }

    @Test(arguments: [
        ("/hooks/canary1", "<pre>Cannot POST /hooks/canary1</pre>"),
        ("/hooks/canary1?key=canary2&x=1", "no /hooks/canary1?key=canary2&x=1 here; canary2 is not known"),
        ("/hooks/canary1", #"{"path":"\/hooks\/canary1"}"#), ("/a/big%20canary/b", "no such hook: big canary"),
        // Cut off within the path, it would not be found any more.
        (
            "/hooks/canary-canary-canary-canary",
            "\(String(repeating: "x ", count: 88)) /hooks/canary-canary-canary-canary"
        ),
    ])
    func `a receiver that quotes its address is not quoted with it`(_ path: String, _ said: String) async throws {
        let outcome = try await post(
            { connection in
                _ = try connection.readRequest()
                try connection.answer("404 Not Found", said)
            }, to: path)
        guard case .refused(let reason, _) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(reason.contains(" answered 404: ") && reason.contains("***"), "\(reason)")
    }

    @Test func `a server that drips its answer, hangs up or is not there has not answered`() async throws {
        let dripping = try await post(
            { connection in
                _ = try connection.readRequest()
                try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                while connection.linger(milliseconds: 20) { try connection.write("x") }
            }, timeout: .milliseconds(500))
        let hungUp = try await post({ connection in _ = try connection.readRequest() })
        for outcome in [dripping, hungUp] {
            guard case .unanswered(nil, _) = outcome else {
                Issue.record("\(outcome)")
                continue
            }
        }
    }

    @Test func `an address that cannot be used is refused, and not quoted`() {
        let factory = PipelineFactory(pool: BlockingPool(name: "hook", threads: 1), userAgent: "inlet-tests/1")
        defer { factory.shutdown() }
        for address in ["http://hooks.example/canary", "ftp://hooks.example/canary", "canary"] {
            let settings = NotifySettings(name: "ops", receiver: .webhook(Secret(address)))
            let fault = #expect(throws: SettingFault.self) { _ = try factory.webhook(settings) }
            #expect(fault?.key == "webhook" && fault?.message.contains("canary") == false)
        }
        var open = NotifySettings(name: "ops", receiver: .webhook(Secret("http://hooks.example/x")))
        open.allowsHTTP = true
        #expect(throws: Never.self) { _ = try factory.webhook(open) }
        open.secret = Secret("whsec_???")
        let fault = #expect(throws: SettingFault.self) { _ = try factory.webhook(open) }
        #expect(fault?.key == "secret")
    }

    @Test func `pings name their signal below the address, before its query`() async throws {
        let lines = Listing<String>()
        let server = try ScriptedServer { connection in
            while true {
                let request = try connection.readRequest()
                lines.add(request.line + " " + String(decoding: request.body, as: UTF8.self))
                try connection.answer(request.line.contains("/start") ? "404 Not Found" : "200 OK")
            }
        }
        let factory = PipelineFactory(pool: BlockingPool(name: "hook", threads: 1), userAgent: "inlet-tests/1")
        defer { factory.shutdown() }
        let settings = PingSettings(
            url: Secret("http://127.0.0.1:\(server.port)/ping/id?create=1"), interval: .seconds(300))
        let ping = try factory.ping(settings)
        #expect(await ping.send(.start) == .unknown)
        #expect(await ping.send(.success) == .taken)
        #expect(await ping.send(.fail("the disk is full")) == .taken)
        #expect(
            lines.all == [
                "GET /ping/id/start?create=1 HTTP/1.1 ", "GET /ping/id?create=1 HTTP/1.1 ",
                "POST /ping/id/fail?create=1 HTTP/1.1 the disk is full",
            ])
    }

    @Test func `receivers are trusted by their ca_file`() async throws {
        let server = try ScriptedServer { $0.waitForEnd() }
        let factory = PipelineFactory(pool: BlockingPool(name: "hook", threads: 1), userAgent: "inlet-tests/1")
        defer { factory.shutdown() }
        let (url, file) = (Secret("https://127.0.0.1:\(server.port)/id"), FilePath("/nowhere/ca.pem"))
        // It is read once there is a connection.
        var settings = NotifySettings(name: "ops", receiver: .webhook(url))
        settings.caFile = file
        let hook = try factory.webhook(settings)
        let outcome = try await #require(hook).post([], id: "1", at: WallTime(milliseconds: 0))
        guard case .unanswered(_, let reason) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(reason.contains("check that ca_file is a readable PEM file"))
        let ping = try factory.ping(PingSettings(url: url, interval: .seconds(300), caFile: file))
        guard case .failed(let why) = await ping.send(.success) else {
            Issue.record("pinged")
            return
        }
        #expect(why.contains("check that ca_file is a readable PEM file"))
    }

    @Test func `a ping goes to another machine unencrypted only where somebody says so`() throws {
        let factory = PipelineFactory(pool: BlockingPool(name: "hook", threads: 1), userAgent: "inlet-tests/1")
        defer { factory.shutdown() }
        var settings = PingSettings(url: Secret("http://ping.example/canary"), interval: .seconds(300))
        let fault = #expect(throws: SettingFault.self) { try factory.ping(settings) }
        #expect(fault?.key == "ping_url" && fault?.message.contains("ping_allow_http: true") == true)
        #expect(fault?.message.contains("canary") == false)
        settings.allowsHTTP = true
        #expect(throws: Never.self) { try factory.ping(settings) }
    }
}
