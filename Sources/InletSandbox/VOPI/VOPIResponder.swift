import Foundation
import HTTPTypes
import Hummingbird
import InletCore
import NIOCore

/// Leads each request through its fault, its body, its authorisation and its call, in the order of the real server: a
/// bad body is refused before bad credentials are.
struct VOPIResponder: Sendable {
    private static let largestBody = 1 << 20

    let shop: VOPIShop
    let apiKey: Secret?

    /// The store refuses in XML; what it refuses elsewhere is the server's own fault.
    static func word(_ refusal: SandboxRefusal, _ operation: VOPIOperation?) throws -> SandboxReply {
        switch operation {
        case .upload, .download, nil: refusal.xml
        default: try VOPIRefusal.internalError.reply()
        }
    }

    func route(_ address: SignableRequest) -> SandboxRoute<VOPIOperation> {
        let route = VOPIRoute(method: address.method, path: address.path, shop.rules.generation)
        return SandboxRoute("*", route.operation) { call in
            do {
                return try await answer(route, call.request, call.address, &call.body, call.fault)
            } catch let refusal as VOPIRefusal {
                throw try refusal.reply()
            }
        }
    }

    private func answer(
        _ route: VOPIRoute, _ request: Request, _ signable: SignableRequest, _ body: inout IncomingBody,
        _ fault: FaultAction?
    ) async throws -> Response {
        switch route {
        case .put(let key):
            return try await VOPIUploadCalls(shop: shop).put(key, request, signable, &body, fault: fault)
        case .get(let key): return try VOPIUploadCalls(shop: shop).get(key, request, signable)
        default: break
        }
        let message = try await Self.message(request, &body)
        let access = VOPIAccess(shop: shop, apiKey: apiKey)
        let host = signable.host
        switch route {
        case .presign:
            let order = try PresignMessage(message ?? .null)
            try access.check(route, request.headers)
            return try VOPIUploadCalls(shop: shop).presign(order, host: host, fault: fault)
        case .createJob:
            let order = try CreateJobMessage(message ?? .null)
            try access.check(route, request.headers)
            return try VOPIJobCalls(shop: shop).create(order)
        case .refresh: return try refresh(message, request.headers)
        case .ready, .health: return try ready(route)
        case .unknown:
            try access.check(route, request.headers)
            throw VOPIRefusal.route("\(signable.method):\(request.head.path ?? "")")
        default:
            try access.check(route, request.headers)
            return try jobAnswer(route, signable, fault)
        }
    }

    private func jobAnswer(_ route: VOPIRoute, _ signable: SignableRequest, _ fault: FaultAction?) throws -> Response {
        let (jobs, results, host) = (VOPIJobCalls(shop: shop), VOPIResultCalls(shop: shop), signable.host)
        switch route {
        case .listJobs: return try jobs.list(signable)
        case .job(let id): return try jobs.job(Self.uuid(id), host: host)
        case .status(let id): return try jobs.status(Self.uuid(id))
        case .cancel(let id): return try jobs.cancel(Self.uuid(id))
        case .delete(let id): return try jobs.delete(Self.uuid(id))
        case .deleteImage(let id, let frame, let version):
            return try results.deleteImage(Self.uuid(id), frame: frame, version: version, host: host)
        case .downloadURLs(let id): return try results.downloadURLs(Self.uuid(id), signable, fault: fault)
        case .metadata(let id): return try results.metadata(Self.uuid(id))
        case .read(let what, let id): return try results.read(what, Self.uuid(id), host: host)
        case .balance: return try jobs.balance(signable)
        default: throw VOPIRefusal.internalError
        }
    }

    private func ready(_ route: VOPIRoute) throws -> Response {
        let isDown = shop.rules.isDatabaseDown && route == .ready
        var body: [String: SandboxJSON] = [
            "status": isDown ? "error" : "ok", "timestamp": .string(shop.clock().rfc3339),
        ]
        if route == .ready { body["checks"] = ["database": isDown ? "error" : "ok", "redis": "ok"] }
        return try .json(body, status: isDown ? 503 : 200)
    }

    private func refresh(_ message: SandboxJSON?, _ fields: HTTPFields) throws -> Response {
        let limit = shop.rules.refreshLimit
        let (left, reset) = try shop.admitRefresh(userAgent: fields[.userAgent] ?? "")
        var response: Response
        do {
            guard let token = message?["refreshToken"]?.text else {
                throw VOPIRefusal.schema(
                    path: "", keyword: "required", params: ["missingProperty": "refreshToken"],
                    message: "must have required property 'refreshToken'")
            }
            let session = try shop.refresh(token)
            let body: SandboxJSON = [
                "accessToken": .string(session.accessToken.reveal()),
                "refreshToken": .string(session.refreshToken.reveal()),
                "expiresIn": .number(Double(shop.rules.accessLifetime.milliseconds / 1000)), "tokenType": "Bearer",
            ]
            response = try .json(body)
        } catch let refusal as VOPIRefusal {
            response = Response(try refusal.reply())
        }
        for (name, value) in [("limit", limit), ("remaining", left), ("reset", reset)] {
            if let field = HTTPField.Name("x-ratelimit-\(name)") { response.headers[field] = String(value) }
        }
        return response
    }

    /// The body as JSON; nil where there is none. The server refuses types it does not know, and JSON that is none, as if
    /// the fault were its own.
    private static func message(_ request: Request, _ body: inout IncomingBody) async throws -> SandboxJSON? {
        let type = request.headers[.contentType].map { String($0.prefix { $0 != ";" }).lowercased() }
        let whole = try await body.whole()
        guard whole.count <= largestBody else { throw VOPIRefusal.internalError }
        if request.method == .get || request.method == .head { return nil }
        if request.method == .delete, whole.isEmpty, request.headers[.contentLength] == nil { return nil }
        switch type {
        case nil where whole.isEmpty: return nil
        case "application/json":
            // The real one says nothing of what is wrong with it.
            guard let message = try? JSONDecoder().decode(SandboxJSON.self, from: whole) else {
                throw VOPIRefusal.internalError
            }
            return message
        case "text/plain": return .string(String(decoding: whole, as: UTF8.self))
        default: throw VOPIRefusal.internalError
        }
    }

    private static func uuid(_ text: String) throws(VOPIRefusal) -> String {
        guard let id = UUID(uuidString: text) else {
            throw .schema(
                path: "/id", keyword: "format", params: ["format": "uuid"], message: "must match format \"uuid\"")
        }
        return id.uuidString.lowercased()
    }
}
