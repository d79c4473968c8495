internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

/// Answers requests by the table.
struct APIResponder: Sendable {
    let desk: APIDesk
    let table: [Endpoint]

    /// More of what a client sends than it may is thrown away up to here, so that it can read why before the connection ends.
    private static let mostDrained = 4 << 20

    /// - Parameter admit: whether the visitor may have what the endpoint gives; throws `APIFault`.
    /// - Returns: the answer, and whether the connection must end after it because something of the request was not read.
    func respond(
        to request: Request, from visitor: Visitor, _ deadline: ConnectionDeadline,
        admit: (Endpoint) throws -> Void = { _ in }
    ) async -> (response: Response, closes: Bool) {
        let isHead = request.method == .head
        let method = isHead ? HTTPRequest.Method.get : request.method
        switch Endpoints.find(method.rawValue, request.uri.path, on: table) {
        case .failure(let fault): return (.fault(fault), false)
        case .success(let match):
            do {
                try admit(match.endpoint)
                guard let body = try await body(of: request, for: match.endpoint, deadline) else {
                    let limit = match.endpoint.body?.limit ?? 0
                    return (.fault(.tooLarge("the body is larger than \(limit) bytes")), true)
                }
                let call = APICall(
                    request: request, visitor: visitor, places: match.places,
                    query: APICall.query(request.uri.query), body: body, deadline: deadline)
                // A command that fails may have done a part of its work.
                defer { if [.full, .socket].contains(match.endpoint.need) { desk.pulse?.stir() } }
                let response = try await match.endpoint.handle(call, desk)
                return (isHead ? response.withoutBody : response, false)
            } catch {
                return (.fault(APIFault(error)), false)
            }
        }
    }

    /// nil when it is too large.
    private func body(
        of request: Request, for endpoint: Endpoint, _ deadline: ConnectionDeadline
    ) async throws -> [UInt8]? {
        let headers = request.headers
        guard headers[.contentLength] != nil || headers[.transferEncoding] != nil else { return [] }
        // Where none is asked for, a small one does no harm.
        let limit = endpoint.body?.limit ?? 1024
        let alarm = deadline.begin(deadline.reading)
        defer { alarm.cancel() }
        var bytes: [UInt8] = []
        var dropped = 0
        for try await part in request.body {
            if dropped == 0, bytes.count + part.readableBytes <= limit {
                bytes += part.readableBytesView
            } else {
                bytes = []
                dropped += part.readableBytes
                if dropped > Self.mostDrained { break }
            }
        }
        return dropped > 0 ? nil : bytes
    }
}

extension Response {
    /// The same answer, for those who ask for its head.
    var withoutBody: Response {
        var head = Response(status: status, headers: headers)
        head.headers[.contentLength] = body.contentLength.map(String.init)
        return head
    }
}
