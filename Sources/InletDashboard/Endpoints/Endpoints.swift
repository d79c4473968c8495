internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import InletAgent
internal import InletCore
internal import InletJournal
internal import NIOCore

/// All endpoints. To add one, declare it in a file beside this one, and name it in `all`.
package enum Endpoints {
    /// The table, in the document's order.
    static let all: [Endpoint] =
        [
            status.row, home.row, jobs.row, job.row, story.row, thumbnail, ignored.row, receipts.row, route.row,
            batches.row, offload.row,
            cardReport.row, cardDocument, rates.row, fleet.row, fleetSearch.row, fleetOrder.row,
            log.row, events,
        ] + orders + [
            clear.row, list.row, setPaused(true).row, setPaused(false).row, limits.row, setLimit.row, resumeRoot.row,
            config.row, configForm.row, configSchema, tryConfig.row, applyConfig.row, receivers.row, reload.row,
            logLevel.row, setLogLevel.row, session.row, login, logout, healthz,
            readyz,
            undo.row, accessToken.row, loginLink.row, backup.row, send.row, follow.row, proofs.row, contents.row,
            document, metrics,
            cards.row, cardHistory.row, labelCard.row, leaveOthers.row, resendMissing.row, ejectCard.row,
        ]

    private static let orders: [Endpoint] =
        JobAction.allCases.map { act(on: $0).row } + JobAction.allCases.map { select(for: $0).row }

    /// The endpoint at a path, with the values of the path's parameters.
    static func find(
        _ method: String, _ path: String, on table: [Endpoint]
    ) throws(APIFault) -> (endpoint: Endpoint, places: [(name: String, value: String)]) {
        let parts = path.split(separator: "/")
        var allowed: [String] = []
        for endpoint in table {
            guard let places = endpoint.places(of: parts) else { continue }
            if endpoint.verb == method { return (endpoint, places) }
            allowed.append(endpoint.verb)
        }
        throw
            allowed.isEmpty
            ? .notFound("there is nothing at this path; \(Endpoint.base)openapi.json says what there is")
            : APIFault(405, "method", "this path knows \(allowed.joined(separator: " and "))", allowed: allowed)
    }
}

/// Parameters that several endpoints have, or that commands name.
extension Parameter {
    package static let id = Parameter("id", .from(1, to: nil))
    package static let type = Parameter("type", .text)
    package static let destination = Parameter("destination", .text, "Default: all of them.")
    package static let limit = Parameter("limit", .from(1, to: Endpoint.mostRows), "The most to return.")
    package static let dryRun = Parameter("dry_run", .wordOfFlag, "Only shows what would be done.")
    static let job = Parameter("job", .integer, "Only events of this file.")
    static let level = Parameter("level", .level, "The lowest level to return; default info.")
}

extension Schema {
    static let level = Schema.word(LogSettings.Level.allCases.map(\.rawValue))
}

/// One question or order to an agent over HTTP. The control socket and the port are served from the table of these, and
/// the document that describes both is made from it.
struct Endpoint: Sendable {
    /// The rights that a principal needs.
    enum Need: String, Sendable {
        /// No login.
        case nothing
        /// The least that a login gives.
        case cards
        case read
        case full
        /// The control socket only: never served on a port.
        case socket
    }

    struct Body: Sendable {
        let schema: Schema
        /// The keys of an object; nil where other keys are ignored, or it is not an object.
        let names: [String]?
        /// In bytes; a larger body is refused.
        let limit: Int
        let isRequired: Bool

        init(schema: Schema, limit: Int = Endpoint.usualBody, isRequired: Bool = true) {
            (self.schema, names, self.limit, self.isRequired) = (schema, schema.names, limit, isRequired)
        }
    }

    var method: HTTPRequest.Method
    /// `/api/v1/jobs/{id}`.
    var path: String
    var summary: String
    var need: Need
    var query: [Parameter] = []
    /// The meaning of the path's places, where their names do not tell.
    var places: [String: Schema] = [:]
    var body: Body?
    var answer: Schema
    var answerType = "application/json"
    /// Other statuses with an answer of the same kind.
    var others: [Int] = []
    var serve: @Sendable (APICall, HTTPExchange) async throws -> Response

    var verb: String { method.rawValue }

