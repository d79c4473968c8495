import InletCore

/// Which URLs may be used. User names in URLs and schemes other than http and https are refused everywhere.
package struct URLRules: Sendable {
    private var allowHTTP: Bool
    private var api: HTTPURL?

    /// For URLs that a person configured: any host; http only to loopback unless `allowHTTP`.
    package static func configured(allowHTTP: Bool) -> URLRules { URLRules(allowHTTP: allowHTTP, api: nil) }

    /// For URLs that the server at `api` sent: as `configured`, and no http when `api` is https, no host closer to us than
    /// `api` itself, by its text or by what it resolves to (`HostScopes.reach`), and no port of another protocol.
    package static func sentByServer(at api: HTTPURL, allowHTTP: Bool) -> URLRules {
        URLRules(allowHTTP: allowHTTP, api: api)
    }

    func check(_ url: HTTPURL) throws(TransferError) {
        guard url.scheme == "https" || url.scheme == "http" else {
            throw Self.refusal(.forbiddenURL, url.redacted, "has a scheme other than https and http")
        }
        if url.scheme == "http", api?.scheme == "https" {
            throw Self.refusal(.insecureURL, url.redacted, "was sent by a server that is itself reached over https")
        }
        try checkPlace(url)
        // Last: what is refused for its place is not to be had by allowing more.
        guard url.scheme == "https" || allowHTTP || url.isLoopback else {
            throw Self.refusal(
                .insecureURL, url.redacted, "is not encrypted; use https, or set allow_http: true for this destination")
        }
    }

    /// No port of another protocol, and no host closer to us than the server that has sent the URL.
    private func checkPlace(_ url: HTTPURL) throws(TransferError) {
        guard let api, let reach else { return }
        if Self.otherPorts.contains(url.port), url.authority != api.authority {
            throw Self.refusal(
                .forbiddenURL, url.redacted, "was sent by \(api.host) and names the port of another protocol than HTTP")
        }
        let scope = HostScope(url.host)
        if url.host != api.host, !reach.contains(scope) {
            throw Self.refusal(
                .forbiddenURL, url.redacted, "was sent by \(api.host) and names a \(scope.label), which is refused")
        }
    }

    /// Where a URL may lead; nil = anywhere, because a person has named it.
    var reach: HostScopes? { api.map { KnownHosts.shared.scopes(of: $0.host).reach } }

    /// What could take a request for one of its own: the ports that browsers refuse (fetch.spec.whatwg.org, "bad port"), and
    /// those of databases and Docker.
    private static let otherPorts: Set<UInt16> = [
        1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
        110,
        111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531,
        532,
        540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 2375, 2376, 3306, 3659,
        4045,
        4190, 5060, 5061, 5432, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080, 11211, 27017,
    ]

    static func refusal(_ code: ErrorCode, _ url: String, _ why: String) -> TransferError {
        TransferError(code, "\(DisplayText.escape(url)) \(why)", isOutage: false)
    }
}
