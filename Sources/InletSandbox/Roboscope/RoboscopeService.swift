import Foundation
import Hummingbird
import InletCore
import Synchronization

/// The table of calls and their answers. Refusals are a status and a line of text.
final class RoboscopeService: Sendable {
    struct Lock: Sendable {
        var token = UUID().uuidString.lowercased()
        var until: WallTime
    }

    struct State: Sendable {
        var rules: RoboscopeRules
        /// By kind, oldest first.
        var records: [RoboscopeKind: [RoboscopeRecord]] = [:]
        /// Markers whose details were calculated.
        var detailed: Set<String> = []
        var events: [RoboscopeSandbox.Event] = []
        /// The last sign of life, by session and user.
        var presence: [String: [String: WallTime]] = [:]
        var locks: [String: Lock] = [:]

        mutating func note(_ kind: RoboscopeKind, _ what: String, _ object: String, _ now: WallTime) {
            events.append(.init(id: events.count + 1, action: "\(kind.rawValue).\(what)", object: object, time: now))
        }

        @discardableResult
        func record(_ kind: RoboscopeKind, _ id: String) throws(SandboxRefusal) -> RoboscopeRecord {
            guard let record = records[kind]?.first(where: { $0.id == id }) else { throw .notFound(kind.title) }
            return record
        }
    }

    typealias Handler = @Sendable (SandboxCall, Data) throws -> Response

    let token: Secret?
    let clock: @Sendable () -> WallTime
    let state: Mutex<State>

    init(token: Secret?, rules: RoboscopeRules, clock: @escaping @Sendable () -> WallTime) {
        (self.token, self.clock) = (token, clock)
        state = Mutex(State(rules: rules))
    }

    var routes: [SandboxRoute<RoboscopeOperation>] {
        let healthy: Handler = { _, _ in Response(SandboxReply(200, body: "healthy\n")) }
        return [
            row("GET /health", .health, isOpen: true, healthy),
            row("GET /api/v1/health", .health, isOpen: true, healthy),
            row("GET /api/v1/events", .events, where: { $0.hasEvents }) { [self] _, _ in try listEvents() },
            row("POST /api/v1/markers/bulk", .bulkMarkers) { [self] _, body in
                guard let markers = try Self.json(body)["markers"]?.items else { throw SandboxRefusal.wrongType }
                return try .json(create(.marker, markers).map { $0.told(.marker) }, status: 201)
            },
            row("GET /api/v1/markers/{id}/details", .markerDetails) { [self] call, _ in try details(call.id) },
            row("POST /api/v1/markers/{id}/details/calculate", .markerDetails) { [self] call, _ in
                try details(call.id, calculating: true)
            },
        ] + rows(.space, "spaces", [.listSpaces, .createSpace, .space, .updateSpace, .deleteSpace])
            + rows(
                .session, "work-sessions", [.listSessions, .createSession, .session, .updateSession, .deleteSession])
            + rows(.marker, "markers", [.listMarkers, .createMarker, .marker, .updateMarker, .deleteMarker])
            + presenceRoutes + lockRoutes
            + [row("*", .other) { _, _ in throw SandboxRefusal(404, "", "") }]
    }

    private func rows(
        _ kind: RoboscopeKind, _ folder: String, _ operations: [RoboscopeOperation]
    ) -> [SandboxRoute<RoboscopeOperation>] {
        let path = "/api/v1/" + folder
        return [
            row("GET \(path)", operations[0]) { [self] call, _ in try list(kind, call) },
            row("POST \(path)", operations[1]) { [self] _, body in
                try .json(create(kind, [try Self.json(body)])[0].told(kind), status: 201)
            },
            row("GET \(path)/{id}", operations[2]) { [self] call, _ in
                try .json(state.withLock { try $0.record(kind, call.id) }.told(kind))
            },
            row("PATCH \(path)/{id}", operations[3]) { [self] call, body in
                try .json(update(kind, call, try Self.json(body)).told(kind))
            },
            row("DELETE \(path)/{id}", operations[4]) { [self] call, _ in
                try delete(kind, call.id)
                return Response(status: .noContent)
            },
        ]
    }

    /// A row whose body is read, and refused, before the call's existence and credentials are checked.
    func row(
        _ pattern: String, _ operation: RoboscopeOperation,
        where exists: @escaping @Sendable (RoboscopeRules) -> Bool = { _ in true },
        isOpen: Bool = false, _ handle: @escaping Handler
    ) -> SandboxRoute<RoboscopeOperation> {
        SandboxRoute(pattern, operation) { [self] call in
            let rules = state.withLock { $0.rules }
            let body = try await call.body.whole()
            guard body.count <= rules.bodyLimit else {
                throw SandboxRefusal(413, "", "Failed to buffer the request body: length limit exceeded")
            }
            let type = call.fields[.contentType].map { $0.prefix { $0 != ";" } }
            guard body.isEmpty || type == "application/json" else {
                throw SandboxRefusal(415, "", "Expected request with `Content-Type: application/json`")
            }
            guard exists(rules) else { throw SandboxRefusal(404, "", "") }
            if let token, !isOpen {
                guard SigningSecret.areEqual(call.fields[.authorization] ?? "", "Bearer \(token.reveal())") else {
                    throw SandboxRefusal(401, "", "Missing or invalid token")
                }
            }
            return try handle(call, body)
        }
    }

