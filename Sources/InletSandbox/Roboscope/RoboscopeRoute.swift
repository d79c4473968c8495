/// What a request is for, read from its method and path.
enum RoboscopeRoute: Sendable, Equatable {
    case health
    case events
    case spaces
    case createSpace
    case space(String)
    case updateSpace(String)
    case deleteSpace(String)
    case referenceSets(String)
    case laserGuide(String)
    case sessions
    case createSession
    case session(String)
    case updateSession(String)
    case deleteSession(String)
    case markers
    case createMarker
    case bulkMarkers
    case marker(String)
    case updateMarker(String)
    case deleteMarker(String)
    case details(String)
    case calculateDetails(String)
    case presence(String)
    case enter(String)
    case leave(String, user: String)
    case lock(String)
    case extendLock(String)
    case unlock(String)
    case lockStatus(String)
    case unknown

    private static let prefix = "/api/v1/"

    init(method: String, path: String) {
        if path == "/health" || path == Self.prefix + "health" {
            self = method == "GET" ? .health : .unknown
            return
        }
        guard path.hasPrefix(Self.prefix) else {
            self = .unknown
            return
        }
        let parts = path.dropFirst(Self.prefix.count).split(separator: "/", omittingEmptySubsequences: false)
        // Clients write ids in either case.
        let rest = parts.dropFirst().map { $0.lowercased() }
        switch parts.first {
        case "spaces": self = Self.spaces(method, rest)
        case "work-sessions": self = Self.sessions(method, rest)
        case "markers": self = Self.markers(method, rest)
        case "presence": self = Self.presence(method, rest, user: parts.last.map(String.init) ?? "")
        case "locks" where rest.first == "work-sessions": self = Self.locks(method, Array(rest.dropFirst()))
        case "events" where rest.isEmpty && method == "GET": self = .events
        default: self = .unknown
        }
    }

    private static func spaces(_ method: String, _ rest: [String]) -> Self {
        switch (method, rest.count) {
        case ("GET", 0): .spaces
        case ("POST", 0): .createSpace
        case ("GET", 1): .space(rest[0])
        case ("PATCH", 1): .updateSpace(rest[0])
        case ("DELETE", 1): .deleteSpace(rest[0])
        case ("GET", 2) where rest[1] == "reference-sets": .referenceSets(rest[0])
        case ("GET", 2) where rest[1] == "laser-guide": .laserGuide(rest[0])
        default: .unknown
        }
    }

    private static func sessions(_ method: String, _ rest: [String]) -> Self {
        switch (method, rest.count) {
        case ("GET", 0): .sessions
        case ("POST", 0): .createSession
        case ("GET", 1): .session(rest[0])
        case ("PATCH", 1): .updateSession(rest[0])
        case ("DELETE", 1): .deleteSession(rest[0])
        default: .unknown
        }
    }

    private static func markers(_ method: String, _ rest: [String]) -> Self {
        switch (method, rest.count) {
        case ("GET", 0): .markers
        case ("POST", 0): .createMarker
        case ("POST", 1) where rest[0] == "bulk": .bulkMarkers
        case ("GET", 1): .marker(rest[0])
        case ("PATCH", 1): .updateMarker(rest[0])
        case ("DELETE", 1): .deleteMarker(rest[0])
        case ("GET", 2) where rest[1] == "details": .details(rest[0])
        case ("POST", 3) where rest[1...] == ["details", "calculate"]: .calculateDetails(rest[0])
        default: .unknown
        }
    }

    private static func presence(_ method: String, _ rest: [String], user: String) -> Self {
        switch (method, rest.count) {
        case ("GET", 1): .presence(rest[0])
        case ("POST", 1): .enter(rest[0])
        case ("DELETE", 2): .leave(rest[0], user: user)
        default: .unknown
        }
    }

    private static func locks(_ method: String, _ rest: [String]) -> Self {
        switch (method, rest.dropFirst().first) {
        case ("POST", nil) where rest.count == 1: .lock(rest[0])
        case ("POST", "extend"): .extendLock(rest[0])
        case ("POST", "unlock"): .unlock(rest[0])
        case ("GET", "status"): .lockStatus(rest[0])
        default: .unknown
        }
    }
}

extension RoboscopeRoute {
    var operation: RoboscopeOperation {
        switch self {
        case .health: .health
        case .events: .events
        case .spaces: .listSpaces
        case .createSpace: .createSpace
        case .space: .space
        case .updateSpace: .updateSpace
        case .deleteSpace: .deleteSpace
        case .referenceSets: .referenceSets
        case .laserGuide: .laserGuide
        case .sessions: .listSessions
        case .createSession: .createSession
        case .session: .session
        case .updateSession: .updateSession
        case .deleteSession: .deleteSession
        case .markers: .listMarkers
        case .createMarker: .createMarker
        case .bulkMarkers: .bulkMarkers
        case .marker: .marker
        case .updateMarker: .updateMarker
        case .deleteMarker: .deleteMarker
        case .details, .calculateDetails: .markerDetails
        case .presence, .enter, .leave, .lock, .extendLock, .unlock, .lockStatus, .unknown: aside
        }
    }

    private var aside: RoboscopeOperation {
        switch self {
        case .presence: .presence
        case .enter: .enter
        case .leave: .leave
        case .lock: .lock
        case .extendLock: .extendLock
        case .unlock: .unlock
        case .lockStatus: .lockStatus
        default: .other
        }
    }

    /// Whether a server by these rules has the call at all.
    func exists(_ rules: RoboscopeRules) -> Bool {
        switch self {
        case .presence, .enter, .leave: rules.hasPresence
        case .lock, .extendLock, .unlock, .lockStatus: rules.hasLocks
        case .events: rules.hasEvents
        case .unknown: false
        default: true
        }
    }
}
