internal import HTTPTypes
internal import Hummingbird
internal import InletAgent
internal import InletCore
internal import NIOCore
internal import Synchronization

/// Says who asks on the port, and remembers who has logged in. What it decides by are `RequestFilter`, `Credentials`, `LoginThrottle` and
/// `LoginSessions`; all that is remembered is forgotten with the process.
final class Authenticator: Sendable {
    let filter: RequestFilter
    private let credentials: Credentials
    private let believesProxy: Bool
    private let log: EventLog
    private let throttle = Mutex(LoginThrottle())
    private let sessions = Mutex(LoginSessions())

    init(_ settings: DashboardSettings, log: EventLog) {
        filter = RequestFilter(settings)
        credentials = Credentials(settings)
        believesProxy = settings.proxy
        self.log = log
    }

    /// Who asks. A wrong token is a wrong try.
    ///
    /// - Throws: `APIFault` where there were too many of these.
    func principal(
        _ head: RequestFilter.Head, _ request: Request, from peer: String?
    ) throws(APIFault) -> Principal {
        let address = address(request, peer)
        let name = "dashboard (\(address))"
        guard credentials.login != .none else { return Principal(access: .full, name: name) }
        let cookie = Self.cookie(request)
        var principal = Principal(access: .none, login: credentials.login, name: name)
        if let token = head.bearer {
            principal.access = try access(by: token, asToken: true, address)
        } else if let id = cookie.map({ Credentials.id(of: $0) }) {
            principal.access = sessions.withLock { $0.access(of: id, at: .now) } ?? .none
            principal.isStillIn = { [weak self] in
                self?.sessions.withLock { $0.access(of: id, at: .now) } != nil
            }
        }
        let isSecure = Self.isLoopback(peer) && request.headers[HTTPField.Name.forwardedProto] == "https"
        principal.logIn = { [self] secret in
            let access = try access(by: secret.reveal(), asToken: false, address)
            let (text, id) = Credentials.newCookie()
            sessions.withLock { $0.open(id, access, at: .now) }
            return (access, Self.setCookie(text, isSecure: isSecure))
        }
        principal.logOut = { [self] in
            if let cookie { sessions.withLock { $0.close(Credentials.id(of: cookie)) } }
            return Self.setCookie(nil, isSecure: isSecure)
        }
        return principal
    }

    private func access(by secret: String, asToken: Bool, _ address: String) throws(APIFault) -> Access {
        let network = IPAddress(address)?.network ?? []
        if let wait = throttle.withLock({ $0.wait(network, at: .now) }) {
            // Somebody else's wrong tries must not keep out the programs of his address. Only a token that nobody can guess
            // is looked at meanwhile: for passwords and short ones that would be the guesser's way around the wait.
            guard let access = credentials.access(secret, asToken: asToken, ifUnguessable: true) else {
                throw Self.tooMany(wait)
            }
            return access
        }
        if let access = credentials.access(secret, asToken: asToken) {
            // Programs that know a token, and readers, share addresses with others: only a person who logs in with the
            // whole secret makes its wrong tries good.
            if access == .full, !asToken { throttle.withLock { $0.succeeded(network) } }
            return access
        }
        switch throttle.withLock({ $0.failed(network, at: .now) }) {
        case .none: break
        case .wait(let wait): log.emit(.dashboardRefused(address: address, wait: wait))
        case .waitTogether(let wait): log.emit(.dashboardRefused(address: nil, wait: wait))
        }
        throw APIFault(401, "login_needed", asToken ? "that is no token of this agent" : "that is not it; try again")
    }

    private static func tooMany(_ wait: Duration) -> APIFault {
        let seconds = Duration.seconds(wait.components.seconds + 1)
        return APIFault(
            429, "tries", "too many wrong tries; the next is looked at in \(DurationText.format(seconds))",
            wait: seconds)
    }

    private static func setCookie(_ text: String?, isSecure: Bool) -> String {
        let life = text == nil ? 0 : LoginSessions.life.components.seconds
        return "\(LoginSessions.cookieName)=\(text ?? ""); Path=/; Max-Age=\(life); HttpOnly; SameSite=Strict"
            + (isSecure ? "; Secure" : "")
    }

    private static func cookie(_ request: Request) -> String? {
        let cookies = request.headers[values: .cookie].flatMap { $0.split(separator: ";") }
        let mine = cookies.lazy.map { $0.drop { $0 == " " } }.first { $0.hasPrefix(LoginSessions.cookieName + "=") }
        return mine.map { String($0.dropFirst(LoginSessions.cookieName.count + 1)) }
    }

    /// Who it comes from: what a proxy of this machine says of that, where one is configured.
    private func address(_ request: Request, _ peer: String?) -> String {
        guard believesProxy, Self.isLoopback(peer), let list = request.headers[HTTPField.Name.forwardedFor],
            let last = list.split(separator: ",").last.map({ $0.filter { $0 != " " } }), IPAddress(last) != nil
        else { return peer ?? "unknown" }
        return last
    }

    private static func isLoopback(_ peer: String?) -> Bool { peer.flatMap { IPAddress($0) }?.isLoopback ?? false }
}
