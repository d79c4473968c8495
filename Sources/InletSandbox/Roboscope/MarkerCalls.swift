import Foundation
import HTTPTypes
import Hummingbird
import InletCore

/// Markers: one by one or many at once, all or none of them.
struct MarkerCalls: Sendable {
    let store: RoboscopeStore
    let voice: RoboscopeVoice

    func list(session: String?) throws -> Response {
        let session = session?.lowercased()
        let found = store.markers().filter { marker in session.map { $0 == marker.sessionID } ?? true }
        return try .json(found.prefix(store.rules.longestList).map(voice.marker))
    }

    func create(_ body: Data) throws -> Response {
        let message = try RoboscopeMessages.decode(RoboscopeMessages.Marker.self, body)
        let made = try add([message])
        return try .json(made.map(voice.marker).first, status: 201)
    }

    func createMany(_ body: Data) throws -> Response {
        let made = try add(try RoboscopeMessages.decode(RoboscopeMessages.Bulk.self, body).markers)
        return try .json(made.map(voice.marker), status: 201)
    }

    func get(_ id: String) throws -> Response {
        let marker = try store.withState { state, _ throws(RoboscopeRefusal) in try state.marker(id) }
        return try .json(voice.marker(marker))
    }

    func update(_ id: String, _ body: Data, fault: FaultAction?) throws -> Response {
        let message = try RoboscopeMessages.decode(RoboscopeMessages.Marker.self, body)
        let changed = try store.withState { state, now throws(RoboscopeRefusal) in
            let rules = state.rules
            var marker = try state.marker(id)
            // Somebody else's change stays when ours is refused.
            defer { state.markers[id] = marker }
            try marker.change(on: message.version, rules, fault, now) { marker throws(RoboscopeRefusal) in
                try Self.apply(message, to: &marker, merging: rules.mergesObjects)
            }
            state.note("marker.updated", id, now)
            return marker
        }
        return try .json(voice.marker(changed))
    }

    func delete(_ id: String) throws -> Response {
        try store.withState { state, now throws(RoboscopeRefusal) in
            _ = try state.marker(id)
            state.markers[id] = nil
            state.markerOrder.removeAll { $0 == id }
            state.note("marker.deleted", id, now)
        }
        return Response(status: .noContent)
    }

    /// - Parameter calculating: Makes them; without, they are there only when they were made before.
    func details(_ id: String, calculating: Bool) throws -> Response {
        let marker = try store.withState { state, _ throws(RoboscopeRefusal) in
            let marker = try state.marker(id)
            if calculating { state.detailed.insert(id) }
            guard state.detailed.contains(id) else { throw .notFound("Marker details") }
            return marker
        }
        return try .json(voice.details(marker))
    }

    private func add(_ messages: [RoboscopeMessages.Marker]) throws -> [RoboscopeSandbox.Marker] {
        try store.withState { state, now throws(RoboscopeRefusal) in
            var sessions: Set<String> = []
            var made: [RoboscopeSandbox.Marker] = []
            made.reserveCapacity(messages.count)
            for message in messages { made.append(try Self.marker(message, now)) }
            for marker in made where sessions.insert(marker.sessionID).inserted {
                _ = try state.session(marker.sessionID)
            }
            for marker in made {
                state.markers[marker.id] = marker
                state.markerOrder.append(marker.id)
                state.note("marker.created", marker.id, now)
            }
            return made
        }
    }

    private static func marker(
        _ message: RoboscopeMessages.Marker, _ now: WallTime
    ) throws(RoboscopeRefusal) -> RoboscopeSandbox.Marker {
        guard let session = message.work_session_id?.lowercased() else {
            throw .invalid("missing field `work_session_id`")
        }
        let corners = message.corners.compactMap(\.self)
        guard corners.count == 4 else { throw .invalid("missing field `p\(corners.count + 1)`") }
        var marker = RoboscopeSandbox.Marker(
            id: RoboscopeStore.newID(), sessionID: session, corners: corners, color: "#FF0000", customProps: .empty,
            version: 1, created: now, updated: now)
        try apply(message, to: &marker, merging: false)
        return marker
    }

    private static func apply(
        _ message: RoboscopeMessages.Marker, to marker: inout RoboscopeSandbox.Marker, merging: Bool
    ) throws(RoboscopeRefusal) {
        for (index, corner) in message.corners.enumerated() {
            guard let corner else { continue }
            guard corner.count == 3, corner.allSatisfy(\.isFinite) else {
                throw .invalid("p\(index + 1): expected an array of 3 numbers")
            }
            marker.corners[index] = corner
        }
        if let color = message.color {
            guard color.wholeMatch(of: /#[0-9A-Fa-f]{6}/) != nil else {
                throw RoboscopeRefusal(status: 400, message: "color must be #RRGGBB")
            }
            marker.color = color
        }
        marker.label = message.label ?? marker.label
        marker.meta = message.meta.map { $0.over(marker.meta, merging: merging) } ?? marker.meta
        marker.customProps =
            message.custom_props.map { $0.over(marker.customProps, merging: merging) } ?? marker.customProps
    }
}
