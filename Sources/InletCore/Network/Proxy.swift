/// `proxy:` of the configuration or a destination.
package struct ProxySettings: Sendable, Hashable {
    /// An invalid value.
    package struct Fault: Error, Sendable, Equatable {
        package var key: String
        /// Continues "`key` …"; quotes no secret.
        package var message: String
    }

    /// nil for `off`: connect directly, whatever the environment says.
    package var server: ProxyServer?
    package var exceptions: ProxyExceptions

    /// - Parameter section: values with `${…}` filled in.
    package init(_ section: Section<ProxyKeys>) throws(Fault) {
        let exceptions = section.noProxy ?? []
        for text in exceptions {
            guard let entry = ProxyExceptions.unreadable(in: text) else { continue }
            throw Fault(
                key: "no_proxy",
                message:
                    "has '\(DisplayText.escape(entry))'; write a host, host:port, an address, or a network such as 10.0.0.0/8"
            )
        }
        self.exceptions = ProxyExceptions(exceptions)
        guard let text = section.url?.reveal() else { throw Fault(key: "url", message: "is missing") }
        let (user, password) = (section.user, section.password)
        if text == "off" {
            if let key = user != nil ? "user" : password != nil ? "password" : nil {
                throw Fault(key: key, message: "has no effect: 'url' is off")
            }
            return
        }
        do throws(PatternError) {
            server = try ProxyServer(text, usualPort: false)
        } catch {
            throw Fault(key: "url", message: error.message)
        }
        try logIn(user, password)
    }

    private mutating func logIn(_ user: String?, _ password: Secret?) throws(Fault) {
        guard let user else {
            if password != nil { throw Fault(key: "password", message: "needs a 'user'") }
            return
        }
        guard server?.user == nil else {
            throw Fault(key: "user", message: "is in 'url' too; give it only once")
        }
        guard !user.isEmpty, !user.contains(":"), !user.unicodeScalars.contains(where: { $0.value < 0x20 }) else {
            throw Fault(key: "user", message: "must be a name without ':' (RFC 7617, section 2)")
        }
        server?.user = user
        server?.password = password
    }
}

/// A proxy server.
package struct ProxyServer: Sendable, Hashable, CustomStringConvertible {
    package enum Scheme: String, Sendable, CaseIterable {
        case http
        /// The connection to the proxy itself is encrypted.
        case https
        /// We look up host names.
        case socks5
        /// The proxy looks up host names.
        case socks5h
    }

    package var scheme: Scheme
    /// Lower case; an IPv6 address without brackets.
    package var host: String
    package var port: UInt16
    package var user: String?
    package var password: Secret?

    /// Reads `http://user:password@host:port`; http is the default scheme. An error's message continues "`url` …" with
    /// the correct form, and quotes nothing that could be a password.
    ///
    /// - Parameter usualPort: whether a missing port defaults to curl's (1080; 443 for https). People may just as well
    ///   expect 80, 3128 or 8080, so a configuration must name the port.
    package init(_ text: String, usualPort: Bool) throws(PatternError) {
        let marks = text.firstRange(of: "://")
        scheme = try Self.scheme(marks.map { text[..<$0.lowerBound] } ?? "http")
        var rest = text[(marks?.upperBound ?? text.startIndex)...].prefix { !"/?#".contains($0) }
        if let at = rest.lastIndex(of: "@") {
            (user, password) = try Self.login(rest[..<at])
            rest = rest[rest.index(after: at)...]
        }
        let (name, number) = Self.parts(rest)
        guard !name.isEmpty, name.utf8.allSatisfy(Self.isHostByte), IPAddress(name) != nil || !name.contains(":") else {
            throw PatternError(message: "names no host; write for example http://proxy.example:3128")
        }
        host = name.lowercased()
        if number == nil, usualPort {
            port = scheme == .https ? 443 : 1080
        } else if let port = number.flatMap({ UInt16($0) }), port > 0 {
            self.port = port
        } else {
            throw PatternError(message: "names no port; write for example http://proxy.example:3128")
        }
    }

    /// `http://proxy.example:3128`, without the login.
    package var description: String { "\(scheme.rawValue)://\(host.contains(":") ? "[\(host)]" : host):\(port)" }

    private static func scheme(_ text: Substring) throws(PatternError) -> Scheme {
        if let scheme = Scheme(rawValue: text.lowercased()) { return scheme }
        throw PatternError(
            message: "has an unknown scheme; use one of \(Scheme.allCases.map(\.rawValue).joined(separator: ", "))")
    }

    private static func login(_ text: Substring) throws(PatternError) -> (String, Secret?) {
        let halves = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let user = decoded(halves.first ?? ""), !user.isEmpty,
            let password = halves.count == 2 ? decoded(halves[1]) : ""
        else { throw PatternError(message: "contains a user or password that is not percent-encoded (RFC 3986)") }
        guard !user.contains(":") else {
            throw PatternError(message: "contains a user with ':' (RFC 7617, section 2)")
        }
        return (user, halves.count == 2 ? Secret(password) : nil)
    }

    /// Host and port; for `[::1]:8080` the host without brackets.
    private static func parts(_ text: Substring) -> (String, Substring?) {
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            let rest = text[text.index(after: end)...]
            return (String(text[..<end].dropFirst()), rest.hasPrefix(":") ? rest.dropFirst() : nil)
        }
        guard let colon = text.firstIndex(of: ":") else { return (String(text), nil) }
        return (String(text[..<colon]), text[text.index(after: colon)...])
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x3A, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"): true
        default: false
        }
    }

    /// nil for an invalid `%`, and for characters that would end the header.
    private static func decoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
                return nil
            }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        guard bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// How a request reaches its host, and why.
