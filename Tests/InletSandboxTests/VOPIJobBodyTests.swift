import Foundation
import InletCore
import InletSandbox
import Testing

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
