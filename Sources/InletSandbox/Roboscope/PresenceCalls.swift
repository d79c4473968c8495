import Foundation
import HTTPTypes
import Hummingbird
import InletCore

/// Who is in a session, and who has it locked; both only advise.
struct PresenceCalls: Sendable {
    let store: RoboscopeStore

    func list(_ session: String) throws -> Response {
        try .json(["users": .array(store.present(in: session).map(SandboxJSON.string))] as SandboxJSON)
    }

    func enter(_ session: String, _ body: Data) throws -> Response {
        let user = try RoboscopeMessages.decode(RoboscopeMessages.User.self, body).user_id
        try store.withState { state, now throws(RoboscopeRefusal) in
            _ = try state.session(session)
            state.presence[session, default: [:]][user] = now
        }
        return try .json(SandboxJSON.empty)
    }

    /// - Parameter user: In either case, as ids in paths are.
    func leave(_ session: String, user: String) throws -> Response {
        try store.withState { state, _ throws(RoboscopeRefusal) in
            let found = state.presence[session]?.keys.first { $0.lowercased() == user.lowercased() }
            // Gone, but a visitor still: the last sign of life is before all time.
            if let found { state.presence[session]?[found] = WallTime(milliseconds: 0) }
        }
        return Response(status: .noContent)
    }

    func lock(_ session: String, _ body: Data) throws -> Response {
        let message = try RoboscopeMessages.decode(RoboscopeMessages.Lock.self, body)
        let token = try store.withState { state, now throws(RoboscopeRefusal) -> String? in
            _ = try state.session(session)
            if let held = state.locks[session], held.until > now { return nil }
            let held = RoboscopeStore.Held(
                token: RoboscopeStore.newID(), until: now + .seconds(message.ttl_seconds ?? 30))
            state.locks[session] = held
            return held.token
        }
        let answer: SandboxJSON = [
            "acquired": .bool(token != nil), "token": token.map(SandboxJSON.string) ?? .null,
        ]
        return try .json(answer)
    }

    func extend(_ session: String, _ body: Data) throws -> Response {
        let message = try RoboscopeMessages.decode(RoboscopeMessages.Lock.self, body)
        let isExtended = try store.withState { state, now throws(RoboscopeRefusal) in
            guard let held = state.locks[session], held.until > now, held.token == message.token else { return false }
            state.locks[session]?.until = now + .seconds(message.ttl_seconds ?? 30)
            return true
        }
        return try .json(["extended": .bool(isExtended)] as SandboxJSON)
    }

    func unlock(_ session: String, _ body: Data) throws -> Response {
        let message = try RoboscopeMessages.decode(RoboscopeMessages.Lock.self, body)
        let isReleased = try store.withState { state, now throws(RoboscopeRefusal) in
            guard let held = state.locks[session], held.until > now, held.token == message.token else { return false }
            state.locks[session] = nil
            return true
        }
        return try .json(["released": .bool(isReleased)] as SandboxJSON)
    }

    func lockStatus(_ session: String) throws -> Response {
        try .json(["locked": .bool(store.isLocked(session))] as SandboxJSON)
    }
}
