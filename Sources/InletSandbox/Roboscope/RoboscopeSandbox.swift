package import InletCore
import InletLinux
import Synchronization

/// A loopback server that speaks Roboscope 2's API: spaces, work sessions and markers with versions and conflicts,
/// presence, locks and events.
///
/// All data is in memory, as long as this value. `rules` and `faults` change its behaviour while it runs;
/// `FaultAction.conflict` is for the two PATCH calls with a version. For `inlet demo` and the tests; it listens on
/// 127.0.0.1 only, without TLS. A client's `url` is `http://127.0.0.1:<port>/api/v1`.
package final class RoboscopeSandbox: LoopbackSandbox {
    package let server: SandboxServer<RoboscopeOperation>
    private let service: RoboscopeService

    /// - Parameters:
    ///   - token: The required bearer token; nil requires none.
    ///   - clock: The clock of presence, locks and times.
    ///   - port: 0 = the system chooses one.
    package init(
        token: Secret? = nil, rules: RoboscopeRules = RoboscopeRules(),
        faults plan: FaultPlan<RoboscopeOperation> = .none, clock: @escaping @Sendable () -> WallTime = { .now },
        port: Int = 0
    ) {
        service = RoboscopeService(token: token, rules: rules, clock: clock)
        server = SandboxServer(
            port: port, SandboxRouter(plan, service.routes) { refusal, _ in RoboscopeService.reply(refusal) })
    }

    /// Its behaviour; a change applies from the next request on.
    package var rules: RoboscopeRules {
        get { service.state.withLock { $0.rules } }
        set { service.state.withLock { $0.rules = newValue } }
    }

    /// Makes a space, as the web portal does; a second one of the same key is allowed.
    @discardableResult
    package func addSpace(key: String, name: String? = nil) -> RoboscopeRecord {
        service.addSpace(["key": .string(key), "name": .string(name ?? key)])
    }

    /// Locks a session for another client, for `duration` by the clock.
    package func lock(session: String, for duration: Duration) {
        let lock = RoboscopeService.Lock(until: service.clock() + duration)
        service.state.withLock { $0.locks[session.lowercased()] = lock }
    }

    /// Oldest first, as the others.
    package func spaces() -> [RoboscopeRecord] { service.records(.space) }
    package func sessions() -> [RoboscopeRecord] { service.records(.session) }
    package func markers() -> [RoboscopeRecord] { service.records(.marker) }
    package func events() -> [Event] { service.state.withLock { $0.events } }

    /// The users that are in a session now, sorted.
    package func present(in session: String) -> [String] { service.present(in: session) }

    /// All users that ever were in a session, sorted.
    package func visitors(of session: String) -> [String] {
        service.state.withLock { ($0.presence[session.lowercased()] ?? [:]).keys.sorted() }
    }

    /// Whether a lock holds now.
    package func isLocked(session: String) -> Bool { service.isLocked(session) }
}

/// The Roboscope sandbox's operations, for counters and faults.
package enum RoboscopeOperation: String, SandboxOperation {
    case health, events
    case listSpaces, createSpace, space, updateSpace, deleteSpace
    case listSessions, createSession, session, updateSession, deleteSession
    case listMarkers, createMarker, bulkMarkers, marker, updateMarker, deleteMarker
    /// GET of a marker's details, or POST of their calculation.
    case markerDetails
    /// Presence in a session, joining and leaving.
    case presence, enter, leave
    case lock, extendLock, unlock, lockStatus
    /// Any other request.
    case other
}

package typealias RoboscopeFault = OperationFault<RoboscopeOperation>

/// The Roboscope sandbox's behaviour; may be changed while it runs, and applies from the next request on.
package struct RoboscopeRules: Sendable {
    /// Whether its calls exist; 404 if not.
    package var hasPresence: Bool
    package var hasLocks: Bool
    package var hasEvents: Bool
    /// The longest body, in bytes; 413 above.
    package var bodyLimit: Int
    /// Whether a PATCH of a session or marker without `version` is refused (400). Otherwise it is accepted without a
    /// check.
    package var needsVersion: Bool
    /// Markers in one list; others exist and are not shown.
    package var longestList: Int = .max

    package init(
        hasPresence: Bool = true, hasLocks: Bool = true, hasEvents: Bool = true, bodyLimit: Int = 2_097_152,
        needsVersion: Bool = false
    ) {
        self.hasPresence = hasPresence
        self.hasLocks = hasLocks
        self.hasEvents = hasEvents
        self.bodyLimit = bodyLimit
        self.needsVersion = needsVersion
    }
}
