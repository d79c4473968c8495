internal import InletCore
internal import InletLinux
internal import InletTransfer
internal import SystemPackage

/// The plan for a session that may have to be created.
struct SessionPlan: Sendable {
    /// For `meta.ingest_batch`, by which it is found again.
    var stamp: String
    /// Key of its space; nil = the route's.
    var space: String?
    var type: String
    var startedAt: WallTime?
    var meta: JSONObject = [:]
}

/// Finds or creates sessions, each once, and ends those of units.
extension RoboscopeJob {
    /// The permanent name of a unit. Ids are unique within one journal only, so the name includes the machine.
    static func stamp(_ batch: OrderBatch, host: String = ProcessSetup.hostName) -> String {
        "\(host):\(batch.name)#\(batch.id)"
    }

    // MARK: - Files of a unit

    /// Ensures that the unit's session exists and is active. - Returns: its id.
    func session(of batch: OrderBatch) async throws(DeliveryError) -> String {
        let stamp = Self.stamp(batch)
        if let known = cache.session(of: stamp) { return known }
        return try await KeyedMutex.shared.alone("unit \(stamp) at \(server)") { () throws(DeliveryError) in
            if let known = cache.session(of: stamp) { return known }
            // Its faults are reported once, when the unit closes.
            let file = try? await sessionFile(batch)
            let id = try await session(plan(batch, file ?? SessionFile())).id
            cache.remember(id, of: stamp)
            return id
        }
    }

    /// A file that only belongs to the session: its bytes are already in place.
    func joinSession(_ batch: OrderBatch?) async throws(DeliveryError) -> DeliveryOutcome {
        // With no proof of its bytes anywhere, the file must not count as delivered.
        guard let own = Self.own(order) else {
            throw refusal("it is not in '\(api.settings.storage)', and nothing of it can be registered")
        }
        guard let batch else {
            return proof(["note": "stored; nothing is registered for such a file"], url: own.proof.url)
        }
        let id = try await session(of: batch)
        return proof(["session_id": id], url: own.proof.url)
    }

    /// `session.yaml` itself: its settings are applied at once, its status when the unit closes.
    func applySessionFile(_ batch: OrderBatch?) async throws(DeliveryError) -> DeliveryOutcome {
        guard let batch else {
            throw refusal(
                "it says what the session of a folder is like, but its route does not have 'unit: folder'")
        }
        let bytes = try await content(limit: SessionFile.longest)
        let file = try await sessionFile(bytes, path)
        try checkSource()
        let plan = self.plan(batch, file)
        let session = try await session(plan)
        _ = try await api.changing(.sessions, session.id) { current throws(DeliveryError) in
            Self.difference(current, type: file.type, meta: plan.meta)
        }
        return proof(["session_id": session.id])
    }

    // MARK: - The end of a unit

    /// The unit's last delivery: everything of it has arrived, so its session is done.
    func closeSession(_ batch: OrderBatch) async throws(DeliveryError) -> DeliveryOutcome {
        let file = try await sessionFile(batch)
        let session = try await session(plan(batch, file ?? SessionFile()))
        let end = SessionEnd(batch: batch, file: file, status: fields.sessionStatus, now: .now)
        return try await SessionWatch(job: self, session: session.id).whileWriting { () async throws(DeliveryError) in
            let closed = try await api.changing(.sessions, session.id) {
                current throws(DeliveryError) in end.change(of: current)
            }
            guard closed.status == end.finalStatus(of: closed) else {
                throw DeliveryError(
                    .retry(after: nil), .conflict,
                    "session \(session.id) was set to \(end.finalStatus(of: closed)), but is \(closed.status)")
            }
            cache.remember(nil, of: Self.stamp(batch))
            var details = ["session_id": session.id, "status": closed.status, "files": String(batch.files)]
            if batch.failed > 0 { details["failed"] = String(batch.failed) }
            return proof(details)
        }
    }

    // MARK: - Finding and making

    private func plan(_ batch: OrderBatch, _ file: SessionFile) -> SessionPlan {
        var meta = file.meta
        meta[RoboscopeObject.statusMember] = file.status.map { .string($0) }
        let first = batch.firstCaptured ?? WallTime(nanoseconds: order.source.modified)
        return SessionPlan(
            stamp: Self.stamp(batch), type: file.type ?? fields.sessionType, startedAt: first, meta: meta)
    }

