internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

/// An answer, and whether the connection must end after it because part of the request was not read.
struct Reply: Sendable {
    var response: Response
    var closes = false
}

/// Answers requests by the table.
struct APIResponder: Sendable {
    let context: APIContext
    let table: [Endpoint]

    /// - Parameter admit: checks whether the principal may use the endpoint; throws `APIFault`.
    func respond(
        to request: Request, from principal: Principal, _ deadline: ConnectionDeadline,
        admit: (Endpoint) throws -> Void = { _ in }
    ) async -> Reply {
        let isHead = request.method == .head
        let method = isHead ? HTTPRequest.Method.get : request.method
        let query = HTTPExchange.query(request.uri.query)
        let (endpoint, places): (Endpoint, [(name: String, value: String)])
        do {
            (endpoint, places) = try Endpoints.find(method.rawValue, request.uri.path, on: table)
            try admit(endpoint)
            if let fault = endpoint.fault(in: query) { throw fault }
        } catch {
            return await request.refuse(.fault(APIFault(error)), deadline)
        }
        let body: [UInt8]
        do {
            // Where no body is needed, a small one does no harm.
            body = try await request.wholeBody(upTo: endpoint.body?.limit ?? 1024, deadline)
        } catch {
            return Reply(response: .fault(error), closes: true)
        }
        if let fault = endpoint.fault(inBody: body) { return Reply(response: .fault(fault)) }
        let call = APICall(context: context, principal: principal, parameters: places + query)
        // An order that fails may have done part of its work.
        defer { if [.full, .socket].contains(endpoint.need) { context.feed?.noteChange() } }
        do {
            let response = try await endpoint.serve(
                call, HTTPExchange(request: request, body: body, deadline: deadline))
            return Reply(response: isHead ? response.withoutBody : response)
        } catch {
            return Reply(response: .fault(APIFault(error)))
        }
    }
}

extension Response {
    /// The same answer without its body, for HEAD.
    var withoutBody: Response {
        var head = Response(status: status, headers: headers)
        head.headers[.contentLength] = body.contentLength.map(String.init)
        return head
    }
}

extension Request {
    /// The most of an oversized body that is read and dropped, so that the client can read the refusal before the
    /// connection ends.
    private static let mostDrained = 4 << 20

    /// Whether anything follows the head.
    private var announcesBody: Bool {
        headers[.transferEncoding] != nil || headers[.contentLength].map { $0 != "0" } ?? false
    }

    /// The answer to a request of which only the head was read. If more was announced than arrives at once, the
    /// connection ends after it: a refused client could otherwise send for ever.
    func refuse(_ response: Response, _ deadline: ConnectionDeadline) async -> Reply {
        guard announcesBody else { return Reply(response: response) }
        // A client that asks before sending has not sent anything (RFC 9110, 10.1.1). Unread bytes end the connection
        // in any case.
        let isRead = headers[.expect] == nil ? (try? await drain(deadline)) ?? false : false
        return Reply(response: response, closes: !isRead)
    }

    /// Drops the body. - Returns: whether all of it came.
    private func drain(_ deadline: ConnectionDeadline) async throws -> Bool {
        let alarm = deadline.begin(deadline.reading)
        defer { alarm.cancel() }
        var dropped = 0
        for try await part in body {
            dropped += part.readableBytes
            if dropped > Self.mostDrained { return false }
        }
        return true
    }

    /// - Throws: for a body that is too large, or that contradicts its head or framing: the connection must end.
    func wholeBody(upTo limit: Int, _ deadline: ConnectionDeadline) async throws(APIFault) -> [UInt8] {
        guard announcesBody else { return [] }
        let alarm = deadline.begin(deadline.reading)
        defer { alarm.cancel() }
        var bytes: [UInt8] = []
        var dropped = 0
        do {
            for try await part in body {
                if dropped == 0, bytes.count + part.readableBytes <= limit {
                    bytes += part.readableBytesView
                } else {
                    bytes = []
                    dropped += part.readableBytes
                    if dropped > Self.mostDrained { break }
                }
            }
        } catch {
            throw .badRequest("the body is incomplete, or its framing is not valid HTTP")
        }
        if dropped > 0 { throw .tooLarge("the body is larger than \(limit) bytes") }
        if let length = headers[.contentLength], Int(length) != bytes.count {
            throw .badRequest("the body is shorter than its head says")
        }
        return bytes
    }
}
