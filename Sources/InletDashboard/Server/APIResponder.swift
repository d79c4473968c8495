internal import HTTPTypes
internal import Hummingbird

/// What is answered, and whether the connection must end after it because something of the request was not read.
struct Reply: Sendable {
    var response: Response
    var closes = false
}

/// Answers requests by the table.
struct APIResponder: Sendable {
    let context: APIContext
    let table: [Endpoint]

    /// - Parameter admit: whether the visitor may have what the endpoint gives; throws `APIFault`.
    func respond(
        to request: Request, from visitor: Visitor, _ deadline: ConnectionDeadline,
        admit: (Endpoint) throws -> Void = { _ in }
    ) async -> Reply {
        let isHead = request.method == .head
        let method = isHead ? HTTPRequest.Method.get : request.method
        let query = APICall.query(request.uri.query)
        let match: Endpoints.Match
        do {
            match = try Endpoints.find(method.rawValue, request.uri.path, on: table).get()
            try admit(match.endpoint)
            if let fault = match.endpoint.fault(in: query) { throw fault }
        } catch {
            return await request.refuse(.fault(APIFault(error)), deadline)
        }
        let body: [UInt8]
        do {
            // Where none is asked for, a small one does no harm.
            body = try await request.wholeBody(upTo: match.endpoint.body?.limit ?? 1024, deadline)
        } catch {
            return Reply(response: .fault(error), closes: true)
        }
        if let fault = match.endpoint.fault(inBody: body) { return Reply(response: .fault(fault)) }
        let call = APICall(
            request: request, visitor: visitor, places: match.places, query: query, body: body, deadline: deadline)
        // A command that fails may have done a part of its work.
        defer { if [.full, .socket].contains(match.endpoint.need) { context.feed?.noteChange() } }
        do {
            let response = try await match.endpoint.handle(call, context)
            return Reply(response: isHead ? response.withoutBody : response)
        } catch {
            return Reply(response: .fault(APIFault(error)))
        }
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
