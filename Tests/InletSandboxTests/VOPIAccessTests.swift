import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

@Suite struct VOPIAccessTests {
    /// What stands in the two headers, and what the list of jobs and a read of frames answer.
    static let headers: [(String?, String?, String, Int)] = [
        (nil, nil, "401 UNAUTHORIZED", 401), ("good", nil, "200 ", 200), ("good", VOPIClient.apiKey, "200 ", 200),
        (nil, VOPIClient.apiKey, "401 UNAUTHORIZED", 200), (nil, "wrong", "401 UNAUTHORIZED", 401),
        ("a.b.c", nil, "401 ACCESS_TOKEN_MALFORMED", 401), ("x", nil, "401 ACCESS_TOKEN_MALFORMED", 401),
        ("x", VOPIClient.apiKey, "401 UNAUTHORIZED", 200), ("refresh", nil, "401 ACCESS_TOKEN_WRONG_TYPE", 401),
    ]

    @Test(arguments: headers) func `a bearer token opens all, an API key some reads`(
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
        }
    }

    @Test func `a refresh token is good for one use, and its successor for the next`() async throws {
        let clock = TestClock()
        try await withVOPI(clock: clock) { sandbox, client async throws in
            let first = sandbox.signIn().refreshToken.reveal()
            let answer = try await client.refresh(first)
            #expect(answer.status == 200)
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
        }
    }

}

@Suite struct VOPIOlderServerTests {
    private static let rules = VOPIRules(generation: .apiKey)

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
        }
    }
}

@Suite struct VOPIFaultTests {
    @Test func `a job can be made without its answer, and be found by its address`() async throws {
        try await withVOPI(faults: VOPIFault(.loseAnswer, at: .createJob)) { sandbox, client async throws in
            let url = try await client.upload(noise(5000, seed: 1))
            let authorization = "Authorization: Bearer \(client.token ?? "")"
            let lost = try await SandboxClient.curl(
                "-m", "120", "-H", authorization, "-H", "Content-Type: application/json", "-d",
                #"{"videoUrl":"\#(url)"}"#, client.http.origin + "/api/v1/jobs")
            #expect(lost == 52)
            let found = try await client.get("/jobs?limit=100").value["jobs"]?.items ?? []
            #expect(found.map { $0["videoUrl"]?.text } == [url])
            #expect(sandbox.tally.jobs == 1 && sandbox.counts()["createJob"] == 1)
        }
    }

    @Test func `an upload cut in its middle leaves no video`() async throws {
        try await withVOPI(faults: VOPIFault(.reset(afterBytes: 1 << 20), at: .upload)) {
            sandbox, client async throws in
            let folder = try TemporaryDirectory()
            let file = try folder.write(noise(16 << 20, seed: 1), to: "video")
            let url = try await client.presign().value["uploadUrl"]?.text ?? ""
            let status = try await SandboxClient.curl("-m", "120", "-H", "Expect:", "-T", file.string, url)
            #expect([52, 55, 56].contains(status))
            #expect(sandbox.videos().isEmpty && sandbox.tally.puts == 0)
            #expect(try await client.http.send("PUT", url, Data("x".utf8)).status == 200)
        }
    }

    static let replies: [(FaultReply, String)] = [
        (.vopiRateLimit(retryAfter: 7), "500 INTERNAL_ERROR"),
        (.vopi(403, error: "FORBIDDEN", message: "no"), "403 FORBIDDEN"),
    ]

    @Test(arguments: replies)
    func `the server's faults have its words`(_ reply: FaultReply, _ answer: String) async throws {
        try await withVOPI(faults: VOPIFault(.reply(reply), at: .listJobs)) { _, client async throws in
            let first = try await client.get("/jobs")
            #expect(first.coded == answer && first.headers["retry-after"] == reply.fields["retry-after"])
            #expect(try await client.get("/jobs").status == 200)
        }
    }

    @Test(arguments: VOPIOperation.allCases)
    func `every operation can be made to fail`(_ operation: VOPIOperation) async throws {
        try await withVOPI(rules: .quick) { sandbox, client async throws in
            let id = try await client.job(noise(5000, seed: 1))
            let links = try await client.get("/jobs/\(id)/status").status
            #expect(links == 200)
            let picture = try await client.get("/jobs/\(id)/download-urls").value["frames"]?.items?.first?[
                "downloadUrl"]
            let upload = try await client.presign().value["uploadUrl"]?.text ?? ""
            sandbox.faults.add(VOPIFault(.status(418), at: operation))
            let answer =
                switch operation {
                case .ready: try await client.http.send("GET", client.http.origin + "/ready")
                case .refresh: try await client.refresh("x")
                case .presign: try await client.presign()
                case .upload: try await client.http.send("PUT", upload, Data("x".utf8))
                case .createJob: try await client.create(["videoUrl": "https://example.com/v.mp4"])
                case .listJobs: try await client.get("/jobs")
                case .job: try await client.get("/jobs/\(id)")
                case .status: try await client.get("/jobs/\(id)/status")
                case .cancel: try await client.cancel(id)
                case .delete: try await client.delete(id)
                case .deleteImage: try await client.send("DELETE", "/api/v1/jobs/\(id)/images/hero/real")
                case .downloadURLs: try await client.get("/jobs/\(id)/download-urls")
                case .download: try await client.http.send("GET", picture?.text ?? "")
                case .metadata: try await client.get("/jobs/\(id)/metadata")
                case .results: try await client.get("/jobs/\(id)/frames/final")
                case .balance: try await client.get("/credits/balance")
                case .other: try await client.get("/nope")
                }
            #expect(answer.status == 418 && sandbox.faults.injected(at: operation) == 1)
            #expect(sandbox.jobs().map(\.id) == [id])
        }
    }
}

@Suite struct VOPIJobBodyTests {
    private static let url: SandboxJSON = "https://example.com/v.mp4"

