internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Registers the URLs of stored files in their space: one PATCH with those that differ, followed by a look whether they
/// are there.
extension RoboscopeJob {
    func register() async throws(DeliveryError) -> DeliveryOutcome {
        let wanted = try Self.wanted(fields.role, order, storage: api.settings.storage)
        let space = try await self.space()
        if let batch = order.batch { _ = try await session(of: batch) }
        let previous = try await noted(previous: Self.replaced(in: space, by: wanted))
        try checkStopping()
        let changed = try await api.changing(.spaces, space.id) { current throws(DeliveryError) in
            let different = wanted.filter { current.text($0.key) != $0.value }
            return different.isEmpty ? nil : different.mapValues { .string($0) }
        }
        if let lost = wanted.keys.sorted().first(where: { changed.text($0) != wanted[$0] }) {
            throw DeliveryError(
                .retry(after: nil), .conflict,
                "\(shown): '\(lost)' of space \(space.id) was set, but reads otherwise; someone else changes it too"
            )
        }
        var details = ["space_id": space.id, "space_key": space.key].merging(wanted) { $1 }
        for (field, url) in previous { details["previous_" + field] = url }
        return proof(details, url: Self.own(order)?.proof.url)
    }

    /// The former URLs, noted before the PATCH: a later attempt finds our own URL in the space.
    private func noted(previous: [String: String]) async throws(DeliveryError) -> [String: String] {
        let known = JSON.object(attempt.checkpoint.entries[Self.previousNote])
        if let known { return known.compactMapValues(\.string) }
        let note = JSONValue.object(previous.mapValues { .string($0) }).bytes
        try await attempt.checkpoint.put([Self.previousNote: note])
        return previous
    }

    /// The note for another agent: former URLs, which somebody else has set, without what may be a credential in them.
    /// Other notes stay as they are.
    static func handedOver(_ note: [UInt8]) -> [UInt8] {
        guard let previous = JSON.object(note) else { return note }
        return JSONValue.object(
            previous.mapValues { url in
                var plain = (url.string ?? "").prefix { $0 != "?" && $0 != "#" }
                if let scheme = plain.firstRange(of: "://") {
                    let host = plain[scheme.upperBound...].prefix { $0 != "/" }
                    if let at = host.lastIndex(of: "@") { plain.removeSubrange(scheme.upperBound...at) }
                }
                return .string(String(plain))
            }
        ).bytes
    }

    /// The one note that the journal keeps after a failed delivery, for `queue retry`.
    private static let previousNote = CheckpointName.mayBeVisible

    // MARK: - Decisions

    /// The URLs about to be replaced.
    static func replaced(in space: RoboscopeObject, by wanted: [String: String]) -> [String: String] {
        wanted.compactMap { field, url in
            space.text(field).flatMap { $0.isEmpty || $0 == url ? nil : (field, $0) }
        }.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }

    /// The space's fields and their new URLs: the file's own, and that of a picture that travels with it.
    ///
    /// - Throws: `.badRequest` where the storage has not said where the file can be read.
    static func wanted(
        _ role: RoboscopeRole, _ order: DeliveryOrder, storage: String
    ) throws(DeliveryError) -> [String: String] {
        guard let own = own(order), let url = own.proof.url, !url.isEmpty else {
            throw DeliveryError(
                .giveUp, .badRequest,
                "\(order.path.display): '\(storage)' does not say where the file can be read; give it a 'public_url'")
        }
        let field: String? =
            switch role {
            case .model: RoboscopeRole.models[FileName(own.path).plainExtension]
            case .scan: "scan_url"
            case .preview: "preview_url"
            case .markers, .session, .file: nil
            }
        guard let field else { return [:] }
        var wanted = [field: url]
        let picture = order.upstream.first {
            $0.path != own.path && RoboscopeRole.pictures.contains(FileName($0.path).plainExtension)
        }
        if role == .model, let picture = picture?.proof.url, !picture.isEmpty { wanted["preview_url"] = picture }
        return wanted
    }

    /// The proof of the file's own bytes.
    static func own(_ order: DeliveryOrder) -> UpstreamDelivery? {
        order.upstream.first { $0.path == order.path } ?? order.upstream.first
    }
}
