internal import Foundation
package import InletAgent
package import InletCore
package import InletJournal
internal import InletTransfer
package import SystemPackage

/// The control API of a running agent, over its socket.
package struct ControlClient: ControlAPI {
    private let socket: FilePath
    private let client = HTTPClient(threads: 1, userAgent: "inlet")

    /// Nothing listens at the socket: no agent runs.
    package struct NotRunning: Error, Sendable {}

    /// What went wrong between us and a running agent.
    package struct Failure: Error, Sendable, CustomStringConvertible {
        package let description: String
        /// Whether there was no answer: the agent may have stopped in the meantime.
        package let isSilence: Bool
        /// Whether the agent said why it does not do this, for this user or now.
        package let isRefusal: Bool

        package init(_ description: String, isSilence: Bool = false, isRefusal: Bool = false) {
            self.description = description
            self.isSilence = isSilence
            self.isRefusal = isRefusal
        }
    }

    package init(socket: FilePath) { self.socket = socket }

    /// - Parameter deadline: of the whole answer.
    package func status(within deadline: Duration) async throws -> StatusReport {
        try Self.decode(try await send("GET", "status", deadline: deadline))
    }

    package func status() async throws -> StatusReport { try await status(within: .seconds(60)) }

    package func jobs(states: [FileState], destination: String?, limit: Int) async throws -> [JobReport] {
        try await call(
            "GET", "jobs",
            query: [
                ("state", states.isEmpty ? nil : states.map(\.rawValue).joined(separator: ",")),
                ("destination", destination), ("limit", Self.rows(limit)),
            ])
    }

    package func jobs(_ selection: JobSelection) async throws -> [JobReport] {
        let body = HTTPBody.bytes(Array(try JSONEncoder().encode(selection)))
        return try Self.decode(try await send("POST", "queue/list", body: body))
    }

    package func act(
        _ action: JobAction, on selection: JobSelection, dryRun: Bool
    ) async throws -> SelectionReport {
        let body = HTTPBody.bytes(Array(try JSONEncoder().encode(selection)))
        return try Self.decode(
            try await send(
                "POST", "queue/\(action.rawValue)", query: [("dry_run", dryRun ? "1" : nil)], body: body,
                deadline: .seconds(3600)))
    }

    package func job(_ id: Int64) async throws -> JobReport? {
        let response = try await send("GET", "jobs/\(id)")
        return response.status == 404 ? nil : try Self.decode(response)
    }

    package func batches(limit: Int) async throws -> [JobReport.Batch] {
        try await call("GET", "batches", query: [("limit", Self.rows(limit))])
    }

    package func offload(_ batch: Int64?) async throws -> OffloadReport? {
        let response = try await send("GET", "batches/\(batch.map { "\($0)" } ?? "last")/offload")
        return response.status == 404 ? nil : try Self.decode(response)
    }

    package func act(_ action: JobAction, on job: Int64) async throws -> CommandReport {
        try await call("POST", "jobs/\(job)/\(action.rawValue)")
    }

    package func undo(_ job: Int64, type: String) async throws -> CommandReport {
        try Self.decode(try await send("POST", "jobs/\(job)/undo/\(type)", deadline: .seconds(400)))
    }

    package func accessToken(_ destination: String, after refused: Secret?) async throws -> TokenReport {
        let body = try refused.map { HTTPBody.bytes(Array(try JSONEncoder().encode(TokenWish(refused: $0.reveal())))) }
        return try Self.decode(
            try await send("POST", "tokens/\(destination)", body: body ?? .none, deadline: .seconds(150)))
    }

    package func clear() async throws -> CommandReport {
        try await Self.decode(send("POST", "queue/clear", deadline: .seconds(3600)))
    }

    package func setPaused(_ paused: Bool, destination: String?) async throws -> CommandReport {
        try await call("POST", paused ? "pause" : "resume", query: [("destination", destination)])
    }

    package func limits() async throws -> [LimitReport] { try await call("GET", "limits") }

    package func limit(_ wish: LimitWish) async throws -> CommandReport {
        try Self.decode(try await send("POST", "limits", body: .bytes(Array(try JSONEncoder().encode(wish)))))
    }

    package func resume(root: FilePath) async throws -> CommandReport {
        let body = try JSONEncoder().encode(RootOrder(path: Array(root.bytes)))
        return try Self.decode(try await send("POST", "roots/resume", body: .bytes(Array(body))))
    }

    package func logLevel() async throws -> LogLevelReport { try await call("GET", "log/level") }

    package func setLogLevel(_ wish: LogLevelWish) async throws -> CommandReport {
        try Self.decode(try await send("POST", "log/level", body: .bytes(Array(try JSONEncoder().encode(wish)))))
    }

    package func receipts(limit: Int) async throws -> [String] {
        try await call("GET", "receipts", query: [("limit", Self.rows(limit))])
    }

    package func proofs(_ wish: ProofWish) async throws -> ProofPage {
        try Self.decode(try await send("POST", "proofs", body: .bytes(Array(try JSONEncoder().encode(wish)))))
    }

    package func send(
        _ paths: [FilePath], to destination: String?, again: Bool
    ) async throws -> [CommandReport] {
        var answers: [CommandReport] = []
        for start in stride(from: 0, to: paths.count, by: SendOrder.most) {
            let some = paths[start..<min(start + SendOrder.most, paths.count)]
            let order = SendOrder(paths: some.map { Data($0.bytes) }, to: destination, again: again)
            let body = try JSONEncoder().encode(order)
            // Where a route asks for their checksums, the agent reads them all before it answers.
            let response = try await send("POST", "send", body: .bytes(Array(body)), deadline: .seconds(86_400))
            answers += try Self.decode(response) as [CommandReport]
        }
        return answers
    }

    package func follow(_ jobs: [Int64]) async throws -> FollowReport {
        try Self.decode(try await send("POST", "follow", body: .bytes(Array(try JSONEncoder().encode(jobs)))))
    }

    package func backUp(to target: FilePath?) async throws -> CommandReport {
        let body = try JSONEncoder().encode(BackupOrder(path: target?.bytes))
        return try Self.decode(
            try await send("POST", "queue/backup", body: .bytes(Array(body)), deadline: .seconds(3600)))
    }

    package func originals(_ question: ContentQuestion) async throws -> [ContentReport] {
        try Self.decode(
            try await send("POST", "contents", body: .bytes(Array(try JSONEncoder().encode(question)))))
    }

    package func reload() async throws -> ReloadReport {
        // Destinations are tried, and folders that end are waited for.
        try Self.decode(try await send("POST", "reload", deadline: .seconds(120)))
    }

    package func config() async throws -> ConfigReport? {
        let response = try await send("GET", "config")
        return response.status == 404 ? nil : try Self.decode(response)
    }

    /// Ends the client's connection and thread.
    package func shutdown() { client.shutdown() }

    /// As many rows as one answer has.
    static func rows(_ limit: Int) -> String { String(min(max(limit, 1), Endpoint.mostRows)) }

    private func call<Value: Decodable>(
        _ method: String, _ path: String, query: [(String, String?)] = []
    ) async throws -> Value {
        try Self.decode(try await send(method, path, query: query))
    }

    /// One question. An answer that `sink` takes on has no body.
    ///
    /// - Parameter deadline: of the whole answer.
    /// - Throws: `NotRunning`; `Failure` where there is no answer.
    func send(
        _ method: String, _ path: String, query: [(String, String?)] = [], headers: [(String, String)] = [],
        body: HTTPBody = .none, deadline: Duration = .seconds(60), into sink: (any AnswerSink)? = nil
    ) async throws -> HTTPResponse {
        var url = try HTTPURL("http://localhost/api/v1", rules: .configured(allowHTTP: false)).appending(path: path)
        for case (let name, let value?) in query { url = url.appending(queryItem: name, value) }
        let fields = [("Content-Type", "application/json")] + headers
        let request = HTTPRequest(
            method, url, headers: fields, body: body, answerLimit: 64 << 20, answerDeadline: deadline,
            stallTimeout: sink == nil ? deadline : .seconds(60), unixSocket: socket)
        do {
            return try await client.send(request, into: sink)
        } catch {
            if error.code == .connectFailed { throw NotRunning() }
            throw Failure(
                "the running agent did not answer at \(socket.display): \(error.reason)", isSilence: true)
        }
    }

    private static func decode<Value: Decodable>(_ response: HTTPResponse) throws -> Value {
        guard (200..<300).contains(response.status) else {
            // An agent of another version may say why in another form, or not at all.
            let why = (try? JSONDecoder().decode(ErrorReport.self, from: Data(response.body)))?.message
            if response.status == 403, let why {
                throw Failure("the running agent refuses: \(why)", isRefusal: true)
            }
            let words = why.map { ": \(DisplayText.escape($0))" } ?? "; are both of one version?"
            throw Failure("the running agent answered with \(response.status)\(words)")
        }
        return try value(of: response.body)
    }

    /// - Throws: `Failure` for an answer that an agent of another version gives.
    static func value<Value: Decodable>(of body: [UInt8]) throws -> Value {
        do {
            return try JSONDecoder().decode(Value.self, from: Data(body))
        } catch {
            throw Failure("the running agent's answer cannot be read; are both of one version? (\(error))")
        }
    }
}
