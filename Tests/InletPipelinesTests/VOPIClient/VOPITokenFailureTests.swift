import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// Renewals that do not succeed: which end the login, and which leave it as it is.
@Suite struct VOPITokenFailureTests {
    private static let pair = #"{"accessToken":"access-1","refreshToken":"refresh-1","expiresIn":900}"#

    private static func refused(_ code: String, _ message: String = "x") -> VOPIServer.Reply {
        .json(401, #"{"error":"\#(code)","message":"\#(message)"}"#)
    }

    /// Answers that say nothing about the login.
    static let passing: [(VOPIServer.Reply, ErrorCode)] = [
        (refused("UNAUTHORIZED", "connect ECONNREFUSED 127.0.0.1:5432"), .serverError),
        (refused("UNAUTHORIZED", "whatever"), .serverError), (.json(500, "{}"), .serverError),
        (.json(502, "<html></html>"), .serverError), (.json(429, ""), .throttled), (.json(200, "{}"), .badAnswer),
        (.json(200, ""), .badAnswer), (.json(401, ""), .serverError), (.lost, .connectionLost),
    ]

    @Test(arguments: passing.indices)
    func `a passing fault keeps the tokens and asks for patience`(_ index: Int) async throws {
        let (reply, code) = Self.passing[index]
        let mended = Switch()
        let place = try VOPIClientPlace { _, _ in
            mended.isOn ? .json(200, Self.pair) : reply
        }
        let (login, clock) = try await place.login(aged: .seconds(900))
        let error = await failure { () throws(DeliveryError) in try await login.access() }
        #expect(error?.code == code)
        guard case .outage = error?.verdict else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(try await place.store().pair()?.refreshToken == Secret("refresh-0"))
        // Everybody who comes next gets the same answer, without another request.
        let asked = place.server.asked.count
        #expect(await failure { () throws(DeliveryError) in try await login.access() } == error)
        #expect(place.server.asked.count == asked)
        mended.turnOn()
        clock.advance(VOPITokens.pause)
        #expect(try await login.access().reveal() == "access-1")
        #expect(place.server.asked.last?.json["refreshToken"].text == "refresh-0")
    }

    @Test func `a rate limit is waited out as long as the server asks`() async throws {
        let limit = VOPIServer.Reply(
            status: 500, headers: [("retry-after", "60"), ("x-ratelimit-remaining", "0")],
            body: #"{"error":"INTERNAL_ERROR","message":"An unexpected error occurred","statusCode":500}"#)
        let place = try VOPIClientPlace { _, count in count == 0 ? limit : .json(200, Self.pair) }
        let clock = HandClock()
        let login = try place.login(clock)
        let error = await failure { () throws(DeliveryError) in try await login.access() }
        #expect(error?.verdict == .outage(after: .seconds(60)) && error?.code == .throttled)
        clock.advance(.seconds(59))
        _ = await failure { () throws(DeliveryError) in try await login.access() }
        #expect(place.server.asked.count == 1)
        clock.advance(.seconds(2))
        #expect(try await login.access().reveal() == "access-1")
    }

    @Test func `whoever waited for a renewal that the server wants again at once takes its answer`() async throws {
        let place = try VOPIClientPlace { _, _ in .init(status: 429, headers: [("retry-after", "0")]) }
        let clock = HandClock()
        let login = try place.login(clock)
        let errors = await withTaskGroup(of: DeliveryError?.self) { group in
            for _ in 0..<20 { group.addTask { await failure { () throws(DeliveryError) in try await login.access() } } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(errors.allSatisfy { $0?.verdict == .outage(after: .zero) && $0?.code == .throttled })
        #expect(place.server.asked.count == 1)
        clock.advance(.seconds(1))
        _ = await failure { () throws(DeliveryError) in try await login.access() }
        #expect(place.server.asked.count == 2)
    }

    @Test func `only who has waited for another process says so`() async throws {
        let place = try VOPIClientPlace { _, _ in .lost }
        let store = place.store()
        let lock = try await store.lock(by: .now)
        for (patience, isSaid) in [(Duration.zero, false), (.milliseconds(200), true)] {
            let error = await failure { () throws(DeliveryError) in _ = try await store.lock(by: .now + patience) }
            #expect(error?.code == .timedOut && error?.reason.contains("another process") == isSaid, "\(patience)")
        }
        withExtendedLifetime(lock) {}
    }

    @Test func `until its end the old access token serves while it cannot be renewed`() async throws {
        let place = try VOPIClientPlace { _, _ in Self.refused("UNAUTHORIZED", "connect ETIMEDOUT") }
        let (login, clock) = try await place.login(aged: .seconds(700))
        #expect(try await login.access().reveal() == "access-0")
        // Not for the one whom the server has just refused it.
        let refused = await failure { () throws(DeliveryError) in try await login.access(after: Secret("access-0")) }
        #expect(refused?.code == .serverError)
        clock.advance(.seconds(160))
        #expect(await failure { () throws(DeliveryError) in try await login.access() }?.code == .serverError)
    }

    static let ends = [
        "REFRESH_TOKEN_EXPIRED", "REFRESH_TOKEN_INVALID", "REFRESH_TOKEN_REVOKED", "REFRESH_TOKEN_REUSED",
        "REFRESH_TOKEN_WRONG_TYPE", "USER_NOT_FOUND", "USER_DELETED",
    ]

    @Test(arguments: ends)
    func `an ended login is said once to the server and mended by another`(_ code: String) async throws {
        let place = try VOPIClientPlace { asked, _ in
            asked.json["refreshToken"].text == "seed-new" ? .json(200, Self.pair) : Self.refused(code)
        }
        let (login, clock) = try await place.login(aged: .seconds(900))
        let error = await failure { () throws(DeliveryError) in try await login.access() }
        #expect(error?.verdict == .credentials)
        #expect(error?.reason.contains(code) == true && error?.reason.contains("refresh-0") == false)
        for _ in 0..<5 {
            clock.advance(.seconds(60))
            #expect(await failure { () throws(DeliveryError) in try await login.access() }?.verdict == .credentials)
        }
        #expect(place.server.asked.count == 1)
        try place.folder.write("seed-new\n".utf8, to: "seed")
        #expect(try await login.access().reveal() == "access-1")
    }

    /// Refusals that are about the server, and need a person there.
    static let faults: [VOPIServer.Reply] = [
        .json(400, #"{"error":"VALIDATION_ERROR","message":"body"}"#), refused("JWT_SECRET_NOT_CONFIGURED"),
        .json(404, #"{"message":"Route POST:/api/v1/auth/refresh not found","error":"Not Found","statusCode":404}"#),
    ]

    @Test(arguments: faults.indices)
    func `a server that was set up wrongly takes the same token once it is mended`(_ index: Int) async throws {
        let mended = Switch()
        let place = try VOPIClientPlace { _, _ in mended.isOn ? .json(200, Self.pair) : Self.faults[index] }
        let (login, clock) = try await place.login(aged: .seconds(900))
        for _ in 0..<3 {
            #expect(await failure { () throws(DeliveryError) in try await login.access() }?.verdict == .credentials)
        }
        #expect(place.server.asked.count == 1)
        mended.turnOn()
        clock.advance(VOPITokens.pause)
        #expect(try await login.access().reveal() == "access-1")
        #expect(place.server.asked.last?.json["refreshToken"].text == "refresh-0")
    }

    @Test func `a lost answer is asked for once more with the old token`() async throws {
        let place = try VOPIClientPlace { _, count in count == 0 ? .lost : Self.refused("REFRESH_TOKEN_REVOKED") }
        let (login, clock) = try await place.login(aged: .seconds(900))
        #expect(await failure { () throws(DeliveryError) in try await login.access() }?.code == .connectionLost)
        clock.advance(VOPITokens.pause)
        #expect(await failure { () throws(DeliveryError) in try await login.access() }?.verdict == .credentials)
        #expect(place.server.asked.map { $0.json["refreshToken"].text } == ["refresh-0", "refresh-0"])
    }

    @Test func `a configured token that is no good does not end the login that is`() async throws {
        let place = try VOPIClientPlace { asked, _ in
            asked.json["refreshToken"].text == "refresh-0"
                ? .json(200, Self.pair) : Self.refused("REFRESH_TOKEN_INVALID")
        }
        let clock = HandClock()
        try await place.keep(age: .seconds(900), seed: "another", clock: clock)
        #expect(try await place.login(clock).access().reveal() == "access-1")
        #expect(place.server.asked.map { $0.json["refreshToken"].text } == [VOPIClientPlace.seed, "refresh-0"])
    }

    @Test func `without any token the place for one is named`() async throws {
        let place = try VOPIClientPlace { _, _ in .json(200, Self.pair) }
        try FileManager.default.removeItem(atPath: place.folder.path.appending("seed").string)
        let login = try place.login()
        let error = await failure { () throws(DeliveryError) in try await login.access() }
        #expect(error?.verdict == .credentials && error?.reason.contains("/seed") == true)
        #expect(place.server.asked.isEmpty)
    }

    @Test func `a login for another server is never shown to this one`() async throws {
        let place = try VOPIClientPlace { _, _ in .json(200, Self.pair) }
        let other = VOPITokenPair(
            server: "https://other.example", accessToken: Secret("a"), refreshToken: Secret("theirs"),
            life: .seconds(900), obtainedAt: .now, seed: VOPITokenStore.digest(of: Secret(VOPIClientPlace.seed)))
        try await place.store().keep(other)
        #expect(try await place.login().access().reveal() == "access-1")
        #expect(place.server.asked.map { $0.json["refreshToken"].text } == [VOPIClientPlace.seed])
    }

    @Test func `an idle login is renewed once a day`() async throws {
        let place = try VOPIClientPlace { _, count in
            .json(200, #"{"accessToken":"a\#(count)","refreshToken":"r\#(count)","expiresIn":900}"#)
        }
        let (login, clock) = try await place.login(aged: .zero)
        for hour in 1...72 {
            clock.advance(.seconds(3600))
            try await login.keepAlive()
            #expect(place.server.asked.count == hour / 23)
        }
    }

    @Test(.enabled(if: getuid() == 0, "needs root"))
    func `in another user's folder root follows no link of his to keep a login`() throws {
        let directory = try TemporaryDirectory()
        let elsewhere = try directory.makeDirectory("elsewhere")
        let tokens = try directory.makeDirectory("state").appending("tokens")
        #expect(symlink(elsewhere.string, tokens.string) == 0 && lchown(tokens.string, 65_534, 65_534) == 0)
        // Our own folder: whoever made the link could do all else.
        try VOPITokenStore.make(tokens)
        #expect(chown(tokens.removingLastComponent().string, 65_534, 65_534) == 0)
        let error = try #require(throws: SystemError.self) { try VOPITokenStore.make(tokens) }
        #expect(error.isLinked && error.path == tokens)
        #expect(lchown(tokens.string, 0, 0) == 0)
        // Root's own stays root's.
        for _ in 1...2 { try VOPITokenStore.make(tokens) }
    }
}

/// What a pair of tokens knows of its own age, and where the first one is read from.
@Suite struct VOPITokenPairTests {
    private static let start = WallTime(milliseconds: 1_700_000_000_000)

    private static func pair(_ json: String) -> VOPITokenPair? {
        VOPIValue(Array(json.utf8)).flatMap {
            VOPITokenPair($0, old: Secret("old"), server: "s", seed: nil, now: start)
        }
    }

    @Test func `a pair is fresh for 70 % of its life and usable for 95 %`() throws {
        let pair = try #require(Self.pair(#"{"accessToken":"a","refreshToken":"r","expiresIn":1000}"#))
        for (seconds, isFresh, isUsable) in [
            (0, true, true), (699, true, true), (700, false, true), (949, false, true), (950, false, false),
            (-1, false, false),
        ] {
            let time = Self.start + .seconds(seconds)
            #expect(pair.isFresh(at: time) == isFresh, "\(seconds)")
            #expect(pair.isUsable(at: time) == isUsable, "\(seconds)")
        }
        #expect(!pair.isIdle(at: Self.start + .seconds(23 * 3600 - 1)))
        #expect(pair.isIdle(at: Self.start + .seconds(23 * 3600)) && pair.isIdle(at: Self.start + .seconds(-1)))
    }

    @Test func `what an answer leaves out is filled in`() throws {
        // {"iat":1000,"exp":4600}
        let token = "e30.eyJpYXQiOjEwMDAsImV4cCI6NDYwMH0.x"
        #expect(Self.pair(#"{"accessToken":"\#(token)"}"#)?.life == .seconds(3600))
        #expect(Self.pair(#"{"accessToken":"\#(token)","expiresIn":60}"#)?.life == .seconds(60))
        #expect(Self.pair(#"{"accessToken":"\#(token)","expiresIn":"60"}"#)?.life == .seconds(60))
        #expect(Self.pair(#"{"accessToken":"a","expiresIn":0}"#)?.life == .seconds(900))
        #expect(Self.pair(#"{"accessToken":"a","expiresIn":{},"refreshToken":""}"#)?.refreshToken == Secret("old"))
        #expect(Self.pair(#"{"accessToken":"","refreshToken":"r"}"#) == nil)
        #expect(Self.pair("{}") == nil)
    }

    @Test(arguments: ["", "a", "a.b", "a.b.c", "..", "a.e30.c", "a.!!!.c", "a.eyJleHAiOjF9.c", "a.eyJp.c.d"])
    func `what is no JWT has no life`(_ token: String) {
        #expect(VOPITokenPair.lifeWithin(token) == nil)
    }

    @Test(
        arguments: [
            ("abc.def", "abc.def"), ("abc\n", "abc"), ("  abc \r\n", "abc"), (#"{"refreshToken":"abc"}"#, "abc"),
            (#"{"accessToken":"x","refresh_token":"abc"}"#, "abc"), ("", nil), (" \n", nil), ("{}", nil),
            (#"{"refreshToken":""}"#, nil),
        ] as [(String, String?)])
    func `a configured token is read as people leave it`(_ text: String, _ token: String?) {
        #expect(VOPITokenStore.seed(Array(text.utf8))?.reveal() == token)
    }

    @Test func `a pair comes back from the disk as it was, and the one before where it is damaged`() async throws {
        let place = try VOPIClientPlace { _, _ in .json(404, "") }
        try await place.keep(refresh: "first")
        try await place.keep(refresh: "second")
        #expect(try await place.store().pair()?.refreshToken == Secret("second"))
        #expect(try await place.store().pair()?.life == .seconds(900))
        try place.folder.write("{\"half".utf8, to: "tokens/here.json")
        #expect(try await place.store().pair()?.refreshToken == Secret("first"))
        try FileManager.default.removeItem(atPath: place.tokens.appending("here.json").string)
        #expect(try await place.store().pair()?.refreshToken == Secret("first"))
    }

    @Test func `what earlier builds have kept is read, and what lacks a member is none`() throws {
        let text = """
            {
              "access_token" : "a", "later" : [1], "life_ms" : 900000, "obtained_at_ms" : 7,
              "refresh_token" : "r", "seed_sha256" : "0f", "server" : "https:\\/\\/h.example\\/"
            }
            """
        let pair = try #require(VOPITokenPair(kept: Array(text.utf8)))
        #expect(pair.server == "https://h.example/" && pair.seed == "0f" && pair.life == .seconds(900))
        #expect(pair.accessToken == Secret("a") && pair.refreshToken == Secret("r"))
        #expect(VOPITokenPair(kept: pair.kept) == pair)
        for name in ["server", "access_token", "refresh_token", "life_ms", "obtained_at_ms"] {
            let lacking = text.replacing("\"\(name)\"", with: "\"other\"")
            #expect(VOPITokenPair(kept: Array(lacking.utf8)) == nil, "\(name)")
        }
    }

    @Test func `tokens do not show where a pair is printed`() {
        let pair = VOPITokenPair(
            server: "s", accessToken: Secret("canary"), refreshToken: Secret("canary"), life: .seconds(1),
            obtainedAt: Self.start, seed: nil)
        #expect(!"\(pair) \(String(reflecting: pair))".contains("canary"))
    }
}
