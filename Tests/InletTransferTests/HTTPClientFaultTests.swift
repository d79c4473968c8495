import Dispatch
import Glibc
import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(15))) struct HTTPClientFaultTests {
    private let secret = "/p?X-Amz-Signature=canary"

    /// The failure of `request` at a server that runs `script`.
    private func failure(
        _ method: String = "GET", body: HTTPBody = .none, limit: Int = 1 << 20,
        answer: Duration = .seconds(120), stall: Duration = .seconds(120),
        _ script: @escaping ScriptedServer.Script
    ) async throws -> TransferError {
        let server = try ScriptedServer(script)
        let meter = TransferMeter()
        let request = HTTPRequest(
            method, try server.url(secret), body: body, answerLimit: limit, answerDeadline: answer, stallTimeout: stall)
        let error = try #require(await InletTransferTests.failure(makeClient(), request, meter: meter))
        #expect(!error.reason.contains("canary"))
        #expect(error.reason.contains("\(method) http://127.0.0.1:\(server.port)/p"))
        #expect(meter.bytesSent == 0)
        return error
    }

    @Test func `a client that was made while no thread could be had begins once there is one`() async throws {
        await #expect(processExitsWith: .success) {
            // root has no limit of threads.
            if ProcessSetup.userID == 0, setuid(65534) != 0 { exit(2) }
            let resource = __rlimit_resource_t(6)  // RLIMIT_NPROC (getrlimit(2)), which Swift does not import
            var former = rlimit()
            getrlimit(resource, &former)
            var none = rlimit(rlim_cur: 0, rlim_max: former.rlim_max)
            if setrlimit(resource, &none) != 0 { exit(3) }
            let client = makeClient()
            let nowhere = try HTTPURL("http://127.0.0.1:9/", rules: .configured(allowHTTP: true))
            let error = await InletTransferTests.failure(client, HTTPRequest("GET", nowhere))
            guard error?.code == .outOfResources, error?.isOutage == true else { exit(4) }
            setrlimit(resource, &former)
            let server = try ScriptedServer { connection in
                _ = try connection.readRequest()
                try connection.answer()
            }
            if try await client.send(HTTPRequest("GET", server.url("/"))).status != 200 { exit(5) }
        }
    }

    /// A connection that was kept from an earlier request dies without an answer to the next one.
    @Test(arguments: [("POST", [1, 2, 3], 2), ("POST", [], 2), ("PATCH", [1], 2), ("PUT", [1], 3)])
    func `only what may be done twice is sent again by itself`(method: String, body: [UInt8], sent: Int) async throws {
        let requests = Seen<String>()
        let server = try ScriptedServer { connection in
            while true {
                requests.append(try connection.readRequest().line)
                if requests.all.count == 2 { return }
                try connection.answer()
            }
        }
        let client = makeClient(connectionsPerHost: 1)
        let request = HTTPRequest(method, try server.url("/job"), body: .bytes(body))
        #expect(try await client.send(request).status == 200)
        let error = await InletTransferTests.failure(client, request)
        #expect(error?.code == (sent == 2 ? .connectionLost : nil))
        #expect(requests.all.count == sent)
    }

    @Test func `who waits for the connection of a request that stalls is sent once that is given up`() async throws {
        let lines = Seen<String>()
        let server = try ScriptedServer { connection in
            lines.append(try connection.readRequest().line)
            if lines.all.count == 1 { connection.waitForEnd() } else { try connection.answer() }
        }
        let client = makeClient(connectionsPerHost: 1)
        let stalling = HTTPRequest("GET", try server.url("/stalls"), stallTimeout: .seconds(1))
        let first = Task { await InletTransferTests.failure(client, stalling) }
        try await eventually("the first arrives") { !lines.all.isEmpty }
        #expect(try await client.send(HTTPRequest("GET", server.url("/waits"))).status == 200)
        #expect(await first.value?.code == .stalled)
        #expect(lines.all == ["GET /stalls HTTP/1.1", "GET /waits HTTP/1.1"])
    }

    @Test func `an endless body is cut at the limit`() async throws {
        let error = try await failure(limit: 10_000) { connection in
            _ = try connection.readRequest()
            try connection.write("HTTP/1.1 200 OK\r\n\r\n")
            while true { try connection.write(String(repeating: "x", count: 4096)) }
        }
        #expect(error.code == .answerTooLarge)
        #expect(!error.isOutage)
    }

    @Test(arguments: [
        (1, 70_000), (300, 10), (100_000_000, 10),
    ]) func `a huge header is refused`(lines: Int, length: Int) async throws {
        let error = try await failure { connection in
            _ = try connection.readRequest()
            try connection.write("HTTP/1.1 200 OK\r\n")
            for line in 0..<lines { try connection.write("X-\(line): \(String(repeating: "y", count: length))\r\n") }
            try connection.write("Content-Length: 0\r\n\r\n")
        }
        #expect(error.code == .answerTooLarge)
    }

    @Test func `a header line without end is refused`() async throws {
        let error = try await failure { connection in
            _ = try connection.readRequest()
            try connection.write("HTTP/1.1 200 OK\r\nX: ")
            while true { try connection.write(String(repeating: "y", count: 4096)) }
        }
        #expect(error.code == .answerTooLarge)
    }

    @Test func `a dripping answer ends at its deadline`() async throws {
        let error = try await failure(answer: .milliseconds(300), stall: .seconds(5)) { connection in
            _ = try connection.readRequest()
            try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while connection.linger(milliseconds: 20) { try connection.write("x") }
        }
        #expect(error.code == .timedOut)
        #expect(!error.isOutage)
    }

    @Test func `no answer at all is a stall`() async throws {
        let error = try await failure(stall: .milliseconds(200)) { connection in
            _ = try connection.readRequest()
            connection.waitForEnd()
        }
        #expect(error.code == .stalled)
        #expect(error.isOutage)
    }

    @Test func `a body that nobody reads is a stall`() async throws {
        let error = try await failure(
            "PUT", body: .bytes(pattern(20_000_000)), answer: .milliseconds(100), stall: .milliseconds(400)
        ) { connection in
            _ = try connection.readHead()
            connection.waitForEnd()
        }
        #expect(error.code == .stalled)
        #expect(error.isOutage)
    }

    @Test func `a dripping answer does not hide a stalled body`() async throws {
        let error = try await failure(
            "PUT", body: .bytes(pattern(20_000_000)), stall: .milliseconds(400)
        ) { connection in
            _ = try connection.readHead()
            while connection.linger(milliseconds: 20) { try connection.write("HTTP/1.1 103 Early Hints\r\n\r\n") }
        }
        #expect(error.code == .stalled)
    }

    @Test func `a reset in the middle of the body is a lost connection`() async throws {
        let error = try await failure("PUT", body: .bytes(pattern(20_000_000))) { connection in
            _ = try connection.readHead()
            connection.reset()
        }
        #expect(error.code == .connectionLost)
        #expect(error.isOutage)
    }

    @Test func `an answer that breaks off is a lost connection, not an outage`() async throws {
        let error = try await failure { connection in
            _ = try connection.readRequest()
            try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
        }
        #expect(error.code == .connectionLost)
        #expect(!error.isOutage)
    }

    @Test func `a connection closed without a word is an outage`() async throws {
        let error = try await failure { connection in _ = try connection.readRequest() }
        #expect(error.code == .connectionLost)
        #expect(error.isOutage)
    }

    @Test(arguments: ["SSH-2.0-OpenSSH_9.2\r\n", "<html>hello</html>", "HTTP/9.9 wat\r\n\r\n"])
    func `garbage is a bad answer`(text: String) async throws {
        let error = try await failure { connection in
            _ = try connection.readRequest()
            try connection.write(text)
        }
        #expect(error.code == .badAnswer)
        #expect(!error.isOutage)
    }

    @Test func `an early refusal is returned although the body was not sent`() async throws {
        let server = try ScriptedServer { connection in
            _ = try connection.readHead()
            try connection.answer("413 Content Too Large", headers: "Connection: close\r\n", "too big")
            connection.waitForEnd()
        }
        let meter = TransferMeter()
        let answer = try await makeClient().send(
            HTTPRequest("PUT", server.url(), body: .bytes(pattern(50_000_000))), meter: meter)
        #expect(answer.status == 413)
        #expect(answer.body == Array("too big".utf8))
        #expect(meter.bytesSent == 0)
    }

    @Test func `a refused port is an outage`() async throws {
        var server: ScriptedServer? = try ScriptedServer { _ in }
        let url = try #require(try server?.url())
        server = nil
        let error = try #require(await InletTransferTests.failure(makeClient(), HTTPRequest("GET", url)))
        #expect(error.code == .connectFailed)
        #expect(error.isOutage)
    }

    @Test func `an unknown name is an outage`() async throws {
        // A label of 64 letters is in no name: no resolver outside this machine is asked for it.
        let name = String(repeating: "a", count: 64) + ".invalid"
        let url = try HTTPURL("https://\(name)/x?q=canary", rules: .configured(allowHTTP: false))
        let error = try #require(await InletTransferTests.failure(makeClient(), HTTPRequest("GET", url)))
        #expect(error.code == .nameNotFound)
        #expect(error.isOutage)
        #expect(!error.reason.contains("canary"))
    }

    @Test func `a source cut while it is sent ends the request`() async throws {
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(pattern(1000), to: "source"))
        let error = try await failure("PUT", body: .slice(source, offset: 500, length: 501)) { connection in
            _ = try connection.readRequest()
            try connection.answer()
        }
        #expect(error.code == .sourceChanged)
        #expect(!error.isOutage)
        #expect(error.reason.contains("source"))
    }

    @Test(arguments: [
        ("GET", "X-Key", "a\r\nX-Evil: 1"), ("GET", "X-Key", "a\nb"), ("GET", "X-Key", "a\u{0}b"),
        ("GET", "X\r\nY", "a"), ("GET", "X Y", "a"), ("GET", "", "a"), ("GE T", "X", "a"), ("", "X", "a"),
        ("GET / HTTP/1.1\r\nX", "X", "a"), ("PUT", "Content-Length", "5"), ("PUT", "transfer-encoding", "chunked"),
    ]) func `what would break the framing is refused`(method: String, name: String, value: String) async throws {
        let server = try ScriptedServer { connection in try connection.answer() }
        let error = await InletTransferTests.failure(
            makeClient(), HTTPRequest(method, try server.url(), headers: [(name, value)]))
        #expect(error?.code == .badRequest)
        #expect(server.connections == 0)
    }
}