package enum ProxyChoice: Sendable, Hashable {
    case direct(why: String)
    case by(ProxyServer, why: String)
    /// The configured proxy cannot be used, and bypassing it would violate somebody's intent. With the remedy.
    case unusable(String)

    package var server: ProxyServer? { if case .by(let server, _) = self { server } else { nil } }
}

/// Chooses the proxy for each request: decided here, not by libcurl from the environment.
package struct ProxyRules: Sendable, Hashable {
    private var plain = ProxyChoice.direct(why: "no proxy is set")
    private var secure = ProxyChoice.direct(why: "no proxy is set")
    private var exceptions = ProxyExceptions.none
    /// The name of the exceptions' source.
    private var list = "no_proxy"
    private var takesLoopback = false

    /// No proxy, whatever the environment says.
    package static let none = ProxyRules()

    /// How to reach a host.
    ///
    /// - Parameters:
    ///   - scheme: the request's scheme, `http` or `https`.
    ///   - host: lower case; an IPv6 address without brackets.
    package func choice(scheme: String, host: String, port: UInt16) -> ProxyChoice {
        let way = scheme == "https" ? secure : plain
        if case .direct = way { return way }
        if !takesLoopback, Self.isLoopback(host) { return .direct(why: "this machine's own addresses need no proxy") }
        if let entry = exceptions.entry(for: host, port: port) { return .direct(why: "'\(entry)' of \(list)") }
        return way
    }

    private static func isLoopback(_ host: String) -> Bool {
        let bare = host.hasSuffix(".") ? String(host.dropLast()) : host
        if bare == "localhost" || bare.hasSuffix(".localhost") { return true }
        // Connecting to the unspecified address reaches this machine too.
        return IPAddress(bare).map { $0.isLoopback || $0.isUnspecified } ?? false
    }
}

extension ProxyRules {
    /// By the configuration.
    ///
    /// - Parameter isOwn: whether a destination has its own `proxy`. It is then used for this machine's own addresses
    ///   too, which no other proxy would find.
    package init(_ settings: ProxySettings, isOwn: Bool) {
        let place = isOwn ? "'proxy' of the destination" : "'proxy' of the configuration"
        let way: ProxyChoice =
            settings.server.map { .by($0, why: "by \(place)") } ?? .direct(why: "\(place) is off")
        self.init(plain: way, secure: way, exceptions: settings.exceptions, takesLoopback: isOwn)
    }

