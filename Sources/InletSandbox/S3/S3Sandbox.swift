import HTTPTypes
import Hummingbird
package import InletCore
import InletLinux
package import SystemPackage

/// A loopback server that speaks S3 (path style, one bucket, signatures in the Authorization field), stores objects on
/// disk, and has R2's rules for parts. For `inlet demo` and the tests; it listens on 127.0.0.1 only.
///
/// Its own code verifies signatures and checksums. Objects and open uploads survive on disk for the next sandbox, and
/// `faults` makes it misbehave.
package final class S3Sandbox: LoopbackSandbox {
    /// The sandbox's credentials and address.
    package struct Account: Sendable {
        package var bucket: String
        package var accessKey: String
        package var secretKey: Secret
        /// The region that signatures must name.
        package var region: String
        /// The required `x-amz-security-token`; nil = none is allowed.
        package var sessionToken: Secret?

        package init(
            bucket: String = "sandbox", accessKey: String, secretKey: Secret, region: String = "auto",
            sessionToken: Secret? = nil
        ) {
            self.bucket = bucket
            self.accessKey = accessKey
            self.secretKey = secretKey
            self.region = region
            self.sessionToken = sessionToken
        }
    }

    /// How a store treats a checksum that comes with a body.
    package enum ChecksumRule: Sendable {
        /// Compares it, and repeats it in the answer.
        case compared
        /// Repeats it, right or wrong.
        case repeated
        /// Stores the body, as if it had not come.
        case ignored
        /// Refuses the request, which it does not know.
        case refused
    }

    /// Behaviour that differs between stores.
    package struct Rules: Sendable {
        /// The most entries of one page of a listing; S3 has 1,000.
        package var pageSize: Int
        /// The longest body of one PUT, in bytes; S3 has 5 GiB.
        package var largestBody: Int64
        /// How far the sandbox's clock is ahead of the true time.
        package var clockOffset: Duration
        /// Whether `If-None-Match` is honoured where parts are composed, as with one PUT; Ceph's gateway ignores it.
        package var composesOnlyNew: Bool
        /// By checksum; others are compared.
        package var checksums: [Digest.Algorithm: ChecksumRule] = [:]
        /// Whether the signed SHA-256 of a body is compared, so that no damage gets as far as the checksums.
        package var comparesPayload = true

        package init(
            pageSize: Int = 1000, largestBody: Int64 = 5 << 30, clockOffset: Duration = .zero,
            composesOnlyNew: Bool = true
        ) {
            self.pageSize = pageSize
            self.largestBody = largestBody
            self.clockOffset = clockOffset
            self.composesOnlyNew = composesOnlyNew
        }
    }

    package let server: SandboxServer<S3Operation>
    private let store: ObjectStore

    /// - Parameters:
    ///   - directory: The folder of objects and open uploads; created if missing.
    ///   - port: 0 = the system chooses one.
    /// - Throws: If the directory cannot be created, read or written.
    package init(
        directory: FilePath, account: Account, rules: Rules = Rules(), faults plan: FaultPlan<S3Operation> = .none,
        port: Int = 0
    ) throws {
        store = try ObjectStore(directory: directory)
        let service = S3Service(store: store, account: account, rules: rules)
        server = SandboxServer(
            port: port,
            SandboxRouter(plan, service.routes, common: service.common) { refusal, _ in refusal.xml })
    }

    /// The stored objects, by key.
    package func objects() -> [StoredObject] { store.objects() }

    /// Ids of uploads that were created and neither completed nor aborted, sorted.
    package func openUploads() -> [String] { store.openUploads() }
}

/// The S3 sandbox's operations, for counters and faults. Names are those of the S3 API.
package enum S3Operation: String, SandboxOperation {
    case putObject
    /// GET of an object.
    case getObject
    case headObject
    case deleteObject
    case createMultipartUpload
    case uploadPart
    case listParts
    case completeMultipartUpload
    case abortMultipartUpload
    /// ListObjectsV2.
    case listObjects
    case headBucket
    /// Any other request.
    case unknown
}

package typealias S3Fault = OperationFault<S3Operation>

extension FaultReply {
    /// An error in S3's words; `retryAfter` in seconds.
    package static func s3(_ status: Int, _ code: String, retryAfter: Int? = nil) -> FaultReply {
        var reply = SandboxRefusal(status, code, "By the sandbox's fault plan.").xml
        reply.fields["Retry-After"] = retryAfter.map(String.init)
        return reply
    }

    /// 503 of a store that wants fewer requests.
    package static func slowDown(retryAfter: Int? = nil) -> FaultReply { s3(503, "SlowDown", retryAfter: retryAfter) }

    /// 200 with an error in the body, as CompleteMultipartUpload may answer once its head is sent.
    package static let errorIn200 = s3(200, "InternalError")
}

/// The table of calls; extensions answer them.
struct S3Service: Sendable {
    let store: ObjectStore
    let account: S3Sandbox.Account
    let rules: S3Sandbox.Rules

    /// Fields of every answer.
    var common: HTTPFields {
        var fields = HTTPFields()
        fields["x-amz-request-id"] = "sandbox"
        return fields
    }

    var routes: [SandboxRoute<S3Operation>] {
        let object = "/{bucket}/{key...}"
        return ["/{bucket}", "/{bucket}/"].flatMap { bucket in
            [
                row("HEAD \(bucket)", .headBucket) { _ in Response(status: .ok) },
                row("GET \(bucket)?list-type=2", .listObjects, listObjects),
            ]
        } + [
            row("PUT \(object)?uploadId&partNumber", .uploadPart, putPart),
            row("PUT \(object)?uploadId", .unknown, refuse), row("PUT \(object)?partNumber", .unknown, refuse),
            row("PUT \(object)", .putObject, put),
            row("GET \(object)?uploadId", .listParts, listParts),
            row("GET \(object)", .getObject, read),
            row("HEAD \(object)", .headObject, read),
            row("POST \(object)?uploadId", .completeMultipartUpload, complete),
            row("POST \(object)?uploads", .createMultipartUpload, create),
            row("DELETE \(object)?uploadId", .abortMultipartUpload, abort),
            row("DELETE \(object)", .deleteObject, delete),
            row("*", .unknown, refuse),
        ]
    }

    /// Each call must be signed, and name the bucket.
    private func row(
        _ pattern: String, _ operation: S3Operation, _ handle: @escaping SandboxHandler
    ) -> SandboxRoute<S3Operation> {
        let signer = RequestSigner(secret: account.secretKey, accessKey: account.accessKey, region: account.region)
        return SandboxRoute(pattern, operation) { call in
            try signer.verify(
                call.address, call.fields, sessionToken: account.sessionToken, now: .now + rules.clockOffset)
            let bucket = String(call.address.path.dropFirst().prefix { $0 != "/" })
            guard bucket == account.bucket else {
                throw SandboxRefusal(
                    404, "NoSuchBucket", "The specified bucket does not exist", details: ["BucketName": bucket])
            }
            return try await handle(&call)
        }
    }

    func refuse(_ call: inout SandboxCall) throws -> Response {
        throw SandboxRefusal.notImplemented("This call")
    }

    /// `If-None-Match: *` is the only condition for writes.
    func mustBeNew(_ fields: HTTPFields) throws(SandboxRefusal) -> Bool {
        guard let condition = fields[.ifNoneMatch] else { return false }
        guard condition == "*" else { throw .notImplemented("If-None-Match with anything but *") }
        return true
    }
}