    /// The session with the plan's stamp. A draft becomes active; an existing one is otherwise left alone.
    func session(_ plan: SessionPlan) async throws(DeliveryError) -> RoboscopeObject {
        let space = try await self.space(plan.space)
        return try await KeyedMutex.shared.alone("session \(plan.stamp) at \(server)") { () throws(DeliveryError) in
            if let known = try await find(plan.stamp, in: space.id) {
                guard known.status == "draft" else { return known }
                return try await api.changing(.sessions, known.id) { current throws(DeliveryError) in
                    current.status == "draft" ? ["status": .string("active")] : nil
                }
            }
            return try await make({ () async throws(DeliveryError) in
                let made = try await api.make(.sessions, Self.fields(plan, space: space.id))
                return try await stamped(made, plan)
            }) { () async throws(DeliveryError) in try await find(plan.stamp, in: space.id) }
        }
    }

    /// Servers that refuse `meta` with a new session may accept it afterwards; without it no session is found again.
    private func stamped(_ made: RoboscopeObject, _ plan: SessionPlan) async throws(DeliveryError) -> RoboscopeObject {
        let meta = plan.meta.merging([RoboscopeObject.batchMember: .string(plan.stamp)]) { $1 }
        guard made.meta[RoboscopeObject.batchMember]?.string != plan.stamp else { return made }
        let changed = try await api.changing(.sessions, made.id) { current throws(DeliveryError) in
            Self.difference(current, type: nil, meta: meta)
        }
        guard changed.meta[RoboscopeObject.batchMember]?.string == plan.stamp else {
            throw DeliveryError(
                .giveUp, .badAnswer,
                "\(shown): session \(made.id) was made, but the server does not keep its 'meta.ingest_batch'")
        }
        return changed
    }

    private func find(_ stamp: String, in space: String) async throws(DeliveryError) -> RoboscopeObject? {
        let sessions = try await api.objects(.sessions, [("space_id", space)])
        return RoboscopeObject.standing(
            for: stamp, among: sessions.filter { RoboscopeAPI.areSameID($0.spaceID, space) })
    }

    private static func fields(_ plan: SessionPlan, space: String) -> JSONObject {
        var fields: JSONObject = [
            "space_id": .string(space), "session_type": .string(plan.type), "status": .string("active"),
            "meta": .object(plan.meta.merging([RoboscopeObject.batchMember: .string(plan.stamp)]) { $1 }),
        ]
        fields["started_at"] = plan.startedAt.map { .string($0.rfc3339Seconds) }
        return fields
    }

    /// The changes that give the session this type and these members of `meta`; nil when there are none.
    static func difference(_ current: RoboscopeObject, type: String?, meta: JSONObject) -> JSONObject? {
        var fields: JSONObject = [:]
        if let type, type != current.text("session_type") { fields["session_type"] = .string(type) }
        let merged = current.meta.merging(meta) { $1 }
        if merged != current.meta { fields["meta"] = .object(merged) }
        return fields.isEmpty ? nil : fields
    }
}

/// The session of a unit once all its files have arrived.
struct SessionEnd: Sendable {
    var batch: OrderBatch
    var file: SessionFile?
    /// The route's.
    var status: String?
    var now: WallTime

    /// The session file has priority: the present one, then the delivered one.
    func finalStatus(of session: RoboscopeObject) -> String {
        let told = session.meta[RoboscopeObject.statusMember]?.string.flatMap {
            RoboscopeFields.statuses.contains($0) ? $0 : nil
        }
        return file?.status ?? told ?? status ?? "done"
    }

    /// nil when there is nothing to write.
    func change(of session: RoboscopeObject) -> JSONObject? {
        var meta = file?.meta ?? [:]
        meta[RoboscopeObject.filesMember] = JSONValue(batch.files)
        if batch.failed > 0 { meta["ingest_failed"] = JSONValue(batch.failed) }
        var fields = RoboscopeJob.difference(session, type: file?.type, meta: meta) ?? [:]
        let final = finalStatus(of: session)
        if session.status != final { fields["status"] = .string(final) }
        if let first = batch.firstCaptured, !Self.isSame(session.time("started_at"), first) {
            fields["started_at"] = .string(first.rfc3339Seconds)
        }
        let isOver = final == "done" || final == "archived"
        if isOver, let last = batch.lastCaptured ?? (session.time("completed_at") == nil ? now : nil),
            !Self.isSame(session.time("completed_at"), last)
        {
            fields["completed_at"] = .string(last.rfc3339Seconds)
        }
        return fields.isEmpty ? nil : fields
    }

