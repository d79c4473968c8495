internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import InletAgent
internal import InletCore
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// Identifies the sender of a request to the port, and holds the login sessions. The rules are in `RequestFilter`,
/// `Credentials`, `LoginThrottle` and `LoginSessions`. Sessions survive the process (`LoginFile`); failed attempts are
/// forgotten when it ends.
final class Authenticator: Sendable {
    let filter: RequestFilter
    private let credentials: Credentials
    private let believesProxy: Bool
    private let log: EventLog
    private let throttle = Mutex(LoginThrottle())
    private let sessions: Mutex<LoginSessions>
    private let file: LoginFile?
    private static let writePause = Duration.seconds(30)
    /// Sessions have to be written.
    private let isChanged = WakeSignal()
    private let links: LoginLinks

    /// - Parameter logins: the file that keeps sessions; nil keeps none. Blocks for reading it.
    init(_ settings: DashboardSettings, log: EventLog, links: LoginLinks = LoginLinks(), logins: FilePath? = nil) {
        self.links = links
        let kept = logins.map { LoginFile.read($0, settings) }
        file = kept?.file
        sessions = Mutex(LoginSessions(kept?.sessions ?? [], at: .now))
        filter = RequestFilter(settings)
        credentials = Credentials(settings)
        believesProxy = settings.proxy
        self.log = log
    }

    /// The sender. A wrong token counts as a failed attempt.
    ///
    /// - Throws: `APIFault` where there were too many of these.
    func principal(_ request: Request, from peer: String?) throws(APIFault) -> Principal {
        let address = address(request, peer)
        let name = "dashboard (\(address))"
        guard credentials.login != .none else { return Principal(access: .full, name: name) }
        let cookie = Self.cookie(request)
        var principal = Principal(access: .none, login: credentials.login, name: name)
        if let token = request.head.bearer {
            principal.access = try access(by: token, asToken: true, address)
            principal.isFresh = true
        } else if let id = cookie.map({ Credentials.id(of: $0) }) {
            principal.isFresh = sessions.withLock { $0.isFresh(id, at: .now) }
            principal.access = access(of: id) ?? .none
            principal.isStillIn = { [weak self] in self?.access(of: id) != nil }
        }
        let isSecure = Self.isLoopback(peer) && request.headers[HTTPField.Name.forwardedProto] == "https"
        principal.logIn = { [self] secret in
            let access = try access(by: secret.reveal(), asToken: false, address)
            let (text, id) = Credentials.newCookie()
            sessions.withLock { $0.open(id, access, at: .now) }
            isChanged.raise()
            return (access, Self.setCookie(text, isSecure: isSecure))
        }
        principal.logOut = { [self] in
            let isClosed = cookie.map { id in sessions.withLock { $0.close(Credentials.id(of: id)) } } ?? false
            if isClosed { isChanged.raise() }
            return Self.setCookie(nil, isSecure: isSecure)
        }
        return principal
    }

    private func access(of session: [UInt8]) -> Access? {
        let (access, isDue) = sessions.withLock { ($0.access(of: session, at: .now), $0.isDue(at: .now)) }
        if isDue { isChanged.raise() }
        return access
    }

    /// Writes sessions down as they change, until the task is cancelled.
    func keepSessions() async {
        guard let file else { return }
        let pool = BlockingPool(name: "logins", threads: 1)
        while !Task.isCancelled {
            await isChanged.wait(until: nil)
            let all = sessions.withLock { $0.written(at: .now) }
            do {
                try await pool.run { () throws(SystemError) in try file.write(all) }
            } catch {
                // A logout must not be forgotten; until then people may have to log in once more after a restart.
                guard await Task.rest(for: Self.writePause) else { return }
                isChanged.raise()
            }
        }
    }

    private func access(by secret: String, asToken: Bool, _ address: String) throws(APIFault) -> Access {
        // Nobody can guess it.
        if !asToken, links.take(secret, at: .now) { return .full }
        let network = IPAddress(address)?.network ?? []
        if let wait = throttle.withLock({ $0.wait(network, at: .now) }) {
            // Failed attempts must not keep out programs at the same address. Only a token that cannot be guessed is
            // checked meanwhile: for passwords and short tokens that would be a way around the wait.
            guard let access = credentials.access(secret, asToken: asToken, ifUnguessable: true) else {
                throw Self.tooMany(wait)
            }
            return access
        }
        if let access = credentials.access(secret, asToken: asToken) {
            // Programs with a token, and readers, share addresses with others: only a login with the full secret clears
            // an address's failed attempts.
            if access == .full, !asToken { throttle.withLock { $0.succeeded(network) } }
            return access
        }
        if let (wait, isForAll) = throttle.withLock({ $0.failed(network, at: .now) }) {
            log.emit(.dashboardRefused(address: isForAll ? nil : address, wait: wait))
        }
        throw APIFault(401, "login_needed", asToken ? "wrong token" : "wrong password or token; try again")
    }

