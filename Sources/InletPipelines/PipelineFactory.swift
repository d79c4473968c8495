package import InletCore
package import InletLinux
package import InletTransfer
internal import Synchronization
package import SystemPackage

/// Makes destinations from settings, with shared connections, limits and threads.
package final class PipelineFactory: Sendable {
    /// Threads for hashing; each folder has its own for copies.
    let pool: BlockingPool
    /// Threads that wait for mail servers.
    let mailPool = BlockingPool(name: "mail", threads: 2)
    /// The limits on uploads, in a lane of each destination's name.
    let throttle = Throttle()
    /// The checksums that its stores were seen to compare.
    package let checksums = StoreChecksums()
    private let kinds: [any DestinationKind]
    private let userAgent: String
    private let longestStall: Duration?
    /// The proxy of everything without its own.
    private let proxies: ProxyRules
    /// The folder of renewed logins.
    let tokens: FilePath?
    /// Reads `markers.yaml` and `session.yaml`.
    let readYAML: YAMLReading?
    /// One client, and so one set of connections, for each set of trusted certificates and each number of connections.
    /// Its users keep it: its threads and connections go with the last destination that needs it.
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
    ///   - tokens: the folder for logins that renew themselves (`state_dir/tokens`); nil leaves destinations that have
    /// such
    ///     a login out.
    ///   - readYAML: for destinations that read YAML files; nil where there is no reader.
    ///   - proxy: `proxy:` of the whole configuration; nil uses the environment.
    ///   - longestStall: as for `HTTPClient`.
    ///   - kinds: the kinds that it can make.
    package init(
        pool: BlockingPool, userAgent: String, tokens: FilePath? = nil, readYAML: YAMLReading? = nil,
        proxy: ProxySettings? = nil, longestStall: Duration? = nil,
        kinds: [any DestinationKind] = DestinationKinds.all
    ) {
        self.pool = pool
        self.userAgent = userAgent
        self.tokens = tokens
        self.readYAML = readYAML
        self.longestStall = longestStall
        self.kinds = kinds
        proxies = ProxyRules(proxy)
    }

    /// - Throws: `SettingFault` naming the key whose value this destination cannot use.
    package func make(_ destination: DestinationSettings) throws(SettingFault) -> Destination {
        guard let kind = kinds.first(where: { $0.type.name == destination.type }) else {
            throw SettingFault(key: "type", message: "'\(destination.type)' is not available in this version")
        }
        var made = try kind.make(destination, self)
        made.takesSidecars = kind.type.takesSidecars
        made.names = kind.type.nameForm(destination.values)
        made.isRequired = DestinationType.required.value(in: destination.values)
        made.fields = FieldSpec.filled([:], kind.type.fields)
        return made
    }

    /// How the destination is reached; nil for kinds without a network.
    ///
    /// - Throws: `SettingFault` for a proxy that cannot be used.
    package func proxyUse(of made: Destination, _ destination: DestinationSettings) throws(SettingFault) -> ProxyUse? {
        guard let (url, trust) = made.server else { return nil }
        return ProxyUse(url, try client(trust, of: destination))
    }

    /// Sets the rates of everything that its pipelines send.
    package var valve: BandwidthValve {
        { [throttle] rate, destination in throttle.set(rate, for: destination) }
    }

    // MARK: - Connections

    /// The client for uploads to a destination, within its limits.
    func client(
        for destination: DestinationSettings, _ trust: Trust, connections: Int = 32
    ) throws(SettingFault) -> HTTPClient {
        try client(trust, connections: connections, of: destination).limited(by: throttle.lane(destination.name))
    }

    /// The client for other requests.
    func client(
        _ trust: Trust, connections: Int = 32, of destination: DestinationSettings? = nil
    ) throws(SettingFault) -> HTTPClient {
        let needs = Needs(trust: trust, connections: max(connections, 32), proxies: try proxies(of: destination))
        return clients.withLock { clients in
            if let known = clients[needs]?.client { return known }
            let client = HTTPClient(
                trust: trust, connectionsPerHost: needs.connections, userAgent: userAgent, proxies: needs.proxies,
                longestStall: longestStall)
            clients = clients.filter { $0.value.client != nil }
            clients[needs] = Known(client: client)
            return client
        }
    }

    func proxies(of destination: DestinationSettings?) throws(SettingFault) -> ProxyRules {
        let key = ProxyKeys.key()
        guard let section = (destination?.values).map(key.value), section.url != nil else { return proxies }
        do throws(ProxySettings.Fault) {
            return ProxyRules(try ProxySettings(section), isOwn: true)
        } catch {
            throw SettingFault(key: key.spec.name, message: "has '\(error.key)', which \(error.message)")
        }
    }

    /// Closes every connection; running transfers fail as cancelled.
    package func shutdown() {
        for client in clients.withLock({ $0.values.compactMap(\.client) }) { client.shutdown() }
    }
}

extension ProxyRules {
    /// From the configuration, otherwise from this process's environment.
    init(_ settings: ProxySettings?) {
        self = settings.map { ProxyRules($0, isOwn: false) } ?? ProxyRules(environment: ProcessSetup.environment)
    }
}

/// How a destination is reached, in words.
package struct ProxyUse: Sendable {
    package var choice: ProxyChoice
    private let url: HTTPURL
    private let client: HTTPClient

    init(_ url: HTTPURL, _ client: HTTPClient) {
        self.url = url
        self.client = client
        choice = client.choice(for: url)
    }

    package var proxy: String? { choice.server?.description }

    /// The host of the destination's address, and whether it is reached by TLS.
    package var host: String { url.host }
    package var isEncrypted: Bool { url.scheme == "https" }

    /// The server's certificate, whatever it is worth; nil without TLS. Nothing is sent to the server.
    package func certificate() async throws(DeliveryError) -> PeerCertificate? {
        try await DeliveryError.onTransfer(await client.certificate(of: url))
    }

    /// The server's clock minus ours; nil when the server does not say. Sends no credentials.
    package func clockDifference() async throws(DeliveryError) -> Duration? {
        try await DeliveryError.onTransfer(await client.clockDifference(at: url))
    }

    /// Connects to the destination through the proxy and sends it nothing; without TLS it connects to the proxy only.
    ///
    /// - Throws: the fault, naming the proxy where it is to blame.
    package func connect() async throws(DeliveryError) {
        try await DeliveryError.onTransfer(await client.connect(to: url))
    }
}
