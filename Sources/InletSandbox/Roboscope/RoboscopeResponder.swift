import Foundation
import HTTPTypes
import Hummingbird
import InletCore
import NIOCore

/// Leads each request through its fault, its authorisation and its call.
struct RoboscopeResponder: Sendable {
    let store: RoboscopeStore
    let token: Secret?

    static func word(_ refusal: SandboxRefusal, _: RoboscopeOperation?) -> SandboxReply {
        SandboxReply(refusal.status, type: "text/plain; charset=utf-8", body: refusal.message)
    }

    func route(_ address: SignableRequest) -> SandboxRoute<RoboscopeOperation> {
        let route = RoboscopeRoute(method: address.method, path: address.path)
        return SandboxRoute("*", route.operation) { call in
            do {
                let rules = store.rules
                let message = try await Self.message(call.request, &call.body, limit: rules.bodyLimit)
                guard route.exists(rules) else { throw RoboscopeRefusal(status: 404, message: "") }
                try authorize(route, call.fields)
                return try answer(route, call.address, message, call.fault, rules)
            } catch let refusal as RoboscopeRefusal {
                throw SandboxReply(refusal.status, type: "text/plain; charset=utf-8", body: refusal.message)
            }
        }
    }

    private static func message(_ request: Request, _ body: inout IncomingBody, limit: Int) async throws -> Data {
        let whole = try await body.whole()
        guard whole.count <= limit else { throw RoboscopeRefusal.tooLarge }
        let type = request.headers[.contentType].map { $0.prefix { $0 != ";" } }
        guard whole.isEmpty || type == "application/json" else {
            throw RoboscopeRefusal(status: 415, message: "Expected request with `Content-Type: application/json`")
        }
        return whole
    }

    private func authorize(_ route: RoboscopeRoute, _ fields: HTTPFields) throws(RoboscopeRefusal) {
        guard let token, route != .health else { return }
        let given = fields[.authorization] ?? ""
        guard SigningSecret.areEqual(given, "Bearer \(token.reveal())") else { throw .noToken }
    }

    private func answer(
        _ route: RoboscopeRoute, _ query: SignableRequest, _ body: Data, _ fault: FaultAction?, _ rules: RoboscopeRules
    ) throws -> Response {
        let voice = RoboscopeVoice(tellsFractions: rules.tellsFractions)
        let spaces = SpaceCalls(store: store, voice: voice)
        switch route {
        case .health: return Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(string: "healthy\n")))
        case .events: return try .json(store.events().map(voice.event))
        case .spaces: return try spaces.list(key: query.value("key"))
        case .createSpace: return try spaces.create(body)
        case .space(let id): return try spaces.get(id)
        case .updateSpace(let id): return try spaces.update(id, body)
        case .deleteSpace(let id): return try spaces.delete(id)
        case .referenceSets(let id): return try spaces.referenceSets(id)
        case .laserGuide(let id): return try spaces.laserGuide(id)
        case .sessions, .createSession, .session, .updateSession, .deleteSession:
            return try sessionAnswer(route, query, body, fault, voice)
        case .presence, .enter, .leave, .lock, .extendLock, .unlock, .lockStatus:
            return try presenceAnswer(route, body)
        default: return try markerAnswer(route, query, body, fault, voice)
        }
    }

    private func sessionAnswer(
        _ route: RoboscopeRoute, _ query: SignableRequest, _ body: Data, _ fault: FaultAction?, _ voice: RoboscopeVoice
    ) throws -> Response {
        let sessions = WorkSessionCalls(store: store, voice: voice)
        switch route {
        case .createSession: return try sessions.create(body)
        case .session(let id): return try sessions.get(id)
        case .updateSession(let id): return try sessions.update(id, body, fault: fault)
        case .deleteSession(let id): return try sessions.delete(id)
        default: return try sessions.list(query)
        }
    }

    private func markerAnswer(
        _ route: RoboscopeRoute, _ query: SignableRequest, _ body: Data, _ fault: FaultAction?, _ voice: RoboscopeVoice
    ) throws -> Response {
        let markers = MarkerCalls(store: store, voice: voice)
        switch route {
        case .createMarker: return try markers.create(body)
        case .bulkMarkers: return try markers.createMany(body)
        case .marker(let id): return try markers.get(id)
        case .updateMarker(let id): return try markers.update(id, body, fault: fault)
        case .deleteMarker(let id): return try markers.delete(id)
        case .details(let id): return try markers.details(id, calculating: false)
        case .calculateDetails(let id): return try markers.details(id, calculating: true)
        default: return try markers.list(session: query.value("work_session_id"))
        }
    }

    private func presenceAnswer(_ route: RoboscopeRoute, _ body: Data) throws -> Response {
        let calls = PresenceCalls(store: store)
        switch route {
        case .enter(let session): return try calls.enter(session, body)
        case .leave(let session, let user): return try calls.leave(session, user: user)
        case .lock(let session): return try calls.lock(session, body)
        case .extendLock(let session): return try calls.extend(session, body)
        case .unlock(let session): return try calls.unlock(session, body)
        case .lockStatus(let session): return try calls.lockStatus(session)
        case .presence(let session): return try calls.list(session)
        default: throw RoboscopeRefusal(status: 404, message: "")
        }
    }
}