    /// To the second, the written precision.
    private static func isSame(_ told: WallTime?, _ wanted: WallTime) -> Bool {
        told.map { $0.rfc3339Seconds == wanted.rfc3339Seconds } ?? false
    }
}

/// The settings that a `session.yaml` (or `.json`) in a unit's folder gives for the unit's session.
struct SessionFile: Sendable, Equatable {
    var type: String?
    /// How the session ends.
    var status: String?
    var meta: JSONObject = [:]

    static let names: [FilePath.Component] = ["session.yaml", "session.yml", "session.json"]
    /// Larger ones are refused.
    static let longest = 64 << 10
    private static let known = ["type", "status", "meta"]

    init() {}

    /// - Throws: the fault, for a person.
    init(_ value: JSONValue) throws(SettingFault) {
        if value == .null { return }
        guard let fields = value.object else { throw .init(key: "session", message: "is not a mapping of fields") }
        for name in fields.keys.sorted() where !Self.known.contains(name) && name != "session_type" {
            let hint = Suggestion.hint(name, in: Self.known)
            throw .init(key: DisplayText.escape(name), message: "is not a field of a session\(hint)")
        }
        type = try Self.word(fields["type"] ?? fields["session_type"], "type", RoboscopeFields.types)
        status = try Self.word(fields["status"], "status", RoboscopeFields.statuses)
        guard let value = fields["meta"], value != .null else { return }
        guard let object = value.object else { throw .init(key: "meta", message: "is not a mapping") }
        meta = object
    }

    private static func word(
        _ value: JSONValue?, _ field: String, _ known: [String]
    ) throws(SettingFault) -> String? {
        guard let value, value != .null else { return nil }
        guard let text = value.string else { throw .init(key: field, message: "is not text") }
        return try RoboscopeFields.choice(text, field, known)
    }
}

extension RoboscopeJob {
    /// The session file in the unit's folder; nil when there is none.
    ///
    /// - Throws: `.badSidecar` for an unreadable one.
    func sessionFile(_ batch: OrderBatch) async throws(DeliveryError) -> SessionFile? {
        for name in SessionFile.names {
            let file = RootedPath(order.root, batch.folder.appending(name))
            let bytes: [UInt8]
            do {
                bytes = try await pool.run { () throws(SystemError) in
                    try SourceFile(opening: file).content(limit: SessionFile.longest)
                }
            } catch {
                if error.isMissing { continue }
                throw DeliveryError(.giveUp, .badSidecar, "\(file.whole.display): \(error)")
            }
            return try await sessionFile(bytes, FilePath(root: nil, [name]))
        }
        return nil
    }

    func sessionFile(_ bytes: [UInt8], _ name: FilePath) async throws(DeliveryError) -> SessionFile {
        let json = try await json(bytes, name)
        do {
            let isEmpty = json.allSatisfy { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
            return try SessionFile(isEmpty ? .null : try JSONValue(parsing: json))
        } catch let fault as SettingFault {
            throw DeliveryError(.giveUp, .badSidecar, "\(name.display): \(fault.key) \(fault.message)")
        } catch {
            throw DeliveryError(.giveUp, .badSidecar, "\(name.display): \(error)")
        }
    }

    /// The file as JSON; YAML is converted first.
    func json(_ bytes: [UInt8], _ name: FilePath) async throws(DeliveryError) -> [UInt8] {
        guard ["yaml", "yml"].contains(FileName(name).plainExtension) else { return bytes }
        guard let readYAML else {
            throw DeliveryError(.giveUp, .badSidecar, "\(name.display): YAML cannot be read here; write it as JSON")
        }
        return try await pool.run { () throws(DeliveryError) in
            do { return try readYAML(bytes, name) } catch { throw DeliveryError(.giveUp, .badSidecar, "\(error)") }
        }
    }
}
