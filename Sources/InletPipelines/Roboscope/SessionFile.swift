internal import InletCore
internal import InletLinux
internal import InletTransfer
internal import SystemPackage

/// What a `session.yaml` (or `.json`) in a unit's folder says of the unit's session.
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

    /// - Throws: what is wrong with it, for a person.
    init(_ value: JSONValue) throws(RoboscopeFields.Fault) {
        if value == .null { return }
        guard let fields = value.object else { throw .init(field: "session", reason: "is no mapping of fields") }
        for name in fields.keys.sorted() where !Self.known.contains(name) && name != "session_type" {
            let hint = Suggestion.nearest(to: name, in: Self.known).map { "; did you mean '\($0)'?" } ?? ""
            throw .init(field: DisplayText.escape(name), reason: "is no field of a session\(hint)")
        }
        type = try Self.word(fields["type"] ?? fields["session_type"], "type", RoboscopeFields.types)
        status = try Self.word(fields["status"], "status", RoboscopeFields.statuses)
        guard let value = fields["meta"], value != .null else { return }
        guard let object = value.object else { throw .init(field: "meta", reason: "is no mapping") }
        meta = object
    }

    private static func word(
        _ value: JSONValue?, _ field: String, _ known: [String]
    ) throws(RoboscopeFields.Fault) -> String? {
        guard let value, value != .null else { return nil }
        guard let text = value.string else { throw .init(field: field, reason: "is no text") }
        return try RoboscopeFields.choice(text, field, known)
    }
}

extension RoboscopeJob {
    /// The session file in the unit's folder; nil when there is none.
    ///
    /// - Throws: `.badSidecar` for one that cannot be understood.
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
        } catch let fault as RoboscopeFields.Fault {
            throw DeliveryError(.giveUp, .badSidecar, "\(name.display): \(fault.field) \(fault.reason)")
        } catch {
            throw DeliveryError(.giveUp, .badSidecar, "\(name.display): \(error)")
        }
    }

    /// The file as JSON; YAML is turned into it first.
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
