import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// What each service gets, and what its answers mean.
@Suite struct MessageTests {
    private static let now = WallTime(milliseconds: 1_700_000_000_000)
    private static let safe = NotificationMessage(
        title: "SAFE TO REMOVE: EOS_A", text: "186 files\nlib: 186 of 186, proved", link: "https://nas.lan/#/cards/1",
        tags: ["white_check_mark"])
    private static let problem = NotificationMessage(
        title: "CALL SOMEBODY: EOS_A", text: "3 files", isUrgent: true, tags: ["rotating_light"])

    /// Sends once to a server that does what `script` says.
    private func send(
        _ message: NotificationMessage, by service: (_ server: String) -> MessageService,
        _ script: @escaping ScriptedServer.Script
    ) async throws -> NotificationOutcome {
        let server = try ScriptedServer(script)
        let factory = PipelineFactory(pool: BlockingPool(name: "hook", threads: 1), userAgent: "inlet-tests/1")
        defer { factory.shutdown() }
        let settings = NotifySettings(
            name: "phone", receiver: .service(service("http://127.0.0.1:\(server.port)")), timeout: .seconds(20))
        let client = try #require(try factory.messages(settings))
        #expect(client.host == "127.0.0.1:\(server.port)")
        let outcome = await client.send(message, id: "inlet-j-7", machine: "nas", at: Self.now)
        #expect(!"\(outcome)".contains("canary"), "\(outcome)")
        return outcome
    }

    /// The request that a service gets for a message.
    private func request(
        _ message: NotificationMessage = safe, by service: (_ server: String) -> MessageService
    ) async throws -> ReceivedRequest {
        let seen = Listing<ReceivedRequest>()
        let outcome = try await send(message, by: service) { connection in
            seen.add(try connection.readRequest())
            try connection.answer("200 OK", "{}")
        }
        #expect(outcome == .taken)
        #expect(seen.all.count == 1)
        return try #require(seen.all.first)
    }

    private func body(_ request: ReceivedRequest) throws -> JSONValue {
        #expect(request.headers["content-type"] == "application/json")
        return try JSONValue(parsing: request.body)
    }

    private func json(_ text: String) throws -> JSONValue { try JSONValue(parsing: text.utf8) }

    @Test func `ntfy gets JSON at its root, with the topic inside`() async throws {
        let request = try await request { .ntfy(topic: Secret("\($0)/my-Topic_1"), token: Secret("tk_canary")) }
        #expect(request.line == "POST / HTTP/1.1" && request.headers["authorization"] == "Bearer tk_canary")
        let expected =
            #"{"topic":"my-Topic_1","title":"SAFE TO REMOVE: EOS_A","message":"186 files\nlib: 186 of 186, proved","#
            + #""priority":3,"tags":["white_check_mark"],"click":"https://nas.lan/#/cards/1"}"#
        #expect(try body(request) == json(expected))
        let urgent = try await self.request(Self.problem) { .ntfy(topic: Secret("\($0)/sub/T"), token: nil) }
        #expect(urgent.line == "POST /sub/ HTTP/1.1" && urgent.headers["authorization"] == nil)
        let other =
            #"{"topic":"T","title":"CALL SOMEBODY: EOS_A","message":"3 files","priority":4,"tags":["rotating_light"]}"#
        #expect(try body(urgent) == json(other))
    }

    @Test func `Gotify gets its token in a header, and what to open`() async throws {
        let request = try await request { .gotify(server: "\($0)/push", token: Secret("canary")) }
        #expect(request.line == "POST /push/message HTTP/1.1" && request.headers["x-gotify-key"] == "canary")
        let expected =
            #"{"title":"SAFE TO REMOVE: EOS_A","message":"186 files\nlib: 186 of 186, proved","priority":5,"#
            + #""extras":{"client::notification":{"click":{"url":"https://nas.lan/#/cards/1"}}}}"#
        #expect(try body(request) == json(expected))
        let urgent = try await self.request(Self.problem) { .gotify(server: $0, token: Secret("canary")) }
        #expect(try body(urgent) == json(#"{"title":"CALL SOMEBODY: EOS_A","message":"3 files","priority":8}"#))
    }

