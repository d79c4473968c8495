import HTTPTypes
import Hummingbird
import InletCore
import NIOCore

/// Leads each request through its fault, its signature and its call.
struct S3Responder: HTTPResponder {
    let objects: S3ObjectCalls
    let uploads: S3UploadCalls
    let gate: FaultGate<S3Operation>
    let verifier: HeaderVerifier
    /// How far the sandbox's clock is ahead of the true time.
    let clockOffset: Duration

    func respond(to request: Request, context: ConnectionContext) async throws -> Response {
        guard let signable = SignableRequest(request) else {
            return .xml(.badRequest("The address is not percent-encoded UTF-8."))
        }
        let route = S3Route(signable)
        var response: Response
        do {
            response = try await gate.pass(request, route.operation, part: route.part, on: context.channel) {
                body, fault in try await answer(route, request, signable, &body, fault)
            }
        } catch let error as StoreError {
            response = .xml(error)
        }
        response.headers[.amzRequestID] = "sandbox"
        // The answer to HEAD has no body, an error's neither.
        return request.method == .head ? response.createHeadResponse() : response
    }

    private func answer(
        _ route: S3Route, _ request: Request, _ signable: SignableRequest, _ body: inout IncomingBody,
        _ fault: FaultAction?
    ) async throws -> Response {
        let payload = try verifier.verify(signable, request.headers, now: .now + clockOffset)
        guard route.bucket == uploads.bucket else { throw StoreError.noSuchBucket(route.bucket) }
        switch route.target {
        case .headBucket: return Response(status: .ok)
        case .list:
            return try S3Listing(signable, pageSize: uploads.pageSize)
                .response(bucket: uploads.bucket, objects.store.objects())
        case .uploads: return try uploads.uploads(signable)
        case .unknown: throw StoreError.notImplemented("This call")
        case .object(let key, let call):
            let asked = Asked(key: key, fields: request.headers, signable: signable, payload: payload, fault: fault)
            return try await answer(call, asked, &body)
        }
    }

    private struct Asked {
        var key: String
        var fields: HTTPFields
        var signable: SignableRequest
        var payload: PayloadHash
        var fault: FaultAction?
    }

    private func answer(_ call: S3Route.Call, _ asked: Asked, _ body: inout IncomingBody) async throws -> Response {
        let (key, fields) = (asked.key, asked.fields)
        switch call {
        case .put: return try await objects.put(key, fields, asked.payload, &body, fault: asked.fault)
        case .get: return try objects.read(key, fields, withBody: true)
        case .head: return try objects.read(key, fields, withBody: false)
        case .delete: return try objects.delete(key)
        case .create: return try uploads.create(key, fields)
        case .part(let number, let upload):
            return try await objects.part(
                number, upload: upload, key: key, fields, asked.payload, &body, fault: asked.fault)
        case .parts(let upload): return try uploads.parts(key, upload: upload, asked.signable)
        case .complete(let upload):
            return try await uploads.complete(
                key, upload: upload, fields, &body, host: asked.signable.host, fault: asked.fault)
        case .abort(let upload): return try uploads.abort(key, upload: upload)
        }
    }
}

extension StoreError {
    fileprivate static func noSuchBucket(_ name: String) -> Self {
        Self(
            status: 404, code: "NoSuchBucket", message: "The specified bucket does not exist",
            details: [Detail(name: "BucketName", text: name)])
    }
}