    static let base = "/api/v1/"
    /// Rows of one answer.
    static let mostRows = 10_000
    /// Rows of a small answer.
    static let smallList = 1000
    /// For small orders.
    static let usualBody = 1 << 16
    /// For lists of jobs.
    static let largeBody = 1 << 20

    /// The values of the path's places; nil for another path.
    func places(of path: [Substring]) -> [(name: String, value: String)]? {
        let parts = self.path.split(separator: "/")
        guard parts.count == path.count else { return nil }
        var places: [(String, String)] = []
        for (part, found) in zip(parts, path) {
            if part.hasPrefix("{") {
                guard let text = found.removingPercentEncoding else { return nil }
                places.append((String(part.dropFirst().dropLast()), text))
            } else if part != found {
                return nil
            }
        }
        return places
    }

    /// The places of the path, in their order: an `id` is a number from the journal.
    var describedPlaces: [(name: String, schema: Schema)] {
        path.split(separator: "/").filter { $0.hasPrefix("{") }.map { part in
            let name = String(part.dropFirst().dropLast())
            return (name, places[name] ?? (name == Parameter.id.name ? Parameter.id.schema : .text))
        }
    }

    /// The values of `parameters` for the API: numbers of the query are clamped to their bounds. A value in the path
    /// names one thing, so it is never replaced by another.
    func given(_ parameters: KeyValuePairs<Parameter, String?>) -> [(name: String, value: String)] {
        parameters.compactMap { parameter, text in
            guard let text else { return nil }
            let isPlace = path.contains("{\(parameter.name)}")
            return (parameter.name, isPlace ? text : parameter.schema.clamped(text))
        }
    }

    /// Why a query is refused. An ignored parameter could be the one that limits an order.
    func fault(in query: [(name: String, value: String)]) -> APIFault? {
        var given: Set<String> = []
        for (name, value) in query {
            guard let item = self.query.first(where: { $0.name == name }) else {
                return Self.unknown(name, in: "query", known: self.query.map(\.name))
            }
            guard given.insert(name).inserted || item.isRepeated else {
                return .badRequest("'\(name)' is given more than once")
            }
            if let wanted = item.schema.wanted(insteadOf: value) { return .badRequest("'\(name)' is \(wanted)") }
        }
        return nil
    }

    /// Why an order's body is refused: an unknown key, or any key where none is needed.
    func fault(inBody bytes: [UInt8]) -> APIFault? {
        guard method == .post, !bytes.isEmpty, let known = body == nil ? [] : body?.names else {
            return nil
        }
        // Decoding reports a body that is not an object.
        guard let object = try? JSON.decode(bytes, as: [String: AnyJSON].self) else {
            return body == nil ? .badRequest("the body must be a JSON object, or empty") : nil
        }
        return object.keys.sorted().first { !known.contains($0) }.map { Self.unknown($0, in: "body", known: known) }
    }

    private static func unknown(_ name: String, in place: String, known: [String]) -> APIFault {
        .badRequest(
            "the \(place) has no '\(DisplayText.escape(name))' here"
                + (known.isEmpty ? "; it takes no keys" : "; there is \(known.joined(separator: ", "))"))
    }

    /// An ignored value.
    private struct AnyJSON: Decodable {
        init(from decoder: any Decoder) {}
    }
}

/// A text in a request's query or path.
package struct Parameter: Sendable {
    let name: String
    let schema: Schema
    var note = ""
    /// Whether it may be repeated.
    var isRepeated = false

    init(_ name: String, _ schema: Schema, _ note: String = "", isRepeated: Bool = false) {
        (self.name, self.schema, self.note, self.isRepeated) = (name, schema, note, isRepeated)
    }
}

