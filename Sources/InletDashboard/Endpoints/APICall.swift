internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import InletAgent
internal import InletConfig
internal import InletCore
internal import InletJournal
internal import InletLinux
internal import Synchronization

/// Shared by all calls.
final class APIContext: Sendable {
    let control: LocalControl
    /// nil where nothing is remembered: a journal without its agent.
    let feed: ActivityFeed?
    let streams = Semaphore(Semaphore.streams)
    /// nil where large answers are not limited: on the control socket, whose users are trusted.
    let largeAnswers: Semaphore?
    /// For `GET home`.
    private let homeStatus = HomeStatus()
    private let lastStatus = Mutex<(at: ContinuousClock.Instant, report: StatusReport)?>(nil)

    var version: String { control.agent.live?.version ?? "" }

    init(control: LocalControl, feed: ActivityFeed? = nil, largeAnswers: Semaphore? = nil) {
        (self.control, self.feed, self.largeAnswers) = (control, feed, largeAnswers)
    }

    /// Renews the status of `GET home` while it is asked for; a server runs it as long as it serves.
    func keepHome() async { await homeStatus.keep { try await newStatus() } }

    /// The status of `GET home`, from memory where a server keeps it.
    func homeReport() async throws -> HomeReport {
        let status = try await homeStatus.current { try await newStatus() }
        return HomeReport(status.renewed(by: control.agent.live), control.agent, at: .now)
    }

    /// That of the streams, where it is new enough.
    private func newStatus() async throws -> StatusReport {
        try await status(since: ContinuousClock.now.advanced(by: .seconds(-1)))
    }

    /// One status report for all streams, so that many readers at once cost one query of the journal.
    ///
    /// - Parameter change: the report must include everything that happened until then.
    func status(since change: ContinuousClock.Instant) async throws -> StatusReport {
        let now = ContinuousClock.now
        if let last = lastStatus.withLock({ $0 }), last.at >= change, last.at.duration(to: now) < .milliseconds(900) {
            return last.report
        }
        let report = try await control.status()
        lastStatus.withLock { $0 = (now, report) }
        return report
    }
}

/// The sender of a request: rights, login and logout.
struct Principal: Sendable {
    var access: Access
    var login = LoginKind.none
    /// For the log.
    var name: String
    /// Whether the secret was given with this request, or a short time ago.
    var isFresh = false
    /// Whether these rights still hold: a stream outlives its request.
    var isStillIn: @Sendable () -> Bool = { true }
    /// Opens a session; nil where there are none.
    var logIn: (@Sendable (Secret) throws -> (access: Access, cookie: String))?
    /// Ends the session. - Returns: the cookie that removes the old one.
    var logOut: (@Sendable () -> String)?
}

/// A request to an endpoint: its sender and its parameters.
struct APICall: Sendable {
    let context: APIContext
    let principal: Principal
    /// The parameters of the path and the query, already checked against the endpoint's declaration.
    let parameters: [(name: String, value: String)]

    var control: LocalControl { context.control.acting(for: principal.name) }

    func text(_ parameter: Parameter) -> String? { texts(parameter).first }

    func texts(_ parameter: Parameter) -> [String] {
        parameters.filter { $0.name == parameter.name }.map(\.value)
    }

    func number(_ parameter: Parameter) -> Int64? { text(parameter).flatMap { Int64($0) } }

    func flag(_ parameter: Parameter) -> Bool {
        text(parameter).flatMap { Schema.flags[$0.lowercased()] } ?? false
    }

    /// The number of rows wanted.
    func limit(_ usual: Int = 100) -> Int { number(.limit).map { Int($0) } ?? usual }

    /// The number in the path.
    func id() throws(APIFault) -> Int64 {
        guard let id = number(.id) else { throw .notFound("'\(text(.id) ?? "")' is not a number") }
        return id
    }
}

/// The request behind a call.
struct HTTPExchange: Sendable {
    let request: Request
    let body: [UInt8]
    /// Closes the connection when its other end takes too long.
    let deadline: ConnectionDeadline

    /// `a=1&b=two+words`, with percent signs decoded.
    static func query(_ text: String?) -> [(name: String, value: String)] {
        (text ?? "").split(separator: "&").map { pair in
            let halves = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let texts = halves.map { half in
                let spaced = half.replacing("+", with: " ")
                return spaced.removingPercentEncoding ?? String(spaced)
            }
            return (texts.first ?? "", texts.count > 1 ? texts[1] : "")
        }
    }
}

