import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// `inlet queue` on videos whose jobs run at a VOPI server, or have run there.
@Suite(.serialized) struct VOPIQueueTests {
    @Test func `cancelling a file cancels its job, and nobody asks about it any more`() async throws {
        try await withVOPI(VOPIRules(pace: .manual)) { place, sandbox in
            let agent = try await place.run()
            try place.put("kettle.mp4", bytes(300_000))
            try await agent.line("job.waiting")
            #expect(try await place.inlet("queue", "cancel", "1").ending == .code(0))
            try await agent.wait("the job's end") { sandbox.tally.cancels == 1 }
            #expect(sandbox.jobs().map(\.status) == ["cancelled"])
            try await agent.line("job.finished") { $0["state"] == "cancelled" }
            #expect(try await place.balance()["cancelled"] == 1)
            let looks = agent.lines("job.started") { $0.isAbout("kettle.mp4") }.count
            try place.put("teapot.mp4", bytes(200_000))
            try await agent.line("job.started", number: 3) { $0.isAbout("teapot.mp4") }
            #expect(agent.lines("job.started") { $0.isAbout("kettle.mp4") }.count == looks)
            #expect(try await agent.stop() == .code(0))
        }
    }

    @Test func `a job is cancelled though its destination is paused; only a new upload is safe after that`()
        async throws
    {
        try await withVOPI(VOPIRules(pace: .manual)) { place, sandbox in
            let agent = try await place.run()
            try place.put("kettle.mp4", bytes(300_000))
            try await agent.line("job.waiting")
            #expect(try await place.inlet("pause", "store").ending == .code(0))
            #expect(try await place.inlet("queue", "cancel", "1").ending == .code(0))
            try await agent.line("transfer.aborted")
            #expect(sandbox.tally.cancels == 1)
            sandbox.rules.pace = .polls(steps: 8)
            #expect(try await place.inlet("resume", "store").ending == .code(0))
            #expect(try await place.inlet("queue", "retry", "1").ending == .code(0))
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
            #expect(try await place.inlet("queue", "retry", "1").ending == .code(0))
            try await agent.line("job.finished") { $0["state"] == "delivered" }
            let tally = sandbox.tally
            #expect(tally.jobs == 2 && tally.presigns == 1 && tally.puts == 1)
            #expect(try await agent.stop() == .code(0))
        }
    }

    @Test func `without credits a job that was paid for is fetched, and nothing new is sent`() async throws {
        try await withVOPI(VOPIRules(pace: .manual)) { place, sandbox in
            let agent = try await place.run()
            try place.put("kettle.mp4", bytes(300_000))
            try await agent.line("job.waiting")
            sandbox.credits = 0
            try place.put("teapot.mp4", bytes(200_000))
            try await agent.line("destination.down")
            sandbox.credits = 1
            sandbox.advance(steps: 20)
            sandbox.credits = 0
            try await agent.line("job.finished") { $0.isAbout("kettle.mp4") && $0["state"] == "delivered" }
            #expect(agent.lines("destination.up").isEmpty)
            let tally = sandbox.tally
            #expect(tally.puts == 1 && tally.jobs == 1 && tally.charges == 1)
            #expect(try await place.balance()["pending"] == 1)
            #expect(try await agent.stop() == .code(0))
        }
    }
}
