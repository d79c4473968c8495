import Foundation
import InletCore
import InletTestSupport
import Synchronization
import Testing

@testable import InletTransfer

@Suite(.timeLimit(.minutes(15))) struct ChecklistGapsTests {
    @Test func `a body that is held back is not judged, and from its release on as any other`() {
        let start = ContinuousClock.now
        var deadlines = Deadlines(stall: .seconds(60), answer: .seconds(120), sendsBody: true, now: start)
        deadlines.held(at: start)
        let later = start.advanced(by: .seconds(86_400))
        #expect(deadlines.verdict(at: later) == nil && deadlines.next == nil)
        deadlines.released(at: later)
        #expect(deadlines.verdict(at: later) == nil && deadlines.next == later.advanced(by: .seconds(60)))
        #expect(deadlines.verdict(at: later.advanced(by: .seconds(60))) == .stalled)
        deadlines.held(at: later)
        deadlines.bodyEnded(at: later)
        #expect(deadlines.next == later.advanced(by: .seconds(60)))
    }

    @Test func `a transfer that moves has no total limit`() {
        let start = ContinuousClock.now
        var deadlines = Deadlines(stall: .seconds(60), answer: .seconds(120), sendsBody: true, now: start)
        var now = start
        for _ in 0..<2000 {
            now = now.advanced(by: .seconds(59))
            #expect(deadlines.verdict(at: now) == nil)
            deadlines.bodyMoved(at: now)
        }
        #expect(deadlines.verdict(at: now.advanced(by: .seconds(60))) == .stalled)
    }

    @Test(arguments: [(200, true), (201, true), (226, true), (299, true), (300, false), (304, false), (400, false)])
    func `a body counts as sent by any status from 200 to 299, and by no other`(status: Int, counts: Bool) async throws
    {
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.answer("\(status) Some Words")
        }
        let meter = TransferMeter()
        let request = HTTPRequest("PUT", try server.url(), body: .bytes(pattern(100_000)))
        let answer = try await makeClient().send(request, meter: meter)
        #expect(answer.status == status)
        #expect(meter.bytesSent == (counts ? 100_000 : 0))
    }

    @Test func `bytes are counted while they are under way, and in the end all of them`() async throws {
        let goesOn = Atomic<Bool>(false)
        let size = 30_000_000
        try await withTransfer(of: size, goesOn: { goesOn.load(ordering: .acquiring) }) { meter in
            try await eventually("some bytes are out") { meter.bytesSent > 0 }
            #expect(meter.bytesSent < size)
            goesOn.store(true, ordering: .releasing)
            try await eventually("all bytes are out") { meter.bytesSent == size }
        }
    }

    /// Sends `size` bytes to a server that reads nothing before `goesOn` says so, with `body` beside it.
    private func withTransfer(
        of size: Int, goesOn: @escaping @Sendable () -> Bool, _ body: (TransferMeter) async throws -> Void
    ) async throws {
        let server = try ScriptedServer { connection in
            while !goesOn() { guard connection.linger(milliseconds: 5) else { return } }
            _ = try connection.readRequest()
            try connection.answer()
        }
        let meter = TransferMeter()
        let request = HTTPRequest("PUT", try server.url(), body: .bytes(pattern(size)))
        let client = makeClient()
        async let answer = client.send(request, meter: meter)
        try await body(meter)
        #expect(try await answer.status == 200)
    }
}

/// The line that misbehaves does what it says, and the client sees it as what it is.
@Suite(.timeLimit(.minutes(15))) struct ChaosProxyTests {
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