    static let refusals: [(SandboxJSON, String)] = [
        ([:], "400 VALIDATION_ERROR"), (["videoUrl": "not a url"], "400 VALIDATION_ERROR"),
        (["videoUrl": url, "config": .null], "400 VALIDATION_ERROR"),
        (["videoUrl": url, "config": ["fps": 31]], "400 VALIDATION_ERROR"),
        (["videoUrl": url, "config": ["batchSize": 0]], "400 VALIDATION_ERROR"),
        (["videoUrl": url, "config": ["commercialVersions": ["lifestyle"]]], "400 VALIDATION_ERROR"),
        (["videoUrl": url, "config": ["aiCleanup": "yes"]], "400 VALIDATION_ERROR"),
        (["videoUrl": url, "config": ["stack": "minimal"]], "422 VALIDATION_ERROR"),
        (["videoUrl": url, "callbackUrl": .null], "400 VALIDATION_ERROR"),
        (["videoUrl": url, "callbackUrl": "ftp://example.com/cb"], "400 BAD_REQUEST"),
        (["videoUrl": url, "estimatedDurationSeconds": "30"], "422 VALIDATION_ERROR"),
        (["videoUrl": url, "estimatedDurationSeconds": 0], "422 VALIDATION_ERROR"),
        (["videoUrl": url, "estimatedDurationSeconds": 1501], "500 INTERNAL_ERROR"),
        (["videoUrl": url, "estimatedDurationSeconds": 1500], "403 INSUFFICIENT_CREDITS"),
        (["videoUrl": url, "estimatedDurationSeconds": 30], "201 "),
        (["videoUrl": "http://169.254.169.254/latest"], "201 "),
        (["videoUrl": url, "callbackUrl": "https://hooks.example.com/cb"], "201 "),
    ]

    @Test(arguments: refusals)
    func `a job's order is checked as the real one's is`(_ body: SandboxJSON, _ answer: String) async throws {
        try await withVOPI { sandbox, client async throws in
            #expect(try await client.create(body).coded == answer)
            #expect(sandbox.tally.jobs == (answer == "201 " ? 1 : 0))
        }
    }

    @Test func `defaults differ between no config and an empty one`() async throws {
        try await withVOPI { _, client async throws in
            let bare = try await client.create(["videoUrl": Self.url]).value
            #expect(
                bare["config"] == [
                    "fps": 10, "batchSize": 30, "commercialVersions": ["transparent"], "aiCleanup": true,
                    "geminiModel": "gemini-2.0-flash",
                ])
            #expect(bare["status"] == "pending" && bare.fields?.count == 5)
            let empty = try await client.create(["videoUrl": Self.url, "config": [:]]).value["config"]
            #expect(empty?["commercialVersions"] == ["transparent", "solid", "real", "creative"])
            let own: SandboxJSON = ["fps": "5", "stack": ["stackId": "minimal"], "stackId": "dropped"]
            let config = try await client.create(["videoUrl": Self.url, "config": own]).value["config"]
            #expect(config?["fps"] == 5 && config?["stack"] == ["stackId": "minimal"] && config?["stackId"] == nil)
        }
    }

    @Test func `equal orders make two jobs, and the list finds them, newest first`() async throws {
        try await withVOPI { sandbox, client async throws in
            var ids: [String] = []
            for _ in 0..<3 {
                ids.append(try await client.create(["videoUrl": Self.url]).value["id"]?.text ?? "")
            }
            let page = try await client.get("/jobs?limit=2&offset=1").value
            #expect(page["total"] == 3)
            #expect(page["jobs"]?.items?.compactMap { $0["id"]?.text } == [ids[1], ids[0]])
            #expect(page["jobs"]?.items?.first?["videoUrl"] == Self.url)
            #expect(page["jobs"]?.items?.first?["config"] == nil)
            #expect(try await client.get("/jobs?status=completed").value["jobs"] == [])
            #expect(try await client.get("/jobs?offset=1000").value == ["jobs": [], "total": 3])
            #expect(sandbox.jobs().map(\.id) == ids)
        }
    }

    @Test(arguments: [
        ("/jobs?limit=101", "400 VALIDATION_ERROR"), ("/jobs?limit=0", "400 VALIDATION_ERROR"),
        ("/jobs?limit=x", "400 VALIDATION_ERROR"), ("/jobs?status=running", "400 VALIDATION_ERROR"),
        ("/jobs/not-a-uuid", "400 VALIDATION_ERROR"), ("/jobs/", "400 VALIDATION_ERROR"),
        ("/jobs/00000000-0000-4000-8000-000000000000", "404 NOT_FOUND"),
        ("/jobs/00000000-0000-4000-8000-000000000000/status", "404 NOT_FOUND"),
        ("/nope", "404 Not Found"),
    ])
    func `reads are checked too`(_ path: String, _ answer: String) async throws {
        try await withVOPI { _, client async throws in #expect(try await client.get(path).coded == answer) }
    }

    @Test func `a content type without a body is the server's fault`() async throws {
        try await withVOPI(rules: VOPIRules(pace: .manual)) { _, client async throws in
            let id = try await client.job(noise(100, seed: 1))
            let typed = ["Content-Type": "application/json"]
            let path = VOPIClient.api + "/jobs/\(id)/cancel"
            #expect(try await client.send("POST", path, headers: typed).coded == "500 INTERNAL_ERROR")
            #expect(try await client.send("POST", path, [:]).status == 200)
        }
    }
}
