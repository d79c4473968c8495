import HTTPTypes
import Hummingbird
import InletCore

struct VOPIResponder: HTTPResponder {
    let shop: VOPIShop
    let apiKey: Secret?
    let gate: FaultGate<VOPIOperation>
    func respond(to request: Request, context: ConnectionContext) async throws -> Response { Response(status: .notFound) }
}
