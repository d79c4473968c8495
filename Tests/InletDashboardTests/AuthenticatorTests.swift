import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletDashboard

/// Who is let in while somebody guesses, and through proxies.
@Suite(.serialized) struct AuthenticatorTests {
    private static let long = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"

    private static func logIn(_ client: RawClient, _ secret: String) async throws -> Int {
        try await client.post("login", "{\"secret\": \"\(secret)\"}").status
    }

    private static func look(
        _ client: RawClient, _ token: String, _ headers: [String: String] = [:]
    ) async throws -> Int {
        let headers = DashboardScene.bearer(token).merging(headers) { $1 }
        return try await client.get("status", headers).status
    }

    @Test func `a token that nobody can guess opens while others of its address have to wait`() async throws {
        let scene = try DashboardScene(token: Self.long, password: "a password of more than 24", reader: "the-reader")
        try await scene.serving { port in
            let client = try RawClient(port: port)
            for _ in 0..<LoginThrottle.free { #expect(try await Self.logIn(client, "not it") == 401) }
            #expect(try await Self.look(client, Self.long) == 200)
            #expect(try await Self.logIn(client, Self.long) == 200)
            #expect(try await Self.look(client, "the-reader") == 429)
            #expect(try await Self.logIn(client, "a password of more than 24") == 429)
            #expect(try await Self.look(client, Self.long + "0") == 429)
        }
    }

    @Test func `the kiosk's token shows the cards, and nothing else`() async throws {
        let scene = try DashboardScene(token: "full-token", kiosk: "the-kiosk")
        try await scene.serving { port in
            let client = try RawClient(port: port)
            let login = try await client.post("login", "{\"secret\": \"the-kiosk\"}")
            #expect(login.object["access"] as? String == "kiosk")
            let cookie = try #require(login.headers["set-cookie"]?.split(separator: ";").first)
            for headers in [DashboardScene.bearer("the-kiosk"), ["Cookie": String(cookie)]] {
                #expect(try await client.get("cards", headers).status == 200)
                for endpoint in Endpoints.all where ![.nothing, .cards, .socket].contains(endpoint.need) {
                    let path = endpoint.path.replacing("{id}", with: "1").replacing("{card}", with: "A")
                    let marked = headers.merging(DashboardScene.marks) { $1 }
                    let answer = try await client.request(endpoint.verb, path, headers: marked, body: nil)
                    #expect(answer.status == 403 && answer.error == "kiosk", "\(endpoint.verb) \(path): \(answer)")
                }
            }
        }
    }

    @Test(arguments: [false, true])
    func `whom a proxy names is believed only where one is configured`(isConfigured: Bool) async throws {
        try await DashboardScene(token: "full-token", proxy: isConfigured).serving { port in
            let client = try RawClient(port: port)
            for number in 0..<LoginThrottle.free {
                let from = ["X-Forwarded-For": "203.0.113.\(number)"]
                #expect(try await Self.look(client, "no-token", from) == 401)
            }
            let status = try await Self.look(client, "full-token", ["X-Forwarded-For": "203.0.113.99"])
            #expect(status == (isConfigured ? 200 : 429))
        }
    }

    @Test func `without a secret nobody comes in by HTTP/1.0, as proxies do that add nothing`() async throws {
        func ask(_ port: Int, _ path: String, inPieces: Bool = false) async throws -> RawAnswer {
            let client = try RawClient(port: port)
            let text = "GET \(path) HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
            for piece in inPieces ? text.map(String.init) : [text] { client.send(piece) }
            return try await client.answer()
        }
        try await DashboardScene().serving { port in
            for inPieces in [false, true] {
                let answer = try await ask(port, "/api/v1/status", inPieces: inPieces)
                #expect(answer.status == 403 && answer.error == "proxy", "\(answer)")
            }
            let health = try await ask(port, "/healthz")
            #expect(health.body == "ok\n")
        }
        try await DashboardScene(token: "full-token").serving { port in
            let session = try await ask(port, "/api/v1/session")
            #expect(session.object["access"] as? String == "none")
        }
    }

    @Test(arguments: ["Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via"])
    func `without a secret nobody comes through a proxy`(header: String) async throws {
        let through = DashboardScene.marks.merging([header: "for=203.0.113.1"]) { $1 }
        try await DashboardScene().serving { port in
            let client = try RawClient(port: port)
            let refused = try await client.get("status", through)
            #expect(refused.status == 403 && refused.error == "proxy")
            #expect(refused.body.contains("'\(header.lowercased())'") && refused.body.contains("token"), "\(refused)")
            #expect(try await client.post("pause", "{}", through).error == "proxy")
            let direct = try RawClient(port: port)
            #expect(try await direct.get("status").status == 200)
            #expect(try await direct.request("GET", "/healthz", headers: through).status == 200)
        }
        try await DashboardScene(token: "full-token").serving { port in
            let client = try RawClient(port: port)
            #expect(try await Self.look(client, "full-token", [header: "for=203.0.113.1"]) == 200)
        }
    }
}

/// Who is let in, and how often somebody may try.
@Suite struct LoginTests {
    private let start = ContinuousClock.now
    private let one: [UInt8] = [10, 0, 0, 1]
    private let other: [UInt8] = [10, 0, 0, 2]

