/// What a client may ask of the sandbox; counters and faults go by these.
package enum SpiralOperation: String, SandboxOperation {
    /// POST …/multipart/create
    case create
    /// PUT to a part's presigned URL
    case part
    /// POST …/multipart/complete
    case complete
    /// POST …/multipart/abort
    case abort
    /// POST /v1/presign/upload
    case presign
    /// PUT to a presigned URL for a whole object
    case single
    /// GET /v1/objects/url/<key>
    case objectURL
    /// GET or HEAD of an object, presigned or public
    case read
}
