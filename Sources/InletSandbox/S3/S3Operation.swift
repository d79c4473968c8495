/// What a client may ask of the S3 sandbox; counters and faults go by these. Names are those of the S3 API.
package enum S3Operation: String, SandboxOperation {
    case putObject
    /// GET of an object.
    case getObject
    case headObject
    case deleteObject
    case createMultipartUpload
    case uploadPart
    case listParts
    case listMultipartUploads
    case completeMultipartUpload
    case abortMultipartUpload
    /// ListObjectsV2.
    case listObjects
    case headBucket
    /// A request that is none of these.
    case unknown
}

package typealias S3Fault = OperationFault<S3Operation>

extension FaultReply {
    /// An error as S3 words it; `retryAfter` in seconds.
    package static func s3(_ status: Int, _ code: String, retryAfter: Int? = nil) -> FaultReply {
        FaultReply(
            status, type: "application/xml", fields: retryAfter.map { ["Retry-After": String($0)] } ?? [:],
            body: """
                <?xml version="1.0" encoding="UTF-8"?>
                <Error><Code>\(code)</Code><Message>By the sandbox's fault plan.</Message>\
                <RequestId>sandbox</RequestId></Error>
                """)
    }

    /// 503 as a store answers that wants to be asked less often.
    package static func slowDown(retryAfter: Int? = nil) -> FaultReply { s3(503, "SlowDown", retryAfter: retryAfter) }

    /// 200 with an error in the body, as CompleteMultipartUpload may answer once its head is on the way.
    package static let errorIn200 = s3(200, "InternalError")
}
