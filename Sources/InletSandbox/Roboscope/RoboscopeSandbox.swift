package import InletCore
import InletLinux
import Synchronization

/// A loopback server that speaks Roboscope 2's API: spaces, work sessions and markers with versions and conflicts,
/// presence, locks and events.
///
/// Everything lives in memory, as long as this value. `rules` and `faults` change how it behaves while it runs;
/// `FaultAction.conflict` is for the two PATCH calls with a version. For
/// `inlet demo` and the tests; it listens on 127.0.0.1 only, without TLS. A client's `url` is
/// `http://127.0.0.1:<port>/api/v1`.
package final class RoboscopeSandbox: LoopbackSandbox {
    package let server: SandboxServer<RoboscopeOperation>
    private let service: RoboscopeService

    /// - Parameters:
    ///   - token: What `Authorization: Bearer` must carry; nil asks for none.
    ///   - clock: What presence, locks and times go by.
    ///   - port: 0 = one that the system chooses.
    package init(
        token: Secret? = nil, rules: RoboscopeRules = RoboscopeRules(),
        faults plan: FaultPlan<RoboscopeOperation> = .none, clock: @escaping @Sendable () -> WallTime = { .now },
        port: Int = 0
    ) {
        service = RoboscopeService(token: token, rules: rules, clock: clock)
        server = SandboxServer(
            port: port, SandboxRouter(plan, service.routes) { refusal, _ in RoboscopeService.reply(refusal) })
    }

    /// How it behaves; a change counts from the next request on.
    package var rules: RoboscopeRules {
        get { service.state.withLock { $0.rules } }
        set { service.state.withLock { $0.rules = newValue } }
    }

    /// Makes a space, as the web portal does it; a second one of the same key is made too.
    @discardableResult
    package func addSpace(key: String, name: String? = nil) -> RoboscopeRecord {
        service.addSpace(["key": .string(key), "name": .string(name ?? key)])
    }

    /// Locks a session for somebody else, until `duration` has passed by the clock.
    package func lock(session: String, for duration: Duration) {
        let lock = RoboscopeService.Lock(until: service.clock() + duration)
        service.state.withLock { $0.locks[session.lowercased()] = lock }
    }

    /// Oldest first, as are the others.
    package func spaces() -> [RoboscopeRecord] { service.records(.space) }
    package func sessions() -> [RoboscopeRecord] { service.records(.session) }
    package func markers() -> [RoboscopeRecord] { service.records(.marker) }
    package func events() -> [Event] { service.state.withLock { $0.events } }

    /// Who is in a session now, sorted.
    package func present(in session: String) -> [String] { service.present(in: session) }

    /// Everybody who ever was in a session, sorted.
    package func visitors(of session: String) -> [String] {
        service.state.withLock { ($0.presence[session.lowercased()] ?? [:]).keys.sorted() }
    }

    /// Whether a lock holds now.
    package func isLocked(session: String) -> Bool { service.isLocked(session) }
}

/// What a client may ask of the Roboscope sandbox; counters and faults go by these.
package enum RoboscopeOperation: String, SandboxOperation {
    case health, events
    case listSpaces, createSpace, space, updateSpace, deleteSpace
    case listSessions, createSession, session, updateSession, deleteSession
    case listMarkers, createMarker, bulkMarkers, marker, updateMarker, deleteMarker
    /// GET of a marker's details, or POST of their calculation.
    case markerDetails
    /// Who is in a session, and coming and going.
    case presence, enter, leave
    case lock, extendLock, unlock, lockStatus
    /// A request that is none of these.
    case other
}

package typealias RoboscopeFault = OperationFault<RoboscopeOperation>

/// How the Roboscope sandbox behaves; may be changed while it runs, and counts from the next request on.
package struct RoboscopeRules: Sendable {
    /// Whether its calls exist; 404 where not.
    package var hasPresence: Bool
    package var hasLocks: Bool
    package var hasEvents: Bool
    /// Bytes of one request's body; 413 above.
    package var bodyLimit: Int
    /// A PATCH of a session or marker without `version` is refused with 400; otherwise it counts without a check.
    package var needsVersion: Bool
    /// Markers in one list; the others are there, and not shown.
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