    static func reply(_ refusal: SandboxRefusal) -> SandboxReply {
        SandboxReply(refusal.status, type: "text/plain; charset=utf-8", body: refusal.message)
    }

    static func json(_ body: Data) throws(SandboxRefusal) -> SandboxJSON {
        do {
            return try JSON.decode(body, as: SandboxJSON.self)
        } catch {
            throw SandboxRefusal(400, "", "Failed to parse the request body as JSON")
        }
    }
}

extension SandboxCall {
    /// Clients write ids in either case.
    var id: String { self["id"].lowercased() }
}

extension SandboxRefusal {
    static func notFound(_ what: String) -> Self { Self(404, "", "\(what) not found") }
}

// MARK: - Records

extension RoboscopeService {
    func records(_ kind: RoboscopeKind) -> [RoboscopeRecord] {
        state.withLock { $0.records[kind] ?? [] }
    }

    func addSpace(_ fields: [String: SandboxJSON]) -> RoboscopeRecord {
        let now = clock()
        return state.withLock { $0.insert(.space, [RoboscopeKind.space.filled(fields)], now)[0] }
    }

    private func list(_ kind: RoboscopeKind, _ call: SandboxCall) throws -> Response {
        var found = records(kind)
        for name in kind.filters {
            guard let wanted = call.query(name) else { continue }
            let value = name.hasSuffix("_id") ? wanted.lowercased() : wanted
            found.removeAll { $0.fields[name]?.text != value }
        }
        if kind == .marker { found = Array(found.prefix(state.withLock { $0.rules.longestList })) }
        return try .json(found.map { $0.told(kind) })
    }

    /// All of them, or none.
    private func create(_ kind: RoboscopeKind, _ bodies: [SandboxJSON]) throws -> [RoboscopeRecord] {
        let parsed = try bodies.map { try kind.parse($0) }
        let complete = try parsed.map { try kind.complete($0) }
        let now = clock()
        return try state.withLock { state in
            if let (field, owner) = kind.parent {
                for id in Set(complete.compactMap { $0[field]?.text }) { try state.record(owner, id) }
            }
            return state.insert(kind, complete, now)
        }
    }

    private func update(_ kind: RoboscopeKind, _ call: SandboxCall, _ body: SandboxJSON) throws -> RoboscopeRecord {
        var given = try kind.parse(body)
        let version = try Self.whole("version", of: body)
        let now = clock()
        // A marker stays in its session.
        if kind == .marker { given["work_session_id"] = nil }
        return try state.withLock { state in
            var record = try state.record(kind, call.id)
            let place = state.records[kind]?.firstIndex { $0.id == record.id }
            if let (field, owner) = kind.parent, let id = given[field]?.text { try state.record(owner, id) }
            // The other client's change stays although ours is refused.
            defer { if let place { state.records[kind]?[place] = record } }
            if kind != .space {
                if call.fault == .conflict { record.version += 1 }
                guard version != nil || !state.rules.needsVersion else {
                    throw SandboxRefusal(400, "", "version is required")
                }
                guard (version ?? record.version) == record.version else {
                    throw SandboxRefusal(409, "", "Version conflict: the object was changed by somebody else")
                }
            }
            record.fields.merge(given) { $1 }
            (record.version, record.updated) = (record.version + 1, now)
            state.note(kind, "updated", call.id, now)
            return record
        }
    }

    /// Its children are deleted with it.
    private func delete(_ kind: RoboscopeKind, _ id: String) throws {
        let now = clock()
        try state.withLock { state in
            try state.record(kind, id)
            state.remove(kind, id, now)
        }
    }

    /// - Parameter calculating: Calculates them; otherwise they exist only if they were calculated before.
    private func details(_ id: String, calculating: Bool = false) throws -> Response {
        let marker = try state.withLock { state in
            let marker = try state.record(.marker, id)
            if calculating { state.detailed.insert(id) }
            guard state.detailed.contains(id) else { throw SandboxRefusal.notFound("Marker details") }
            return marker
        }
        return try .json(marker.details)
    }

    private func listEvents() throws -> Response {
        try .json(
            state.withLock { $0.events }.map { event -> SandboxJSON in
                [
                    "id": .number(Double(event.id)), "action": .string(event.action),
                    "object_id": .string(event.object),
                    "created_at": .string(event.time.rfc3339),
                ]
            })
    }

    /// A whole number of a body; nil without one.
    static func whole(_ name: String, of body: SandboxJSON) throws(SandboxRefusal) -> Int64? {
        guard let value = body[name], value != .null else { return nil }
        guard let number = value.number.flatMap(Int64.init(exactly:)) else { throw .wrongType }
        return number
    }
}

