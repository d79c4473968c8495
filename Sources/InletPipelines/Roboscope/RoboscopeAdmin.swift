package import InletCore
package import InletTransfer

/// What people ask of a Roboscope server from the command line. Objects come and go as JSON, with all their members.
package struct RoboscopeAdmin: Sendable {
    package enum Kind: String, Sendable, CaseIterable {
        case spaces
        case sessions
        case markers
        /// Read only.
        case events
    }

    private let api: RoboscopeAPI

    package init(settings: RoboscopeSettings, client: HTTPClient) {
        api = RoboscopeAPI(settings: settings, client: client)
    }

    /// - Parameter query: filters as the server has them: `key` and `include_inactive` of spaces; `space_id`, `status` and
    ///   `session_type` of sessions; `work_session_id` of markers.
    package func list(_ kind: Kind, query: [(String, String)] = []) async throws(DeliveryError) -> [JSONValue] {
        switch kind {
        case .spaces: try await list(RoboscopeSpace.self, query)
        case .sessions: try await list(RoboscopeSession.self, query)
        case .markers: try await list(RoboscopeMarker.self, query)
        case .events: try await api.events(query).map { .object($0) }
        }
    }

    /// The object called `id`; a space also by its key. - Throws: `.notFound`.
    package func get(_ kind: Kind, _ id: String) async throws(DeliveryError) -> JSONValue {
        switch kind {
        case .spaces: try await api.get(RoboscopeSpace.self, try await space(id)).json
        case .sessions: try await api.get(RoboscopeSession.self, id).json
        case .markers: try await api.get(RoboscopeMarker.self, id).json
        case .events: throw Self.readOnly
        }
    }

    /// Makes an object of `fields`, and returns it as the server has it. Markers are checked first.
    package func create(_ kind: Kind, _ fields: JSONObject) async throws(DeliveryError) -> JSONValue {
        switch kind {
        case .spaces: return try await api.create(RoboscopeSpace.self, fields).json
        case .sessions: return try await api.create(RoboscopeSession.self, fields).json
        case .markers:
            if let fault = MarkerRules.objections(to: .object(fields)).first {
                throw DeliveryError(.giveUp, .badRequest, "the marker's \(fault)")
            }
            return try await api.create(RoboscopeMarker.self, fields).json
        case .events: throw Self.readOnly
        }
    }

    /// Changes the members in `fields`; `meta` and `custom_props` are merged with what is there. Sessions and markers go with
    /// their version; when others change them meanwhile, the change is made anew, at most three times.
    ///
    /// - Returns: the object as it is then.
    package func update(_ kind: Kind, _ id: String, _ fields: JSONObject) async throws(DeliveryError) -> JSONValue {
        switch kind {
        case .spaces: try await update(RoboscopeSpace.self, try await space(id), fields)
        case .sessions: try await update(RoboscopeSession.self, id, fields)
        case .markers: try await update(RoboscopeMarker.self, id, fields)
        case .events: throw Self.readOnly
        }
    }

    package func delete(_ kind: Kind, _ id: String) async throws(DeliveryError) {
        switch kind {
        case .spaces: try await api.delete(RoboscopeSpace.self, try await space(id))
        case .sessions: try await api.delete(RoboscopeSession.self, id)
        case .markers: try await api.delete(RoboscopeMarker.self, id)
        case .events: throw Self.readOnly
        }
    }

    // MARK: - Beside them

    /// What the server has measured of a marker; nil while it has not.
    package func details(ofMarker id: String) async throws(DeliveryError) -> JSONValue? {
        try await api.details(marker: id).map { .object($0) }
    }

    /// Who is in a session now; nil where the server does not know such a thing.
    package func presence(inSession id: String) async throws(DeliveryError) -> [String]? {
        try await api.present(in: id)
    }

    /// Whether a session is locked; nil where the server has no locks.
    package func isLocked(session id: String) async throws(DeliveryError) -> Bool? {
        try await api.isLocked(session: id)
    }

    /// The id of the space that `text` is the id or the key of.
    ///
    /// - Throws: `.notFound`; `.conflict` when several have the key.
    package func space(_ text: String) async throws(DeliveryError) -> String {
        let named = try await api.list(RoboscopeSpace.self, [("key", text)]).filter { $0.key == text }
        let shown = DisplayText.escape(String(text.prefix(60)))
        guard named.count < 2 else {
            let ids = named.map(\.id).joined(separator: ", ")
            throw DeliveryError(
                .giveUp, .conflict, "\(named.count) spaces have the key '\(shown)'; name one by its id: \(ids)")
        }
        if let space = named.first { return space.id }
        guard RoboscopeID.isPlausible(text) else {
            throw DeliveryError(.giveUp, .notFound, "there is no space with the key '\(shown)'")
        }
        return text
    }

    // MARK: - By type

    private static let readOnly = DeliveryError(.giveUp, .badRequest, "events can only be listed")

    private func list<Resource: RoboscopeResource>(
        _ type: Resource.Type, _ query: [(String, String)]
    ) async throws(DeliveryError) -> [JSONValue] {
        try await api.list(type, query).map(\.json)
    }

    private func update<Resource: RoboscopeResource>(
        _ type: Resource.Type, _ id: String, _ fields: JSONObject
    ) async throws(DeliveryError) -> JSONValue {
        let changed = try await api.changing(type, id) { current throws(DeliveryError) in
            var wanted = fields
            wanted["version"] = nil
            for name in ["meta", "custom_props"] {
                guard let new = fields[name]?.object, let old = current.json[name]?.object else { continue }
                wanted[name] = .object(old.merging(new) { $1 })
            }
            return wanted
        }
        return changed.json
    }
}