    /// By the usual variables, as curl reads them: lower case first, and empty counts as unset. Never HTTP_PROXY,
    /// because a web server sets it from any client's header (httpoxy).
    package init(environment variable: (String) -> String?) {
        func first(_ names: [String]) -> (name: String, text: String)? {
            for name in names { if let text = variable(name), !text.isEmpty { return (name, text) } }
            return nil
        }
        func way(_ names: [String]) -> ProxyChoice {
            guard let (name, text) = first(names) else { return .direct(why: "no proxy is set") }
            do throws(PatternError) {
                return .by(try ProxyServer(text, usualPort: true), why: "by \(name)")
            } catch {
                return .unusable(
                    "the environment's \(name) \(error.message); correct it, or set 'proxy' in the configuration")
            }
        }
        let exceptions = first(["no_proxy", "NO_PROXY"])
        self.init(
            plain: way(["http_proxy", "all_proxy", "ALL_PROXY"]),
            secure: way(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            exceptions: ProxyExceptions(exceptions.map { [$0.text] } ?? []), list: exceptions?.name ?? "no_proxy")
    }
}

/// The entries of `no_proxy`: hosts to reach directly.
///
/// As in curl: `example.com` is that host with its subdomains, a leading dot changes nothing, `10.0.0.0/8` is a
/// network, `*` is everything. In addition, `host:port` is one port of a host, and `*.example.com` equals
/// `example.com`.
package struct ProxyExceptions: Sendable, Hashable {
    private enum Rule: Sendable, Hashable {
        case all
        /// Lower case, without dots at its ends.
        case name(String)
        case network(IPAddress, bits: Int)
    }

    private struct Entry: Sendable, Hashable {
        var text: String
        var rule: Rule
        var port: UInt16?
    }

    private let entries: [Entry]

    package static let none = ProxyExceptions([])

    /// Each of `texts` may contain several entries, separated by commas or spaces. Ignores invalid entries;
    /// `unreadable` finds them.
    package init(_ texts: [String]) { entries = texts.flatMap(Self.words).compactMap(Self.entry) }

    package var isEmpty: Bool { entries.isEmpty }

    /// The first entry of `text` that can never match; nil if there is none.
    package static func unreadable(in text: String) -> String? { words(text).first { entry($0) == nil } }

    /// The entry, as written, that makes this host direct; nil if there is none.
    ///
    /// - Parameter host: lower case; an IPv6 address without brackets.
    package func entry(for host: String, port: UInt16) -> String? {
        let address = IPAddress(host)
        let name = host.hasSuffix(".") ? String(host.dropLast()) : host
        return entries.first { entry in
            guard entry.port ?? port == port else { return false }
            return switch entry.rule {
            case .all: true
            case .name(let suffix): address == nil && (name == suffix || name.hasSuffix("." + suffix))
            case .network(let network, let bits): address?.isInside(network, bits: bits) ?? false
            }
        }?.text
    }

    private static func words(_ text: String) -> [String] {
        text.split { $0 == "," || $0.isWhitespace }.map(String.init)
    }

    private static func entry(_ text: String) -> Entry? {
        if text == "*" { return Entry(text: text, rule: .all) }
        if let slash = text.firstIndex(of: "/") {
            guard let network = address(text[..<slash]), let bits = Int(text[text.index(after: slash)...]),
                (0...network.bytes.count * 8).contains(bits)
            else { return nil }
            return Entry(text: text, rule: .network(network, bits: bits))
        }
        if let address = address(text[...]) { return Entry(text: text, rule: single(address)) }
        var (host, port) = (text[...], UInt16?.none)
        if let colon = text.lastIndex(of: ":") {
            guard let number = UInt16(text[text.index(after: colon)...]), number > 0 else { return nil }
            (host, port) = (text[..<colon], number)
        }
        if let address = address(host) { return Entry(text: text, rule: single(address), port: port) }
        if host.hasPrefix("*.") { host = host.dropFirst(2) }
        if host == "*" { return Entry(text: text, rule: .all, port: port) }
        while host.hasPrefix(".") { host = host.dropFirst() }
        if host.hasSuffix(".") { host = host.dropLast() }
        guard !host.isEmpty, !host.contains(where: { "*:/@[]".contains($0) }) else { return nil }
        return Entry(text: text, rule: .name(host.lowercased()), port: port)
    }

    /// IPv6 addresses may be in brackets.
    private static func address(_ text: Substring) -> IPAddress? {
        let isBracketed = text.hasPrefix("[") && text.hasSuffix("]")
        return IPAddress(String(isBracketed ? text.dropFirst().dropLast() : text))
    }

    private static func single(_ address: IPAddress) -> Rule { .network(address, bits: address.bytes.count * 8) }
}
