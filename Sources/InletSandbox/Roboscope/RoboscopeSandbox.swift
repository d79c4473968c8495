package import InletCore
import InletLinux

/// A loopback server that speaks Roboscope 2's API: spaces, work sessions and markers with versions and conflicts,
/// presence, locks and events.
///
/// Everything lives in memory, as long as this value. `rules` and `faults` change how it behaves while it runs;
/// `FaultAction.conflict` is for the two PATCH calls with a version. For
/// `inlet demo` and the tests; it listens on 127.0.0.1 only, without TLS. A client's `url` is
/// `http://127.0.0.1:<port>/api/v1`.
package final class RoboscopeSandbox: LoopbackSandbox {
    package let server: SandboxServer<RoboscopeOperation>

    private let store: RoboscopeStore

    /// - Parameters:
    ///   - token: What `Authorization: Bearer` must carry; nil asks for none.
    ///   - clock: What presence, locks and times go by.
    ///   - port: 0 = one that the system chooses.
    package init(
        token: Secret? = nil, rules: RoboscopeRules = RoboscopeRules(),
        faults plan: FaultPlan<RoboscopeOperation> = .none, clock: @escaping @Sendable () -> WallTime = { .now },
        port: Int = 0
    ) {
        let store = RoboscopeStore(rules: rules, clock: clock)
        self.store = store
        let responder = RoboscopeResponder(store: store, token: token)
        server = SandboxServer(
            port: port, SandboxRouter(plan, choosing: responder.route, wording: RoboscopeResponder.word))
    }

    /// How it behaves; a change counts from the next request on.
    package var rules: RoboscopeRules {
        get { store.rules }
        set { store.rules = newValue }
    }

    /// Makes a space, as the web portal does it; a second one of the same key is made too.
    @discardableResult
    package func addSpace(key: String, name: String? = nil) -> Space { store.addSpace(key: key, name: name ?? key) }

    /// Locks a session for somebody else, until `duration` has passed by the clock.
    package func lock(session: String, for duration: Duration) { store.lockElsewhere(session, for: duration) }

    /// Oldest first, as are the others.
    package func spaces() -> [Space] { store.spaces() }
    package func sessions() -> [WorkSession] { store.sessions() }
    package func markers() -> [Marker] { store.markers() }
    package func events() -> [Event] { store.events() }

    /// Who is in a session now, sorted.
    package func present(in session: String) -> [String] { store.present(in: session) }

    /// Everybody who ever was in a session, sorted.
    package func visitors(of session: String) -> [String] { store.visitors(of: session) }

    /// Whether a lock holds now.
    package func isLocked(session: String) -> Bool { store.isLocked(session) }
}
