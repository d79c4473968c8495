package import InletCore
package import InletTransfer
package import SystemPackage

/// What a `type: roboscope` destination is told: a Roboscope 2 server, and which destination holds the files that are
/// registered there.
package struct RoboscopeSettings: Sendable {
    /// With the version, for example `https://api.example/api/v1`.
    package var url: HTTPURL
    /// Name of the destination to which models, scans and pictures are uploaded first; their URLs are what is registered.
    package var storage: String
    package var token: Secret?
    /// Markers in one request.
    package var chunk: Int
    /// Whether we are shown as present in a session while we write into it, where the server can.
    package var presence: Bool
    /// Whether a session is locked while we write into it, where the server can.
    package var locks: Bool
    package var caFile: FilePath?
    package var connections: Int

    package static let type = DestinationType(
        name: "roboscope", summary: "a Roboscope 2 server: models and scans registered, markers and sessions kept",
        keys: keys + KeySpec.bandwidth + [.proxy], fields: RoboscopeFields.specs, takesSidecars: false)

    private static let keys = [
        KeySpec("url", .string, required: true, "Address of the API, for example https://api.example/api/v1."),
        KeySpec(
            "storage", .string, required: true,
            "Name of the destination that files are uploaded to; it needs a public URL for what it holds."),
        KeySpec("token", .secret, "Sent as Authorization: Bearer, where the server wants one."),
        KeySpec("chunk", .integer(1...1000), default: "100", "Markers sent in one request."),
        KeySpec(
            "presence", .boolean, default: "true", "Be shown as present in a session while markers are sent to it."),
        KeySpec("locks", .boolean, default: "true", "Lock a session while it is written to."),
        KeySpec("allow_http", .boolean, default: "false", "Allow plain HTTP to hosts other than loopback."),
        Trust.caFileKey,
        KeySpec("connections", .integer(1...64), default: "8", "Registrations made at once."),
    ]

    /// - Throws: `SettingFault` naming the key whose value cannot be used.
    package init(_ values: ConfigSection) throws(SettingFault) {
        guard let text = values.string("url") else { throw SettingFault(key: "url", message: "is missing") }
        do {
            url = try HTTPURL(text, rules: .configured(allowHTTP: values.boolean("allow_http") ?? false))
        } catch {
            throw SettingFault("url", error)
        }
        guard let name = values.string("storage"), !name.isEmpty else {
            throw SettingFault(key: "storage", message: "is missing: the destination that models are uploaded to")
        }
        storage = name
        token = values.secret("token").flatMap { $0.isEmpty ? nil : $0 }
        if let token, !token.reveal().utf8.allSatisfy({ (0x21...0x7E).contains($0) }) {
            throw SettingFault(key: "token", message: "holds characters that cannot stand in a header")
        }
        chunk = values.integer("chunk") ?? 100
        presence = values.boolean("presence") ?? true
        locks = values.boolean("locks") ?? true
        caFile = values.string("ca_file").map { FilePath($0) }
        connections = values.integer("connections") ?? 8
    }
}
