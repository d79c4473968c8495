internal import Foundation
internal import HTTPTypes
internal import InletCore

/// Which requests the port accepts, judged by their head alone. Pure.
struct RequestFilter: Sendable {
    let listen: ListenAddress
    /// In lower case.
    let hosts: [String]
    /// Whether everybody who reaches the port has full access.
    let isOpen: Bool

    init(_ settings: DashboardSettings) {
        listen = settings.listen
        isOpen = settings.isOpen
        hosts = settings.hosts.map { $0.lowercased() }
    }

    /// DNS rebinding: another site's page under a name that resolves to this machine would count as ours.
    func hostFault(_ head: HTTPRequest) -> APIFault? {
        if head.hosts.count > 1 { return .badRequest("the request names more than one host") }
        guard let host = head.hosts.first?.lowercased(), !host.isEmpty else {
            return APIFault(421, "host", "the request names no host")
        }
        guard let name = Self.name(of: host) else {
            return .badRequest("the header Host must be a name, with or without a port")
        }
        if name == "localhost" || hosts.contains(host) || hosts.contains(name) || name == listen.host.lowercased() {
            return nil
        }
        if let address = IPAddress(name) {
            // An address, unlike a name, cannot be redirected. Which of the machine's addresses was used does not
            // matter.
            if address.isLoopback || address == listen.address || listen.address?.isUnspecified == true { return nil }
        }
        return APIFault(
            421, "host",
            "this is not served as '\(DisplayText.escape(name))'; if it should be, add that to dashboard.hosts")
    }

    /// Through a proxy everybody comes from this machine; that must not be enough.
    func proxyFault(_ head: HTTPRequest) -> APIFault? {
        guard isOpen, let name = head.proxyMark else { return nil }
        return APIFault(
            403, "proxy",
            "refused: it came through a proxy (header '\(name)'), and without a secret whoever reaches that might do everything; give dashboard a token or a password"
        )
    }

    /// A request that changes something must come from our own page, or from a program with the token. Other sites'
    /// pages cannot see answers to reads; but they could keep others out.
    func crossFault(_ head: HTTPRequest) -> APIFault? {
        if let site = head.headerFields[.fetchSite], site != "same-origin", site != "none" {
            return Self.csrf("the request comes from another site's page")
        }
        if [.get, .head].contains(head.method) { return nil }
        let type = head.headerFields[.contentType]?.split(separator: ";").first.map {
            String($0).trimmingSpaces.lowercased()
        }
        guard type == "application/json" else {
            return Self.csrf("the header 'Content-Type: application/json' is missing")
        }
        guard head.mark == "1" || head.bearer != nil else { return Self.csrf("the header 'X-Inlet: 1' is missing") }
        if let origin = head.headerFields[.origin] {
            let parts = origin.lowercased().split(separator: "/", omittingEmptySubsequences: false)
            let authority = parts.count == 3 && parts[1].isEmpty ? String(parts[2]) : nil
            guard let authority, authority == head.hosts.first?.lowercased() else {
                return Self.csrf(
                    "the request comes from a page of another host; a proxy in between must keep the header Host unchanged"
                )
            }
        }
        return nil
    }

    private static func csrf(_ why: String) -> APIFault { APIFault(403, "csrf", "refused: \(why)") }

    /// Why `access` does not suffice for an endpoint; nil where it does.
    static func accessFault(_ access: Access, _ need: Endpoint.Need) -> APIFault? {
        switch need {
        case .nothing: nil
        case .cards where access >= .kiosk: nil
        case .read where access >= .read: nil
        case .full where access >= .full: nil
        case .full where access == .read:
            APIFault(
                403, "read_only", "this login is read-only; log in with the token or the password to change anything")
        case .read where access == .kiosk, .full where access == .kiosk:
            APIFault(403, "kiosk", "this login only shows the cards; log in with another token or the password")
        case .cards, .read, .full:
            APIFault(401, "login_needed", "log in, or send the token as 'Authorization: Bearer …'")
        case .socket: .notFound("only the control socket serves this")
        }
    }

    /// The host without its port, an IPv6 address without brackets; nil where more follows, since a proxy in between
    /// may use that part.
    private static func name(of host: String) -> String? {
        guard let parts = host.wholeMatch(of: /(?:\[([0-9a-f:.%]+)\]|([^\[\]:,@ \t]+))(?::([0-9]*))?/),
            let name = parts.1 ?? parts.2
        else { return nil }
        let port = parts.3 ?? ""
        return port.isEmpty || UInt16(port) != nil ? String(name) : nil
    }
}

extension HTTPRequest {
    /// The host header, or its equivalent in HTTP/2; with several, a proxy in between may have used another (RFC 9112,
    /// 3.2).
    fileprivate var hosts: [String] { (authority.map { [$0] } ?? []) + headerFields[values: .host] }

    fileprivate var mark: String? { headerFields[.mark] }

    /// A token sent with the request; a page of another site cannot add one.
    var bearer: String? {
        guard let text = headerFields[.authorization], text.lowercased().hasPrefix("bearer ") else { return nil }
        return String(text.dropFirst(7)).trimmingSpaces
    }

    /// A header that only a proxy adds.
    fileprivate var proxyMark: String? {
        headerFields.lazy.map(\.name.canonicalName).first { name in
            name.hasPrefix("x-forwarded-") || ["forwarded", "via", "x-real-ip"].contains(name)
        }
    }
}

extension HTTPField.Name {
    static var host: Self { named("Host") }
}

extension String {
    fileprivate var trimmingSpaces: String { trimmingCharacters(in: CharacterSet(charactersIn: " \t")) }
}
