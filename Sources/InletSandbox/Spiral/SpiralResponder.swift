import HTTPTypes
import Hummingbird
import InletCore
import NIOCore

/// Leads each request through its fault, its authorisation and its call.
struct SpiralResponder: HTTPResponder {
    let control: ControlCalls
    let store: StoreCalls
    let gate: FaultGate<SpiralOperation>
    let apiKey: Secret?

    func respond(to request: Request, context: ConnectionContext) async throws -> Response {
        guard let signable = SignableRequest(request) else {
            return .xml(.badRequest("The address is not percent-encoded UTF-8."))
        }
        do {
            return try await respond(to: request, signable, on: context.channel, SpiralRoute(signable))
        } catch let error as StoreError {
            return .xml(error)
        }
    }

    private func respond(
        to request: Request, _ signable: SignableRequest, on channel: any Channel, _ route: SpiralRoute
    ) async throws -> Response {
        do {
            return try await gate.pass(request, route.operation, part: route.part, on: channel) { body, fault in
                try authorize(route, request, signable)
                return try await answer(route, request, signable, &body, fault)
            }
        } catch let error as StoreError {
            return try .failure(error, asXML: route.speaksXML)
        }
    }

    private func authorize(_ route: SpiralRoute, _ request: Request, _ signable: SignableRequest) throws(StoreError) {
        switch route {
        case .part, .single, .presignedRead: try control.signer.verify(signable, now: .now)
        case .create, .complete, .abort, .presign, .objectURL, .publicRead:
            guard route.needsKey, let apiKey else { return }
            let given = request.headers[.apiKey] ?? ""
            guard SigningSecret.areEqual(given, apiKey.reveal()) else { throw .unauthorized }
        }
    }

    private func answer(
        _ route: SpiralRoute, _ request: Request, _ signable: SignableRequest, _ body: inout IncomingBody,
        _ fault: FaultAction?
    ) async throws -> Response {
        let host = signable.host
        switch route {
        case .create(let door): return try await control.create(door, &body, host: host, fault: fault)
        case .complete(let door): return try await control.complete(door, &body, host: host)
        case .abort: return try await control.abort(&body)
        case .presign: return try await control.presign(&body, host: host, fault: fault)
        case .objectURL(let key): return try control.objectURL(key, host: host, fault: fault)
        case .part(let key, let upload, let number):
            return try await store.part(number, upload: upload, key: key, &body, fault: fault)
        case .single(let key):
            return try await store.single(key, contentType: signable.contentType, &body, fault: fault)
        case .presignedRead(let key), .publicRead(let key): return try store.store.read(key, request)
        }
    }
}

extension HTTPField.Name {
    /// `X-API-Key` of the v1 dialect. The name is a valid token, so it is never nil in use.
    fileprivate static let apiKey = HTTPField.Name("X-API-Key") ?? .authorization
}
