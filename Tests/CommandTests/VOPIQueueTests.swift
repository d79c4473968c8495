import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// `inlet queue` on videos whose jobs run at a VOPI server, or have run there.
@Suite(.serialized) struct VOPIQueueTests {
    @Test func `a job is cancelled though its destination is paused; only a new upload is safe after that`()
        async throws
    {
        try await withVOPI(VOPIRules(pace: .manual)) { place, sandbox in
            let agent = try await place.run()
            try place.put("kettle.mp4", bytes(300_000))
            try await agent.line("job.waiting")
            try await place.inlet("pause", "store", code: 0)
            try await place.inlet("queue", "cancel", "1", code: 0)
            try await agent.line("transfer.aborted")
            #expect(sandbox.tally.cancels == 1)
            sandbox.rules.pace = .polls(steps: 8)
            try await place.inlet("resume", "store", code: 0)
            try await place.inlet("queue", "retry", "1", code: 0)
            try await agent.line("job.finished") { $0["state"] == "delivered" }
            // A cancelled job that was running would complete, and take its video away.
            let tally = sandbox.tally
            #expect(tally.jobs == 2 && tally.puts == 2 && sandbox.videos().count == 2)
            #expect(sandbox.jobs().map(\.status) == ["cancelled", "completed"])
            #expect(try await agent.stop() == .code(0))
        }
    }

    @Test func `a job that failed is made again of the same upload`() async throws {
        try await withVOPI(VOPIRules(pace: .polls(steps: 8), outcome: .fails("No product in sight"))) {
            place, sandbox in
            let agent = try await place.run()
            try place.put("kettle.mp4", bytes(300_000))
            try await agent.line("job.finished") { $0["state"] == "failed" }
            try await agent.line("transfer.aborted")
            sandbox.rules.outcome = .completes
            try await place.inlet("queue", "retry", "1", code: 0)
            try await agent.line("job.finished") { $0["state"] == "delivered" }
            let tally = sandbox.tally
            #expect(tally.jobs == 2 && tally.presigns == 1 && tally.puts == 1)
            #expect(try await agent.stop() == .code(0))
        }
    }
}
