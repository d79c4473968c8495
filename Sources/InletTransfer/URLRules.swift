import CCurl
import InletCore
import Synchronization

/// Which URLs may be used. User names in URLs and schemes other than http and https are refused everywhere.
package struct URLRules: Sendable {
    private var allowHTTP: Bool
    private var api: HTTPURL?

    /// For URLs that a person configured: any host; http only to loopback unless `allowHTTP`.
    package static func configured(allowHTTP: Bool) -> URLRules { URLRules(allowHTTP: allowHTTP, api: nil) }

    /// For URLs that the server at `api` sent: as `configured`, and no http if `api` is https, and no port of another
    /// protocol. No host may be closer to us than `api` itself, by its text or its addresses (`reach` of its scopes).
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
    var reach: Set<HostScope>? { api.map { HostScopeCache.shared.scopes(of: $0.host).reach } }

    /// Ports of services that could misread a request: the ports that browsers refuse (fetch.spec.whatwg.org, "bad
    /// port"), and those of databases and Docker.
    private static let otherPorts: Set<UInt16> = [
        1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
        110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530,
        531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 2375, 2376, 3306,
        3659, 4045, 4190, 5060, 5061, 5432, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080, 11211,
        27017,
    ]

    static func refusal(_ code: ErrorCode, _ url: String, _ why: String) -> TransferError {
        TransferError(code, "\(DisplayText.escape(url)) \(why)", isOutage: false)
    }
}

/// How close an address is to this machine; a name is `anywhere`, as far as its text tells (`HostScopeCache`).
enum HostScope: CaseIterable {
    case anywhere
    case privateNetwork
    /// Addresses of one line.
    case linkLocal
    case loopback
    /// Where clouds tell a machine its own secrets.
    case platform

    /// The scope of a lower-case host without brackets.
    init(_ host: String) { self = Self.known(host) ?? .anywhere }

    /// The scope of a `sockaddr`; nil for a Unix socket's. Anything but an internet address counts as the closest.
    init?(socketAddress: UnsafeRawPointer) {
        var bytes = [UInt8](repeating: 0, count: 16)
        switch inlet_socket_address_bytes(socketAddress, &bytes) {
        case 0: return nil
        case 4: self = HostScope(Array(bytes.prefix(4)))
        case 16: self = HostScope(bytes)
        default: self = .loopback
        }
    }

    /// Whether `host` is one that only DNS can tell the scope of.
    static func isUnknown(_ host: String) -> Bool { known(host) == nil }

    private static func known(_ host: String) -> HostScope? {
        let bare = host.hasSuffix(".") ? String(host.dropLast()) : host
        if bare == "localhost" || bare.hasSuffix(".localhost") { return .loopback }
        return addressBytes(bare).map { HostScope($0) }
    }

