/// `dashboard.login` — how people log in where no token and no password is configured.
package enum DashboardLogin: String, Sendable, CaseIterable {
    /// Not at all: everybody on this machine has full access.
    case open
    /// By a link that works once (`inlet open`).
    case link
}

/// `dashboard:` — where the page and the API are served, and who has access.
package struct DashboardSettings: Sendable, Equatable {
    package var listen: ListenAddress
    /// For programs, and for people who paste it: full access.
    package var token: Secret?
    /// For people: full access.
    package var password: Secret?
    /// Read-only access.
    package var readOnlyToken: Secret?
    /// For a screen beside the readers: shows the cards.
    package var kioskToken: Secret?
    /// How people log in without a token or password.
    package var login = DashboardLogin.open
    /// Whether the configuration may be changed on the page.
    package var mayEdit = false
    /// Other host names that browsers use: `inlet.example`, `nas.lan:8844`.
    package var hosts: [String]
    /// Whether to trust the client address from a reverse proxy on this machine.
    package var proxy: Bool

    package init(
        listen: ListenAddress, token: Secret? = nil, password: Secret? = nil, readOnlyToken: Secret? = nil,
        kioskToken: Secret? = nil, hosts: [String] = [], proxy: Bool = false
    ) {
        self.listen = listen
        self.token = token
        self.password = password
        self.readOnlyToken = readOnlyToken
        self.kioskToken = kioskToken
        self.hosts = hosts
        self.proxy = proxy
    }

    /// The page's address for other machines; nil where only this machine reaches it.
    ///
    /// - Parameter hostName: this machine's, for a page that listens everywhere.
    package func url(hostName: String) -> String? {
        if let host = hosts.first { return proxy ? "https://\(host)" : "http://\(host)" }
        guard listen.host != "localhost", IPAddress(listen.host)?.isLoopback != true else { return nil }
        let isEverywhere = ["0.0.0.0", "::"].contains(listen.host)
        let host = isEverywhere ? hostName : listen.host.contains(":") ? "[\(listen.host)]" : listen.host
        return "http://\(host):\(listen.port)"
    }

    /// Whether it has no token and no password; then it is on loopback.
    package var hasNoSecret: Bool { token == nil && password == nil }

    /// Whether everyone who reaches the port has full access.
    package var isOpen: Bool { hasNoSecret && login == .open }
}

/// A host and a port to listen at.
package struct ListenAddress: Sendable, Hashable {
    /// An address without brackets, or a name.
    package var host: String
    package var port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// `127.0.0.1:8844`, `[::1]:8844`, `localhost:8844`.
    package init(_ text: String) throws(PatternError) {
        let example = "write for example 127.0.0.1:8844"
        guard let colon = text.lastIndex(of: ":") else {
            throw PatternError(message: "'listen' needs an address and a port; \(example)")
        }
        let (before, after) = (String(text[..<colon]), String(text[text.index(after: colon)...]))
        guard after.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = Int(after), (1...65_535).contains(port)
        else { throw PatternError(message: "'listen' needs a port from 1 to 65535; \(example)") }
        if before.isEmpty || before == "*" {
            throw PatternError(
                message:
                    "'listen' needs an address: 127.0.0.1:\(port) for this machine only, 0.0.0.0:\(port) for its networks"
            )
        }
        self.port = port
        host = try Self.host(before, port: port)
    }

    private static func host(_ text: String, port: Int) throws(PatternError) -> String {
        if text.hasPrefix("["), text.hasSuffix("]") {
            let inner = String(text.dropFirst().dropLast())
            guard IPAddress(inner)?.bytes.count == 16 else {
                throw PatternError(
                    message: "'listen' has no IPv6 address in its brackets; write for example [::1]:\(port)")
            }
            return inner
        }
        if text.contains(":") {
            throw PatternError(message: "'listen' has an IPv6 address without brackets; write it as in [::1]:\(port)")
        }
        let isName = text.utf8.allSatisfy { byte in
            byte == 0x2D || byte == 0x2E || (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF)
        }
        let looksLikeAddress = text.utf8.allSatisfy { $0 == 0x2E || (0x30...0x39).contains($0) }
        guard isName, !looksLikeAddress || IPAddress(text) != nil else {
            throw PatternError(message: "'listen' needs an address of this machine; write 127.0.0.1:\(port)")
        }
        return text
    }

    /// nil for a host name.
    package var address: IPAddress? { IPAddress(host) }

    /// Whether only this machine can reach it. A host name may have any address.
    package var isLoopback: Bool { isLocalhost || address?.isLoopback == true }

    /// The address to bind. `localhost` may be anything in /etc/hosts, but here it means only this machine (RFC 6761,
    /// 6.3).
    package var bindHost: String { isLocalhost ? "127.0.0.1" : host }

    private var isLocalhost: Bool { host.lowercased() == "localhost" }

    /// As in the configuration.
    package var text: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
