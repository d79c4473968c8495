import HTTPTypes
import Hummingbird

/// What VOPI answers instead of the result: one of its three shapes of error.
enum VOPIRefusal: Error, Equatable {
    /// Of the error handler: with `statusCode`.
    case full(Int, code: String, message: String)
    /// Of code that replies directly: without `statusCode`.
    case bare(Int, code: String, message: String)
    /// 400: a body or query that breaks the schema; the first error only.
    case schema(path: String, keyword: String, params: SandboxJSON, message: String)
    /// 422: what the schema lets through and the second check does not.
    case value(field: String, message: String)
    /// 404 of a path that has no handler; its `error` is prose.
    case route(String)
    /// Over the limit: 500.
    case rateLimit(retryAfter: Int)

    static let internalError = Self.full(500, code: "INTERNAL_ERROR", message: "An unexpected error occurred")

    static func notFound(job id: String) -> Self {
        .full(404, code: "NOT_FOUND", message: "Job \(id) not found")
    }

    static func badRequest(_ message: String) -> Self { .full(400, code: "BAD_REQUEST", message: message) }
    static func unauthorized(_ message: String) -> Self { .bare(401, code: "UNAUTHORIZED", message: message) }

    func reply() throws -> SandboxReply {
        let (status, body) = answer
        var reply = try SandboxReply.json(body, status: status)
        if case .rateLimit(let seconds) = self { reply.fields["Retry-After"] = String(seconds) }
        return reply
    }

    private var answer: (status: Int, body: SandboxJSON) {
        switch self {
        case .full(let status, let code, let message): (status, Self.body(code, message, status: status))
        case .bare(let status, let code, let message): (status, Self.body(code, message, status: nil))
        case .schema(let path, let keyword, let params, let message):
            (
                400,
                Self.body(
                    "VALIDATION_ERROR", "Request validation failed", status: 400,
                    details: [
                        [
                            "instancePath": .string(path), "schemaPath": .string("#/\(keyword)"),
                            "keyword": .string(keyword), "params": params, "message": .string(message),
                        ]
                    ])
            )
        case .value(let field, let message):
            (
                422,
                Self.body(
                    "VALIDATION_ERROR", "Validation failed", status: 422,
                    details: .object(["_errors": [], field: ["_errors": [.string(message)]]]))
            )
        case .route(let call):
            (404, ["message": .string("Route \(call) not found"), "error": "Not Found", "statusCode": 404])
        case .rateLimit: (500, Self.body("INTERNAL_ERROR", "An unexpected error occurred", status: 500))
        }
    }

    private static func body(
        _ code: String, _ message: String, status: Int?, details: SandboxJSON? = nil
    ) -> SandboxJSON {
        var fields: [String: SandboxJSON] = ["error": .string(code), "message": .string(message)]
        if let status { fields["statusCode"] = .number(Double(status)) }
        if let details { fields["details"] = details }
        return .object(fields)
    }
}
