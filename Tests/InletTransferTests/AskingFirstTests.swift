import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletTransfer

/// `Expect: 100-continue`, where a refusal would save a large body.
@Suite(.timeLimit(.minutes(8))) struct AskingFirstTests {
    /// The smallest body that is asked for.
    private static let large: Int64 = 64 << 20 + 1

    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func request(_ server: ScriptedServer, _ method: String = "PUT") throws -> HTTPRequest {
        let source = try SourceFile(opening: try sparseFile(folder, size: Self.large))
        var request = HTTPRequest(method, try server.url(), body: .slice(source, offset: 0, length: Self.large))
        request.asksFirst = true
        return request
    }

    /// Reads a body without keeping it.
    private static func drop(_ connection: ServerConnection, _ request: ReceivedRequest) throws {
        var rest = request.headers["content-length"].flatMap { Int($0) } ?? 0
        while rest > 0 { rest -= try connection.read(min(rest, 1 << 20)).count }
    }

    @Test(arguments: ["PUT", "POST", "PATCH"], [401, 403, 412, 413])
    func `what is refused is not sent`(_ method: String, _ status: Int) async throws {
        let asked = Seen<String?>()
        let server = try ScriptedServer { connection in
            while true {
                asked.append(try connection.readHead().headers["expect"])
                try connection.answer("\(status) No", headers: "X-Why: so\r\n", "because")
            }
        }
        let meter = TransferMeter()
        let answer = try await makeClient().send(try request(server, method), meter: meter)
        #expect(answer.status == status && answer.header("X-Why") == "so" && answer.body == Array("because".utf8))
        #expect(asked.all == ["100-continue"])
        #expect(!meter.hasStarted)
    }

    @Test func `a server that agrees gets the body, and is asked again`() async throws {
        let asked = Seen<String?>()
        let server = try ScriptedServer { connection in
            while true {
                let head = try connection.readHead()
                asked.append(head.headers["expect"])
                try connection.write("HTTP/1.1 100 Continue\r\n\r\n")
                try Self.drop(connection, head)
                try connection.answer(headers: "ETag: \"x\"\r\n", "whole")
            }
        }
        let client = makeClient()
        for _ in 1...2 {
            let meter = TransferMeter()
            let answer = try await client.send(try request(server), meter: meter)
            #expect(answer.status == 200 && answer.headers.map(\.name) == ["ETag", "Content-Length"])
            #expect(answer.body == Array("whole".utf8) && meter.bytesSent == Self.large)
        }
        #expect(asked.all == ["100-continue", "100-continue"])
    }

    /// Each on a connection of its own, so that any thread of the client may have it.
    @Test func `a server that says nothing is asked once`() async throws {
        let asked = Seen<String?>()
        let server = try ScriptedServer { connection in
            let head = try connection.readHead()
            asked.append(head.headers["expect"])
            try Self.drop(connection, head)
            try connection.answer(headers: "Connection: close\r\n", "whole")
        }
        let client = makeClient()
        for _ in 1...3 {
            let meter = TransferMeter()
            #expect(try await client.send(try request(server), meter: meter).body == Array("whole".utf8))
            #expect(meter.bytesSent == Self.large)
        }
        #expect(asked.all == ["100-continue", nil, nil])
        #expect(server.connections == 3)
    }

    @Test(arguments: ["PUT", "POST"])
    func `a server that does not know the question gets the body without it`(_ method: String) async throws {
        let asked = Seen<String?>()
        let server = try ScriptedServer { connection in
            while true {
                let head = try connection.readHead()
                asked.append(head.headers["expect"])
                if head.headers["expect"] != nil {
                    try connection.answer("417 Expectation Failed", headers: "X-Odd: 1\r\n", "what?")
                } else {
                    try Self.drop(connection, head)
                    try connection.answer("201 Created", "whole")
                }
            }
        }
        let client = makeClient()
        for _ in 1...2 {
            let meter = TransferMeter()
            let answer = try await client.send(try request(server, method), meter: meter)
            #expect(answer.status == 201 && answer.header("X-Odd") == nil && answer.body == Array("whole".utf8))
            #expect(meter.bytesSent == Self.large)
        }
        #expect(asked.all == ["100-continue", nil, nil])
    }

    @Test(
        arguments: [
            (true, 64 << 20 + 1, true), (true, 5 << 30, true), (true, 64 << 20, false), (true, 0, false),
            (false, 64 << 20 + 1, false), (false, 5 << 30, false),
        ] as [(Bool, Int64, Bool)])
    func `only large bodies are asked for, and only where somebody wants it`(
        _ asksFirst: Bool, _ length: Int64, _ expected: Bool
    ) throws {
        let source = try SourceFile(opening: try folder.write([], to: "source"))
        var request = HTTPRequest(
            "PUT", try HTTPURL("https://h/", rules: .configured(allowHTTP: false)),
            body: .slice(source, offset: 0, length: length))
        #expect(!request.asksFirst)
        request.asksFirst = asksFirst
        #expect(request.wantsConsent == expected)
    }

    @Test func `who is asked in vain is remembered, within bounds`() {
        let asked = ServersAsked()
        #expect(asked.mayAsk("https://a"))
        asked.saidNothing("https://a")
        #expect(!asked.mayAsk("https://a") && asked.mayAsk("https://b"))
        for number in 0..<10_000 { asked.saidNothing("https://\(number)") }
        #expect((0..<10_000).count { !asked.mayAsk("https://\($0)") } <= 256)
    }
}
