package import InletCore
import ServiceLifecycle
package import SystemPackage

/// A loopback server that speaks the Spiral Storage dialects `seed`, `r2` and `v1`, and keeps what it receives on disk.
///
/// Part URLs are presigned and verified as S3 does it, uploads and objects are found again by the next sandbox on the
/// same directory, and `faults` makes it misbehave. For `inlet demo` and the tests; it listens on 127.0.0.1 only.
/// Public reads are at `/public/<key>`.
package final class SpiralSandbox: LoopbackSandbox, Service {
    package let front: SandboxFront<SpiralOperation>

    private let store: ObjectStore
    private let responder: SpiralResponder

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
        let front = SandboxFront(plan, port: port)
        let store = try ObjectStore(directory: directory)
        let signer = URLSigner(secret: try SigningSecret.load(from: directory))
        self.front = front
        self.store = store
        responder = SpiralResponder(
            control: ControlCalls(store: store, signer: signer, urlLifetime: urlLifetime.milliseconds / 1000),
            store: StoreCalls(store: store, faults: front.faults),
            gate: front.gate, apiKey: apiKey)
    }

    /// Serves until the task is cancelled or a graceful shutdown begins; requests under way then end first, but for those
    /// that a fault holds. Call it once.
    package func run() async throws { try await front.server.run(responder) }

    /// What is stored, by key.
    package func objects() -> [StoredObject] { store.objects() }

    /// Ids of uploads that were created and neither completed nor aborted, sorted.
    package func openUploads() -> [String] { store.openUploads() }
}
