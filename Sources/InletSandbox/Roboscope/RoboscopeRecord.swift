import Foundation
package import InletCore

extension RoboscopeSandbox {
    /// A line of the audit trail.
    package struct Event: Sendable, Hashable {
        package var id: Int
        /// Such as `space.created`, `session.updated`, `marker.deleted`.
        package var action: String
        /// The id of its object.
        package var object: String
        package var time: WallTime
    }
}

/// A space, a work session or a marker, with its fields as on the wire; unset fields are null.
package struct RoboscopeRecord: Sendable, Hashable {
    package let id: String
    package internal(set) var fields: [String: SandboxJSON]
    /// Starts at 1, one more at each change. Spaces do not show it, so the last writer wins.
    package internal(set) var version: Int64 = 1
    package let created: WallTime
    package internal(set) var updated: WallTime

    /// How many PATCH calls have changed it.
    package var changes: Int { Int(version) - 1 }

    private func text(_ name: String) -> String { fields[name]?.text ?? "" }

    // Of spaces.
    package var key: String { text("key") }
    package var name: String { text("name") }
    package var description: String? { fields["description"]?.text }
    package var modelGLBURL: String? { fields["model_glb_url"]?.text }
    package var modelUSDCURL: String? { fields["model_usdc_url"]?.text }
    package var previewURL: String? { fields["preview_url"]?.text }
    package var scanURL: String? { fields["scan_url"]?.text }

    // For sessions; times as the client gave them.
    package var spaceID: String { text("space_id") }
    package var type: String { text("session_type") }
    package var status: String { text("status") }
    package var startedAt: String? { fields["started_at"]?.text }
    package var completedAt: String? { fields["completed_at"]?.text }

    // Of markers.
    package var sessionID: String { text("work_session_id") }
    package var label: String? { fields["label"]?.text }
    package var color: String { text("color") }
    package var customProps: SandboxJSON { fields["custom_props"] ?? .empty }
    /// Four corners of three coordinates each, in metres.
    package var corners: [[Double]] {
        (1...4).map { fields["p\($0)"]?.items?.compactMap(\.number) ?? [] }
    }

    /// For sessions, markers and spaces; nil if unset.
    package var meta: SandboxJSON? { fields["meta"].flatMap { $0 == .null ? nil : $0 } }
}

/// The three kinds of records, as events name them.
enum RoboscopeKind: String, Sendable {
    case space
    case session
    case marker

    enum Check: Sendable {
        case text
        /// The id of another record, in either case.
        case id
        case choice([String])
        /// Three numbers.
        case corner
        /// `#RRGGBB`.
        case color
        /// Any JSON.
        case value
    }

    struct Field: Sendable {
        let name: String
        let check: Check
        /// The value if the field is left out; nil = it is required.
        let initial: SandboxJSON?

        init(_ name: String, _ check: Check, _ initial: SandboxJSON? = .null) {
            (self.name, self.check, self.initial) = (name, check, initial)
        }
    }

    private static let fields: [RoboscopeKind: [Field]] = [
        .space: [
            Field("key", .text, nil), Field("name", .text, nil), Field("description", .text),
            Field("model_glb_url", .text), Field("model_usdc_url", .text), Field("preview_url", .text),
            Field("scan_url", .text), Field("meta", .value),
        ],
        .session: [
            Field("space_id", .id, nil), Field("session_type", .choice(["inspection", "repair", "other"]), nil),
            Field("status", .choice(["draft", "active", "done", "archived"]), "draft"), Field("started_at", .text),
            Field("completed_at", .text), Field("meta", .value),
        ],
        .marker: [
            Field("work_session_id", .id, nil), Field("p1", .corner, nil), Field("p2", .corner, nil),
            Field("p3", .corner, nil), Field("p4", .corner, nil), Field("label", .text),
            Field("color", .color, "#FF0000"), Field("meta", .value), Field("custom_props", .value, .empty),
        ],
    ]

    private var fields: [Field] { Self.fields[self] ?? [] }

    /// Its name in refusals.
    var title: String {
        switch self {
        case .space: "Space"
        case .session: "Work session"
        case .marker: "Marker"
        }
    }

