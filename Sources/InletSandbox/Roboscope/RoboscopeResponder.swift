import HTTPTypes
import Hummingbird
import InletCore

struct RoboscopeResponder: HTTPResponder {
    let store: RoboscopeStore
    let token: Secret?
    let gate: FaultGate<RoboscopeOperation>
    func respond(to request: Request, context: ConnectionContext) async throws -> Response { Response(status: .notFound) }
}
