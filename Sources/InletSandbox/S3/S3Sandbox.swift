package import InletCore
import ServiceLifecycle
package import SystemPackage

/// A loopback server that speaks S3 (path style, one bucket, signatures in the Authorization field), keeps what it
/// receives on disk, and has R2's rules for parts. For `inlet demo` and the tests; it listens on 127.0.0.1 only.
///
/// Signatures and checksums are verified by its own code. Objects and open uploads are found again by the next sandbox
/// on the same directory, and `faults` makes it misbehave.
package final class S3Sandbox: LoopbackSandbox, Service {
    /// Who may ask, and how the sandbox is addressed.
    package struct Account: Sendable {
        package var bucket: String
        package var accessKey: String
        package var secretKey: Secret
        /// The region that signatures must name.
        package var region: String
        /// What `x-amz-security-token` must be; nil = there must be none.
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

    /// What of its behaviour differs from store to store.
    package struct Rules: Sendable {
        /// The most entries of one page of a listing; S3 has 1,000.
        package var pageSize: Int
        /// The longest body of one PUT, in bytes; S3 has 5 GiB.
        package var largestBody: Int64
        /// How far the sandbox's clock is ahead of the true time.
        package var clockOffset: Duration
        /// Whether `If-None-Match` is heeded where parts are composed, as it is with one PUT; Ceph's gateway passes over it.
        package var composesOnlyNew: Bool

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

    package let front: SandboxFront<S3Operation>

    private let store: ObjectStore
    private let responder: S3Responder

    /// - Parameters:
    ///   - directory: Where objects and open uploads are kept; made when missing.
    ///   - port: 0 = one that the system chooses.
    /// - Throws: When the directory cannot be made, read or written.
    package init(
        directory: FilePath, account: Account, rules: Rules = Rules(), faults plan: FaultPlan<S3Operation> = .none,
        port: Int = 0
    ) throws {
        let front = SandboxFront(plan, port: port)
        let store = try ObjectStore(directory: directory)
        self.front = front
        self.store = store
        let scope = SignatureScope(secret: account.secretKey, accessKey: account.accessKey, region: account.region)
        responder = S3Responder(
            objects: S3ObjectCalls(store: store, faults: front.faults, largestBody: rules.largestBody),
            uploads: S3UploadCalls(
                store: store, bucket: account.bucket, pageSize: max(1, rules.pageSize),
                composesOnlyNew: rules.composesOnlyNew),
            gate: front.gate,
            verifier: HeaderVerifier(scope: scope, sessionToken: account.sessionToken), clockOffset: rules.clockOffset)
    }

    /// Serves until the task is cancelled or a graceful shutdown begins; requests under way then end first, but for those
    /// that a fault holds. Call it once.
    package func run() async throws { try await front.server.run(responder) }

    /// What is stored, by key.
    package func objects() -> [StoredObject] { store.objects() }

    /// Ids of uploads that were created and neither completed nor aborted, sorted.
    package func openUploads() -> [String] { store.openUploads() }
}
