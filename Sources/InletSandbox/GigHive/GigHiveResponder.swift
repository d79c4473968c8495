import HTTPTypes
import Hummingbird
import InletCore
import NIOCore
import Synchronization

/// Leads each request through its fault, its login and its call.
struct GigHiveResponder: Sendable {
    let library: GigHiveLibrary
    let forms: FormCall
    let tus: TusCalls
    let finalizer: Finalizer
    let deletion: DeleteCall
    let access: GigHiveAccess
    /// The rules at this moment.
    let rules: @Sendable () -> GigHiveRules

    /// Of the body: too long, or cut off.
    static func word(_ refusal: SandboxRefusal, _: GigHiveOperation?) -> SandboxReply {
        .page(refusal.status, "Bad Request")
    }

    func route(_ address: SignableRequest) -> SandboxRoute<GigHiveOperation> {
        let route = GigHiveRoute(method: address.method, path: address.path)
        return SandboxRoute("*", route.operation) { call in
            do {
                return try await answer(route, call.request, call.address, &call.body)
            } catch let refusal as GigHiveRefusal {
                // A client that takes pages gets one from every POST of the application.
                let accept = call.request.method == .post ? call.fields[.accept] : nil
                throw try GigHiveAnswer.refusal(refusal, accept: accept)
            }
        }
    }

    private func answer(
        _ route: GigHiveRoute, _ request: Request, _ signable: SignableRequest, _ body: inout IncomingBody
    ) async throws -> Response {
        let user = try access.check(route, request.headers)
        let rules = rules()
        switch route {
        case .upload(let door):
            return try created(try await forms.upload(door, request.headers, &body, rules), request)
        case .finalize:
            let guest = try guest(request.headers, rules)
            let message = FinalizeMessage(try await body.whole(), contentType: request.headers[.contentType])
            return try created(try await finalizer.finalize(message, guest: guest, rules), request)
        case .asset(let id):
            guard let asset = library.asset(id) else { throw GigHiveRefusal.pathNotFound }
            return Response(try GigHiveAnswer.json(AssetAnswer(asset), status: 200, accept: nil))
        case .tusOptions, .tusCreate, .tusPatch, .tusHead, .tusDelete, .tusOther:
            return try await answerTus(route, request, host: signable.host, &body, rules)
        case .delete: return try await deletion.delete(request, &body, user: user)
        case .health: return try .json(["status": "ok"])
        case .guestStatus, .guestToken: return try guestAnswer(route, signable, rules)
        case .listing: throw GigHiveRefusal.json(501, error: "Not Implemented", message: nil)
        case .unknown: throw GigHiveRefusal.pathNotFound
        }
    }

    private func created(_ answer: UploadAnswer, _ request: Request) throws -> Response {
        Response(try GigHiveAnswer.json(answer, status: 201, accept: request.headers[.accept]))
    }

    private func answerTus(
        _ route: GigHiveRoute, _ request: Request, host: String, _ body: inout IncomingBody, _ rules: GigHiveRules
    ) async throws -> Response {
        switch route {
        case .tusOptions: return tus.options()
        case .tusCreate: return try await tus.create(request, &body, host: host, rules)
        case .tusPatch(let id): return try await tus.patch(id, request, &body, rules)
        case .tusHead(let id): return try tus.head(id, request.headers)
        case .tusDelete(let id): return try tus.delete(id, request.headers)
        default: throw GigHiveRefusal.tus(405, "method not allowed")
        }
    }

    private func guest(_ fields: HTTPFields, _ rules: GigHiveRules) throws(GigHiveRefusal) -> GigHiveRules.GuestToken? {
        guard let given = fields[.uploadToken] else { return nil }
        guard given.utf8.count <= 128 else { throw .json(400, error: "invalid token", message: nil) }
        guard let known = rules.guestTokens.first(where: { SigningSecret.areEqual($0.token.reveal(), given) }) else {
            throw .json(404, error: "invalid or expired", message: nil)
        }
        return known
    }

    private func guestAnswer(_ route: GigHiveRoute, _ request: SignableRequest, _ rules: GigHiveRules) throws
        -> Response
    {
        if route == .guestStatus {
            guard let nonce = request.value("nonce"), library.isGuest(nonce) else { throw GigHiveRefusal.pathNotFound }
            return try .json(["status": "pending"])
        }
        let token = request.value("token") ?? ""
        guard let known = rules.guestTokens.first(where: { SigningSecret.areEqual($0.token.reveal(), token) }) else {
            throw GigHiveRefusal.json(404, error: "invalid or expired", message: nil)
        }
        return try .json(["event_date": known.eventDate, "org_name": known.orgName, "event_type": known.eventType])
    }
}
