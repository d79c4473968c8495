/// What a client may ask of the VOPI sandbox; counters and faults go by these.
package enum VOPIOperation: String, SandboxOperation {
    /// GET `/ready` or `/health`.
    case ready
    /// POST `/auth/refresh`.
    case refresh
    /// POST `/uploads/presign`.
    case presign
    /// PUT of a video to its presigned URL.
    case upload
    /// POST `/jobs`.
    case createJob
    /// GET `/jobs`.
    case listJobs
    /// GET `/jobs/:id`.
    case job
    /// GET `/jobs/:id/status`.
    case status
    /// POST `/jobs/:id/cancel`.
    case cancel
    /// DELETE `/jobs/:id`: deletes, or on older servers cancels.
    case delete
    /// DELETE of one picture of a job.
    case deleteImage
    /// GET `/jobs/:id/download-urls`.
    case downloadURLs
    /// GET of a picture by its presigned URL.
    case download
    /// GET `/jobs/:id/metadata`.
    case metadata
    /// GET of a job's video, frames or images.
    case results
    /// GET `/credits/balance`.
    case balance
    /// A request that is none of these.
    case other
}

package typealias VOPIFault = OperationFault<VOPIOperation>

extension FaultReply {
    /// An error as the error handler words it: `error` is a code, such as `INTERNAL_ERROR`.
    package static func vopi(_ status: Int, error: String, message: String) -> FaultReply {
        FaultReply(
            status, type: "application/json; charset=utf-8",
            body: #"{"error":"\#(error)","message":"\#(message)","statusCode":\#(status)}"#)
    }

    /// The rate limit, which says 500 and not 429.
    ///
    /// - Parameter retryAfter: Seconds.
    package static func vopiRateLimit(retryAfter: Int = 60) -> FaultReply {
        var reply = vopi(500, error: "INTERNAL_ERROR", message: "An unexpected error occurred")
        reply.fields["retry-after"] = String(retryAfter)
        reply.fields["x-ratelimit-limit"] = "30"
        reply.fields["x-ratelimit-remaining"] = "0"
        reply.fields["x-ratelimit-reset"] = String(retryAfter)
        return reply
    }

    /// 401 that no token can mend: the check of the token failed, not the token.
    package static let vopiDatabaseDown = FaultReply(
        401, type: "application/json; charset=utf-8",
        body: #"""
            {"error":"ACCESS_TOKEN_INVALID","message":"Access token is invalid: connect ECONNREFUSED 127.0.0.1:5432"}
            """#)

    /// The same of `refresh`.
    package static let vopiRefreshDatabaseDown = FaultReply(
        401, type: "application/json; charset=utf-8",
        body: #"{"error":"UNAUTHORIZED","message":"connect ECONNREFUSED 127.0.0.1:5432"}"#)
}
