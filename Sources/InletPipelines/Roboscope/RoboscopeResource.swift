internal import InletCore

/// An object of the server as it came: everything in it is kept, what we understand can be asked for.
protocol RoboscopeResource: Sendable, Equatable {
    /// Below the API's address.
    static var path: String { get }
    /// What a person calls one.
    static var noun: String { get }
    /// Whether it carries a `version` that a change has to name.
    static var isVersioned: Bool { get }
    var fields: JSONObject { get }
    init(fields: JSONObject)
}

extension RoboscopeResource {
    var json: JSONValue { .object(fields) }

    /// Empty for an object without a usable one: ids go into paths, so they are held to what ids are made of.
    var id: String { json["id"]?.string.flatMap { RoboscopeID.isPlausible($0) ? $0 : nil } ?? "" }
    var version: Int64? { json["version"]?.integer }
    var createdAt: WallTime? { time("created_at") }

    func text(_ name: String) -> String? { json[name]?.string }
    func time(_ name: String) -> WallTime? { text(name).flatMap { WallTime(rfc3339: $0) } }
}

enum RoboscopeID {
    /// UUIDs in any case, and whatever else cannot lead anywhere in a path.
    static func isPlausible(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): true
                default: false
                }
            }
    }

    /// `text` with everything else replaced by `-`.
    static func cleaned(_ text: String) -> String {
        String(text.unicodeScalars.prefix(60).map { isPlausible(String($0)) ? Character($0) : "-" })
    }

    static func areEqual(_ left: String, _ right: String) -> Bool { left.lowercased() == right.lowercased() }
}

struct RoboscopeSpace: RoboscopeResource {
    static let path = "spaces"
    static let noun = "space"
    static let isVersioned = false
    var fields: JSONObject

    var key: String { text("key") ?? "" }
}

struct RoboscopeSession: RoboscopeResource {
    static let path = "work-sessions"
    static let noun = "session"
    static let isVersioned = true
    var fields: JSONObject

    var spaceID: String { text("space_id") ?? "" }
    var status: String { text("status") ?? "" }
    var meta: JSONObject { json["meta"]?.object ?? [:] }

    /// The one that stands for `batch`, should there be several: the oldest.
    static func standing(for batch: String, among sessions: [RoboscopeSession]) -> RoboscopeSession? {
        sessions.filter { $0.meta[SessionStamp.batch]?.string == batch && !$0.id.isEmpty }
            .min { ($0.createdAt?.milliseconds ?? .max, $0.id) < ($1.createdAt?.milliseconds ?? .max, $1.id) }
    }
}

struct RoboscopeMarker: RoboscopeResource {
    static let path = "markers"
    static let noun = "marker"
    static let isVersioned = true
    var fields: JSONObject

    /// `<sha256 of the file>#<index>` of those that we have sent.
    var ingestID: String? { json["custom_props"]?[SessionStamp.ingestID]?.string }
}

/// Members of `meta` and `custom_props` that are ours.
enum SessionStamp {
    /// The name of the unit that a session was made for.
    static let batch = "ingest_batch"
    /// The status that a `session.yaml` wants for the end.
    static let status = "ingest_status"
    /// How many files a finished session has.
    static let files = "ingest_files"
    static let ingestID = "ingest_id"
}

extension RoboscopeAPI {
    /// Tries of one change, when others change the same object at the same time.
    private static let tries = 3

    /// Reads an object, lets `change` say what shall be different, and writes just that, with the version that was read.
    /// When someone else was faster (409), it is read again and `change` decides anew, at most three times.
    ///
    /// - Parameter change: nil when the object is as it shall be already; then nothing is sent.
    /// - Returns: the object as it was read last, after the change if there was one.
    func changing<Resource: RoboscopeResource>(
        _ type: Resource.Type, _ id: String, _ change: (Resource) throws(DeliveryError) -> JSONObject?
    ) async throws(DeliveryError) -> Resource {
        var tried = 0
        while true {
            let current = try await get(type, id)
            guard let fields = try change(current), !fields.isEmpty else { return current }
            do throws(DeliveryError) {
                try await update(type, id, Self.versioned(fields, current))
                return try await get(type, id)
            } catch {
                guard error.code == .conflict, Resource.isVersioned else { throw error }
                tried += 1
                guard tried < Self.tries else {
                    throw DeliveryError(
                        .retry(after: nil), .conflict, "\(error.reason); others changed it \(tried) times meanwhile")
                }
                try await DeliveryError.sleep(for: .milliseconds(100 << tried), "another writer was waited for")
            }
        }
    }

    private static func versioned(_ fields: JSONObject, _ current: some RoboscopeResource) -> JSONObject {
        guard let version = current.version else { return fields }
        return fields.merging(["version": .number(String(version))]) { $1 }
    }
}