    @Test func `some wrong tries cost nothing, and each one after them twice as much`() {
        var tries = LoginThrottle()
        for _ in 1..<LoginThrottle.free { #expect(tries.failed(one, at: start) == nil) }
        #expect(tries.wait(one, at: start) == nil)
        #expect(tries.failed(one, at: start).map { $0 == (.seconds(30), false) } == true)
        #expect(tries.wait(one, at: start.advanced(by: .seconds(10))) == .seconds(20))
        #expect(tries.wait(other, at: start) == nil)
        let later = start.advanced(by: .seconds(30))
        #expect(tries.wait(one, at: later) == nil)
        #expect(tries.failed(one, at: later).map { $0 == (.seconds(60), false) } == true)
        for _ in 0..<20 { _ = tries.failed(one, at: later) }
        #expect(tries.wait(one, at: later) == LoginThrottle.longestWait)
    }

    @Test func `who gets it right, or stays away for long, begins anew`() {
        var tries = LoginThrottle()
        for _ in 0..<LoginThrottle.free { _ = tries.failed(one, at: start) }
        tries.succeeded(one)
        #expect(tries.wait(one, at: start) == nil && tries.failed(one, at: start) == nil)
        for _ in 0..<LoginThrottle.free { _ = tries.failed(other, at: start) }
        #expect(tries.failed(other, at: start.advanced(by: LoginThrottle.memory)) == nil)
    }

    @Test func `many wrong tries from many addresses make everybody wait, until the minute is over`() {
        var tries = LoginThrottle()
        for number in 1..<LoginThrottle.freeTogether {
            #expect(tries.failed([9, 9, UInt8(number >> 8), UInt8(number & 255)], at: start) == nil)
        }
        #expect(tries.wait(one, at: start) == nil)
        let last = tries.failed([8, 8, 8, 8], at: start.advanced(by: .seconds(20)))
        #expect(last.map { $0 == (.seconds(40), true) } == true)
        #expect(tries.wait(one, at: start.advanced(by: .seconds(20))) == .seconds(40))
        #expect(tries.wait(one, at: start.advanced(by: .seconds(60))) == nil)
    }

    @Test func `a session lives while it is used, and there are not more than some`() {
        let start = WallTime.now
        var sessions = LoginSessions(at: start)
        sessions.open([1], .full, at: start)
        let nearly = start + (LoginSessions.life - .seconds(1))
        #expect(sessions.access(of: [1], at: nearly) == .full)
        #expect(sessions.access(of: [1], at: start + (LoginSessions.life + .seconds(1))) == .full)
        #expect(sessions.access(of: [2], at: start) == nil)
        #expect(sessions.isFresh([1], at: start + .seconds(599)) && !sessions.isFresh([1], at: start + .seconds(600)))
        #expect(!sessions.isFresh([1], at: start + .seconds(-1)) && !sessions.isFresh([2], at: start))
        sessions.open([2], .read, at: nearly)
        #expect(sessions.access(of: [2], at: nearly + LoginSessions.life) == nil)
        for number in 0..<UInt8(LoginSessions.most) {
            sessions.open([3, number], .read, at: nearly + .seconds(60 + Int(number)))
        }
        let after = nearly + .seconds(300)
        #expect(sessions.access(of: [1], at: after) == nil)
        #expect(sessions.access(of: [3, 0], at: after) == .read)
        #expect(sessions.close([3, 0]) && !sessions.close([3, 0]))
        #expect(sessions.access(of: [3, 0], at: after) == nil)
    }

    @Test func `sessions survive the process, but not a change of a secret`() throws {
        let folder = try TemporaryDirectory()
        let path = folder.path.appending("logins.json")
        let now = WallTime.now
        let (file, none) = LoginFile.read(path, Self.settings)
        #expect(none.isEmpty)
        var sessions = LoginSessions(at: now)
        let cookie = Credentials.newCookie()
        sessions.open(cookie.id, .full, at: now)
        #expect(!sessions.isDue(at: now) && sessions.access(of: cookie.id, at: now) == .full)
        #expect(sessions.isDue(at: now + LoginSessions.grain))
        try file.write(sessions.written(at: now))
        #expect(!sessions.isDue(at: now + LoginSessions.grain))
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path.string))
        #expect(!String(decoding: bytes, as: UTF8.self).contains(cookie.text))
        let attributes = try FileManager.default.attributesOfItem(atPath: path.string)
        #expect(attributes[.posixPermissions] as? Int == 0o600)

