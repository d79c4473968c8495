package import InletCore
internal import InletTransfer
internal import Synchronization
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
        /// Whether what was asked for is not there.
        let isMissing: Bool

        package init(
            _ description: String, isSilence: Bool = false, isRefusal: Bool = false, isMissing: Bool = false
        ) {
            self.description = description
            self.isSilence = isSilence
            self.isRefusal = isRefusal
            self.isMissing = isMissing
        }
    }

    package init(socket: FilePath) { self.socket = socket }

    package func ask<Body, Answer: Decodable>(
        _ endpoint: TypedEndpoint<Body, Answer>, _ parameters: KeyValuePairs<Parameter, String?>, body: Body
    ) async throws -> Answer {
        let json = try JSON.encode(body)
        // What has no body is nil.
        let sent = json == Array("null".utf8) ? nil : json
        return try Self.decode(await exchange(endpoint.row, parameters, body: sent, deadline: endpoint.deadline))
    }

    /// - Parameter deadline: of the whole answer.
    package func status(within deadline: Duration) async throws -> StatusReport {
        try Self.decode(await exchange(Endpoints.status.row, [:], deadline: deadline))
    }

    /// Ends the client's connection and thread.
    package func shutdown() { client.shutdown() }

    /// One question. An answer that `sink` takes on has no body.
    ///
    /// - Parameter deadline: of the whole answer.
    /// - Throws: `NotRunning`; `Failure` where there is no answer.
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
            if error.code == .connectFailed { throw NotRunning() }
            throw Failure(
                "the running agent did not answer at \(socket.display): \(error.reason)", isSilence: true)
        }
    }

    private static func decode<Value: Decodable>(_ response: HTTPResponse) throws -> Value {
        guard (200..<300).contains(response.status) else {
            // An agent of another version may say why in another form, or not at all.
            let why = JSON.note(response.body, as: ErrorReport.self)?.message
            if response.status == 403, let why {
                throw Failure("the running agent refuses: \(why)", isRefusal: true)
            }
            let words = why.map { ": \(DisplayText.escape($0))" } ?? "; are both of one version?"
            throw Failure(
                "the running agent answered with \(response.status)\(words)", isMissing: response.status == 404)
        }
        return try value(of: response.body)
    }

    /// - Throws: `Failure` for an answer that an agent of another version gives.
    static func value<Value: Decodable>(of body: [UInt8]) throws -> Value {
        do {
            return try JSON.decode(body)
        } catch {
            throw Failure("the running agent's answer cannot be read; are both of one version? (\(error))")
        }
    }

    // MARK: - The log

    /// The last `limit` lines that the agent remembers, the newest last.
    ///
    /// - Throws: `NotRunning`, `Failure`.
    package func log(limit: Int, level: LogSettings.Level, job: Int64?) async throws -> [LogFields] {
        let response = try await exchange(
            Endpoints.log.row,
            [.limit: String(limit), .level: level.rawValue, .job: job.map { String($0) }])
        guard response.status == 200, let lines = LogFields.all(response.body) else {
            throw Failure("the running agent does not tell its log; are both of one version?")
        }
        return lines
    }

    /// Calls `body` with each line from now on, on the thread of the connection, until it says
    /// that nobody wants more (false), the agent ends or the task is cancelled.
    ///
    /// - Parameters:
    ///   - sequence: the line after which to go on, as far as the agent remembers.
    ///   - level: the least that is told.
    /// - Throws: `NotRunning` when nothing listens, `Failure` when it has ended.
    package func followLog(
        after sequence: Int64?, level: LogSettings.Level, _ body: @escaping @Sendable (LogFields) -> Bool
    ) async throws {
        let sink = LogStream { event in
            guard event.name == "log", let line = LogFields(event.data) else { return true }
            return body(line)
        }
        let headers = sequence.map { [("Last-Event-ID", String($0))] } ?? []
        let response: HTTPResponse
        do {
            response = try await exchange(
                Endpoints.events, [.level: level.rawValue], headers: headers, deadline: Self.streamLife, into: sink)
        } catch  where sink.hasEnough {
            // We ended it.
            return
        }
        guard response.status == 200 else {
            throw Failure("the running agent does not tell its log; are both of one version?")
        }
        throw Failure("the agent has ended", isSilence: true)
    }

    /// A stream ends with its agent; ten years are as good as no limit.
    private static let streamLife = Duration.seconds(315_360_000)
}

/// Takes a stream of events to pieces while it comes.
private final class LogStream: ResponseSink {
    private let state = Mutex((parser: EventStreamParser(), hasEnough: false))
    private let body: @Sendable (StreamEvent) -> Bool

    /// Whether `body` has said so.
    var hasEnough: Bool { state.withLock { $0.hasEnough } }

    init(_ body: @escaping @Sendable (StreamEvent) -> Bool) { self.body = body }

    func begins(_ head: HTTPResponse) throws(TransferError) -> Bool { head.status == 200 }

    func take(_ piece: UnsafeRawBufferPointer) throws(TransferError) {
        for event in state.withLock({ $0.parser.take(piece) }) where !body(event) {
            state.withLock { $0.hasEnough = true }
            throw TransferError(.cancelled, "nobody wants more", isOutage: false)
        }
    }
}

/// One event of a server-sent stream.
struct StreamEvent: Sendable, Equatable {
    /// `message` where the server names none.
    var name = "message"
    var data: [UInt8] = []
    /// The last id that the server has named, in this event or before it.
    var id: String?
}

/// Reads server-sent events (WHATWG HTML, section 9.2.6) from pieces of any size. Bounded: of a line or an event that is longer
/// than `most` bytes nothing is kept.
struct EventStreamParser {
    private static let most = 4 << 20

    private var line: [UInt8] = []
    private var isLineTooLong = false
    private var event = StreamEvent()
    private var hasData = false
    private var isEventTooLong = false
    private var endedWithReturn = false

    /// The events that end in the piece.
    mutating func take(_ piece: some Sequence<UInt8>) -> [StreamEvent] {
        var events: [StreamEvent] = []
        for byte in piece {
            let isSecondOfPair = endedWithReturn && byte == UInt8(ascii: "\n")
            endedWithReturn = byte == UInt8(ascii: "\r")
            if isSecondOfPair { continue }
            guard byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") else {
                if line.count < Self.most { line.append(byte) } else { isLineTooLong = true }
                continue
            }
            if let ended = endLine() { events.append(ended) }
        }
        return events
    }

    private mutating func endLine() -> StreamEvent? {
        defer { (line, isLineTooLong) = ([], false) }
        if line.isEmpty { return endEvent() }
        if isLineTooLong {
            isEventTooLong = true
            return nil
        }
        let name = line.prefix { $0 != UInt8(ascii: ":") }
        var value = line[name.endIndex...].dropFirst()
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        switch String(decoding: name, as: UTF8.self) {
        case "event": event.name = String(decoding: value, as: UTF8.self)
        case "id": event.id = String(decoding: value, as: UTF8.self)
        case "data":
            if hasData { event.data.append(UInt8(ascii: "\n")) }
            hasData = true
            if event.data.count + value.count > Self.most { isEventTooLong = true } else { event.data += value }
        default: break
        }
        return nil
    }

    private mutating func endEvent() -> StreamEvent? {
        let ended = hasData && !isEventTooLong ? event : nil
        (event, hasData, isEventTooLong) = (StreamEvent(id: event.id), false, false)
        return ended
    }
}
