internal import HTTPTypes
internal import Hummingbird
internal import InletCore
internal import NIOCore

/// What the port answers: the page's files to everybody, the API to those who may.
struct DashboardHandler: Sendable {
    let responder: APIResponder
    let authenticator: Authenticator
    let assets: WebAssets
    let bounds: DashboardServer.Bounds

    /// Bytes of a path with its query.
    private static let longestPath = 8 << 10
    /// What watchers ask by whatever address they know.
    private static let openToAllHosts: Set<String> = ["/healthz", "/readyz"]

    func deadline(_ channel: any Channel) -> ConnectionDeadline {
        ConnectionDeadline(channel: channel, reading: .init(bounds.reading), writing: .init(bounds.writing))
    }

    func respond(to request: Request, on channel: any Channel) async -> Reply {
        var reply = await answer(request, deadline(channel), from: channel.remoteAddress?.ipAddress)
        for field in Self.alwaysSent { reply.response.headers[field.name] = field.value }
        if reply.response.headers[.cacheControl] == nil { reply.response.headers[.cacheControl] = "no-store" }
        if reply.closes { reply.response.headers[.connection] = "close" }
        return reply
    }

    private func answer(_ request: Request, _ deadline: ConnectionDeadline, from peer: String?) async -> Reply {
        if (request.head.path ?? "").utf8.count > Self.longestPath {
            let fault = APIFault.tooLarge("the path is longer than \(Self.longestPath) bytes")
            return await request.refuse(.fault(fault), deadline)
        }
        let head = RequestFilter.Head(request)
        let hostFault = authenticator.filter.hostFault(head)
        if let hostFault, !Self.openToAllHosts.contains(request.uri.path) {
            return await request.refuse(.fault(hostFault), deadline)
        }
        if let response = assets.response(to: request) { return await request.refuse(response, deadline) }
        let principal: Principal
        // Whoever asks whether we live needs no secret; by a wrong host's name none is looked at.
        if hostFault != nil || request.uri.path == "/healthz" {
            principal = Principal(access: .none, name: "dashboard")
        } else {
            do throws(APIFault) {
                if let fault = authenticator.filter.proxyFault(head) ?? authenticator.filter.crossFault(head) {
                    throw fault
                }
                principal = try authenticator.principal(head, request, from: peer)
            } catch {
                return await request.refuse(.fault(error), deadline)
            }
        }
        let access = principal.access
        return await responder.respond(to: request, from: principal, deadline) { endpoint in
            if let fault = RequestFilter.accessFault(access, endpoint.need) { throw fault }
        }
    }

    /// The page needs nothing from elsewhere, and is in nobody's frame.
    private static let alwaysSent: [HTTPField] = [
        HTTPField(
            name: .contentSecurityPolicy,
            value: """
                default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                form-action 'self'; frame-ancestors 'none'; base-uri 'none'
                """),
        HTTPField(name: .xContentTypeOptions, value: "nosniff"),
        HTTPField(name: .named("Referrer-Policy"), value: "no-referrer"),
        HTTPField(name: .named("X-Frame-Options"), value: "DENY"),
        HTTPField(name: .named("Cross-Origin-Resource-Policy"), value: "same-origin"),
        HTTPField(name: .named("Cross-Origin-Opener-Policy"), value: "same-origin"),
        HTTPField(
            name: .named("Permissions-Policy"),
            value: "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ]
}

extension RequestFilter.Head {
    init(_ request: Request) {
        let headers = request.headers
        let hosts = (request.head.authority.map { [$0] } ?? []) + headers[values: .host]
        self.init(
            method: request.method.rawValue, host: hosts.first, hasMoreHosts: hosts.count > 1,
            origin: headers[.origin], fetchSite: headers[HTTPField.Name.fetchSite],
            contentType: headers[.contentType], mark: headers[HTTPField.Name.mark],
            authorization: headers[.authorization],
            proxyMark: headers.lazy.map(\.name.canonicalName).first(where: Self.isOfProxies))
    }

    private static func isOfProxies(_ name: String) -> Bool {
        name.hasPrefix("x-forwarded-") || ["forwarded", "via", "x-real-ip"].contains(name)
    }
}

extension HTTPField.Name {
    fileprivate static var host: Self { named("Host") }
}
