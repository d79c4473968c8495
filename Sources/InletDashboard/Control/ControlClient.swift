package import InletCore
internal import InletTransfer
internal import Synchronization
package import SystemPackage

/// The control API of a running agent, over its socket.
package struct ControlClient: ControlAPI {
    private let socket: FilePath
    private let client = HTTPClient(threads: 1, userAgent: "inlet")

    /// A fault between us and a running agent.
    package struct Failure: Error, Sendable, CustomStringConvertible {
        package let description: String
        /// Whether there was no answer: the agent may have stopped meanwhile.
        package var isSilence = false
        /// Whether nothing listens at the socket: no agent runs.
        package var isAbsence = false
        /// Whether the agent gave a reason to refuse this, for this user or now.
        package var isRefusal = false
        /// Whether the subject of the request does not exist.
        var isMissing = false
    }

    package init(socket: FilePath) { self.socket = socket }

    package func ask<Body, Answer: Decodable>(
        _ endpoint: TypedEndpoint<Body, Answer>, _ parameters: KeyValuePairs<Parameter, String?>, body: Body
    ) async throws -> Answer {
        let json = try JSON.encode(body)
        // An answer without a body is nil.
        let sent = json == Array("null".utf8) ? nil : json
        return try Self.decode(await exchange(endpoint.row, parameters, body: sent, deadline: endpoint.deadline))
    }

    /// - Parameter deadline: the time for the whole answer.
    package func status(within deadline: Duration) async throws -> StatusReport {
        try Self.decode(await exchange(Endpoints.status.row, [:], deadline: deadline))
    }

    package func metrics() async throws -> String {
        let response = try await exchange(Endpoints.metrics, [:])
        guard response.status == 200 else {
            throw Failure(description: "the running agent gives no metrics; check that both have the same version")
        }
        return String(decoding: response.body, as: UTF8.self)
    }

    /// Ends the client's connection and thread.
    package func shutdown() { client.shutdown() }

    /// One request. An answer that `sink` consumes has no body.
    ///
    /// - Parameter deadline: the time for the whole answer.
    /// - Throws: `Failure` where there is no answer.
    private func exchange(
        _ endpoint: Endpoint, _ parameters: KeyValuePairs<Parameter, String?>, headers: [(String, String)] = [],
        body: [UInt8]? = nil, deadline: Duration = .seconds(60), into sink: (any ResponseSink)? = nil
    ) async throws -> HTTPResponse {
        var (path, query) = (endpoint.path, [(String, String)]())
        for (name, value) in endpoint.given(parameters) {
            if let place = path.firstRange(of: "{\(name)}") {
                path.replaceSubrange(place, with: value)
            } else {
                query.append((name, value))
            }
        }
        var url = try HTTPURL("http://localhost", rules: .configured(allowHTTP: false)).appending(path: path)
        for (name, value) in query { url = url.appending(queryItem: name, value) }
        let fields = [("Content-Type", "application/json")] + headers
        let request = HTTPRequest(
            endpoint.verb, url, headers: fields, body: body.map { .bytes($0) } ?? .none,
            answerLimit: 64 << 20, answerDeadline: deadline,
            stallTimeout: sink == nil ? deadline : .seconds(60), unixSocket: socket)
        do {
            return try await client.send(request, into: sink)
        } catch {
            let isAbsence = error.code == .connectFailed
            throw Failure(
                description: isAbsence
                    ? "no agent is running" : "the running agent did not answer at \(socket.display): \(error.reason)",
                isSilence: true, isAbsence: isAbsence)
        }
    }

    private static func decode<Value: Decodable>(_ response: HTTPResponse) throws -> Value {
        guard (200..<300).contains(response.status) else {
            // An agent of another version may give the reason in another form, or none.
            let why = JSON.note(response.body, as: ErrorReport.self)?.message
            if response.status == 403, let why {
                throw Failure(description: "the running agent refuses: \(why)", isRefusal: true)
            }
            let words = why.map { ": \(DisplayText.escape($0))" } ?? "; check that both have the same version"
            throw Failure(
                description: "the running agent answered with \(response.status)\(words)",
                isMissing: response.status == 404)
        }
        return try value(of: response.body)
    }

    /// - Throws: `Failure` for the answer of an agent of another version.
    static func value<Value: Decodable>(of body: [UInt8]) throws -> Value {
        do {
            return try JSON.decode(body)
        } catch {
            throw Failure(
                description:
                    "the running agent's answer cannot be read; check that both have the same version (\(error))")
        }
    }

    // MARK: - The log

    /// The last `limit` lines that the agent remembers, the newest last.
    ///
    /// - Throws: `Failure`.
    package func log(limit: Int, level: LogSettings.Level, job: Int64?) async throws -> [LogFields] {
        guard let lines = LogFields.all(try await logBody(limit, level, job)) else { throw Self.silentLog }
        return lines
    }

    /// The same lines of all levels as JSON objects.
    ///
    /// - Throws: `Failure`.
    package func logLines(limit: Int) async throws -> [String] {
        guard let lines = JSON.value(try await logBody(limit, .debug, nil))?.array else { throw Self.silentLog }
        return lines.map(\.text)
    }

    private func logBody(_ limit: Int, _ level: LogSettings.Level, _ job: Int64?) async throws -> [UInt8] {
        let response = try await exchange(
            Endpoints.log.row,
            [.limit: String(limit), .level: level.rawValue, .job: job.map { String($0) }])
        guard response.status == 200 else { throw Self.silentLog }
        return response.body
    }

    /// Calls `body` with each line from now on, on the connection's thread, until it returns false, the agent ends or
    /// the task is cancelled.
    ///
    /// - Parameters:
    ///   - sequence: the line after which to continue, as far as the agent remembers.
    ///   - level: the lowest level to receive.
    /// - Throws: `Failure` when nothing listens, and when the agent has ended.
    package func followLog(
        after sequence: Int64?, level: LogSettings.Level, _ body: @escaping @Sendable (LogFields) -> Bool
    ) async throws {
        let sink = LogStream(body)
        let headers = sequence.map { [("Last-Event-ID", String($0))] } ?? []
        let response: HTTPResponse
        do {
            response = try await exchange(
                Endpoints.events, [.level: level.rawValue], headers: headers, deadline: Self.streamLife, into: sink)
        } catch  where sink.hasEnough {
            // We ended it.
            return
        }
        guard response.status == 200 else { throw Self.silentLog }
        throw Failure(description: "the agent has ended", isSilence: true)
    }

    private static let silentLog = Failure(
        description: "the running agent does not share its log; check that both have the same version")

    /// A stream ends with its agent; ten years equal no limit.
    private static let streamLife = Duration.seconds(315_360_000)
}