    @Test func `Pushover gets a form with both keys`() async throws {
        let request = try await request {
            .pushover(user: Secret("u-canary"), token: Secret("t&canary"), server: $0)
        }
        #expect(request.line == "POST /1/messages.json HTTP/1.1")
        #expect(request.headers["content-type"] == "application/x-www-form-urlencoded")
        let expected =
            "token=t%26canary&user=u-canary&title=SAFE%20TO%20REMOVE%3A%20EOS_A"
            + "&message=186%20files%0Alib%3A%20186%20of%20186%2C%20proved&priority=0"
            + "&url=https%3A%2F%2Fnas.lan%2F%23%2Fcards%2F1"
        #expect(String(decoding: request.body, as: UTF8.self) == expected)
        let urgent = try await self.request(Self.problem) {
            .pushover(user: Secret("u-canary"), token: Secret("t-canary"), server: $0)
        }
        #expect(String(decoding: urgent.body, as: UTF8.self).hasSuffix("&message=3%20files&priority=1"))
    }

    @Test func `Apprise gets a type, and the link as a line`() async throws {
        let request = try await request { .apprise(Secret("\($0)/notify/canary")) }
        #expect(request.line == "POST /notify/canary HTTP/1.1")
        let expected =
            #"{"title":"SAFE TO REMOVE: EOS_A","type":"info","format":"text","#
            + #""body":"186 files\nlib: 186 of 186, proved\nhttps://nas.lan/#/cards/1"}"#
        #expect(try body(request) == json(expected))
        let urgent = try await self.request(Self.problem) { .apprise(Secret("\($0)/notify/canary")) }
        #expect(try body(urgent)["type"] == .string("failure"))
    }

