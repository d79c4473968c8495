import Foundation
import InletCore
import InletSandbox
import Testing

@Suite struct VOPIAccessTests {
    /// What stands in the two headers, and what the list of jobs and a read of frames answer.
    static let headers: [(String?, String?, String, Int)] = [
        (nil, nil, "401 UNAUTHORIZED", 401), ("good", nil, "200 ", 200), ("good", VOPIClient.apiKey, "200 ", 200),
        (nil, VOPIClient.apiKey, "401 UNAUTHORIZED", 200), (nil, "wrong", "401 UNAUTHORIZED", 401),
        ("a.b.c", nil, "401 ACCESS_TOKEN_MALFORMED", 401), ("x", nil, "401 ACCESS_TOKEN_MALFORMED", 401),
        ("x", VOPIClient.apiKey, "401 UNAUTHORIZED", 200), ("refresh", nil, "401 ACCESS_TOKEN_WRONG_TYPE", 401),
    ]

    @Test(arguments: headers)
    func `a bearer token opens all, an API key some reads`(
        _ bearer: String?, _ key: String?, _ list: String, _ frames: Int
    ) async throws {
        try await withVOPI { sandbox, client async throws in
            var client = client
            let session = sandbox.signIn()
            let known = ["good": session.accessToken, "refresh": session.refreshToken]
            client.token = bearer.map { known[$0]?.reveal() ?? $0 }
            client.key = key
            #expect(try await client.get("/jobs").coded == list)
            #expect(try await client.get("/jobs/\(UUID().uuidString)/frames").status == frames)
            #expect(try await client.get("/nope").status == (frames == 200 ? 404 : 401))
        }
    }

    @Test func `an access token ends with its time, or when the test says so`() async throws {
        let clock = TestClock()
        try await withVOPI(clock: clock) { sandbox, client async throws in
            clock.pass(.seconds(899))
            #expect(try await client.get("/jobs").status == 200)
            clock.pass(.seconds(1))
            #expect(try await client.get("/jobs").coded == "401 ACCESS_TOKEN_EXPIRED")
            var other = client
            other.token = sandbox.signIn().accessToken.reveal()
            #expect(try await other.get("/jobs").status == 200)
            sandbox.expireAccessTokens()
            #expect(try await other.get("/jobs").coded == "401 ACCESS_TOKEN_EXPIRED")
            sandbox.rules.isUserGone = true
            other.token = sandbox.signIn().accessToken.reveal()
            #expect(try await other.get("/jobs").coded == "401 USER_NOT_FOUND")
        }
    }

    @Test func `a refresh token is good for one use, and its successor for the next`() async throws {
        let clock = TestClock()
        try await withVOPI(clock: clock) { sandbox, client async throws in
            let first = sandbox.signIn().refreshToken.reveal()
            let answer = try await client.refresh(first)
            #expect(answer.status == 200 && answer.headers["x-ratelimit-remaining"] == "29")
            #expect(answer.value["expiresIn"] == 900 && answer.value["tokenType"] == "Bearer")
            var fresh = client
            fresh.token = answer.value["accessToken"]?.text
            #expect(try await fresh.get("/jobs").status == 200)
            #expect(try await client.refresh(first).coded == "401 REFRESH_TOKEN_REVOKED")
            let second = try #require(answer.value["refreshToken"]?.text)
            #expect(second != first)
            let third = try #require(try await client.refresh(second).value["refreshToken"]?.text)
            clock.pass(.seconds(7 * 86_400))
            #expect(try await client.refresh(third).coded == "401 REFRESH_TOKEN_EXPIRED")
            let last = sandbox.signIn().refreshToken.reveal()
            sandbox.revokeRefreshTokens()
            #expect(try await client.refresh(last).coded == "401 REFRESH_TOKEN_REVOKED")
            #expect(sandbox.tally.refreshes == 2)
        }
    }

    @Test func `each wrong refresh token has its word`() async throws {
        try await withVOPI { sandbox, client async throws in
            #expect(try await client.refresh("x").coded == "401 REFRESH_TOKEN_INVALID")
            let access = sandbox.signIn().accessToken.reveal()
            #expect(try await client.refresh(access).coded == "401 REFRESH_TOKEN_WRONG_TYPE")
            let missing = try await client.send("POST", "/api/v1/auth/refresh", [:])
            #expect(missing.coded == "400 VALIDATION_ERROR")
            sandbox.rules.isUserGone = true
            #expect(try await client.refresh(sandbox.signIn().refreshToken.reveal()).coded == "401 USER_DELETED")
        }
    }

