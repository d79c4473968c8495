import InletCore

/// Which URLs may be used. User names in URLs and schemes other than http and https are refused everywhere.
package struct URLRules: Sendable {
    private var allowHTTP: Bool
    private var api: HTTPURL?

    /// For URLs that a person configured: any host; http only to loopback unless `allowHTTP`.
    package static func configured(allowHTTP: Bool) -> URLRules { URLRules(allowHTTP: allowHTTP, api: nil) }

    /// For URLs that the server at `api` sent: as `configured`, and no http when `api` is https, and no host closer
    /// to us than `api` itself, so that no server can point us at our own network (SSRF).
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
        guard url.scheme == "https" || allowHTTP || url.isLoopback else {
            throw Self.refusal(
                .insecureURL, url.redacted, "is not encrypted; use https, or set allow_http: true for this destination")
        }
        guard let api, url.host != api.host else { return }
        let scope = HostScope(url.host)
        if scope > HostScope(api.host) {
            throw Self.refusal(
                .forbiddenURL, url.redacted, "was sent by \(api.host) and names a \(scope.label), which is refused")
        }
    }

    static func refusal(_ code: ErrorCode, _ url: String, _ why: String) -> TransferError {
        TransferError(code, "\(DisplayText.escape(url)) \(why)", isOutage: false)
    }
}

/// How close a host is to this machine, as far as its text tells; a name that resolves to a private address is
/// `anywhere`.
enum HostScope: Int, Comparable {
    case anywhere
    case privateNetwork
    case linkLocal
    case loopback

    static func < (left: HostScope, right: HostScope) -> Bool { left.rawValue < right.rawValue }

    /// The scope of a lower-case host without brackets.
    init(_ host: String) {
        let bare = host.hasSuffix(".") ? String(host.dropLast()) : host
        if bare == "localhost" || bare.hasSuffix(".localhost") {
            self = .loopback
        } else if let bytes = CurlURL.addressBytes(bare) {
            self = bytes.count == 4 ? HostScope(version4: bytes[...]) : HostScope(version6: bytes)
        } else {
            self = .anywhere
        }
    }

    var label: String {
        switch self {
        case .anywhere: "public address"
        case .privateNetwork: "private address"
        case .linkLocal: "link-local address"
        case .loopback: "loopback address"
        }
    }

    /// IANA IPv4 special-purpose registry; multicast and reserved space count as private.
    private init(version4 bytes: ArraySlice<UInt8>) {
        let (first, second) = (bytes[bytes.startIndex], bytes[bytes.startIndex + 1])
        switch (first, second) {
        case (0, _), (127, _): self = .loopback
        case (169, 254): self = .linkLocal
        case (10, _), (172, 16..<32), (192, 168), (100, 64..<128), (198, 18..<20), (224..., _): self = .privateNetwork
        default: self = .anywhere
        }
    }

    /// IANA IPv6 special-purpose registry; addresses that embed an IPv4 one have its scope.
    private init(version6 bytes: [UInt8]) {
        let zeros = bytes.prefix { $0 == 0 }.count
        switch (bytes[0], bytes[1]) {
        case _ where zeros == 16 || (zeros == 15 && bytes[15] == 1): self = .loopback
        case _ where zeros >= 12 || (zeros == 10 && bytes[10] == 0xFF && bytes[11] == 0xFF):
            self = HostScope(version4: bytes[12...])
        case (0x00, 0x64) where bytes[2] == 0xFF && bytes[3] == 0x9B: self = HostScope(version4: bytes[12...])
        case (0x20, 0x02): self = HostScope(version4: bytes[2..<6])
        case (0xFE, 0x80..<0xC0): self = .linkLocal
        case (0xFC..<0xFE, _), (0xFE..., _): self = .privateNetwork
        default: self = .anywhere
        }
    }
}