        func access(_ settings: DashboardSettings, at time: WallTime) -> Access? {
            var sessions = LoginSessions(LoginFile.read(path, settings).sessions, at: time)
            return sessions.access(of: cookie.id, at: time)
        }
        #expect(access(Self.settings, at: now) == .full)
        #expect(access(Self.settings, at: now + LoginSessions.life) == nil)
        var changed = Self.settings
        changed.password = Secret("another-password")
        #expect(access(changed, at: now) == nil)
        try Data("{".utf8).write(to: URL(fileURLWithPath: path.string))
        #expect(access(Self.settings, at: now) == nil)
    }

    @Test func `a link ends when it was used, after ten minutes, and when there are newer ones`() {
        let links = LoginLinks()
        let codes = (0...LoginLinks.most).map { _ in links.make(at: start) }
        #expect(!links.take(codes[0], at: start))
        #expect(links.take(codes[1], at: start) && !links.take(codes[1], at: start))
        #expect(links.take(codes[2], at: start.advanced(by: LoginLinks.life - .seconds(1))))
        #expect(!links.take(codes[3], at: start.advanced(by: LoginLinks.life)))
        #expect(!links.take("", at: start))
    }

    private static let settings = DashboardSettings(
        listen: ListenAddress(host: "127.0.0.1", port: 1), token: Secret("the-token"), password: Secret("the-password"),
        readOnlyToken: Secret("the-reader"), kioskToken: Secret("the-kiosk"))

    @Test(
        arguments: [
            ("the-token", true, .full), ("the-token", false, .full), ("the-password", false, .full),
            ("the-password", true, nil), ("the-reader", true, .read), ("the-reader", false, .read), ("", true, nil),
            ("the-kiosk", true, .kiosk), ("the-kiosk", false, .kiosk),
            ("the-toke", true, nil), ("the-token ", true, nil), ("THE-TOKEN", true, nil),
        ] as [(String, Bool, Access?)])
    func `a secret opens what it is for`(secret: String, asToken: Bool, access: Access?) {
        #expect(Credentials(Self.settings).access(secret, asToken: asToken) == access)
    }

    @Test func `only a long token is one that nobody can guess`() {
        let long = String(repeating: "k", count: Credentials.unguessable)
        var settings = Self.settings
        (settings.token, settings.password) = (Secret(long), Secret(long + "!"))
        let credentials = Credentials(settings)
        #expect(credentials.access(long, asToken: true, ifUnguessable: true) == .full)
        #expect(credentials.access(long, asToken: false, ifUnguessable: true) == .full)
        for other in [long + "!", "the-reader", long + "k", String(long.dropLast()), ""] {
            #expect(credentials.access(other, asToken: false, ifUnguessable: true) == nil, "\(other)")
        }
    }

    @Test func `what is asked for is what is configured`() {
        var settings = Self.settings
        #expect(Credentials(settings).login == .either)
        settings.password = nil
        #expect(Credentials(settings).login == .token)
        (settings.token, settings.password) = (nil, Secret("the-password"))
        #expect(Credentials(settings).login == .password)
        settings.password = nil
        #expect(Credentials(settings).login == .none)
    }
}