    /// The bytes of an IPv4 or IPv6 literal; nil when `host` is a name.
    private static func addressBytes(_ host: String) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = inlet_parse_address(host, &bytes)
        return count > 0 ? Array(bytes.prefix(Int(count))) : nil
    }

    var label: String {
        switch self {
        case .anywhere: "public address"
        case .privateNetwork: "private address"
        case .linkLocal: "link-local address"
        case .loopback: "loopback address"
        case .platform: "cloud platform's own address"
        }
    }

    /// The scope of four or sixteen bytes.
    private init(_ bytes: [UInt8]) {
        if Self.platforms.contains(bytes) {
            self = .platform
        } else {
            self = bytes.count == 4 ? HostScope(version4: bytes[...]) : HostScope(version6: bytes)
        }
    }

    /// Where clouds tell a machine about itself: nearly all at the first; AWS to containers and pods; Scaleway,
    /// Tencent, Azure, Alibaba, Oracle. By IPv6 AWS (twice), Google, Scaleway, OpenStack.
    private static let platforms: [[UInt8]] = [
        [169, 254, 169, 254], [169, 254, 170, 2], [169, 254, 170, 23], [169, 254, 42, 42], [169, 254, 0, 23],
        [168, 63, 129, 16], [100, 100, 100, 200], [192, 0, 0, 192],
        version6([0xFD, 0x00, 0x0E, 0xC2], [0x02, 0x54]), version6([0xFD, 0x00, 0x0E, 0xC2], [0x23]),
        version6([0xFD, 0x20, 0x00, 0xCE], [0x02, 0x54]), version6([0xFD, 0x00, 0x00, 0x42], [0x42]),
        version6([0xFE, 0x80], [0xA9, 0xFE, 0xA9, 0xFE]),
    ]

    private static func version6(_ start: [UInt8], _ end: [UInt8]) -> [UInt8] {
        start + [UInt8](repeating: 0, count: 16 - start.count - end.count) + end
    }

    /// IANA IPv4 special-purpose registry; multicast and reserved space count as private.
    private init(version4 bytes: ArraySlice<UInt8>) {
        let (first, second) = (bytes[bytes.startIndex], bytes[bytes.startIndex + 1])
        switch (first, second) {
        case (0, _), (127, _): self = .loopback
        case (169, 254): self = .linkLocal
        case (10, _), (172, 16..<32), (192, 168), (100, 64..<128), (198, 18..<20), (224..., _): self = .privateNetwork
        case (192, 0) where bytes[bytes.startIndex + 2] == 0: self = .privateNetwork
        default: self = .anywhere
        }
    }

    /// IANA IPv6 special-purpose registry; addresses that embed an IPv4 one have its scope. An address that a network
    /// translates by its own rules (64:ff9b:1::/48), or that is tunnelled to its author (Teredo and the like,
    /// 2001::/23), counts as private.
    private init(version6 bytes: [UInt8]) {
        let zeros = bytes.prefix { $0 == 0 }.count
        switch (bytes[0], bytes[1]) {
        case _ where zeros == 16 || (zeros == 15 && bytes[15] == 1): self = .loopback
        // ::a.b.c.d, ::ffff:a.b.c.d and ::ffff:0:a.b.c.d
        case _ where zeros >= 12 || Array(bytes[..<12].drop { $0 == 0 }) == [0xFF, 0xFF],
            _ where Array(bytes[..<12].drop { $0 == 0 }) == [0xFF, 0xFF, 0, 0]:
            self = HostScope(Array(bytes[12...]))
        case (0x00, 0x64) where bytes[2] == 0xFF && bytes[3] == 0x9B:
            self = bytes[4] == 0 && bytes[5] == 1 ? .privateNetwork : HostScope(Array(bytes[12...]))
        case (0x20, 0x01) where bytes[2] < 2: self = .privateNetwork
        case (0x20, 0x02): self = HostScope(Array(bytes[2..<6]))
        case (0xFE, 0x80..<0xC0): self = .linkLocal
        case (0xFC..<0xFE, _), (0xFE..., _): self = .privateNetwork
        default: self = .anywhere
        }
    }
}

extension Set<HostScope> {
    /// Where a server that is at these may send us: not closer than it is itself, so that none can point us at our own
    /// network (SSRF). Link-local addresses are for those alone that are there, however close others are, and so are
    /// those at which a cloud hands out the machine's own credentials.
    var reach: Set<HostScope> {
        let further: Set = self == [.anywhere] ? [HostScope.anywhere] : [.anywhere, .privateNetwork]
        return further.union(intersection([.linkLocal, .loopback, .platform]))
    }
}

/// The scopes from which named hosts have answered in this process. An API with a name on the local network may name
/// addresses of its network; a public one may not.
final class HostScopeCache: Sendable {
    static let shared = HostScopeCache()

    /// More than anybody configures. The others' names are servers' choice, and must not fill the memory.
    private static let most = 1000

    private let scopes = Mutex<[String: Set<HostScope>]>([:])

    /// The host's scope by its text, or else by the address that answered; `anywhere` before that.
    func scopes(of host: String) -> Set<HostScope> {
        guard HostScope.isUnknown(host) else { return [HostScope(host)] }
        return scopes.withLock { $0[host] } ?? [.anywhere]
    }

    /// Whether asking would tell nothing new.
    func knows(_ host: String) -> Bool { !HostScope.isUnknown(host) || scopes.withLock { $0[host] != nil } }

    /// `host` has answered from an address of this scope.
    ///
    /// - Parameter isProven: whether TLS has shown that it was the host. Otherwise only the first address counts: a
    ///   name that leads to ours later proves nothing by what answers there.
    func note(_ host: String, _ scope: HostScope, isProven: Bool) {
        guard HostScope.isUnknown(host) else { return }
        scopes.withLock { scopes in
            if let known = scopes[host] {
                if isProven { scopes[host] = known.union([scope]) }
            } else if scopes.count < Self.most {
                scopes[host] = [scope]
            }
        }
    }
}