/// A refused request: a status, a stable code, and a sentence with the remedy.
struct APIFault: Error, Sendable, Equatable, CustomStringConvertible {
    var status: Int
    var code: String
    var message: String
    /// When to try again.
    var wait: Duration?
    /// The path's methods.
    var allowed: [String] = []
    /// For a conflict: what differs.
    var differences: [DiffLineReport]?

    /// Printed by a command without an agent.
    var description: String { message }

    /// As an answer: an `ErrorReport`.
    var body: [UInt8] {
        let lines = differences.map { lines in
            JSONValue.array(lines.map { .object(["mark": .string($0.mark.rawValue), "text": .string($0.text)]) })
        }
        return JSONValue.members(["error": .string(code), "message": .string(message), "differences": lines]).bytes
    }

    init(_ status: Int, _ code: String, _ message: String, wait: Duration? = nil, allowed: [String] = []) {
        self.status = status
        self.code = code
        self.message = message
        self.wait = wait
        self.allowed = allowed
    }

    static func badRequest(_ message: String) -> APIFault { APIFault(400, "bad_request", message) }
    static func notFound(_ message: String) -> APIFault { APIFault(404, "not_found", message) }
    static func conflict(_ message: String) -> APIFault { APIFault(409, "conflict", message) }
    static func tooLarge(_ message: String) -> APIFault { APIFault(413, "too_large", message) }

    /// The answer for an error that an endpoint threw.
    init(_ error: any Error) {
        switch error {
        case let fault as APIFault: self = fault
        case let error as JournalError: self.init(503, "journal", "the journal does not answer: \(error)")
        case let error as FleetError:
            self.init(
                error.code == .argument ? 400 : 503, error.code == .argument ? "bad_request" : "fleet",
                DisplayText.escape(error.message))
        case let error as PatternError: self = .badRequest("'path' is not a pattern: \(error.message)")
        case let error as DecodingError:
            self = .badRequest("the body does not have the required form: \(Self.text(error))")
        default: self.init(500, "internal", "unexpected error: \(error)")
        }
    }

    /// Without the values, which may be secret.
    private static func text(_ error: DecodingError) -> String {
        func place(_ context: DecodingError.Context) -> String {
            let path = context.codingPath.map(\.stringValue).joined(separator: ".")
            return path.isEmpty ? "" : " in '\(path)'"
        }
        return switch error {
        case .keyNotFound(let key, let context): "'\(key.stringValue)' is missing\(place(context))"
        case .typeMismatch(_, let context), .valueNotFound(_, let context): "the type is wrong\(place(context))"
        case .dataCorrupted(let context) where !context.codingPath.isEmpty: "no such value\(place(context))"
        default: "no JSON"
        }
    }
}

/// The body of every error answer.
struct ErrorReport: Codable, Sendable, NamedSchema {
    /// Stable: programs may depend on it.
    var error: String
    /// The fault and its remedy.
    var message: String
    /// The lines that somebody else changed, where that is the fault.
    var differences: [DiffLineReport]?
}

/// Counts expensive answers for as long as they last: event streams, and lists of thousands. It waits for nothing: a
/// request without a permit is refused.
final class Semaphore: Sendable {
    static let streams = 16

    private let taken = Mutex(0)
    private let most: Int

    init(_ most: Int) { self.most = most }

    /// Released with the last reference.
    final class Permit: Sendable {
        private let semaphore: Semaphore

        fileprivate init(_ semaphore: Semaphore) { self.semaphore = semaphore }

        deinit { semaphore.taken.withLock { $0 -= 1 } }
    }

    func permit() -> Permit? {
        let isFree = taken.withLock { taken in
            guard taken < most else { return false }
            taken += 1
            return true
        }
        return isFree ? Permit(self) : nil
    }

    /// For a large answer.
    func permitForAnswer() throws(APIFault) -> Permit {
        if let permit = permit() { return permit }
        throw APIFault(
            429, "busy", "too many large answers are in progress; ask again later, or for less",
            wait: .seconds(5))
    }
}

extension Response {
    /// The same answer; its permit is released once it is written or dropped.
    func holding(_ permit: Semaphore.Permit) -> Response {
        var held = self
        held.body = ResponseBody(contentLength: body.contentLength) { [body] writer in
            defer { withExtendedLifetime(permit) {} }
            try await body.write(writer)
        }
        return held
    }
}
