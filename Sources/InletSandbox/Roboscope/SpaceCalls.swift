import Foundation
import HTTPTypes
import Hummingbird
import InletCore

/// Spaces: found by key, changed by the last writer.
struct SpaceCalls: Sendable {
    let store: RoboscopeStore
    let voice: RoboscopeVoice

    func list(key: String?) throws -> Response {
        let spaces = store.spaces().filter { space in key.map { $0 == space.key } ?? true }
        return try .json(spaces.map(voice.space))
    }

    func create(_ body: Data) throws -> Response {
        let message = try RoboscopeMessages.decode(RoboscopeMessages.Space.self, body)
        guard let key = message.key, let name = message.name else {
            throw RoboscopeRefusal.invalid("missing field `\(message.key == nil ? "key" : "name")`")
        }
        guard !key.isEmpty, !name.isEmpty else {
            throw RoboscopeRefusal(status: 400, message: "key and name must not be empty")
        }
        let made = try store.withState { state, now throws(RoboscopeRefusal) in
            var space = RoboscopeSandbox.Space(
                id: RoboscopeStore.newID(), key: key, name: name, created: now, updated: now, changes: 0)
            Self.apply(message, to: &space, merging: false)
            state.spaces.append(space)
            state.note("space.created", space.id, now)
            return space
        }
        return try .json(voice.space(made), status: 201)
    }

    func get(_ id: String) throws -> Response {
        let space = try store.withState { state, _ throws(RoboscopeRefusal) in state.spaces[try state.space(id)] }
        return try .json(voice.space(space))
    }

    func update(_ id: String, _ body: Data) throws -> Response {
        let message = try RoboscopeMessages.decode(RoboscopeMessages.Space.self, body)
        let space = try store.withState { state, now throws(RoboscopeRefusal) in
            let index = try state.space(id)
            Self.apply(message, to: &state.spaces[index], merging: state.rules.mergesObjects)
            state.spaces[index].updated = now
            state.spaces[index].changes += 1
            state.note("space.updated", id, now)
            return state.spaces[index]
        }
        return try .json(voice.space(space))
    }

    /// Its sessions and their markers go with it.
    func delete(_ id: String) throws -> Response {
        try store.withState { state, now throws(RoboscopeRefusal) in
            state.spaces.remove(at: try state.space(id))
            for session in state.sessions where session.spaceID == id { state.removeSession(session.id, now) }
            state.note("space.deleted", id, now)
        }
        return Response(status: .noContent)
    }

    /// The sandbox has no reference sets and no laser guides.
    func referenceSets(_ id: String) throws -> Response {
        _ = try get(id)
        return try .json([SandboxJSON]())
    }

    func laserGuide(_ id: String) throws -> Response {
        _ = try get(id)
        throw RoboscopeRefusal.notFound("Laser guide")
    }

    private static func apply(
        _ message: RoboscopeMessages.Space, to space: inout RoboscopeSandbox.Space, merging: Bool
    ) {
        space.key = message.key ?? space.key
        space.name = message.name ?? space.name
        space.description = message.description ?? space.description
        space.modelGLBURL = message.model_glb_url ?? space.modelGLBURL
        space.modelUSDCURL = message.model_usdc_url ?? space.modelUSDCURL
        space.previewURL = message.preview_url ?? space.previewURL
        space.scanURL = message.scan_url ?? space.scanURL
        space.meta = message.meta.map { $0.over(space.meta, merging: merging) } ?? space.meta
    }
}

extension SandboxJSON {
    /// This in the place of `old`, or with the fields of `old` that it has not.
    func over(_ old: SandboxJSON?, merging: Bool) -> SandboxJSON {
        guard merging, let old = old?.fields, let new = fields else { return self }
        return .object(old.merging(new) { $1 })
    }
}

extension RoboscopeStore.State {
    mutating func removeSession(_ id: String, _ now: WallTime) {
        sessions.removeAll { $0.id == id }
        let gone = Set(markers.values.filter { $0.sessionID == id }.map(\.id))
        for marker in gone { markers[marker] = nil }
        markerOrder.removeAll { gone.contains($0) }
        note("session.deleted", id, now)
    }
}
