/// `proxy:` of the configuration, or of one destination.
package struct ProxySettings: Sendable, Hashable {
    /// A value that cannot be used.
    package struct Fault: Error, Sendable, Equatable {
        package var key: String
        /// Continues "`key` …"; quotes no secret.
        package var message: String
    }

    /// nil is `off`: everything is reached directly, whatever the environment says.
    package var server: ProxyServer?
    package var exceptions: ProxyExceptions

    /// The values of `KeySpec.proxy`, read from what was filled in.
    package init(_ section: ConfigSection) throws(Fault) {
        let exceptions = section.strings("no_proxy") ?? []
        for text in exceptions {
            guard let entry = ProxyExceptions.unreadable(in: text) else { continue }
            throw Fault(
                key: "no_proxy",
                message:
                    "has '\(DisplayText.escape(entry))', which is no host, host:port, address or network like 10.0.0.0/8"
            )
        }
        self.exceptions = ProxyExceptions(exceptions)
        guard let text = section.secret("url")?.reveal() else { throw Fault(key: "url", message: "is missing") }
        let (user, password) = (section.string("user"), section.secret("password"))
        if text == "off" {
            if let key = user != nil ? "user" : password != nil ? "password" : nil {
                throw Fault(key: key, message: "belongs to no proxy: 'url' is off")
            }
            return
        }
        do throws(ProxyServer.Fault) {
            server = try ProxyServer(text, usualPort: false)
        } catch {
            throw Fault(key: "url", message: error.message)
        }
        try logIn(user, password)
    }

    private mutating func logIn(_ user: String?, _ password: Secret?) throws(Fault) {
        guard let user else {
            if password != nil { throw Fault(key: "password", message: "needs a 'user' beside it") }
            return
        }
        guard server?.user == nil else {
            throw Fault(key: "user", message: "stands in 'url' too; name it once")
        }
        guard !user.isEmpty, !user.contains(":"), !user.unicodeScalars.contains(where: { $0.value < 0x20 }) else {
            throw Fault(key: "user", message: "must be a name without ':' (RFC 7617, section 2)")
        }
        server?.user = user
        server?.password = password
    }
}

extension KeySpec {
    /// `proxy:` at the top, and of every destination that goes over the network.
    package static let proxy = KeySpec(
        "proxy", .brief("url", proxyKeys),
        "The proxy that is gone through: off, its address, or a mapping; without it, what the environment says (HTTPS_PROXY …)."
    )

    private static let proxyKeys: [KeySpec] = [
        KeySpec("url", .url, required: true, "http, https, socks5 or socks5h://host:port, or off."),
        KeySpec("user", .string, "The user at the proxy."),
        KeySpec("password", .secret, "The user's password at the proxy."),
        KeySpec(
            "no_proxy", .list(.string),
            "What is reached directly: hosts with all below them, host:port, addresses, networks like 10.0.0.0/8, or *."
        ),
    ]
}
