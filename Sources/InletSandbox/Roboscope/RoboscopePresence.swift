import Foundation
import Hummingbird
import InletCore
import Synchronization

/// Who is in a session, and who has it locked; both only advise.
extension RoboscopeService {
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
                    // Gone, but a visitor still: the last sign of life is before all time.
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
            return signs.filter { now - $0.value < state.rules.presenceLifetime }.keys.sorted()
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

    /// Changes the lock of whoever has its token; false where nobody has it.
    private func change(_ session: String, _ token: String?, _ now: WallTime, _ change: (inout Lock?) -> Void) -> Bool {
        state.withLock { state in
            guard let held = state.locks[session], held.until > now, held.token == token else { return false }
            change(&state.locks[session])
            return true
        }
    }
}
