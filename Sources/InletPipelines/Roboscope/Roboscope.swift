package import InletCore
package import InletTransfer

/// The settings of a `type: roboscope` destination: a Roboscope 2 server, and the destination that stores the files
/// registered there.
package struct RoboscopeSettings: Sendable {
    /// With the version, for example `https://api.example/api/v1`.
    package var url: HTTPURL
    /// The destination that stores models, scans and pictures first; their URLs are registered.
    package var storage: String
    package var token: Secret?
    /// Markers in one request.
    package var chunk: Int
    /// Whether we appear as present in a session while we write into it, where the server can show that.
    package var presence: Bool
    /// Whether we lock a session while we write into it, where the server can.
    package var locks: Bool
    package var trust: Trust
    package var connections: Int

    package static let type = DestinationType(
        name: "roboscope", summary: "a Roboscope 2 server: models, scans, markers and sessions",
        keys: RoboscopeKind().specs, fields: RoboscopeFields.specs, takesSidecars: false)

    /// - Throws: `SettingFault` naming the key whose value cannot be used.
    package init(_ values: ConfigSection) throws(SettingFault) {
        let values = Section(RoboscopeKind(), values)
        url = try values.neededAddress(\.url, allowHTTP: values.allowHTTP)
        guard let name = values.storage, !name.isEmpty else {
            throw values.fault(\.storage, "is missing: the destination that models are uploaded to")
        }
        storage = name
        token = values.token.flatMap { $0.isEmpty ? nil : $0 }
        if let token, !token.reveal().utf8.allSatisfy({ (0x21...0x7E).contains($0) }) {
            throw values.fault(\.token, "holds characters that cannot stand in a header")
        }
        chunk = values.chunk
        presence = values.presence
        locks = values.locks
        trust = Trust(caFile: values.caFile)
        connections = values.connections
    }
}

package struct RoboscopeKind: DestinationKind {
    let url = Key("url", .string, required: true, "Address of the API, such as https://api.example/api/v1.")
    let storage = Key(
        "storage", .string, required: true,
        "Name of the destination that stores the files. It needs a public_url.")
    let token = Key("token", .secret, "Token for servers that want one, sent as Authorization: Bearer.")
    let chunk = Key("chunk", .integer(1...1000), default: 100, "Markers in one request.")
    let presence = Key(
        "presence", .boolean, default: true, "Shows Inlet as present in a session while it sends markers.")
    let locks = Key("locks", .boolean, default: true, "Locks a session while Inlet writes to it.")
    let allowHTTP = Key.allowHTTP
    let caFile = TrustKeys.caFile
    let connections = Key("connections", .integer(1...64), default: 8, "Most registrations at once.")
    let bandwidth = BandwidthKeys()
    let proxy = ProxyKeys.key()

    package var type: DestinationType { RoboscopeSettings.type }
    package var pipeline: any Pipeline.Type { RoboscopePipeline.self }

    /// Only markers of some size go there, and they share the connections.
    package func make(
        _ destination: DestinationSettings, _ factory: PipelineFactory
    ) throws(SettingFault) -> Destination {
        let settings = try RoboscopeSettings(destination.values)
        let pipeline = RoboscopePipeline(
            settings: settings,
            client: try factory.client(for: destination, settings.trust, connections: settings.connections),
            pool: factory.pool, readYAML: factory.readYAML)
        var made = Destination(
            name: destination.name, type: destination.type, pipeline: pipeline, smallLimit: .max,
            connections: settings.connections, maxInFlight: nil)
        made.setAddress(settings.url)
        made.server = (settings.url, settings.trust)
        made.testExtension = "glb"
        made.storage = (
            settings.storage,
            { path, fields in
                // With invalid fields nothing is registered; the file is still stored by its name's role.
                ((try? RoboscopeFields(fields, path: path))?.role ?? RoboscopeRole(path)).needsStorage
            }
        )
        made.reading = { path, fields in RoboscopeFields.reading(fields, path: path) }
        made.closesBatches = true
        return made
    }

    package var setup: DestinationSetup {
        DestinationSetup(
            name: "spaces", place: "A Roboscope server",
            questions: [
                .init(
                    "url", "Address of the Roboscope API?", help: "the server's address",
                    example: "https://roboscope.example/api/v1"),
                .init("token", "Its token", .secret(variable: "ROBOSCOPE_TOKEN"), need: .never),
            ],
            route: [
                "match: { extensions: [glb, usdc, usdz, obj, ply] }", "key: \"models/{dir}/{name}\"",
                "sidecars: { extensions: [png, jpg], wait: 30s }   # previews, which go with their models",
            ])
    }
}

extension PipelineFactory {
    /// The API of a Roboscope server, for the command line. - Throws: `SettingFault` as `make` does.
    package func roboscopeAdmin(_ destination: DestinationSettings) throws(SettingFault) -> RoboscopeAPI {
        let settings = try RoboscopeSettings(destination.values)
        return RoboscopeAPI(
            settings: settings,
            client: try client(settings.trust, connections: settings.connections, of: destination))
    }
}

// MARK: - Looking at what was delivered

extension RoboscopePipeline: DeliveryVerifying {
    package var findsByKey: Bool { false }

    /// Whether the space still has the URLs that were registered, and the session is there.
    package func verify(_ order: VerifyOrder) async throws(DeliveryError) -> Verification {
        let details = order.proof.details ?? [:]
        var compared: [String] = []
        if let id = details["space_id"] {
            guard let space = try await DeliveryError.ignoring(.notFound, in: await api.object(.spaces, id))
            else {
                return .missing("space \(id) is not there")
            }
            for (field, url) in details.sorted(by: { $0.key < $1.key })
            where field.hasSuffix("_url") && !field.hasPrefix("previous_") {
                let now = space.text(field) ?? ""
                if now != url {
                    return .differs(
                        "'\(field)' of space \(id) is "
                            + (now.isEmpty ? "empty" : "'\(DisplayText.escape(now))'") + ", not '\(url)'")
                }
                compared.append(field)
            }
            compared.append("space \(id)")
        }
        if let id = details["session_id"] {
            let session = try await DeliveryError.ignoring(.notFound, in: await api.object(.sessions, id))
            if session == nil { return .missing("session \(id) is not there") }
            compared.append("session \(id)")
        }
        return compared.isEmpty
            ? .cannotTell("nothing of its own was registered") : .same(compared.joined(separator: ", "))
    }
}
