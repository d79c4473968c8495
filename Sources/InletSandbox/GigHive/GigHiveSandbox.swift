import InletCore
import Synchronization
package import SystemPackage

/// A loopback server that speaks GigHive's two upload transports, one form and tus with finalize, and keeps what it
/// receives on disk, with the limits, refusals and races of the real one.
///
/// Assets and unfinished uploads are found again by the next sandbox on the same directory; `rules` and `faults` change
/// how it behaves while it runs. For `inlet demo` and the tests; it listens on 127.0.0.1 only, without TLS.
package final class GigHiveSandbox: LoopbackSandbox {
    package let server: SandboxServer<GigHiveOperation>

    private let library: GigHiveLibrary
    private let uploads: TusStore
    private let behaviour: Behaviour

    /// The rules in a box of their own, which the responder shares.
    private final class Behaviour: Sendable {
        let rules: Mutex<GigHiveRules>

        init(_ rules: GigHiveRules) { self.rules = Mutex(rules) }
    }

    /// - Parameters:
    ///   - directory: Where media, the catalog and unfinished uploads are kept; made when missing.
    ///   - port: 0 = one that the system chooses.
    /// - Throws: When the directory cannot be made, read or written.
    package init(
        directory: FilePath, logins: GigHiveLogins, rules: GigHiveRules = GigHiveRules(),
        faults plan: FaultPlan<GigHiveOperation> = .none, port: Int = 0
    ) throws {
        let library = try GigHiveLibrary(root: directory)
        let uploads = try TusStore(root: directory)
        let behaviour = Behaviour(rules)
        self.library = library
        self.uploads = uploads
        self.behaviour = behaviour
        let responder = GigHiveResponder(
            library: library, forms: FormCall(library: library), tus: TusCalls(store: uploads),
            finalizer: try Finalizer(root: directory, library: library, store: uploads),
            deletion: DeleteCall(library: library), access: GigHiveAccess(logins: logins),
            rules: { behaviour.rules.withLock { $0 } })
        server = SandboxServer(
            port: port, SandboxRouter(plan, choosing: responder.route, wording: GigHiveResponder.word))
    }

    /// How it behaves; a change counts from the next request on.
    package var rules: GigHiveRules {
        get { behaviour.rules.withLock { $0 } }
        set { behaviour.rules.withLock { $0 = newValue } }
    }

    /// The library, oldest first.
    package func assets() -> [GigHiveAsset] { library.assets() }

    /// Ids of tus uploads whose bytes are still outside the library, sorted.
    package func openUploads() -> [String] { uploads.open() }
}