/// Reads log lines from a stream of the agent's events as it arrives: an event's name, its number and its data, a line
/// each. Of a line longer than any of ours only the start is kept, which is not a log line.
final class LogStream: ResponseSink {
    private let state = Mutex((lines: LineSplitter(most: 4 << 20), isLog: false, hasEnough: false))
    private let body: @Sendable (LogFields) -> Bool

    /// Whether `body` has returned false.
    var hasEnough: Bool { state.withLock { $0.hasEnough } }

    init(_ body: @escaping @Sendable (LogFields) -> Bool) { self.body = body }

    func begins(_ head: HTTPResponse) throws(TransferError) -> Bool { head.status == 200 }

    func take(_ piece: UnsafeRawBufferPointer) throws(TransferError) {
        let found = state.withLock { state in
            state.lines.take(piece).compactMap { line -> LogFields? in
                if line.isEmpty { state.isLog = false }
                if line.starts(with: "event: ".utf8) { state.isLog = line.elementsEqual("event: log".utf8) }
                guard state.isLog, line.starts(with: "data: ".utf8) else { return nil }
                return LogFields(line.dropFirst("data: ".utf8.count))
            }
        }
        for line in found where !body(line) {
            state.withLock { $0.hasEnough = true }
            throw TransferError(.cancelled, "nobody wants more", isOutage: false)
        }
    }
}
