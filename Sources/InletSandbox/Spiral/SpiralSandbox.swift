package import InletCore
import ServiceLifecycle
package import SystemPackage

/// A loopback server that speaks the Spiral Storage dialects `seed`, `r2` and `v1`, and keeps what it receives on disk.
///
/// Part URLs are presigned and verified as S3 does it, uploads and objects are found again by the next sandbox on the
/// same directory, and `faults` makes it misbehave. For `inlet demo` and the tests; it listens on 127.0.0.1 only.
/// Public reads are at `/public/<key>`.
package final class SpiralSandbox: Sendable, Service {
    /// What goes wrong; may be changed at any time.
    package let faults: Faults<SpiralOperation>

    private let store: ObjectStore
    private let log = TrafficLog<SpiralOperation>()
    private let server: LoopbackServer
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
        let faults = Faults(plan)
        let store = try ObjectStore(directory: directory)
        let signer = URLSigner(secret: try SigningSecret.load(from: directory))
        self.faults = faults
        self.store = store
        server = LoopbackServer(port: port, held: faults.held)
        responder = SpiralResponder(
            control: ControlCalls(store: store, signer: signer, urlLifetime: urlLifetime.milliseconds / 1000),
            store: StoreCalls(store: store, faults: faults),
            gate: FaultGate(faults: faults, traffic: log), apiKey: apiKey)
    }

    /// Serves until the task is cancelled or a graceful shutdown begins; requests under way then end first, but for those
    /// that a fault holds. Call it once.
    package func run() async throws { try await server.run(responder) }

    /// The port on 127.0.0.1, once it is bound.
    ///
    /// - Throws: `SandboxStopped` when `run()` ended before, `CancellationError` when the waiting task is cancelled.
    package func port() async throws -> Int { try await server.port() }

    /// What is stored, by key.
    package func objects() -> [StoredObject] { store.objects() }

    /// Ids of uploads that were created and neither completed nor aborted, sorted.
    package func openUploads() -> [String] { store.openUploads() }

    /// Requests, bytes and parts so far.
    package var traffic: Traffic<SpiralOperation> { log.traffic }

    /// Requests so far, by `SpiralOperation.rawValue`; 0 where none came.
    package func counts() -> [String: Int] { log.counts() }
}
