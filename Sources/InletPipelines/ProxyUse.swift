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
        try await DeliveryError.onTransfer(await client.connect(to: url))
    }
}
