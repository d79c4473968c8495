import Foundation
import HTTPTypes
import Hummingbird
import InletCore

/// Work sessions: each change needs the version that it was made on.
struct WorkSessionCalls: Sendable {
    let store: RoboscopeStore
    let voice: RoboscopeVoice

    func list(_ query: SignableRequest) throws -> Response {
        let space = query.value("space_id")?.lowercased()
        let (status, type) = (query.value("status"), query.value("session_type"))
        let found = store.sessions().filter { session in
            (space ?? session.spaceID) == session.spaceID && (status ?? session.status) == session.status
                && (type ?? session.type) == session.type
        }
        return try .json(found.map(voice.session))
    }

    func create(_ body: Data) throws -> Response {
        let message = try RoboscopeMessages.decode(RoboscopeMessages.Session.self, body)
        guard let space = message.space_id?.lowercased(), let type = message.session_type else {
            throw RoboscopeRefusal.invalid("missing field `\(message.space_id == nil ? "space_id" : "session_type")`")
        }
        let made = try store.withState { state, now throws(RoboscopeRefusal) in
            _ = try state.space(space)
            let session = RoboscopeSandbox.WorkSession(
                id: RoboscopeStore.newID(), spaceID: space, type: type.rawValue,
                status: (message.status ?? .draft).rawValue, startedAt: message.started_at,
                completedAt: message.completed_at, meta: message.meta, version: 1, created: now, updated: now)
            state.sessions.append(session)
            state.note("session.created", session.id, now)
            return session
        }
        return try .json(voice.session(made), status: 201)
    }

    func get(_ id: String) throws -> Response {
        let session = try store.withState { state, _ throws(RoboscopeRefusal) in state.sessions[try state.session(id)] }
        return try .json(voice.session(session))
    }

    func update(_ id: String, _ body: Data, fault: FaultAction?) throws -> Response {
        let message = try RoboscopeMessages.decode(RoboscopeMessages.Session.self, body)
        let session = try store.withState { state, now throws(RoboscopeRefusal) in
            let (index, rules) = (try state.session(id), state.rules)
            if let space = message.space_id?.lowercased() { _ = try state.space(space) }
            try state.sessions[index].change(on: message.version, rules, fault, now) { session in
                Self.apply(message, to: &session, merging: rules.mergesObjects)
            }
            state.note("session.updated", id, now)
            return state.sessions[index]
        }
        return try .json(voice.session(session))
    }

    /// Its markers go with it.
    func delete(_ id: String) throws -> Response {
        try store.withState { state, now throws(RoboscopeRefusal) in
            _ = try state.session(id)
            state.removeSession(id, now)
        }
        return Response(status: .noContent)
    }

    private static func apply(
        _ message: RoboscopeMessages.Session, to session: inout RoboscopeSandbox.WorkSession, merging: Bool
    ) {
        session.spaceID = message.space_id?.lowercased() ?? session.spaceID
        session.type = message.session_type?.rawValue ?? session.type
        session.status = message.status?.rawValue ?? session.status
        session.startedAt = message.started_at ?? session.startedAt
        session.completedAt = message.completed_at ?? session.completedAt
        session.meta = message.meta.map { $0.over(session.meta, merging: merging) } ?? session.meta
    }
}
