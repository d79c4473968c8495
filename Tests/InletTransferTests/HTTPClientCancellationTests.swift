import Dispatch
import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import Testing

@Suite(.timeLimit(.minutes(8))) struct HTTPClientCancellationTests {
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
                if connection.linger(milliseconds: 300) { try connection.answer() }
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
