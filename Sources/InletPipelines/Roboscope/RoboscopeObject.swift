internal import InletCore

extension RoboscopeAPI {
    /// The kinds of objects on a server.
    package enum Kind: String, Sendable, CaseIterable {
        case spaces
        case sessions
        case markers
        /// Read only.
        case events

        /// Below the API's address.
        var path: String { self == .sessions ? "work-sessions" : rawValue }

        /// Its name in messages.
        var noun: String { String(rawValue.dropLast()) }

        /// Whether it carries a `version` that a change must name.
        var isVersioned: Bool { self == .sessions || self == .markers }
    }
}

/// An object as the server sent it: every member is kept, and known ones have accessors.
struct RoboscopeObject: Sendable, Equatable {
    var fields: JSONObject

    var json: JSONValue { .object(fields) }

    /// Empty for an object without a usable one: ids are used in paths, so only harmless characters are accepted.
    var id: String { text("id").flatMap { RoboscopeAPI.isID($0) ? $0 : nil } ?? "" }
    var version: Int64? { json["version"]?.integer }
    var createdAt: WallTime? { time("created_at") }
    var meta: JSONObject { json["meta"]?.object ?? [:] }

    func text(_ name: String) -> String? { json[name]?.string }
    func time(_ name: String) -> WallTime? { text(name).flatMap { WallTime(rfc3339: $0) } }

    // MARK: - Of spaces

    var key: String { text("key") ?? "" }

    // MARK: - Of sessions

    var spaceID: String { text("space_id") ?? "" }
    var status: String { text("status") ?? "" }

    /// The session for `batch`; the oldest, should there be several.
    static func standing(for batch: String, among sessions: [RoboscopeObject]) -> RoboscopeObject? {
        sessions.filter { $0.meta[Self.batchMember]?.string == batch && !$0.id.isEmpty }
            .min { ($0.createdAt?.milliseconds ?? .max, $0.id) < ($1.createdAt?.milliseconds ?? .max, $1.id) }
    }

    // MARK: - Of markers

    /// `<sha256 of the file>#<index>` on the markers that we sent.
    var ingestID: String? { json["custom_props"]?[Self.ingestIDMember]?.string }
}

extension RoboscopeAPI {
    /// UUIDs in any case, and other text that is harmless in a path.
    static func isID(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count) && text.utf8.allSatisfy { ServiceClient.idBytes.contains($0) }
    }

    /// `text` with everything else replaced by `-`.
    static func idText(_ text: String) -> String {
        String(text.unicodeScalars.prefix(60).map { isID(String($0)) ? Character($0) : "-" })
    }

    static func areSameID(_ left: String, _ right: String) -> Bool { left.lowercased() == right.lowercased() }
}

/// Members of `meta` and `custom_props` that are ours.
extension RoboscopeObject {
    /// The name of the unit that a session was made for.
    static let batchMember = "ingest_batch"
    /// The final status that a `session.yaml` asks for.
    static let statusMember = "ingest_status"
    /// The number of files of a finished session.
    static let filesMember = "ingest_files"
    static let ingestIDMember = "ingest_id"
}

extension RoboscopeAPI {
    /// Tries of one change while others change the same object.
    private static let tries = 3

    /// Reads an object, lets `change` name the new values, and writes only those, with the version that it read. On 409
    /// it reads the object again and asks `change` again, at most three times.
    ///
    /// - Parameter change: nil when the object needs no change; then nothing is sent.
    /// - Returns: the object as last read, after the change if there was one.
    func changing(
        _ kind: Kind, _ id: String, _ change: (RoboscopeObject) throws(DeliveryError) -> JSONObject?
    ) async throws(DeliveryError) -> RoboscopeObject {
        var tried = 0
        while true {
            let current = try await object(kind, id)
            guard let fields = try change(current), !fields.isEmpty else { return current }
            do throws(DeliveryError) {
                try await patch(kind, id, Self.versioned(fields, current))
                return try await object(kind, id)
            } catch {
                guard error.code == .conflict, kind.isVersioned else { throw error }
                tried += 1
                guard tried < Self.tries else {
                    throw DeliveryError(
                        .retry(after: nil), .conflict, "\(error.reason); others changed it \(tried) times meanwhile")
                }
                try await DeliveryError.sleep(for: .milliseconds(100 << tried), "another writer was waited for")
            }
        }
    }

    private static func versioned(_ fields: JSONObject, _ current: RoboscopeObject) -> JSONObject {
        guard let version = current.version else { return fields }
        return fields.merging(["version": .number(String(version))]) { $1 }
    }
}
