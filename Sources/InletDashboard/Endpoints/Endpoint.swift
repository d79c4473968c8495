internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import InletCore
internal import NIOCore

/// One thing that can be asked of an agent over HTTP. The table of these serves the control socket and the port, and is the
/// document that describes both.
struct Endpoint: Sendable {
    /// What a visitor needs.
    enum Need: String, Sendable {
        /// No login.
        case nothing
        case read
        case full
        /// The control socket: never served on a port.
        case socket
    }

    struct QueryItem: Sendable {
        var name: String
        var schema: Schema
        var note: String
        /// Whether it may be given several times.
        var isRepeated = false
    }

    struct Body: Sendable {
        var schema: Schema
        /// Bytes; a larger one is refused.
        var limit: Int
        var isRequired = true
    }

    enum Answer: Sendable {
        case json(Schema)
        case text(String)
        /// An event stream.
        case stream
    }

    var method: HTTPRequest.Method
    /// `/api/v1/jobs/{id}`.
    var path: String
    var summary: String
    var need: Need
    var query: [QueryItem] = []
    /// What stands in the places of the path, where it is not what their names say.
    var places: [String: Schema] = [:]
    var body: Body?
    var answer: Answer
    /// Other statuses that it has an answer of the same kind for.
    var others: [Int] = []
    var handle: @Sendable (APICall, APIContext) async throws -> Response

    static let base = "/api/v1/"
    /// Rows of one answer.
    static let mostRows = 10_000
    /// For small orders.
    static let usualBody = 1 << 16
    /// For lists of jobs.
    static let largeBody = 1 << 20

    /// What stands in the places of the path; nil when that is another one.
    func places(of path: [Substring]) -> [String: String]? {
        let parts = self.path.split(separator: "/")
        guard parts.count == path.count else { return nil }
        var places: [String: String] = [:]
        for (part, found) in zip(parts, path) {
            if part.hasPrefix("{") {
                guard let text = found.removingPercentEncoding else { return nil }
                places[String(part.dropFirst().dropLast())] = text
            } else if part != found {
                return nil
            }
        }
        return places
    }

    /// The places of the path, in their order: an `id` is a number that the journal gave.
    var describedPlaces: [(name: String, schema: Schema)] {
        path.split(separator: "/").filter { $0.hasPrefix("{") }.map { part in
            let name = String(part.dropFirst().dropLast())
            return (name, places[name] ?? (name == "id" ? .from(1, to: nil) : .text))
        }
    }

    /// Why a query is not understood. What is passed over could be what keeps an order from being carried out.
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

    /// Why the body of an order is not understood: a key that it does not have, or any where it needs none.
    func fault(inBody bytes: [UInt8]) -> APIFault? {
        guard method == .post, !bytes.isEmpty, let known = body?.schema.names ?? (body == nil ? [] : nil) else {
            return nil
        }
        // Whoever reads it says what is wrong with one that is no object.
        guard let object = try? JSONDecoder().decode([String: AnyJSON].self, from: Data(bytes)) else {
            return body == nil ? .badRequest("the body is an object in JSON, or empty") : nil
        }
        return object.keys.sorted().first { !known.contains($0) }.map { Self.unknown($0, in: "body", known: known) }
    }

    private static func unknown(_ name: String, in place: String, known: [String]) -> APIFault {
        .badRequest(
            "the \(place) has no '\(DisplayText.escape(name))' here"
                + (known.isEmpty ? "; nothing is asked for in it" : "; there is \(known.joined(separator: ", "))"))
    }

    /// A value that is not looked at.
    private struct AnyJSON: Decodable {
        init(from decoder: any Decoder) {}
    }

    func describing(_ place: String, _ schema: Schema) -> Endpoint {
        var endpoint = self
        endpoint.places[place] = schema
        return endpoint
    }
}

extension Endpoint {
    static func get<Answer: Encodable & Described>(
        _ path: String, _ summary: String, need: Need = .read, query: [QueryItem] = [],
        _ handle: @escaping @Sendable (APICall, APIContext) async throws -> Answer
    ) -> Endpoint {
        Endpoint(
            method: .get, path: base + path, summary: summary, need: need, query: query,
            answer: .json(.named(Answer.self))
        ) { try await .json(handle($0, $1)) }
    }

    static func getList<Item: Encodable & Described>(
        _ path: String, _ summary: String, need: Need = .read, query: [QueryItem] = [],
        _ handle: @escaping @Sendable (APICall, APIContext) async throws -> [Item]
    ) -> Endpoint {
        Endpoint(
            method: .get, path: base + path, summary: summary, need: need, query: query,
            answer: .json(.list(.named(Item.self)))
        ) { try await .json(handle($0, $1)) }
    }

    /// An order without a body.
    static func post<Answer: Encodable & Described>(
        _ path: String, _ summary: String, need: Need = .full, query: [QueryItem] = [],
        _ handle: @escaping @Sendable (APICall, APIContext) async throws -> Answer
    ) -> Endpoint {
        var endpoint = get(path, summary, need: need, query: query, handle)
        endpoint.method = .post
        return endpoint
    }

    static func post<Order: Decodable & Described, Answer: Encodable & Described>(
        _ path: String, _ summary: String, _: Order.Type, need: Need = .full, query: [QueryItem] = [],
        limit: Int = usualBody,
        _ handle: @escaping @Sendable (APICall, APIContext, Order) async throws -> Answer
    ) -> Endpoint {
        var endpoint = post(path, summary, need: need, query: query) { call, context in
            try await handle(call, context, call.decoded(Order.self))
        }
        endpoint.body = Body(schema: .named(Order.self), limit: limit)
        return endpoint
    }

    static func postForList<Order: Decodable & Described, Item: Encodable & Described>(
        _ path: String, _ summary: String, _: Order.Type, need: Need = .full, limit: Int = usualBody,
        _ handle: @escaping @Sendable (APICall, APIContext, Order) async throws -> [Item]
    ) -> Endpoint {
        var endpoint = getList(path, summary, need: need) { call, context in
            try await handle(call, context, call.decoded(Order.self))
        }
        (endpoint.method, endpoint.body) = (.post, Body(schema: .named(Order.self), limit: limit))
        return endpoint
    }
}

extension Response {
    static func json(_ value: some Encodable, status: Int = 200) throws -> Response {
        Response(
            status: .init(code: status), headers: [.contentType: "application/json; charset=utf-8"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: try JSONValue.bytes(of: value))))
    }

    static func text(_ text: String, type: String = "text/plain; charset=utf-8", status: Int = 200) -> Response {
        Response(
            status: .init(code: status), headers: [.contentType: type],
            body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }

    /// The answer to a request that is not answered as it wants.
    static func fault(_ fault: APIFault) -> Response {
        let report = ErrorReport(error: fault.code, message: fault.message)
        // Two texts are always JSON; if not, the sentence goes alone.
        var response = (try? json(report, status: fault.status)) ?? text(fault.message, status: fault.status)
        if let wait = fault.wait { response.headers[.retryAfter] = String(max(1, wait.components.seconds)) }
        if !fault.allowed.isEmpty { response.headers[.allow] = fault.allowed.joined(separator: ", ") }
        return response
    }
}