    private static func tooMany(_ wait: Duration) -> APIFault {
        let seconds = Duration.seconds(wait.components.seconds + 1)
        return APIFault(
            429, "tries", "too many failed attempts; try again in \(DurationText.format(seconds))",
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

    /// The client's address: as a proxy on this machine reports it, where one is configured.
    private func address(_ request: Request, _ peer: String?) -> String {
        guard believesProxy, Self.isLoopback(peer), let list = request.headers[HTTPField.Name.forwardedFor],
            let last = list.split(separator: ",").last.map({ $0.filter { $0 != " " } }), IPAddress(last) != nil
        else { return peer ?? "unknown" }
        return last
    }

    private static func isLoopback(_ peer: String?) -> Bool { peer.flatMap { IPAddress($0) }?.isLoopback ?? false }
}

/// A principal's rights.
enum Access: String, Codable, Sendable, CaseIterable, SchemaSample, Comparable {
    /// May only log in.
    case none
    /// May look at the cards, for a screen beside the readers.
    case kiosk
    /// May look, and change nothing.
    case read
    case full

    static func < (one: Access, other: Access) -> Bool {
        (allCases.firstIndex(of: one) ?? 0) < (allCases.firstIndex(of: other) ?? 0)
    }
}

/// The ways to log in.
enum LoginKind: String, Codable, Sendable, CaseIterable, SchemaSample {
    /// Nothing.
    case none
    case token
    case password
    case either
    /// By a link that `inlet open` prints.
    case link
}

/// The links that log a browser in, once, with full access. They are forgotten with the process.
final class LoginLinks: Sendable {
    typealias Instant = ContinuousClock.Instant

    static let life = Duration.seconds(600)
    /// The oldest is dropped.
    static let most = 8

    /// The hash of each code, and when it ends.
    private let codes = Mutex<[(id: [UInt8], end: Instant)]>([])

    /// A new code.
    func make(at now: Instant) -> String {
        let (text, id) = Credentials.newCookie()
        codes.withLock { codes in
            codes.append((id, now.advanced(by: Self.life)))
            if codes.count > Self.most { codes.removeFirst() }
        }
        return text
    }

    /// Uses a code up. - Returns: false for a wrong, used or old one.
    func take(_ code: String, at now: Instant) -> Bool {
        let id = Credentials.id(of: code)
        return codes.withLock { codes in
            codes.removeAll { $0.end <= now }
            guard let place = codes.firstIndex(where: { MessageCode.areEqual($0.id, id) }) else { return false }
            codes.remove(at: place)
            return true
        }
    }
}

/// The token, the password, and the tokens for less access. Keyed hashes are compared, and always all of them, so that the time
/// reveals nothing.
struct Credentials: Sendable {
    /// The length of a token that no guessing finds, however fast: as `openssl rand -hex 16` makes them, and some
    /// shorter ones.
    static let unguessable = 24

    private let key = MessageCode(key: [UInt8].unforeseeable(32))
    /// `isToken`: whether programs send it with each request; a password only logs in.
    private let known: [(hash: [UInt8], access: Access, isToken: Bool, isUnguessable: Bool)]
    let login: LoginKind

    init(_ settings: DashboardSettings) {
        let all: [(Secret?, Access, Bool)] = [
            (settings.token, .full, true), (settings.password, .full, false), (settings.readOnlyToken, .read, true),
            (settings.kioskToken, .kiosk, true),
        ]
        known = all.compactMap { [key] secret, access, isToken in
            guard let text = secret?.reveal().utf8 else { return nil }
            return (key.code(of: text), access, isToken, isToken && text.count >= Self.unguessable)
        }
        login =
            settings.isOpen
            ? .none
            : settings.hasNoSecret
                ? .link : settings.password == nil ? .token : settings.token == nil ? .password : .either
    }

    /// The rights that a secret grants; nil for a wrong one.
    ///
    /// - Parameter ifUnguessable: nil also for one that might be guessed.
    func access(_ secret: String, asToken: Bool, ifUnguessable: Bool = false) -> Access? {
        let code = key.code(of: secret.utf8)
        var found: Access?
        for one in known {
            let isEqual = MessageCode.areEqual(code, one.hash)
            if isEqual, one.isToken || !asToken, one.isUnguessable || !ifUnguessable {
                found = max(found ?? .none, one.access)
            }
        }
        return found
    }

    /// A new cookie, and the record kept of it.
    static func newCookie() -> (text: String, id: [UInt8]) {
        let text = [UInt8].unforeseeable(32).hex
        return (text, id(of: text))
    }

    static func id(of cookie: String) -> [UInt8] { SHA256.bytes(of: cookie.utf8) }
}

/// Login sessions, by the hash of their cookie. Pure: time is a parameter.
struct LoginSessions: Sendable {
    static let cookieName = "inlet_session"
    /// The time since its last request.
    static let life = Duration.seconds(7 * 86_400)
    /// The least recently used one is dropped.
    static let most = 64
    /// A use is written down no sooner after the last writing.
    static let grain = Duration.seconds(3600)

    /// How long after a login its session may change the configuration.
    static let freshness = Duration.seconds(600)

    private var records: [[UInt8]: (access: Access, used: WallTime, opened: WallTime?)] = [:]
    private var writtenAt: WallTime
    private var isUsed = false

    /// - Parameter kept: the sessions of earlier processes.
    init(_ kept: [LoginFile.Session] = [], at now: WallTime) {
        writtenAt = now
        for session in kept {
            guard let id = Digest(.sha256, hex: session.id)?.bytes else { continue }
            let opened = session.opened.map { WallTime(milliseconds: $0) }
            records[id] = (session.access, WallTime(milliseconds: session.used), opened)
        }
    }

    mutating func open(_ id: [UInt8], _ access: Access, at now: WallTime) {
        records = records.filter { now - $0.value.used < Self.life }
        if records.count >= Self.most, let oldest = records.min(by: { $0.value.used < $1.value.used })?.key {
            records[oldest] = nil
        }
        records[id] = (access, now, now)
    }

    /// Whether the session began a short time ago. A clock that was set back makes none young.
    func isFresh(_ id: [UInt8], at now: WallTime) -> Bool {
        guard let opened = records[id]?.opened else { return false }
        return (.zero..<Self.freshness).contains(now - opened)
    }

    /// nil for an unknown or expired session; using one extends it.
    mutating func access(of id: [UInt8], at now: WallTime) -> Access? {
        guard let record = records[id] else { return nil }
        guard now - record.used < Self.life else {
            records[id] = nil
            return nil
        }
        records[id]?.used = now
        isUsed = true
        return record.access
    }

    /// - Returns: whether there was such a session.
    mutating func close(_ id: [UInt8]) -> Bool { records.removeValue(forKey: id) != nil }

    /// Whether uses have to be written down.
    func isDue(at now: WallTime) -> Bool { isUsed && now - writtenAt >= Self.grain }

    /// All of them, which count as written now.
    mutating func written(at now: WallTime) -> [LoginFile.Session] {
        (writtenAt, isUsed) = (now, false)
        return records.map { id, record in
            LoginFile.Session(
                id: id.hex, access: record.access, used: record.used.milliseconds, opened: record.opened?.milliseconds)
        }
    }
}

/// Slows down guessing: after some failed attempts an address has to wait, each time longer, and after many from
/// anywhere everybody has. Pure: time is a parameter.
struct LoginThrottle: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Failed attempts of one address that cost nothing.
    static let free = 5
    static let firstWait = Duration.seconds(30)
    static let longestWait = Duration.seconds(15 * 60)
    /// An address without failed attempts for this long is forgotten.
    static let memory = Duration.seconds(3600)
    /// Failed attempts of all addresses together within `span`.
    static let freeTogether = 60
    static let span = Duration.seconds(60)
    /// The most addresses remembered; the least recent one is dropped.
    static let most = 1000

    private var records: [[UInt8]: (failures: Int, last: Instant, until: Instant)] = [:]
    private var together = 0
    private var spanBegan: Instant?

    /// How long the next attempt of `network` has to wait; nil = it need not.
    mutating func wait(_ network: [UInt8], at now: Instant) -> Duration? {
        if let until = records[network]?.until, until > now { return now.duration(to: until) }
        guard let began = spanBegan else { return nil }
        let end = began.advanced(by: Self.span)
        if now >= end { (together, spanBegan) = (0, nil) }
        return together >= Self.freeTogether ? now.duration(to: end) : nil
    }

    /// Records a failed attempt. - Returns: how long its address, or everybody, has to wait from now on; nil = not at
    /// all.
    mutating func failed(_ network: [UInt8], at now: Instant) -> (wait: Duration, isForAll: Bool)? {
        if let began = spanBegan, now >= began.advanced(by: Self.span) { (together, spanBegan) = (0, nil) }
        spanBegan = spanBegan ?? now
        together += 1
        var record = records[network] ?? (failures: 0, last: now, until: now)
        if record.last.advanced(by: Self.memory) <= now { record.failures = 0 }
        record.failures += 1
        record.last = now
        let over = record.failures - Self.free
        let wait = over < 0 ? nil : min(Self.longestWait, Self.firstWait * (1 << min(over, 10)))
        if let wait { record.until = now.advanced(by: wait) }
        if records[network] == nil, records.count >= Self.most,
            let oldest = records.min(by: { $0.value.last < $1.value.last })?.key
        {
            records[oldest] = nil
        }
        records[network] = record
        if let wait { return (wait, false) }
        if together == Self.freeTogether, let began = spanBegan {
            return (now.duration(to: began.advanced(by: Self.span)), true)
        }
        return nil
    }

    mutating func succeeded(_ network: [UInt8]) { records[network] = nil }
}
