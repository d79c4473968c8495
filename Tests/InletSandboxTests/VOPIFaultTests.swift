import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

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