    /// Its parent, and the field that names it.
    var parent: (field: String, kind: RoboscopeKind)? {
        switch self {
        case .space: nil
        case .session: ("space_id", .space)
        case .marker: ("work_session_id", .session)
        }
    }

    /// Fields that lists are filtered by.
    var filters: [String] {
        switch self {
        case .space: ["key"]
        case .session: ["space_id", "status", "session_type"]
        case .marker: ["work_session_id"]
        }
    }

    /// The fields of a body that belong to this kind; null counts as absent.
    func parse(_ body: SandboxJSON) throws(SandboxRefusal) -> [String: SandboxJSON] {
        guard let given = body.fields else { throw .wrongType }
        var parsed: [String: SandboxJSON] = [:]
        for field in fields {
            guard let value = given[field.name], value != .null else { continue }
            parsed[field.name] = try Self.check(value, field)
        }
        return parsed
    }

    /// With the initial values of omitted fields.
    func filled(_ given: [String: SandboxJSON]) -> [String: SandboxJSON] {
        var all = given
        for field in fields where all[field.name] == nil { all[field.name] = field.initial }
        return all
    }

    /// The fields of a new record.
    func complete(_ parsed: [String: SandboxJSON]) throws(SandboxRefusal) -> [String: SandboxJSON] {
        let all = filled(parsed)
        if let missing = fields.first(where: { all[$0.name] == nil }) {
            throw .invalid("missing field `\(missing.name)`")
        }
        if self == .space, all["key"] == "" || all["name"] == "" {
            throw SandboxRefusal(400, "", "key and name must not be empty")
        }
        return all
    }

    private static func check(_ value: SandboxJSON, _ field: Field) throws(SandboxRefusal) -> SandboxJSON {
        if case .value = field.check { return value }
        if case .corner = field.check {
            guard let numbers = value.items?.map(\.number), !numbers.contains(nil) else { throw .wrongType }
            guard numbers.count == 3, numbers.allSatisfy({ $0?.isFinite == true }) else {
                throw .invalid("\(field.name): expected an array of 3 numbers")
            }
            return value
        }
        guard let text = value.text else { throw .wrongType }
        switch field.check {
        case .id: return .string(text.lowercased())
        case .choice(let choices): if !choices.contains(text) { throw .wrongType }
        case .color:
            guard text.wholeMatch(of: /#[0-9A-Fa-f]{6}/) != nil else {
                throw SandboxRefusal(400, "", "color must be #RRGGBB")
            }
        case .text, .value, .corner: break
        }
        return value
    }
}

extension RoboscopeRecord {
    func told(_ kind: RoboscopeKind) -> SandboxJSON {
        var told = fields
        if kind == .marker { told = told.filter { $0.value != .null } }
        if kind == .space {
            told.merge(["ml_model_url": .null, "is_active": true]) { $1 }
        } else {
            told["version"] = .number(Double(version))
        }
        told["id"] = .string(id)
        told["created_at"] = .string(created.rfc3339)
        told["updated_at"] = .string(updated.rfc3339)
        return .object(told)
    }

    /// A marker's position and size, along x and z.
    var details: SandboxJSON {
        let (x, z) = (corners.map { $0[0] }, corners.map { $0[2] })
        let (left, right, near, far) = (x.min() ?? 0, x.max() ?? 0, z.min() ?? 0, z.max() ?? 0)
        let time = SandboxJSON.string(updated.rfc3339)
        return [
            "marker_id": .string(id), "center_location_long": .number((near + far) / 2),
            "center_location_cross": .number((left + right) / 2), "x_negative": .number(left),
            "x_positive": .number(right), "z_negative": .number(near), "z_positive": .number(far),
            "long_size": .number(far - near), "cross_size": .number(right - left), "custom_props": [:],
            "created_at": time, "updated_at": time,
        ]
    }
}

extension SandboxRefusal {
    static func invalid(_ message: String) -> Self { Self(422, "", message) }
    static let wrongType = invalid("Failed to deserialize the JSON body into the target type")
}
