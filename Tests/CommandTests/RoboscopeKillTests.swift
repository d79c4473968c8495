import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// The built command is killed while it writes to a Roboscope server; after restarts each thing is there once.
@Suite(.serialized, .timeLimit(.minutes(8))) struct RoboscopeKillTests {
    /// Kills the agent while it waits for the answer to such a request, which comes never.
    private func kill(
        _ agent: InletProcess, _ sandbox: RoboscopeSandbox, at operation: RoboscopeOperation
    ) async throws {
        let before = sandbox.faults.injected(at: operation)
        sandbox.faults.add(RoboscopeFault(.stall, at: operation, times: nil))
        try await agent.wait("\(operation.rawValue)") { sandbox.faults.injected(at: operation) > before }
        try await agent.kill()
        sandbox.faults.clear()
    }

    @Test func `an import that is killed five times brings each marker once, and ends its folder's session once`()
        async throws
    {
        try await withRoboscope(route: "unit: folder") { place, sandbox, _ in
            try place.putMarkers(3000)
            try place.put("atrium/a.mp4", bytes(50_000))
            for round in 1...5 {
                let agent = try await place.run()
                try await agent.wait("more markers", within: .seconds(90)) { sandbox.markers().count >= round * 300 }
                try await kill(agent, sandbox, at: .bulkMarkers)
            }
            let agent = try await place.run()
            try await agent.wait("the end", within: .seconds(90)) { sandbox.sessions().first?.status == "done" }
            #expect(try await agent.stop() == .code(0))
            sandbox.expectMarkers(3000)
            #expect(sandbox.sessions().count == 1 && sandbox.spaces().map(\.key) == ["atrium"])
            #expect(sandbox.sessions().first?.meta?["ingest_files"]?.number == 2)
        }
    }

    @Test(arguments: [RoboscopeOperation.createSpace, .updateSpace, .createSession, .bulkMarkers, .updateSession])
    func `killed before it hears that a step is done, it does none twice`(_ step: RoboscopeOperation) async throws {
        try await withRoboscope(route: "unit: folder") { place, sandbox, _ in
            try place.put("atrium/model.glb", bytes(50_000))
            try place.putMarkers(150)
            sandbox.faults.add(RoboscopeFault(.withholdAnswer, at: step, times: 1))
            let agent = try await place.run()
            try await agent.wait(step.rawValue) { sandbox.faults.injected(at: step) > 0 }
            try await agent.kill()
            let next = try await place.run()
            try await next.wait("the end", within: .seconds(90)) { sandbox.sessions().first?.status == "done" }
            #expect(try await next.stop() == .code(0))
            #expect(sandbox.sessions().count == 1 && sandbox.spaces().map(\.key) == ["atrium"])
            #expect(sandbox.spaces().first?.modelGLBURL?.hasSuffix("/model.glb") == true)
            sandbox.expectMarkers(150)
        }
    }

    @Test func `queue retry sends no marker again that the server has taken and does not list`() async throws {
        try await withRoboscope { place, sandbox, _ in
            let empty = FaultReply(200, type: "application/json", body: "[]")
            sandbox.faults.add(RoboscopeFault(.reply(empty), at: .listMarkers, times: nil))
            try place.putMarkers(250)
            let agent = try await place.run()
            for round in 1...2 {
                try await agent.line("job.failed", number: round, within: .seconds(60))
                #expect(sandbox.markers().count == 100 && sandbox.counts()["bulkMarkers"] == 1)
                try await agent.wait("the file has failed") {
                    try await place.inlet("queue", "list", "--state", "failed", "--json").objects().count == 1
                }
                if round == 2 { sandbox.faults.clear() }
                try await place.inlet("queue", "retry", "--all-failed", code: 0)
            }
            try await agent.line("job.finished", within: .seconds(60)) { $0["state"] == "delivered" }
            sandbox.expectMarkers(250)
            #expect(try await agent.stop() == .code(0))
        }
    }
}
