import HTTPTypes
import Hummingbird
import NIOCore

/// Counts each request, and leads it through the fault that it meets.
struct FaultGate<Operation: SandboxOperation>: Sendable {
    let faults: Faults<Operation>
    let traffic: TrafficLog<Operation>

    /// The fault's answer, or that of `handle`, which is given the fault it must heed.
    ///
    /// - Throws: What `handle` throws; `ConnectionDropped` where no answer can be written any more.
    func pass(
        _ request: Request, _ operation: Operation, part: Int? = nil, on channel: any Channel,
        _ handle: (inout IncomingBody, FaultAction?) async throws -> Response
    ) async throws -> Response {
        traffic.began(operation, part: part)
        defer { traffic.ended(part: part) }
        let fault = faults.next(at: operation, part: part, on: channel)
        defer { if fault != nil { faults.held.remove(channel) } }
        let traffic = traffic
        var body = IncomingBody(request, channel: channel, fault: fault) { traffic.received($0, operation) }
        if let fault,
            let replacement = try await FaultAnswer(faults: faults).response(
                for: fault, request, body: &body, on: channel)
        {
            return replacement
        }
        let response: Response
        do {
            response = try await handle(&body, fault)
        } catch {
            // A client that asked whether it may send the body sends it after all when nobody says so, and would take the
            // connection for free after an answer that came first. However that ends, the request has failed already.
            if request.headers[.expect] != nil { try? await body.discard() }
            throw error
        }
        switch fault {
        case .loseAnswer:
            // It may have been closed by its other end.
            try? await channel.close()
            throw ConnectionDropped()
        case .withholdAnswer:
            try await HeldConnections.waitForClose(of: channel)
            throw ConnectionDropped()
        case .replyAfterWork(let reply): return Response(reply)
        case .truncateAnswer(let count): return response.cut(afterBytes: count)
        case .wrongLength(let difference): return response.claiming(difference)
        case .damageAnswer(let offset): return response.damaged(at: offset)
        default: return response
        }
    }
}