    @Test func `the rate limit says 500, per agent and minute`() async throws {
        let clock = TestClock()
        try await withVOPI(rules: VOPIRules(refreshLimit: 2), clock: clock) { _, client async throws in
            for _ in 0..<2 { #expect(try await client.refresh("x").status == 401) }
            let limited = try await client.refresh("x")
            #expect(limited.coded == "500 INTERNAL_ERROR" && limited.headers["retry-after"] == "60")
            #expect(try await client.refresh("x", agent: "other").status == 401)
            clock.pass(.seconds(60))
            #expect(try await client.refresh("x").status == 401)
        }
    }

    @Test func `without its database the server refuses good tokens, and keeps them`() async throws {
        try await withVOPI { sandbox, client async throws in
            let token = sandbox.signIn().refreshToken.reveal()
            #expect(try await client.http.send("GET", client.http.origin + "/ready").status == 200)
            sandbox.rules.isDatabaseDown = true
            #expect(try await client.get("/jobs").coded == "401 ACCESS_TOKEN_INVALID")
            #expect(try await client.refresh(token).coded == "401 UNAUTHORIZED")
            let ready = try await client.http.send("GET", client.http.origin + "/ready")
            #expect(ready.status == 503 && ready.value["checks"]?["database"] == "error")
            #expect(try await client.http.send("GET", client.http.origin + "/health").status == 200)
            sandbox.rules.isDatabaseDown = false
            #expect(try await client.get("/jobs").status == 200)
            #expect(try await client.refresh(token).status == 200)
        }
    }
}

@Suite struct VOPIOlderServerTests {
    private static let rules = VOPIRules(generation: .apiKey, apiKeyUses: 2)

    @Test func `the older server takes the key, and no token`() async throws {
        try await withVOPI(rules: Self.rules) { sandbox, client async throws in
            #expect(try await client.get("/jobs").status == 200)
            var other = client
            (other.key, other.token) = (nil, sandbox.signIn().accessToken.reveal())
            let refused = try await other.get("/jobs")
            #expect(refused.coded == "401 UNAUTHORIZED" && refused.value["message"] == "Missing API key")
            other.key = "wrong"
            #expect(try await other.get("/jobs").value["message"] == "Invalid API key")
            #expect(try await client.get("/credits/balance").coded == "404 Not Found")
        }
    }

    @Test func `the older server tells the step, and hides config and result`() async throws {
        try await withVOPI(rules: Self.rules) { _, client async throws in
            let id = try await client.job(noise(5000, seed: 1), config: ["fps": 5])
            #expect(try await client.statuses(of: id, 4).last == "classifying")
            let job = try await client.get("/jobs/\(id)").value
            #expect(job["config"] == [:] && job["progress"] == [:] && job["result"] == [:])
            #expect(try await client.statuses(of: id, 2).last == "completed")
            #expect(try await client.get("/jobs/\(id)").value["result"] == [:])
            let links = try await client.get("/jobs/\(id)/download-urls").value
            #expect(links["frames"]?.items?.count == 3)
        }
    }

    @Test func `on the older server DELETE cancels, and POST cancel is no call`() async throws {
        try await withVOPI(rules: Self.rules) { sandbox, client async throws in
            let queued = try await client.job(noise(5000, seed: 1))
            #expect(try await client.cancel(queued).coded == "404 Not Found")
            let cancelled = try await client.delete(queued)
            #expect(cancelled.status == 200 && cancelled.value["status"] == "cancelled")
            #expect(sandbox.jobs().count == 1)
            let running = try await client.job(noise(5000, seed: 2))
            _ = try await client.statuses(of: running, 2)
            #expect(try await client.delete(running).coded == "400 BAD_REQUEST")
            #expect(sandbox.tally.cancels == 1 && sandbox.tally.deletes == 0)
            let third = try await client.create(["videoUrl": "https://example.com/v.mp4"])
            #expect(third.coded == "403 USAGE_LIMIT_EXCEEDED")
        }
    }
}
