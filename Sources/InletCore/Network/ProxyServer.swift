/// A server that connections go through.
package struct ProxyServer: Sendable, Hashable, CustomStringConvertible {
    package enum Scheme: String, Sendable, CaseIterable {
        case http
        /// The way to the proxy itself is encrypted.
        case https
        /// Names are looked up by us.
        case socks5
        /// Names are looked up by the proxy.
        case socks5h
    }

    /// Why a text names no proxy.
    package struct Fault: Error, Sendable, Equatable {
        /// Continues "`url` …", with what to write instead; quotes nothing that could be a password.
        package var message: String
    }

    package var scheme: Scheme
    /// Lower case; an IPv6 address without brackets.
    package var host: String
    package var port: UInt16
    package var user: String?
    package var password: Secret?

    /// Reads `http://user:password@host:port`; without a scheme it is http.
    ///
    /// - Parameter usualPort: whether a port that is missing is the one that curl takes (1080; 443 for https). People
    ///   expect 80, 3128 or 8080 just as well, so that a configuration has to say it.
    package init(_ text: String, usualPort: Bool) throws(Fault) {
        let marks = text.firstRange(of: "://")
        scheme = try Self.scheme(marks.map { text[..<$0.lowerBound] } ?? "http")
        var rest = text[(marks?.upperBound ?? text.startIndex)...].prefix { !"/?#".contains($0) }
        if let at = rest.lastIndex(of: "@") {
            (user, password) = try Self.login(rest[..<at])
            rest = rest[rest.index(after: at)...]
        }
        let (name, number) = Self.parts(rest)
        guard !name.isEmpty, name.utf8.allSatisfy(Self.isHostByte), IPAddress(name) != nil || !name.contains(":") else {
            throw Fault(message: "names no host; write for example http://proxy.example:3128")
        }
        host = name.lowercased()
        if number == nil, usualPort {
            port = scheme == .https ? 443 : 1080
        } else if let port = number.flatMap({ UInt16($0) }), port > 0 {
            self.port = port
        } else {
            throw Fault(message: "names no port; write for example http://proxy.example:3128")
        }
    }

    /// `http://proxy.example:3128`: without the login.
    package var description: String { "\(scheme.rawValue)://\(host.contains(":") ? "[\(host)]" : host):\(port)" }

    private static func scheme(_ text: Substring) throws(Fault) -> Scheme {
        if let scheme = Scheme(rawValue: text.lowercased()) { return scheme }
        throw Fault(message: "has a scheme other than \(Scheme.allCases.map(\.rawValue).joined(separator: ", "))")
    }

    private static func login(_ text: Substring) throws(Fault) -> (String, Secret?) {
        let halves = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let user = decoded(halves.first ?? ""), !user.isEmpty,
            let password = halves.count == 2 ? decoded(halves[1]) : ""
        else { throw Fault(message: "holds a user or password that is not percent-encoded (RFC 3986)") }
        guard !user.contains(":") else { throw Fault(message: "holds a user with ':' in it (RFC 7617, section 2)") }
        return (user, halves.count == 2 ? Secret(password) : nil)
    }

    /// Host and port; the host of `[::1]:8080` without brackets.
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

    /// nil for a broken `%`, and for what would end the header that carries it.
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
