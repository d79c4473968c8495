package import InletCore
package import InletLinux
internal import InletTransfer
internal import Synchronization
package import SystemPackage

/// Makes pipelines from settings. A new destination type is one folder beside this file, and one line in `make` and `types`.
package final class PipelineFactory: Sendable {
    /// Every destination type this version knows, with its keys.
    package static let types: [DestinationType] = [
        R2Settings.type, S3Settings.type, GigHiveSettings.type, VOPISettings.type, RoboscopeSettings.type,
        FolderSettings.type,
    ]

    /// Where hashing happens; each folder has its own threads for copies.
    let pool: BlockingPool
    /// What the destinations' uploads are held to, each in the lane of its name.
    let throttle = Throttle()
    private let userAgent: String
    private let longestStall: Duration?
    /// What everything goes through that has no proxy of its own.
    private let proxies: ProxyRules
    /// Where renewed logins are kept.
    let tokens: FilePath?
    /// Reads `markers.yaml` and `session.yaml`.
    let readYAML: YAMLReading?
    /// One client, and so one set of connections, for each set of trusted certificates and each number of connections. Those
    /// that use it keep it: without a destination that still needs it, its threads and connections go.
    private let clients = Mutex<[Needs: Known]>([:])

    private struct Known {
        weak var client: HTTPClient?
    }

    private struct Needs: Hashable {
        var trust: Trust
        var connections: Int
        var proxies: ProxyRules
    }

    /// - Parameters:
    ///   - tokens: the folder for logins that renew themselves (`state_dir/tokens`); nil leaves destinations that have such
    ///     a login out.
    ///   - readYAML: for destinations that take YAML files apart; nil where there is none.
    ///   - proxy: `proxy:` of the whole configuration; nil = as the environment says.
    ///   - longestStall: as `HTTPClient` has it.
    package init(
        pool: BlockingPool, userAgent: String, tokens: FilePath? = nil, readYAML: YAMLReading? = nil,
        proxy: ProxySettings? = nil, longestStall: Duration? = nil
    ) {
        self.pool = pool
        self.userAgent = userAgent
        self.tokens = tokens
        self.readYAML = readYAML
        self.longestStall = longestStall
        proxies = ProxyRules(proxy)
    }

    /// - Throws: `SettingFault` naming the key whose value this destination cannot use.
    package func make(_ destination: DestinationSettings) throws(SettingFault) -> Destination {
        switch destination.type {
        case R2Settings.type.name:
            let settings = try R2Settings(destination.values)
            let pipeline = R2Pipeline(
                settings: settings,
                client: try client(
                    for: destination, Trust(caFile: settings.caFile), connections: settings.connections),
                hashing: pool)
            var made = Destination(
                name: destination.name, type: destination.type, pipeline: pipeline, smallLimit: settings.partSize,
                connections: settings.connections, maxInFlight: settings.maxInFlight)
            made.setAddress(settings.api)
            return made
        case S3Settings.type.name: return try s3(destination)
        case FolderSettings.type.name:
            let settings = FolderSettings(destination.values)
            var made = Destination(
                name: destination.name, type: destination.type,
                pipeline: FolderPipeline(
                    settings: settings, pool: BlockingPool(name: "folder", threads: 4), hashing: pool),
                smallLimit: 8 << 20, connections: 4,
                maxInFlight: nil)
            made.folder = settings.path
            made.setAddress(settings.path.lexicallyNormalized().string)
            return made
        case GigHiveSettings.type.name: return try gigHive(destination)
        case VOPISettings.type.name: return try vopi(destination)
        case RoboscopeSettings.type.name: return try roboscope(destination)
        default:
            throw SettingFault(key: "type", message: "'\(destination.type)' is not available in this version")
        }
    }

    private func s3(_ destination: DestinationSettings) throws(SettingFault) -> Destination {
        let settings = try S3Settings(destination.values)
        let pipeline = S3Pipeline(
            settings: settings,
            client: try client(for: destination, settings.trust, connections: settings.connections), hashing: pool)
        var made = Destination(
            name: destination.name, type: destination.type, pipeline: pipeline,
            smallLimit: settings.multipartThreshold, connections: settings.connections,
            maxInFlight: settings.maxInFlight)
        made.setAddress(settings.endpoint, settings.bucket)
        made.serverPin = { () async throws(DeliveryError) in try await pipeline.serverPin() }
        return made
    }

    /// Every file takes a worker, so that `max_in_flight` bounds all of them.
    private func gigHive(_ destination: DestinationSettings) throws(SettingFault) -> Destination {
        let settings = try GigHiveSettings(destination.values)
        let pipeline = GigHivePipeline(
            settings: settings, client: try client(for: destination, settings.trust), hashing: pool)
        var made = Destination(
            name: destination.name, type: destination.type, pipeline: pipeline, smallLimit: -1, connections: 1,
            maxInFlight: settings.maxInFlight)
        made.setAddress(settings.url)
        made.takesSidecars = GigHiveSettings.type.takesSidecars
        made.fields = FieldSpec.filled([:], GigHiveSettings.type.fields)
        made.testExtension = "mp3"
        made.serverPin = { () async throws(DeliveryError) in try await pipeline.serverPin() }
        made.undo = { proof throws(DeliveryError) in try await pipeline.undo(proof) }
        return made
    }

    /// The client for what a destination is sent, held to its limits.
    func client(
        for destination: DestinationSettings, _ trust: Trust, connections: Int = 32
    ) throws(SettingFault) -> HTTPClient {
        try client(trust, connections: connections, of: destination).limited(by: throttle.lane(destination.name))
    }

    /// The client for what is not a destination's upload.
    func client(
        _ trust: Trust, connections: Int = 32, of destination: DestinationSettings
    ) throws(SettingFault) -> HTTPClient {
        client(trust, connections: connections, through: try proxies(of: destination))
    }

    /// The client for what is no destination's.
    func client(_ trust: Trust) -> HTTPClient { client(trust, connections: 32, through: proxies) }

    /// What a destination's requests go through.
    func proxies(of destination: DestinationSettings) throws(SettingFault) -> ProxyRules {
        guard let section = destination.values.section(KeySpec.proxy.name) else { return proxies }
        do throws(ProxySettings.Fault) {
            return ProxyRules(try ProxySettings(section), isOwn: true)
        } catch {
            throw SettingFault(key: KeySpec.proxy.name, message: "has '\(error.key)', which \(error.message)")
        }
    }

    private func client(_ trust: Trust, connections: Int, through proxies: ProxyRules) -> HTTPClient {
        let needs = Needs(trust: trust, connections: max(connections, 32), proxies: proxies)
        return clients.withLock { clients in
            if let known = clients[needs]?.client { return known }
            let client = HTTPClient(
                trust: trust, connectionsPerHost: needs.connections, userAgent: userAgent, proxies: proxies,
                longestStall: longestStall)
            clients = clients.filter { $0.value.client != nil }
            clients[needs] = Known(client: client)
            return client
        }
    }

    /// Ends every connection; transfers that still run fail as cancelled.
    package func shutdown() {
        for client in clients.withLock({ $0.values.compactMap(\.client) }) { client.shutdown() }
    }
}
