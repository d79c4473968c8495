import Foundation
import InletCore
import InletTestSupport
import InletTransfer
import Testing

/// The line that misbehaves does what it says, and the client sees it as what it is.
@Suite(.timeLimit(.minutes(8))) struct ChaosProxyTests {
    private static let long = String(repeating: "x", count: 200_000)

    private func server() throws -> ScriptedServer {
        try ScriptedServer { connection in
            while true {
                let request = try connection.readRequest()
                try connection.answer("200 OK", request.line.contains("long") ? Self.long : "short")
            }
        }
    }

    private func ask(_ proxy: ChaosProxy, _ path: String = "/", body: Int = 0) async throws -> Result<
        Int, TransferError
    > {
        let url = try HTTPURL("http://127.0.0.1:\(proxy.port)\(path)", rules: .configured(allowHTTP: false))
        let bytes: HTTPBody = body == 0 ? .none : .bytes(pattern(body))
        do throws(TransferError) {
            return .success(
                try await makeClient().send(HTTPRequest(body == 0 ? "GET" : "PUT", url, body: bytes)).status)
        } catch {
            return .failure(error)
        }
    }

    /// What an ask comes to: its status, or its code and whether it is an outage.
    private func word(_ result: Result<Int, TransferError>) -> String {
        switch result {
        case .success(let status): "\(status)"
        case .failure(let error): error.code.rawValue + (error.isOutage ? ", an outage" : "")
        }
    }

    @Test(arguments: [
        (LineFault.reset(.request, after: 10), "/", 0, "connection_lost, an outage"),
        (.reset(.request, after: 500_000), "/", 3_000_000, "connection_lost, an outage"),
        (.reset(.answer, after: 0), "/", 0, "connection_lost, an outage"),
        (.reset(.answer, after: 20), "/", 0, "connection_lost"),
        (.reset(.answer, after: 100_000), "/long", 0, "connection_lost"),
        (.cut(.answer, after: 0), "/", 0, "connection_lost, an outage"),
        (.cut(.answer, after: 20), "/", 0, "connection_lost"),
        (.cut(.answer, after: 100_000), "/long", 0, "connection_lost"),
        (.noise, "/", 0, "bad_answer"), (.slow(piece: 8192), "/long", 100_000, "200"),
    ])
    func `a fault is met once, and counted`(_ fault: LineFault, _ path: String, _ body: Int, _ wanted: String)
        async throws
    {
        let server = try server()
        let proxy = try ChaosProxy(to: Int(server.port))
        let before = word(try await ask(proxy, path, body: body))
        #expect(before == "200" && proxy.injected == 0)
        proxy.add(fault)
        #expect(word(try await ask(proxy, path, body: body)) == wanted)
        #expect(proxy.faults == [fault])
        let after = word(try await ask(proxy, path, body: body))
        #expect(after == "200" && proxy.injected == 1)
    }

    @Test func `a refused connection is an outage`() async throws {
        let server = try server()
        let proxy = try ChaosProxy(to: Int(server.port))
        proxy.add(.refuse)
        #expect(word(try await ask(proxy)).hasSuffix(", an outage"))
        #expect(proxy.faults == [.refuse] && server.connections == 0)
        proxy.close()
        #expect(word(try await ask(proxy)) == "connect_failed, an outage")
        try proxy.open()
        #expect(word(try await ask(proxy)) == "200")
    }

    @Test(arguments: LineFault.Way.allCases) func `a stall holds until the client leaves`(_ way: LineFault.Way)
        async throws
    {
        let server = try server()
        let proxy = try ChaosProxy(to: Int(server.port))
        proxy.add(.stall(way, after: 10))
        let running = Task { try await ask(proxy) }
        try await eventually("the stall") { proxy.injected == 1 }
        running.cancel()
        #expect(word(try await running.value) == "cancelled")
        proxy.add(.stall(way, after: 10))
        let second = Task { try await ask(proxy) }
        try await eventually("the second stall") { proxy.injected == 2 }
        proxy.calm()
        #expect(word(try await second.value).hasPrefix("connection_lost"))
        #expect(word(try await ask(proxy)) == "200")
    }

    @Test func `noise is no TLS`() async throws {
        let server = try server()
        let proxy = try ChaosProxy(to: Int(server.port))
        proxy.add(.noise)
        let url = try HTTPURL("https://127.0.0.1:\(proxy.port)/", rules: .configured(allowHTTP: false))
        let error = await failure(makeClient(), HTTPRequest("GET", url))
        #expect(error?.code == .tlsFailed && error?.isOutage == true && proxy.injected == 1)
    }

    @Test(arguments: [UInt64(1), 2, 3]) func `one seed says the same every time`(_ seed: UInt64) {
        var (one, other) = (
            LinePlan(seed: seed, share: 0.5, span: 1000, most: 20),
            LinePlan(seed: seed, share: 0.5, span: 1000, most: 20)
        )
        let first = (0..<100).map { _ in one.next() }
        #expect(first == (0..<100).map { _ in other.next() })
        #expect(first.compactMap(\.self).count == 20)
    }
}