extension RoboscopeService.State {
    mutating func insert(
        _ kind: RoboscopeKind, _ fields: [[String: SandboxJSON]], _ now: WallTime
    ) -> [RoboscopeRecord] {
        let records = fields.map { fields in
            RoboscopeRecord(id: UUID().uuidString.lowercased(), fields: fields, created: now, updated: now)
        }
        for record in records {
            self.records[kind, default: []].append(record)
            note(kind, "created", record.id, now)
        }
        return records
    }

    /// Markers are deleted with their session, without an event.
    mutating func remove(_ kind: RoboscopeKind, _ id: String, _ now: WallTime) {
        records[kind]?.removeAll { $0.id == id }
        switch kind {
        case .space:
            let sessions = records[.session, default: []].filter { $0.spaceID == id }
            for session in sessions { remove(.session, session.id, now) }
        case .session:
            records[.marker]?.removeAll { $0.sessionID == id }
        case .marker: break
        }
        note(kind, "deleted", id, now)
    }
}

/// Presence and locks; both are only advisory.
extension RoboscopeService {
    /// How long after a user's last sign of life the user is present.
    private static let presenceLifetime = Duration.seconds(30)

    var presenceRoutes: [SandboxRoute<RoboscopeOperation>] {
        let path = "/api/v1/presence/{id}"
        return [
            row("GET \(path)", .presence, where: { $0.hasPresence }) { [self] call, _ in
                try .json(["users": present(in: call.id)])
            },
            row("POST \(path)", .enter, where: { $0.hasPresence }) { [self] call, body in
                guard let user = try Self.json(body)["user_id"]?.text else { throw SandboxRefusal.wrongType }
                let now = clock()
                try state.withLock { state in
                    try state.record(.session, call.id)
                    state.presence[call.id, default: [:]][user] = now
                }
                return try .json(SandboxJSON.empty)
            },
            row("DELETE \(path)/{user}", .leave, where: { $0.hasPresence }) { [self] call, _ in
                let user = call["user"].lowercased()
                state.withLock { state in
                    let found = state.presence[call.id]?.keys.first { $0.lowercased() == user }
                    // The user has left, but stays a visitor: the last sign of life is before all time.
                    if let found { state.presence[call.id]?[found] = WallTime(milliseconds: 0) }
                }
                return Response(status: .noContent)
            },
        ]
    }

    var lockRoutes: [SandboxRoute<RoboscopeOperation>] {
        let path = "/api/v1/locks/work-sessions/{id}"
        return [
            row("POST \(path)", .lock, where: { $0.hasLocks }) { [self] call, body in
                let (_, lifetime, now) = try Self.lock(body, clock())
                let token = try state.withLock { state -> String? in
                    try state.record(.session, call.id)
                    if let held = state.locks[call.id], held.until > now { return nil }
                    let lock = Lock(until: now + lifetime)
                    state.locks[call.id] = lock
                    return lock.token
                }
                let told = token.map(SandboxJSON.string) ?? .null
                return try .json(["acquired": .bool(token != nil), "token": told] as SandboxJSON)
            },
            row("POST \(path)/extend", .extendLock, where: { $0.hasLocks }) { [self] call, body in
                let (token, lifetime, now) = try Self.lock(body, clock())
                return try .json(["extended": change(call.id, token, now) { $0?.until = now + lifetime }])
            },
            row("POST \(path)/unlock", .unlock, where: { $0.hasLocks }) { [self] call, body in
                let (token, _, now) = try Self.lock(body, clock())
                return try .json(["released": change(call.id, token, now) { $0 = nil }])
            },
            row("GET \(path)/status", .lockStatus, where: { $0.hasLocks }) { [self] call, _ in
                try .json(["locked": isLocked(call.id)])
            },
        ]
    }

    func present(in session: String) -> [String] {
        let now = clock()
        return state.withLock { state in
            let signs = state.presence[session.lowercased()] ?? [:]
            return signs.filter { now - $0.value < Self.presenceLifetime }.keys.sorted()
        }
    }

    func isLocked(_ session: String) -> Bool {
        let now = clock()
        return state.withLock { ($0.locks[session.lowercased()]?.until ?? now) > now }
    }

    private static func lock(_ body: Data, _ now: WallTime) throws -> (token: String?, Duration, now: WallTime) {
        let body = try json(body)
        let token = body["token"].flatMap { $0 == .null ? nil : $0 }
        guard body.fields != nil, token == nil || token?.text != nil else { throw SandboxRefusal.wrongType }
        return (token?.text, .seconds(try whole("ttl_seconds", of: body) ?? 30), now)
    }

    /// Changes the lock that the token holds; false if it holds none.
    private func change(_ session: String, _ token: String?, _ now: WallTime, _ change: (inout Lock?) -> Void) -> Bool {
        state.withLock { state in
            guard let held = state.locks[session], held.until > now, held.token == token else { return false }
            change(&state.locks[session])
            return true
        }
    }
}