@Suite(.timeLimit(.minutes(15))) struct HTTPClientCancellationTests {
    private static let bound = Duration.milliseconds(200)

    /// Sends to a server that answers nothing until `read` is through, cancels, and returns how long that took.
    private func cancelled(
        _ client: HTTPClient, _ body: HTTPBody, _ read: @escaping @Sendable (ServerConnection) throws -> Void
    ) async throws -> Duration {
        let seen = Seen<Bool>()
        let server = try ScriptedServer { connection in
            try read(connection)
            seen.append(true)
            connection.waitForEnd()
        }
        let request = HTTPRequest("PUT", try server.url(), body: body)
        // On a thread of its own, because other tests keep those of the cooperative pool busy.
        let task = Task(executorPreference: BlockingPool(name: "cancelled", threads: 1)) {
            (await failure(client, request), ContinuousClock.now)
        }
        try await eventually("the request arrives") { !seen.all.isEmpty }
        let start = ContinuousClock.now
        task.cancel()
        let (error, end) = await task.value
        #expect(error?.code == .cancelled)
        return end - start
    }

    @Test func `cancelling a stalled upload takes effect within 200 ms`() async throws {
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: sparseFile(directory, size: 1 << 30))
        let time = try await fastest(below: Self.bound) {
            try await cancelled(makeClient(), .slice(source, offset: 0, length: 1 << 30)) { _ = try $0.readHead() }
        }
        #expect(time < Self.bound)
    }

    @Test func `cancelling while the answer is awaited takes effect within 200 ms`() async throws {
        let time = try await fastest(below: Self.bound) {
            try await cancelled(makeClient(), .bytes([1])) { _ = try $0.readRequest() }
        }
        #expect(time < Self.bound)
    }

    @Test func `a request that waits for a connection can be cancelled, and the one that runs goes on`() async throws {
        let seen = Seen<Bool>()
        let server = try ScriptedServer { connection in
            while true {
                _ = try connection.readRequest()
                seen.append(true)
                if connection.linger(milliseconds: 2000) { try connection.answer() }
            }
        }
        let client = makeClient(connectionsPerHost: 1)
        let request = HTTPRequest("GET", try server.url())
        let running = Task { await failure(client, request) }
        try await eventually("the first arrives") { !seen.all.isEmpty }
        let waiting = Task { await failure(client, request) }
        waiting.cancel()
        #expect(await waiting.value?.code == .cancelled)
        #expect(await running.value == nil)
        #expect(seen.all.count == 1)
    }

    @Test func `a task cancelled before it sends sends nothing`() async throws {
        let server = try ScriptedServer { connection in try connection.answer() }
        let client = makeClient()
        let request = HTTPRequest("GET", try server.url())
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await failure(client, request)
        }
        #expect(await task.value?.code == .cancelled)
        #expect(server.connections == 0)
    }

    @Test func `shutdown fails what runs and what comes later`() async throws {
        let seen = Seen<Bool>()
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            seen.append(true)
            connection.waitForEnd()
        }
        let client = makeClient()
        let request = HTTPRequest("GET", try server.url())
        let running = Task { await failure(client, request) }
        try await eventually("the request arrives") { !seen.all.isEmpty }
        client.shutdown()
        #expect(await running.value?.code == .cancelled)
        #expect(await failure(client, request)?.code == .cancelled)
        client.shutdown()
    }

    @Test func `requests cancelled at random moments each end exactly once`() async throws {
        let server = try ScriptedServer { connection in
            while true {
                _ = try connection.readRequest()
                try connection.answer()
            }
        }
        let client = makeClient(connectionsPerHost: 4)
        let request = HTTPRequest("PUT", try server.url(), body: .bytes(pattern(50_000)))
        var generator = SeededGenerator(seed: 7)
        let codes = await withTaskGroup(of: ErrorCode?.self) { group in
            for _ in 0..<200 {
                let delay = Duration.microseconds(Int.random(in: 0...20_000, using: &generator))
                group.addTask {
                    let task = Task { await failure(client, request) }
                    try? await Task.sleep(for: delay)
                    task.cancel()
                    return await task.value?.code
                }
            }
            return await group.reduce(into: [ErrorCode?]()) { $0.append($1) }
        }
        #expect(codes.count == 200)
        #expect(codes.allSatisfy { $0 == nil || $0 == .cancelled })
        #expect(await failure(client, request) == nil)
    }

    @Test func `a request that must not be cut off outlives its task`() async throws {
        let seen = Seen<Bool>()
        let gate = DispatchSemaphore(value: 0)
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            seen.append(true)
            _ = gate.wait(timeout: .now() + 180)
            try connection.answer()
        }
        var request = HTTPRequest("POST", try server.url(), body: .bytes([1]))
        request.outlivesCancellation = true
        let (client, sent) = (makeClient(), request)
        let task = Task { try await client.send(sent).status }
        try await eventually("the request arrives") { !seen.all.isEmpty }
        task.cancel()
        gate.signal()
        #expect(try await task.value == 200)
    }
}
