package import InletCore
package import SystemPackage

/// A loopback server that speaks the Spiral Storage dialects `seed`, `r2` and `v1`, and keeps what it receives on disk.
///
/// Part URLs are presigned and verified as S3 does it, uploads and objects are found again by the next sandbox on the
/// same directory, and `faults` makes it misbehave. For `inlet demo` and the tests; it listens on 127.0.0.1 only.
/// Public reads are at `/public/<key>`.
package final class SpiralSandbox: LoopbackSandbox {
    package let server: SandboxServer<SpiralOperation>
    private let store: ObjectStore

    /// - Parameters:
    ///   - directory: Where objects, open uploads and the signing key are kept; made when missing.
    ///   - apiKey: What `X-API-Key` must be in the v1 dialect; nil asks for none.
    ///   - urlLifetime: Of presigned URLs, in whole seconds up to 7 days.
    ///   - port: 0 = one that the system chooses.
    /// - Throws: When the directory cannot be made, read or written.
    package init(
        directory: FilePath, apiKey: Secret?, faults plan: FaultPlan<SpiralOperation> = .none,
        urlLifetime: Duration = .seconds(3600), port: Int = 0
    ) throws {
        store = try ObjectStore(directory: directory)
        let service = SpiralService(
            store: store, signer: RequestSigner(secret: try SigningSecret.load(from: directory)), apiKey: apiKey,
            urlLifetime: urlLifetime.milliseconds / 1000)
        server = SandboxServer(port: port, SandboxRouter(plan, service.routes, wording: SpiralService.word))
    }

    /// What is stored, by key.
    package func objects() -> [StoredObject] { store.objects() }

    /// Ids of uploads that were created and neither completed nor aborted, sorted.
    package func openUploads() -> [String] { store.openUploads() }
}

/// What a client may ask of the sandbox; counters and faults go by these.
package enum SpiralOperation: String, SandboxOperation {
    case create
    /// PUT to a part's presigned URL.
    case part
    case complete
    case abort
    case presign
    /// PUT to a presigned URL for a whole object.
    case single
    case objectURL
    /// GET or HEAD of an object, presigned or public.
    case read
}

package typealias Fault = OperationFault<SpiralOperation>
