import HTTPTypes
import Hummingbird
import NIOCore
import Synchronization

/// Answers a call, or throws: a `SandboxRefusal`, which the protocol words, or a `SandboxReply`, which is sent
/// unchanged.
typealias SandboxHandler = @Sendable (inout SandboxCall) async throws -> Response

/// A row of a sandbox's table: a call's pattern, its name, and its handler.
struct SandboxRoute<Operation: SandboxOperation>: Sendable {
    let operation: Operation
    let handle: SandboxHandler
    private let methods: [String]
    private let path: [String]
    private let query: [(name: String, value: String?)]

    /// - Parameter pattern: As in `GET|HEAD /{bucket}/{key...}?uploadId&list-type=2`. A place in braces is one
    ///   component of the path, with dots all the rest, which is not empty. The names behind `?` must be in the query,
    ///   in any order; others may be. The method `*` is any. The pattern `*` is every request.
    init(_ pattern: String, _ operation: Operation, _ handle: @escaping SandboxHandler) {
        let words = pattern.split(separator: " ")
        let halves = (words.count > 1 ? words[1] : "").split(separator: "?")
        (self.operation, self.handle) = (operation, handle)
        methods = words[0] == "*" ? [] : words[0].split(separator: "|").map(String.init)
        path = halves.first.map { SandboxRouter<Operation>.components(String($0)) } ?? []
        query =
            halves.dropFirst().first?.split(separator: "&").map { item in
                let pair = item.split(separator: "=").map(String.init)
                return (pair[0], pair.count > 1 ? pair[1] : nil)
            } ?? []
    }

    /// The values at the places of the pattern; nil for a request that does not match this row.
    func places(in request: DecodedRequest, _ components: [String]) -> [String: String]? {
        guard methods.isEmpty || methods.contains(request.method) else { return nil }
        for (name, value) in query {
            guard request.query.contains(where: { $0.name == name && (value ?? $0.value) == $0.value }) else {
                return nil
            }
        }
        var places: [String: String] = [:]
        for (index, part) in path.enumerated() {
            guard index < components.count else { return nil }
            if part.hasSuffix("...}") {
                let rest = components[index...].joined(separator: "/")
                places[String(part.dropFirst().dropLast(4))] = rest
                return rest.isEmpty ? nil : places
            }
            if part.hasPrefix("{") {
                places[String(part.dropFirst().dropLast())] = components[index]
            } else if part != components[index] {
                return nil
            }
        }
        return path.isEmpty || path.count == components.count ? places : nil
    }

    /// The part number of a call of this row, if it has one.
    func part(of request: DecodedRequest) -> Int? {
        guard query.contains(where: { $0.name == "partNumber" }) else { return nil }
        return request.value("partNumber").flatMap(Int.init)
    }
}

/// Finds the row of each request, counts it, applies the fault that it meets, and words refusals.
final class SandboxRouter<Operation: SandboxOperation>: HTTPResponder {
    typealias Context = ConnectionContext

    let faults: Faults<Operation>
    let traffic = Mutex(RequestCounts<Operation>())
    private let routes: [SandboxRoute<Operation>]
    private let common: HTTPFields
    private let word: @Sendable (SandboxRefusal, Operation?) throws -> SandboxReply

    /// - Parameters:
    ///   - routes: The first match counts; without one, `SandboxRefusal.notFound` is worded.
    ///   - common: Fields of every answer.
    ///   - word: Words a refusal in the protocol; without an operation for a request that matches no row.
    init(
        _ plan: FaultPlan<Operation>, _ routes: [SandboxRoute<Operation>], common: HTTPFields = [:],
        wording word: @escaping @Sendable (SandboxRefusal, Operation?) throws -> SandboxReply
    ) {
        faults = Faults(plan)
        self.routes = routes
        self.common = common
        self.word = word
    }

    func respond(to request: Request, context: ConnectionContext) async throws -> Response {
        var response: Response
        var operation: Operation?
        do {
            guard let address = DecodedRequest(request) else {
                throw SandboxRefusal.badRequest("The address is not percent-encoded UTF-8.")
            }
            guard let (route, places) = row(of: address) else { throw SandboxRefusal.notFound }
            operation = route.operation
            response = try await answer(request, address, route, places, on: context.channel)
        } catch let reply as SandboxReply {
            response = Response(reply)
        } catch let refusal as SandboxRefusal {
            response = Response(try word(refusal, operation))
        }
        for field in common { response.headers[field.name] = field.value }
        return request.method == .head ? response.createHeadResponse() : response
    }

    static func components(_ path: String) -> [String] {
        path.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    }

    private func row(of address: DecodedRequest) -> (SandboxRoute<Operation>, [String: String])? {
        let components = Self.components(address.path)
        for route in routes {
            if let places = route.places(in: address, components) { return (route, places) }
        }
        return nil
    }

    private func answer(
        _ request: Request, _ address: DecodedRequest, _ route: SandboxRoute<Operation>, _ places: [String: String],
        on channel: any Channel
    ) async throws -> Response {
        let (operation, part) = (route.operation, route.part(of: address))
        traffic.withLock { $0.began(operation, part: part) }
        defer { traffic.withLock { $0.ended(part: part) } }
        let fault = faults.next(at: operation, part: part, on: channel)
        defer { if fault != nil { faults.release(channel) } }
        let body = BodyReader(request, channel: channel, fault: fault) { [self] count in
            traffic.withLock { $0.bytes[operation, default: 0] += Int64(count) }
        }
        let tag = fault == .wrongETag(.random) ? faults.randomBytes(16) : []
        var call = SandboxCall(
            request: request, address: address, places: places, fault: fault, channel: channel, randomTag: tag,
            body: body)
        guard let fault else { return try await handle(&call, route) }
        if let replacement = try await faults.replacement(for: fault, &call) { return replacement }
        return try await handle(&call, route).altered(by: fault, on: channel)
    }

    private func handle(_ call: inout SandboxCall, _ route: SandboxRoute<Operation>) async throws -> Response {
        do {
            return try await route.handle(&call)
        } catch {
            // A client that asked whether it may send the body sends it later anyway if nobody answers. After an
            // earlier answer it would take the connection for free. The request has failed already, however this ends.
            if call.fields[.expect] != nil { try? await call.body.discard() }
            throw error
        }
    }
}
