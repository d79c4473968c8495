package import InletCore
internal import InletLinux
internal import InletTransfer

extension ProxyRules {
    /// By the configuration, or else by this process's environment.
    init(_ settings: ProxySettings?) {
        self = settings.map { ProxyRules($0, isOwn: false) } ?? ProxyRules(environment: ProcessSetup.environment)
    }
}

/// How a destination is reached, for people who ask.
package struct ProxyUse: Sendable {
    package var choice: ProxyChoice
    private let url: HTTPURL
    private let client: HTTPClient

    init(_ url: HTTPURL, _ client: HTTPClient) {
        self.url = url
        self.client = client
        choice = client.choice(for: url)
    }

    /// The proxy's address, where there is one.
    package var proxy: String? { choice.server?.description }

    /// Makes a connection to the destination through the proxy and sends it nothing; without TLS to the proxy alone.
    ///
    /// - Throws: what is wrong, naming the proxy where it is to blame.
    package func connect() async throws(DeliveryError) {
        do throws(TransferError) {
            try await client.connect(to: url)
        } catch {
            throw DeliveryError(error)
        }
    }
}

extension PipelineFactory {
    /// How the destination is reached; nil for those that are not reached over the network.
    ///
    /// - Throws: `SettingFault` as `make` does.
    package func proxyUse(_ destination: DestinationSettings) throws(SettingFault) -> ProxyUse? {
        let (url, trust) = try place(of: destination)
        guard let url else { return nil }
        return ProxyUse(url, try client(trust, of: destination))
    }

    private func place(of destination: DestinationSettings) throws(SettingFault) -> (HTTPURL?, Trust) {
        switch destination.type {
        case R2Settings.type.name:
            let settings = try R2Settings(destination.values)
            return (settings.api, Trust(caFile: settings.caFile))
        case S3Settings.type.name:
            let settings = try S3Settings(destination.values)
            return (settings.base, settings.trust)
        case GigHiveSettings.type.name:
            let settings = try GigHiveSettings(destination.values)
            return (settings.url, settings.trust)
        case VOPISettings.type.name:
            let settings = try VOPISettings(destination.values)
            return (settings.url, Trust(caFile: settings.caFile))
        case RoboscopeSettings.type.name:
            let settings = try RoboscopeSettings(destination.values)
            return (settings.url, Trust(caFile: settings.caFile))
        default: return (nil, .system)
        }
    }
}
