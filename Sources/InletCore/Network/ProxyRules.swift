/// How a request gets to its host, and why.
package enum ProxyChoice: Sendable, Hashable {
    case direct(why: String)
    case by(ProxyServer, why: String)
    /// A proxy is asked for that cannot be used: going around it would be against somebody's will. With the remedy.
    case unusable(String)

    package var server: ProxyServer? { if case .by(let server, _) = self { server } else { nil } }
}

/// Which requests go through which proxy: decided here, and not by what libcurl finds in the environment.
package struct ProxyRules: Sendable, Hashable {
    private enum Way: Sendable, Hashable {
        case direct(why: String)
        case server(ProxyServer, why: String)
        case unusable(String)
    }

    private var plain: Way
    private var secure: Way
    private var exceptions: ProxyExceptions
    /// What the exceptions are called where they were found.
    private var list: String
    private var takesLoopback: Bool

    /// No proxy, whatever the environment says.
    package static let none = ProxyRules(.direct(why: "no proxy is set"))

    /// By the configuration.
    ///
    /// - Parameter isOwn: whether a destination says it of itself: then it is asked for this machine's own addresses too,
    ///   which no other proxy would find.
    package init(_ settings: ProxySettings, isOwn: Bool) {
        let place = isOwn ? "'proxy' of the destination" : "'proxy' of the configuration"
        self.init(
            settings.server.map { .server($0, why: "by \(place)") } ?? .direct(why: "\(place) is off"),
            settings.exceptions, list: "no_proxy", takesLoopback: isOwn)
    }

    /// By the usual variables, as curl takes them: the small names first, an empty one as if it were not set, and HTTP_PROXY
    /// not at all, because a web server sets it for programs that it starts from a header of any client (httpoxy).
    package init(environment variable: (String) -> String?) {
        func first(_ names: [String]) -> (name: String, text: String)? {
            for name in names { if let text = variable(name), !text.isEmpty { return (name, text) } }
            return nil
        }
        func way(_ names: [String]) -> Way {
            guard let (name, text) = first(names) else { return .direct(why: "no proxy is set") }
            do throws(ProxyServer.Fault) {
                return .server(try ProxyServer(text, usualPort: true), why: "by \(name)")
            } catch {
                return .unusable(
                    "the environment's \(name) \(error.message); correct it, or set 'proxy' in the configuration")
            }
        }
        let exceptions = first(["no_proxy", "NO_PROXY"])
        self.init(
            way(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            ProxyExceptions(exceptions.map { [$0.text] } ?? []), list: exceptions?.name ?? "no_proxy")
        plain = way(["http_proxy", "all_proxy", "ALL_PROXY"])
    }

    private init(
        _ way: Way, _ exceptions: ProxyExceptions = .none, list: String = "no_proxy", takesLoopback: Bool = false
    ) {
        plain = way
        secure = way
        self.exceptions = exceptions
        self.list = list
        self.takesLoopback = takesLoopback
    }

    /// Whether any request at all would go through a proxy, or fail for one that cannot be used.
    package var areSet: Bool {
        [plain, secure].contains { if case .direct = $0 { false } else { true } }
    }

    /// The way to a host.
    ///
    /// - Parameters:
    ///   - scheme: of the request: `http` or `https`.
    ///   - host: lower case; an IPv6 address without brackets.
    package func choice(scheme: String, host: String, port: UInt16) -> ProxyChoice {
        let way = scheme == "https" ? secure : plain
        if case .direct(let why) = way { return .direct(why: why) }
        if !takesLoopback, Self.isLoopback(host) { return .direct(why: "this machine's own addresses need no proxy") }
        if let entry = exceptions.entry(for: host, port: port) { return .direct(why: "'\(entry)' of \(list)") }
        switch way {
        case .direct(let why): return .direct(why: why)
        case .server(let server, let why): return .by(server, why: why)
        case .unusable(let why): return .unusable(why)
        }
    }

    private static func isLoopback(_ host: String) -> Bool {
        let bare = host.hasSuffix(".") ? String(host.dropLast()) : host
        if bare == "localhost" || bare.hasSuffix(".localhost") { return true }
        // Whoever connects to the unspecified address gets to this machine too.
        return IPAddress(bare).map { $0.isLoopback || $0.isUnspecified } ?? false
    }
}
