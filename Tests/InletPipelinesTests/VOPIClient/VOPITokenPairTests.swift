import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

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
