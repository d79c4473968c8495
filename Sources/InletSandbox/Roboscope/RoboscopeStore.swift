import Foundation
import InletCore
import Synchronization

/// Everything that the calls work on, in memory.
final class RoboscopeStore: Sendable {
    struct Held: Sendable {
        var token: String
        var until: WallTime
    }

    struct State: Sendable {
        var rules: RoboscopeRules
        var spaces: [RoboscopeSandbox.Space] = []
        var sessions: [RoboscopeSandbox.WorkSession] = []
        var markers: [String: RoboscopeSandbox.Marker] = [:]
        /// Ids of markers, oldest first.
        var markerOrder: [String] = []
        /// Markers whose details were calculated.
        var detailed: Set<String> = []
        var events: [RoboscopeSandbox.Event] = []
        /// The last sign of life, by session and user.
        var presence: [String: [String: WallTime]] = [:]
        var locks: [String: Held] = [:]

        mutating func note(_ action: String, _ object: String, _ now: WallTime) {
            events.append(.init(id: events.count + 1, action: action, object: object, time: now))
        }

        func space(_ id: String) throws(RoboscopeRefusal) -> Int {
            guard let index = spaces.firstIndex(where: { $0.id == id }) else { throw .notFound("Space") }
            return index
        }

        func session(_ id: String) throws(RoboscopeRefusal) -> Int {
            guard let index = sessions.firstIndex(where: { $0.id == id }) else { throw .notFound("Work session") }
            return index
        }

        func marker(_ id: String) throws(RoboscopeRefusal) -> RoboscopeSandbox.Marker {
            guard let marker = markers[id] else { throw .notFound("Marker") }
            return marker
        }
    }

    let clock: @Sendable () -> WallTime
    private let state: Mutex<State>

    init(rules: RoboscopeRules, clock: @escaping @Sendable () -> WallTime) {
        self.clock = clock
        state = Mutex(State(rules: rules))
    }

    /// Reads or changes everything in one step, at one moment.
    func withState<Result: Sendable>(
        _ body: (inout State, WallTime) throws(RoboscopeRefusal) -> Result
    ) throws(RoboscopeRefusal) -> Result {
        let now = clock()
        return try state.withLock { state throws(RoboscopeRefusal) in try body(&state, now) }
    }

    var rules: RoboscopeRules {
        get { state.withLock { $0.rules } }
        set { state.withLock { $0.rules = newValue } }
    }

    static func newID() -> String { UUID().uuidString.lowercased() }

    // MARK: What tests and the demo look at

    func spaces() -> [RoboscopeSandbox.Space] { state.withLock { $0.spaces } }
    func sessions() -> [RoboscopeSandbox.WorkSession] { state.withLock { $0.sessions } }
    func events() -> [RoboscopeSandbox.Event] { state.withLock { $0.events } }

    func markers() -> [RoboscopeSandbox.Marker] {
        state.withLock { state in state.markerOrder.compactMap { state.markers[$0] } }
    }

    func addSpace(key: String, name: String) -> RoboscopeSandbox.Space {
        let now = clock()
        let space = RoboscopeSandbox.Space(
            id: Self.newID(), key: key, name: name, created: now, updated: now, changes: 0)
        state.withLock { state in
            state.spaces.append(space)
            state.note("space.created", space.id, now)
        }
        return space
    }

    func lockElsewhere(_ session: String, for duration: Duration) {
        let until = clock() + duration
        state.withLock { $0.locks[session.lowercased()] = Held(token: Self.newID(), until: until) }
    }

    func isLocked(_ session: String) -> Bool {
        let now = clock()
        return state.withLock { ($0.locks[session.lowercased()]?.until ?? now) > now }
    }

    func present(in session: String) -> [String] {
        let now = clock()
        return state.withLock { state in
            let signs = state.presence[session.lowercased()] ?? [:]
            return signs.filter { now - $0.value < state.rules.presenceLifetime }.keys.sorted()
        }
    }

    func visitors(of session: String) -> [String] {
        state.withLock { ($0.presence[session.lowercased()] ?? [:]).keys.sorted() }
    }
}
