package import InletCore
internal import InletTransfer
internal import Synchronization

/// The log of a running agent: what it remembers, and what it says from now on.
extension ControlClient {
    /// The last `limit` lines that the agent remembers, the newest last.
    ///
    /// - Throws: `NotRunning`, `Failure`.
    package func log(limit: Int, level: LogSettings.Level, job: Int64?) async throws -> [LogFields] {
        let response = try await send(
            "GET", "log",
            query: [("limit", Self.rows(limit)), ("level", level.rawValue), ("job", job.map { String($0) })])
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
            response = try await send(
                "GET", "events", query: [("level", level.rawValue)], headers: headers, deadline: Self.streamLife,
                into: sink)
        } catch  where sink.hasEnough {
            // By our own wish.
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
private final class LogStream: AnswerSink {
    private let parser = Mutex(EventStreamParser())
    private let enough = Mutex(false)
    private let body: @Sendable (StreamEvent) -> Bool

    /// Whether `body` has said so.
    var hasEnough: Bool { enough.withLock { $0 } }

    init(_ body: @escaping @Sendable (StreamEvent) -> Bool) { self.body = body }

    func begins(_ head: HTTPResponse) throws(TransferError) -> Bool { head.status == 200 }

    func take(_ piece: UnsafeRawBufferPointer) throws(TransferError) {
        for event in parser.withLock({ $0.take(piece) }) where !body(event) {
            enough.withLock { $0 = true }
            throw TransferError(.cancelled, "nobody wants more", isOutage: false)
        }
    }
}
