import Foundation
import InletCore
import InletSandbox
import Testing

@Suite struct VOPIJobTests {
    private static let steps = [
        "downloading", "extracting", "scoring", "classifying", "extracting_product", "generating", "completed",
    ]

    @Test func `a job reads pending, with everything unset, until it has completed`() async throws {
        try await withVOPI { sandbox, client async throws in
            let id = try await client.job(noise(5000, seed: 1))
            let early = try await client.get("/jobs/\(id)").value
            #expect(early["status"] == "pending" && early["progress"] == [:] && early["result"] == [:])
            #expect(early["error"] == "" && early["startedAt"] == "" && early["completedAt"] == "")
            let rest = try await client.statuses(of: id, 6)
            #expect(rest == Array(repeating: "pending", count: 5) + ["completed"])
            let late = try await client.get("/jobs/\(id)").value
            #expect(late["progress"] == [:] && late["startedAt"] == "" && late["completedAt"]?.text?.count == 24)
            #expect(late["result"]?["finalFrames"]?.items?.count == 3)
            #expect(sandbox.tally.charges == 1 && sandbox.credits == 4)
            #expect(sandbox.jobs().map(\.step) == [.completed])
        }
    }

    @Test(arguments: [VOPIRules.Progress.status, .full])
    func `a server may tell the steps`(_ progress: VOPIRules.Progress) async throws {
        try await withVOPI(rules: VOPIRules(progress: progress)) { _, client async throws in
            let id = try await client.job(noise(5000, seed: 1))
            #expect(try await client.statuses(of: id, 7) == Self.steps)
            let other = try await client.job(noise(5000, seed: 2))
            let told = try await client.get("/jobs/\(other)").value["progress"]
            #expect(told?["percentage"]?.number == (progress == .full ? 5 : nil))
            #expect(told?["step"]?.text == (progress == .full ? "downloading" : nil))
        }
    }

    @Test func `the clock, or nobody but the test, may move jobs`() async throws {
        let clock = TestClock()
        let rules = VOPIRules(pace: .clock(step: .seconds(10)))
        try await withVOPI(rules: rules, clock: clock) { sandbox, client async throws in
            let id = try await client.job(noise(5000, seed: 1))
            clock.pass(.seconds(69))
            #expect(try await client.statuses(of: id, 2) == ["pending", "pending"])
            clock.pass(.seconds(1))
            #expect(try await client.statuses(of: id, 1) == ["completed"])
            let begun = try await client.job(noise(5000, seed: 3))
            clock.pass(.seconds(10))
            #expect(try await client.cancel(begun).status == 200)
            clock.pass(.seconds(60))
            #expect(sandbox.jobs().map(\.status) == ["completed", "completed"])
            sandbox.rules.pace = .manual
            let other = try await client.job(noise(5000, seed: 2))
            // Less than the login lives.
            clock.pass(.seconds(500))
            #expect(try await client.statuses(of: other, 2) == ["pending", "pending"])
            sandbox.advance(steps: 7)
            #expect(try await client.statuses(of: other, 1) == ["completed"])
        }
    }

    @Test func `failed is not the end where a try is left, and the error stays`() async throws {
        var rules = VOPIRules.quick
        rules.outcome = .fails(times: 2, error: "No frames found")
        try await withVOPI(rules: rules) { sandbox, client async throws in
            let id = try await client.job(noise(5000, seed: 1))
            #expect(try await client.statuses(of: id, 3) == ["failed", "failed", "completed"])
            #expect(try await client.get("/jobs/\(id)").value["error"] == "No frames found")
            #expect(sandbox.tally.charges == 1)
        }
    }

    @Test func `after the third try failed stays`() async throws {
        var rules = VOPIRules.quick
        rules.outcome = .fails("No frames found")
        try await withVOPI(rules: rules) { sandbox, client async throws in
            let id = try await client.job(noise(5000, seed: 1))
            #expect(try await client.statuses(of: id, 5) == Array(repeating: "failed", count: 5))
            #expect(sandbox.jobs().map(\.failures) == [3] && sandbox.pictures(of: id).isEmpty)
            #expect(try await client.get("/jobs/\(id)/download-urls").coded == "400 BAD_REQUEST")
        }
    }

