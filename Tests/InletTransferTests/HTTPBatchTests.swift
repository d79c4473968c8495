import Dispatch
import InletCore
import InletTestSupport
import Synchronization
import Testing

@testable import InletTransfer

/// Small requests that are sent together.
@Suite(.timeLimit(.minutes(15))) struct HTTPBatchTests {
    private typealias Answers = [(index: Int, result: Result<HTTPResponse, TransferError>)]

    /// What a batch is told, call by call.
    private final class Told: Sendable {
        private let calls = Mutex<[Answers]>([])

        func add(_ answers: Answers) {
            calls.withLock { $0.append(answers) }
            Happening.ring()
        }

        var all: Answers { calls.withLock { $0.flatMap(\.self) } }
        /// How many answers each call brought.
        var counts: [Int] { calls.withLock { $0.map(\.count) } }
        /// The code of each failure, by index.
        var failures: [Int: ErrorCode] {
            all.reduce(into: [:]) { codes, answer in
                if case .failure(let error) = answer.result { codes[answer.index] = error.code }
            }
        }
        var statuses: [Int: Int] {
            all.reduce(into: [:]) { statuses, answer in
                if case .success(let response) = answer.result { statuses[answer.index] = response.status }
            }
        }
        var indices: [Int] { all.map(\.index).sorted() }
    }

    private typealias Requests = [(request: HTTPRequest, meter: TransferMeter)]

    private static func requests(_ server: ScriptedServer, _ paths: [String]) throws -> Requests {
        try paths.map { (HTTPRequest("PUT", try server.url($0), body: .bytes(Array($0.utf8))), TransferMeter()) }
    }

    private static func paths(_ range: Range<Int>) -> [String] { range.map { "/\($0)" } }

    /// Answers with what came; requests for `/held` wait until the client leaves.
    private static func echo(_ seen: Seen<String> = Seen()) throws -> ScriptedServer {
        try ScriptedServer { connection in
            while true {
                let request = try connection.readRequest()
                let text = String(decoding: request.body, as: UTF8.self)
                seen.append(text)
                if text == "/held" { return connection.waitForEnd() }
                try connection.answer("200 OK", text)
            }
        }
    }

    @Test(arguments: [1, 4, 64]) func `each answer is told once, with its own index`(_ most: Int) async throws {
        let (client, server, told) = (makeClient(), try Self.echo(), Told())
        defer { client.shutdown() }
        let paths = Self.paths(0..<100)
        try client.batch(Self.requests(server, paths), most: most, ended: told.add).start()
        try await eventually("all are told") { told.all.count >= 100 }
        #expect(told.indices == Array(0..<100))
        for answer in told.all {
            #expect(try answer.result.get().body == Array(paths[answer.index].utf8))
        }
        #expect(server.connections <= most)
    }

    /// The loop's thread is held in the first call until the others' answers are there.
    @Test func `answers that are there at the same time are told in one call`() async throws {
        let (arrived, written) = (Seen<Bool>(), DispatchSemaphore(value: 0))
        let (first, others) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let server = try ScriptedServer { connection in
            let path = String(decoding: try connection.readRequest().body, as: UTF8.self)
            arrived.append(true)
            (path == "/0" ? first : others).wait()
            try connection.answer()
            if path != "/0" { written.signal() }
            connection.waitForEnd()
        }
        let (client, told) = (makeClient(), Told())
        defer { client.shutdown() }
        let batch = try client.batch(Self.requests(server, Self.paths(0..<8)), most: 8) { answers in
            if answers.contains(where: { $0.index == 0 }) {
                for _ in 1..<8 { others.signal() }
                for _ in 1..<8 { written.wait() }
            }
            told.add(answers)
        }
        batch.start()
        try await eventually("all have arrived") { arrived.all.count == 8 }
        first.signal()
        try await eventually("all are told") { told.all.count == 8 }
        #expect(told.counts.first == 1 && told.counts.count < 8 && told.indices == Array(0..<8))
    }

    @Test func `a connection that the server closes costs the others nothing`() async throws {
        let server = try ScriptedServer { connection in
            while true {
                let text = String(decoding: try connection.readRequest().body, as: UTF8.self)
                // Without an answer, or right after one.
                if text.hasPrefix("/lost") { return connection.reset() }
                try connection.answer()
                if text.hasPrefix("/last") { return }
            }
        }
        let (client, told) = (makeClient(), Told())
        defer { client.shutdown() }
        let paths = (0..<60).map { ["/lost", "/last", "/"][$0 % 10 < 2 ? $0 % 10 : 2] + "\($0)" }
        try client.batch(Self.requests(server, paths), most: 4, ended: told.add).start()
        try await eventually("all are told") { told.all.count >= 60 }
        #expect(told.indices == Array(0..<60))
        let lost = paths.indices.filter { paths[$0].hasPrefix("/lost") }
        #expect(told.failures.keys.sorted() == lost && Set(told.failures.values) == [.connectionLost])
    }

    @Test func `no more of it are on their way than may be`() async throws {
        let (arrived, gate) = (Seen<Bool>(), DispatchSemaphore(value: 0))
        let server = try ScriptedServer { connection in
            while true {
                _ = try connection.readRequest()
                arrived.append(true)
                gate.wait()
                try connection.answer()
            }
        }
        let (client, told) = (makeClient(), Told())
        defer { client.shutdown() }
        try client.batch(Self.requests(server, Self.paths(0..<30)), most: 3, ended: told.add).start()
        try await eventually("three have arrived") { arrived.all.count == 3 }
        for _ in 0..<30 { gate.signal() }
        try await eventually("all are told") { told.all.count == 30 }
        #expect(server.connections == 3 && told.statuses.count == 30)
    }

    // MARK: - Cancelling

    @Test func `one that is cancelled ends, and the others go on`() async throws {
        let (client, seen, told) = (makeClient(), Seen<String>(), Told())
        defer { client.shutdown() }
        let server = try Self.echo(seen)
        let paths = ["/held"] + Self.paths(1..<20)
        let batch = try client.batch(Self.requests(server, paths), most: 2, ended: told.add)
        batch.start()
        try await eventually("the others are told") { told.all.count == 19 && seen.all.contains("/held") }
        batch.cancel(0)
        // Twice does no more.
        batch.cancel(0)
        try await eventually("it is told") { told.all.count >= 20 }
        #expect(told.indices == Array(0..<20) && told.failures == [0: .cancelled])
    }

    @Test func `one that is cancelled before the start is not sent, and is told`() async throws {
        let (client, seen, told) = (makeClient(), Seen<String>(), Told())
        defer { client.shutdown() }
        let server = try Self.echo(seen)
        let batch = try client.batch(Self.requests(server, Self.paths(0..<5)), most: 2, ended: told.add)
        batch.cancel(3)
        batch.start()
        try await eventually("all are told") { told.all.count >= 5 }
        #expect(told.indices == Array(0..<5) && told.failures == [3: .cancelled])
        #expect(seen.all.sorted() == ["/0", "/1", "/2", "/4"])
    }

    @Test func `a client that is shut down tells all as cancelled, also those that come later`() async throws {
        let (seen, told, later) = (Seen<String>(), Told(), Told())
        let server = try Self.echo(seen)
        let client = makeClient()
        let requests = try Self.requests(server, Array(repeating: "/held", count: 6))
        try client.batch(requests, most: 2, ended: told.add).start()
        try await eventually("two are on their way") { seen.all.count == 2 }
        let batch = try client.batch(requests, most: 2, ended: later.add)
        client.shutdown()
        #expect(told.indices == Array(0..<6) && Set(told.failures.values) == [.cancelled])
        batch.start()
        #expect(later.indices == Array(0..<6) && Set(later.failures.values) == [.cancelled] && seen.all.count == 2)
    }

    // MARK: - Before anything is sent

    @Test func `one request that cannot be sent as written stops all of them`() async throws {
        let (seen, told) = (Seen<String>(), Told())
        let server = try Self.echo(seen)
        var requests = try Self.requests(server, Self.paths(0..<3))
        requests[2].request = HTTPRequest("PUT", try server.url(), headers: [("X-Broken", "a\r\nb")])
        let error = #expect(throws: TransferError.self) {
            try makeClient().batch(requests, most: 2, ended: told.add).start()
        }
        #expect(error?.code == .badRequest && seen.all.isEmpty && told.all.isEmpty)
    }

    // MARK: - Handles

    /// Uploads one after the other share a handle that stays set up for the next.
    @Test func `of the request before nothing is sent again`() async throws {
        let seen = Seen<ReceivedRequest>()
        let server = try ScriptedServer { connection in
            while true {
                seen.append(try connection.readRequest())
                try connection.answer()
            }
        }
        func request(_ path: String, _ headers: HTTPFields, _ length: Int) throws -> Requests.Element {
            (HTTPRequest("PUT", try server.url(path), headers: headers, body: .bytes(pattern(length))), TransferMeter())
        }
        let full = try request(
            "/one?signature=secret", [("Authorization", "secret"), ("Content-Type", "a/b"), ("X-Note", "1")], 900)
        let requests = [full, try request("/two", [("X-Note", "2")], 3), try request("/three", [], 70), full]
        let told = Told()
        let client = makeClient(connectionsPerHost: 1)
        defer { client.shutdown() }
        try client.batch(requests, most: 1, ended: told.add).start()
        try await eventually("all are told") { told.all.count == 4 }
        #expect(told.statuses.count == 4 && server.connections == 1)
        #expect(
            seen.all.map(\.line)
                == ["/one?signature=secret", "/two", "/three", "/one?signature=secret"].map {
                    "PUT \($0) HTTP/1.1"
                })
        #expect(seen.all.map(\.body) == [900, 3, 70, 900].map { pattern($0) })
        let own: Set = ["authorization", "content-type", "x-note"]
        let sent = seen.all.map { $0.headers.filter { own.contains($0.key) } }
        let all = ["authorization": "secret", "content-type": "a/b", "x-note": "1"]
        #expect(sent == [all, ["x-note": "2"], [:], all])
        #expect(seen.all.map { $0.headers["content-length"] } == ["900", "3", "70", "900"])
    }
}