/// An endpoint with JSON of these types: the one declaration by which it is served, described in the document, and
/// called (`ControlAPI.ask`), over a socket or in this process.
package struct TypedEndpoint<Body: Codable & Sendable, Answer: Encodable & Sendable>: Sendable {
    let row: Endpoint
    /// The time for the whole answer, over a socket.
    let deadline: Duration
    let answer: @Sendable (APICall, Body) async throws -> Answer

    /// - Parameter isLarge: whether the answer is large: a port gives few of these at once, since each is in memory
    ///   until its reader has taken it.
    init(
        _ method: HTTPRequest.Method, _ path: String, _ summary: String, need: Endpoint.Need, query: [Parameter],
        places: [String: Schema] = [:], body: Endpoint.Body?, within deadline: Duration = .seconds(60),
        isLarge: @escaping @Sendable (APICall, Body) -> Bool,
        _ answer: @escaping @Sendable (APICall, Body) async throws -> Answer
    ) {
        (self.deadline, self.answer) = (deadline, answer)
        row = Endpoint(
            method: method, path: Endpoint.base + path, summary: summary, need: need, query: query, places: places,
            body: body, answer: SchemaReader.schema(of: Answer.self)
        ) { call, exchange in
            let value = try Self.decode(exchange.body, body)
            let permit = isLarge(call, value) ? try call.context.largeAnswers?.permitForAnswer() : nil
            let response = try Response.json(try await answer(call, value))
            return permit.map { response.holding($0) } ?? response
        }
    }

    private static func decode(_ bytes: [UInt8], _ body: Endpoint.Body?) throws -> Body {
        let isNone = body.map { !$0.isRequired && bytes.isEmpty } ?? true
        return try JSON.decode(isNone ? Array("null".utf8) : bytes)
    }
}

/// The body of an endpoint that takes none.
package typealias NoBody = Never?

extension TypedEndpoint where Body == NoBody {
    static func get(
        _ path: String, _ summary: String, need: Endpoint.Need = .read, query: [Parameter] = [],
        places: [String: Schema] = [:], isLarge: @escaping @Sendable (APICall) -> Bool = { _ in false },
        _ answer: @escaping @Sendable (APICall) async throws -> Answer
    ) -> Self {
        Self(
            .get, path, summary, need: need, query: query, places: places, body: nil,
            isLarge: { call, _ in isLarge(call) }, { call, _ in try await answer(call) })
    }

    static func post(
        _ path: String, _ summary: String, need: Endpoint.Need = .full, query: [Parameter] = [],
        within deadline: Duration = .seconds(60), _ answer: @escaping @Sendable (APICall) async throws -> Answer
    ) -> Self {
        Self(
            .post, path, summary, need: need, query: query, body: nil, within: deadline, isLarge: { _, _ in false },
            { call, _ in try await answer(call) })
    }
}

extension TypedEndpoint {
    /// An order with a body, which may be left out where its type is an optional.
    static func post(
        _ path: String, _ summary: String, _: Body.Type, need: Endpoint.Need = .full, query: [Parameter] = [],
        limit: Int = Endpoint.usualBody, within deadline: Duration = .seconds(60),
        isLarge: @escaping @Sendable (APICall, Body) -> Bool = { _, _ in false },
        _ answer: @escaping @Sendable (APICall, Body) async throws -> Answer
    ) -> Self {
        let body = Endpoint.Body(
            schema: SchemaReader.schema(of: Body.self), limit: limit,
            isRequired: !(Body.self is any ExpressibleByNilLiteral.Type))
        return Self(
            .post, path, summary, need: need, query: query, body: body, within: deadline, isLarge: isLarge, answer)
    }
}

extension JSON {
    /// One line, safe for a terminal, with members in the order of their names.
    static func answer(_ value: some Encodable) throws -> [UInt8] { JSONString.masked(try encode(value)) }
}

extension Response {
    static func json(_ value: some Encodable, status: Int = 200) throws -> Response {
        json(try JSON.answer(value), status: status)
    }

    private static func json(_ bytes: [UInt8], status: Int) -> Response {
        Response(
            status: .init(code: status), headers: [.contentType: "application/json; charset=utf-8"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }

    static func text(_ text: String, type: String = "text/plain; charset=utf-8", status: Int = 200) -> Response {
        Response(
            status: .init(code: status), headers: [.contentType: type],
            body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }

    /// A JPEG picture from a file. A browser keeps it for a while, and for nobody else.
    static func picture(_ bytes: [UInt8]) -> Response {
        Response(
            status: .ok, headers: [.contentType: "image/jpeg", .cacheControl: "private, max-age=600"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }

    /// The answer to a refused request.
    static func fault(_ fault: APIFault) -> Response {
        var response = json(fault.body, status: fault.status)
        if let wait = fault.wait { response.headers[.retryAfter] = String(max(1, wait.components.seconds)) }
        if !fault.allowed.isEmpty { response.headers[.allow] = fault.allowed.joined(separator: ", ") }
        return response
    }
}
