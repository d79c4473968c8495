package import InletCore

/// What people ask of a Roboscope server from the command line. Objects come and go as JSON, with all their members.
extension RoboscopeAPI {
    /// - Parameter query: filters as the server has them: `key` and `include_inactive` of spaces; `space_id`, `status` and
    ///   `session_type` of sessions; `work_session_id` of markers.
    package func list(_ kind: Kind, query: [(String, String)] = []) async throws(DeliveryError) -> [JSONValue] {
        try await objects(kind, query).map(\.json)
    }

    /// The object called `id`; a space also by its key. - Throws: `.notFound`.
    package func get(_ kind: Kind, _ id: String) async throws(DeliveryError) -> JSONValue {
        try await object(kind, try await self.id(kind, id)).json
    }

    /// Makes an object of `fields`, and returns it as the server has it. Markers are checked first.
    package func create(_ kind: Kind, _ fields: JSONObject) async throws(DeliveryError) -> JSONValue {
        if kind == .markers, let fault = MarkerRules.objections(to: .object(fields)).first {
            throw DeliveryError(.giveUp, .badRequest, "the marker's \(fault)")
        }
        if kind == .events { throw Self.readOnly }
        return try await make(kind, fields).json
    }

    /// Changes the members in `fields`; `meta` and `custom_props` are merged with what is there. Sessions and markers go with
    /// their version; when others change them meanwhile, the change is made anew, at most three times.
    ///
    /// - Returns: the object as it is then.
    package func update(_ kind: Kind, _ id: String, _ fields: JSONObject) async throws(DeliveryError) -> JSONValue {
        let changed = try await changing(kind, try await self.id(kind, id)) { current throws(DeliveryError) in
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

    package func delete(_ kind: Kind, _ id: String) async throws(DeliveryError) {
        try await remove(kind, try await self.id(kind, id))
    }

    /// The id of the space that `text` is the id or the key of.
    ///
    /// - Throws: `.notFound`; `.conflict` when several have the key.
    package func space(_ text: String) async throws(DeliveryError) -> String {
        let named = try await objects(.spaces, [("key", text)]).filter { $0.key == text }
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

    private func id(_ kind: Kind, _ text: String) async throws(DeliveryError) -> String {
        if kind == .events { throw Self.readOnly }
        return kind == .spaces ? try await space(text) : text
    }

    private static let readOnly = DeliveryError(.giveUp, .badRequest, "events can only be listed")
}
