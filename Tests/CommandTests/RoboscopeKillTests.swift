import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// The built command is killed while it writes to a Roboscope server; after restarts each thing is there once.
@Suite(.serialized, .timeLimit(.minutes(8))) struct RoboscopeKillTests {
    /// A machine with a Roboscope sandbox as destination `spaces`, whose files go to a Spiral sandbox.
    private func withRoboscope(
        _ body: @Sendable @escaping (Place, RoboscopeSandbox) async throws -> Void
    ) async throws {
        let place = try Place()
        let sandbox = RoboscopeSandbox(token: Secret("space-token-5521"))
        try await withSandbox(place.folder.path.appending("store")) { _, port in
            try await whileServing({ try await sandbox.run() }) {
                try place.configure(
                    text: """
                        state_dir: state
                        destinations:
                          store: { type: r2, api: "http://127.0.0.1:\(port)",
                                   public_url: "http://127.0.0.1:\(port)/public",
                                   api_key: "\(ConfigText.apiKey)" }
                          spaces: { type: roboscope, url: "http://127.0.0.1:\(try await sandbox.port())/api/v1",
                                    storage: store, token: space-token-5521 }
                        watch:
                          - { path: drop, settle: 0s }
                        routes:
                          - { name: all, to: spaces, key: "models/{dir}/{name}", unit: folder }

                        """)
                try await body(place, sandbox)
            }
        }
    }

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
        try await withRoboscope { place, sandbox in
            let list = (0..<3000).map { #"{"p1":[\#($0),0,0],"p2":[1,0,0],"p3":[1,1,0],"p4":[0,1,0]}"# }
            try place.put("atrium/markers.json", Data("[\(list.joined(separator: ","))]".utf8))
            try place.put("atrium/a.mp4", bytes(50_000))
            for round in 1...5 {
                let agent = try await place.run()
                try await agent.wait("more markers", within: .seconds(90)) { sandbox.markers().count >= round * 300 }
                try await kill(agent, sandbox, at: .bulkMarkers)
            }
            let agent = try await place.run()
            try await agent.wait("the end", within: .seconds(90)) { sandbox.sessions().first?.status == "done" }
            #expect(try await agent.stop() == .code(0))
            let stamps = sandbox.markers().compactMap { $0.customProps["ingest_id"]?.text }
            #expect(stamps.count == 3000 && Set(stamps).count == 3000)
            #expect(sandbox.markers().count == 3000)
            #expect(sandbox.sessions().count == 1 && sandbox.spaces().map(\.key) == ["atrium"])
            #expect(sandbox.sessions().first?.meta?["ingest_files"]?.number == 2)
        }
    }
}
