/// `proxy:` at the top level, and in every destination on the network.
package struct ProxyKeys: KeyTable {
    package init() {}

    package let url = Key("url", .url, required: true, "http, https, socks5 or socks5h://host:port, or off.")
    package let user = Key("user", .string, "The user name for the proxy.")
    package let password = Key("password", .secret, "The password for the proxy.")
    package let noProxy = Key(
        "no_proxy", .list(.string),
        "Hosts to reach without the proxy: a domain with its subdomains, host:port, an address, a network such as 10.0.0.0/8, or *."
    )

    /// - Parameter untilRestart: as in `KeySpec`.
    package static func key(
        untilRestart: (@Sendable (inout Settings, Settings) -> Void)? = nil
    ) -> Key<Section<ProxyKeys>> {
        Key(
            "proxy", ProxyKeys(), brief: "url", untilRestart: untilRestart,
            "The proxy to use: its URL, a mapping, or off for none. Without it, the environment decides (HTTPS_PROXY …)."
        )
    }
}

extension Key where Value == Bool {
    /// The key of everything that uses HTTP.
    package static var allowHTTP: Self {
        Key("allow_http", .boolean, default: false, "Allow plain HTTP to hosts other than loopback.")
    }
}
