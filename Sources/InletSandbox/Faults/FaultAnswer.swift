import HTTPTypes
import Hummingbird
import NIOCore

/// Answers that a fault gives in the place of the sandbox's own.
struct FaultAnswer<Operation: SandboxOperation>: Sendable {
    let faults: Faults<Operation>

    /// The answer of an `action` that replaces the handling; nil for those that only alter it.
    func response(
        for action: FaultAction, _ request: Request, body: inout IncomingBody, on channel: any Channel
    ) async throws -> Response? {
        switch action {
        case .status(let code, let retryAfter):
            try await body.discard()
            return Self.status(code, retryAfter: retryAfter)
        case .reply(let reply):
            try await body.discard()
            return Response(reply)
        case .echo(let reply): return Response(Echo(request, body: try await body.whole()).inside(reply))
        case .earlyReply(let reply):
            var response = Response(reply)
            response.headers[.connection] = "close"
            return response
        case .stall:
            try await body.discard()
            try await HeldConnections.waitForClose(of: channel)
            throw ConnectionDropped()
        case .drip, .endlessAnswer:
            try await body.discard()
            return endless(slowly: action == .drip, on: channel)
        case .garbage:
            try await body.discard()
            return Self.answer("application/json", ByteBuffer(bytes: faults.randomBytes(512)))
        case .html:
            try await body.discard()
            return Self.answer("text/html", ByteBuffer(string: "<!doctype html><title>Sign in</title><p>Welcome."))
        case .redirect(let address):
            try await body.discard()
            return Response(status: .temporaryRedirect, headers: [.location: address])
        case .delay, .hold:
            try await Self.wait(action)
            return nil
        case .replyAfterWork, .reset, .slowRead, .missingETag, .wrongETag, .partURLs, .expiredURLs, .loseAnswer,
            .withholdAnswer, .truncateAnswer, .wrongLength, .damageAnswer, .conflict:
            return nil
        }
    }

    private static func wait(_ action: FaultAction) async throws {
        switch action {
        case .delay(let duration): try await Task.sleep(for: duration)
        case .hold(let gate): await gate.wait()
        default: break
        }
    }

    private static func status(_ code: Int, retryAfter: Int?) -> Response {
        var response = answer("text/plain", ByteBuffer(string: "status \(code), by the sandbox's fault plan\n"))
        response.status = HTTPResponse.Status(code: code)
        if let retryAfter { response.headers[.retryAfter] = String(retryAfter) }
        return response
    }

    private static func answer(_ type: String, _ body: ByteBuffer) -> Response {
        Response(status: .ok, headers: [.contentType: type], body: ResponseBody(byteBuffer: body))
    }

    /// White space is a JSON text that never begins: a reader must end it by its own bounds.
    private func endless(slowly: Bool, on channel: any Channel) -> Response {
        let held = faults.held
        let chunk = ByteBuffer(repeating: UInt8(ascii: " "), count: slowly ? 1 : 1 << 16)
        let body = ResponseBody { writer in
            held.add(channel)
            defer { held.remove(channel) }
            while channel.isActive {
                try await writer.write(chunk)
                if slowly { try await Task.sleep(for: .seconds(1)) }
            }
            throw ConnectionDropped()
        }
        return Response(status: .ok, headers: [.contentType: "application/json"], body: body)
    }
}

extension Response {
    init(_ reply: FaultReply) {
        var fields = HTTPFields()
        for (name, value) in reply.fields {
            if let name = HTTPField.Name(name) { fields[name] = value }
        }
        self.init(
            status: HTTPResponse.Status(code: reply.status), headers: fields,
            body: ResponseBody(byteBuffer: ByteBuffer(string: reply.body)))
    }
}