    @Test func `a cancel stops only what has not begun`() async throws {
        try await withVOPI(rules: VOPIRules(pace: .manual)) { sandbox, client async throws in
            let queued = try await client.job(noise(5000, seed: 1))
            let cancelled = try await client.cancel(queued)
            #expect(cancelled.status == 200 && cancelled.value["status"] == "cancelled")
            #expect(try await client.cancel(queued).coded == "400 BAD_REQUEST")
            let running = try await client.job(noise(5000, seed: 2))
            sandbox.advance()
            #expect(try await client.cancel(running).status == 200)
            sandbox.advance(steps: 20)
            #expect(try await client.statuses(of: queued, 1) == ["cancelled"])
            #expect(try await client.statuses(of: running, 1) == ["completed"])
            #expect(sandbox.jobs().map(\.isCharged) == [false, true] && sandbox.tally.cancels == 2)
            #expect(try await client.cancel(UUID().uuidString).coded == "404 NOT_FOUND")
        }
    }

    @Test func `a job can be deleted with all that it has made`() async throws {
        try await withVOPI(rules: .quick) { sandbox, client async throws in
            let id = try await client.job(noise(5000, seed: 1))
            _ = try await client.statuses(of: id, 1)
            let file = try #require(sandbox.pictures(of: id).first?.object.path)
            #expect(try content(of: file).starts(with: [0x89, 0x50, 0x4E, 0x47]))
            let gone = try await client.delete(id)
            #expect(gone.status == 204 && gone.body.isEmpty)
            #expect(try await client.delete(id).coded == "404 NOT_FOUND")
            #expect(sandbox.jobs().isEmpty && sandbox.tally.deletes == 1 && (try? content(of: file)) == nil)
        }
    }

    @Test func `a running job whose step is told can be neither cancelled nor deleted`() async throws {
        try await withVOPI(rules: VOPIRules(progress: .status)) { _, client async throws in
            let id = try await client.job(noise(5000, seed: 1))
            _ = try await client.statuses(of: id, 2)
            #expect(try await client.cancel(id).coded == "400 BAD_REQUEST")
            #expect(try await client.delete(id).coded == "409 CONFLICT")
        }
    }

    @Test func `no credits fail a job, and new ones mend it`() async throws {
        try await withVOPI(rules: .quick, credits: 0) { sandbox, client async throws in
            let url = SandboxJSON.string(try await client.upload(noise(5000, seed: 1)))
            let dear = try await client.create(["videoUrl": url, "estimatedDurationSeconds": 30])
            #expect(dear.coded == "403 INSUFFICIENT_CREDITS")
            let id = try await client.create(["videoUrl": url]).value["id"]?.text ?? ""
            #expect(try await client.statuses(of: id, 1) == ["failed"])
            let error = try await client.get("/jobs/\(id)").value["error"]?.text ?? ""
            #expect(error.hasPrefix("Insufficient credits. Required: 1, available: 0."))
            sandbox.credits = 2
            #expect(try await client.statuses(of: id, 1) == ["completed"])
            let balance = try await client.get("/credits/balance").value
            #expect(balance["balance"]?.number == 1 && balance["transactions"]?.items?.count == 1)
            #expect(try await client.get("/credits/balance?includeHistory=false").value == ["balance": 1])
        }
    }

    @Test func `a video that is gone, and a stack nobody knows, end no job well`() async throws {
        try await withVOPI(rules: .quick) { sandbox, client async throws in
            let done = try await client.job(noise(5000, seed: 1))
            _ = try await client.statuses(of: done, 1)
            let url = try #require(sandbox.videos().first?.publicURL)
            let again = try await client.create(["videoUrl": .string(url)]).value["id"]?.text ?? ""
            #expect(try await client.statuses(of: again, 1) == ["failed"])
            #expect(try await client.get("/jobs/\(again)").value["error"]?.text == "Failed to download \(url): 404")
            sandbox.rules.outcome = .neverRuns
            let stuck = try await client.job(noise(5000, seed: 2))
            #expect(try await client.statuses(of: stuck, 3) == ["pending", "pending", "pending"])
            #expect(sandbox.tally.jobs == 3 && sandbox.tally.charges == 1)
        }
    }
}
