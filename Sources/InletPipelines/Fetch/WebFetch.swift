package import InletCore
internal import InletLinux
internal import InletTransfer

/// Fetches files from addresses that a person named; nothing secret is sent, so redirects may be followed.
package final class WebFetch: Sendable {
    private let client: HTTPClient
    private let pool = BlockingPool(name: "fetch", threads: 1)

    /// Redirects of one address.
    private static let mostHops = 5

    /// - Parameter proxy: `proxy:` of the configuration, where there is one; nil = as the environment says.
    package init(userAgent: String, proxy: ProxySettings? = nil) {
        client = HTTPClient(threads: 1, userAgent: userAgent, proxies: ProxyRules(proxy))
    }

    /// - Throws: `.forbiddenURL` and `.insecureURL` for an address, or one that it leads to, that is neither https nor on
    ///   this machine; `.redirected` for too many of them; otherwise as `Fetching`.
    package func fetch(_ address: String, _ order: FetchOrder) async throws(DeliveryError) -> Fetched {
        let named: HTTPURL
        do throws(TransferError) {
            named = try HTTPURL(address, rules: .configured(allowHTTP: false))
        } catch {
            guard error.code == .insecureURL else { throw DeliveryError(error) }
            // Only to show it.
            let shown = (try? HTTPURL(address, rules: .configured(allowHTTP: true)))?.redacted ?? "the address"
            throw DeliveryError(
                .giveUp, error.code, "\(shown) is not encrypted; only https is fetched, except from this machine")
        }
        let url = try await destination(of: named)
        return try await Fetching(client: client, pool: pool).run(order) { attempt async throws(DeliveryError) in
            HTTPRequest("GET", url, headers: attempt.headers)
        }
    }

    /// Where redirects lead. What does not answer to HEAD, as presigned addresses do not, is asked by GET alone.
    private func destination(of named: HTTPURL) async throws(DeliveryError) -> HTTPURL {
        var url = named
        for _ in 0..<Self.mostHops {
            // The GET says what is wrong.
            guard let response = try? await client.send(HTTPRequest("HEAD", url)),
                (300..<400).contains(response.status),
                let location = response.header("Location")
            else { return url }
            do throws(TransferError) {
                url = try HTTPURL(
                    URIReference.resolved(location, at: url.text), rules: .sentByServer(at: url, allowHTTP: false))
            } catch {
                throw DeliveryError(error)
            }
        }
        throw DeliveryError(
            .giveUp, .redirected, "\(named.redacted) leads on more than \(Self.mostHops) times; it may never end")
    }

    package func shutdown() { client.shutdown() }
}

/// A URI reference as servers put it in `Location`, and what it means at the address that gave it.
enum URIReference {
    /// The parts of a reference (RFC 3986, appendix B); the fragment, which is never sent, is left out.
    private struct Parts {
        var scheme: Substring?
        var authority: Substring?
        var path: Substring
        var query: Substring?

        init(_ text: String) {
            var rest = text.prefix { $0 != "#" }
            if let colon = rest.firstIndex(where: { ":/?".contains($0) }), rest[colon] == ":",
                Self.isScheme(rest[..<colon])
            {
                scheme = rest[..<colon]
                rest = rest[colon...].dropFirst()
            }
            if rest.hasPrefix("//") {
                authority = rest.dropFirst(2).prefix { !"/?".contains($0) }
                rest = rest.dropFirst(2).drop { !"/?".contains($0) }
            }
            path = rest.prefix { $0 != "?" }
            query = rest.contains("?") ? rest.drop { $0 != "?" }.dropFirst() : nil
        }

        private static func isScheme(_ text: Substring) -> Bool {
            let isKnown = { (byte: UInt8) in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
                default: false
                }
            }
            guard let first = text.utf8.first, isKnown(first) else { return false }
            return text.utf8.allSatisfy {
                isKnown($0) || (0x30...0x39).contains($0) || [0x2B, 0x2D, 0x2E].contains($0)
            }
        }

        /// RFC 3986, section 5.3.
        var text: String {
            var text = ""
            if let scheme { text += scheme + ":" }
            if let authority { text += "//" + authority }
            text += path
            if let query { text += "?" + query }
            return text
        }
    }

    /// `reference` at `base`, which is absolute, with an authority (RFC 3986, section 5.2.2).
    static func resolved(_ reference: String, at base: String) -> String {
        let base = Parts(base)
        var target = Parts(reference)
        if target.scheme != nil {
            target.path = withoutDots(target.path)
            return target.text
        }
        if target.authority == nil {
            if target.path.isEmpty {
                target.path = base.path
                target.query = target.query ?? base.query
            } else {
                target.path = withoutDots(target.path.hasPrefix("/") ? target.path : merged(target.path, base))
            }
            target.authority = base.authority
        } else {
            target.path = withoutDots(target.path)
        }
        target.scheme = base.scheme
        return target.text
    }

    /// In the place of what follows the last slash of the base (section 5.2.3).
    private static func merged(_ path: Substring, _ base: Parts) -> Substring {
        guard let slash = base.path.lastIndex(of: "/") else { return "/" + path }
        return base.path[...slash] + path
    }

    /// Section 5.2.4, for paths that begin with a slash; others stay as they are.
    private static func withoutDots(_ path: Substring) -> Substring {
        guard path.hasPrefix("/") else { return path }
        var kept: [Substring] = []
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        for segment in segments {
            switch segment {
            case ".": continue
            case "..": _ = kept.popLast()
            default: kept.append(segment)
            }
        }
        // What ends in dots names a folder.
        if let last = segments.last, last == "." || last == ".." { kept.append("") }
        return Substring("/" + kept.joined(separator: "/"))
    }
}