    @Test func `Discord gets escaped Markdown that mentions nobody`() async throws {
        let message = NotificationMessage(
            title: "A_1", text: "*x* @everyone <@1> `c` [a](b)", isUrgent: true, link: "https://nas.lan/#/a_b")
        let request = try await request(message) { .discord(Secret("\($0)/api/webhooks/1/canary")) }
        #expect(request.line == "POST /api/webhooks/1/canary?wait=true HTTP/1.1")
        let content =
            #"**❗ A\_1**"# + "\n" + #"\*x\* \@everyone \<\@1\> \`c\` \[a\]\(b\)"# + "\nhttps://nas.lan/#/a_b"
        #expect(
            try body(request)
                == .object([
                    "content": .string(content), "allowed_mentions": .object(["parse": .array([])]),
                    "flags": JSONValue(4),
                ]))
    }

    @Test func `Telegram gets plain text without a preview`() async throws {
        let request = try await request { .telegram(chat: "-1001", token: Secret("123:canary-A_b"), server: "\($0)/") }
        #expect(request.line == "POST /bot123:canary-A_b/sendMessage HTTP/1.1")
        let text = "SAFE TO REMOVE: EOS_A\n186 files\nlib: 186 of 186, proved\nhttps://nas.lan/#/cards/1"
        #expect(
            try body(request)
                == .object([
                    "chat_id": .string("-1001"), "text": .string(text),
                    "link_preview_options": .object(["is_disabled": .boolean(true)]),
                ]))
    }

    @Test func `a long text is cut to what the service takes, and keeps its link`() throws {
        let long = NotificationMessage(
            title: String(repeating: "t", count: 300), text: String(repeating: "_é", count: 5000),
            link: "https://nas.lan/1")
        func sent(_ service: MessageService) throws -> JSONValue { try JSONValue(parsing: service.request(long).body) }
        let ntfy = try sent(.ntfy(topic: Secret("https://ntfy.sh/t"), token: nil))
        #expect(try (3998...4000).contains(#require(ntfy["message"]?.string).utf8.count))
        let discord = try #require(try sent(.discord(Secret("https://d")))["content"]?.string)
        #expect((1997...2000).contains(discord.utf16.count) && discord.hasSuffix("…\nhttps://nas.lan/1"))
        #expect(!discord.contains("\\…"))
        let telegram = try #require(
            try sent(.telegram(chat: "1", token: Secret("1:a"), server: "https://t"))["text"]?.string)
        #expect((4095...4096).contains(telegram.utf16.count) && telegram.hasSuffix("…\nhttps://nas.lan/1"))
        let form = String(
            decoding: MessageService.pushover(user: Secret("u"), token: Secret("t"), server: "").request(long).body,
            as: UTF8.self)
        let fields = form.split(separator: "&").map { $0.removingPercentEncoding ?? "" }
        #expect(fields.contains { $0.hasPrefix("message=") && $0.dropFirst(8).unicodeScalars.count == 1024 })
        #expect(fields.contains { $0.hasPrefix("title=") && $0.dropFirst(6).count == 250 })
    }

    // MARK: - Answers

    private static let services: [@Sendable (String) -> MessageService] = [
        { .ntfy(topic: Secret("\($0)/topic-canary"), token: Secret("tk_canary")) },
        { .gotify(server: $0, token: Secret("token-canary")) },
        { .pushover(user: Secret("user-canary"), token: Secret("token-canary"), server: $0) },
        { .apprise(Secret("\($0)/notify/canary")) }, { .discord(Secret("\($0)/hooks/canary")) },
        { .telegram(chat: "1", token: Secret("1:token-canary"), server: $0) },
    ]

    @Test(arguments: services.indices)
    func `a server that repeats everything it got is not quoted with secrets`(_ index: Int) async throws {
        let outcome = try await send(Self.safe, by: Self.services[index]) { connection in
            let request = try connection.readRequest()
            let said = ([request.line] + request.headers.values).joined(separator: " ")
            try connection.answer("400 Bad", "no: \(said) \(String(decoding: request.body, as: UTF8.self))")
        }
        guard case .refused(let reason, nil) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(reason.contains(" answered 400: no: "), "\(reason)")
    }

    @Test(arguments: services.indices)
    func `a server that is busy is asked again when it says so`(_ index: Int) async throws {
        let outcome = try await send(Self.safe, by: Self.services[index]) { connection in
            _ = try connection.readRequest()
            try connection.answer("429 Slow", headers: "Retry-After: 7\r\n")
        }
        guard case .unanswered(.seconds(7)?, _) = outcome else {
            Issue.record("\(outcome)")
            return
        }
    }

    @Test func `Telegram's pause is in its body, and Apprise without a service has taken nothing`() async throws {
        let busy = try await send(Self.safe, by: Self.services[5]) { connection in
            _ = try connection.readRequest()
            try connection.answer("429 Slow", #"{"ok":false,"parameters":{"retry_after":35}}"#)
        }
        #expect(busy == .unanswered(after: .seconds(35), reason: "Telegram asks for a pause of 35 s"))
        let nobody = try await send(Self.safe, by: Self.services[3]) { connection in
            _ = try connection.readRequest()
            try connection.answer("204 No Content")
        }
        #expect(nobody == .refused(reason: "Apprise has no service to notify under this address", tries: nil))
    }

    @Test(arguments: [
        (MessageService.ntfy(topic: Secret("https://ntfy.sh"), token: nil), "ntfy", "the address of a topic"),
        (.ntfy(topic: Secret("https://ntfy.sh/"), token: nil), "ntfy", "the address of a topic"),
        (.ntfy(topic: Secret("https://ntfy.sh/canary?tpl=1"), token: nil), "ntfy", "the address of a topic"),
        (.ntfy(topic: Secret("canary"), token: nil), "ntfy", "an http:// or https:// address"),
        (.gotify(server: "http://push.example", token: Secret("canary")), "gotify", "allow_http: true"),
        (.pushover(user: Secret("canary"), token: Secret("t"), server: "ftp://x"), "server", "https:// address"),
        (.apprise(Secret("http://apprise.example/notify/canary")), "apprise", "is not encrypted"),
        (.discord(Secret("http://discord.example/canary")), "discord", "is not encrypted"),
        (.telegram(chat: "1", token: Secret("canary/../x"), server: "https://t"), "token", "a bot's token"),
        (.smtp(MailAccount(server: "https://mail", from: "a@b", to: ["a@b"])), "smtp", "smtps://HOST"),
        (
            .smtp(MailAccount(server: "smtps://me:canary@mail", from: "a@b", to: ["a@b"])), "smtp",
            "'user' and 'password'"
        ),
    ])
    func `an address that cannot be used is refused at its key, and not quoted`(
        _ service: MessageService, _ key: String, _ expected: String
    ) {
        let factory = PipelineFactory(pool: BlockingPool(name: "hook", threads: 1), userAgent: "inlet-tests/1")
        defer { factory.shutdown() }
        let settings = NotifySettings(name: "phone", receiver: .service(service))
        let fault = #expect(throws: SettingFault.self) { _ = try factory.messages(settings) }
        #expect(fault?.key == key && fault?.message.contains(expected) == true, "\(fault as Any)")
        #expect(fault?.message.contains("canary") == false)
    }
}
