import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletDashboard

/// What the page's banner after a start is made of.
@Suite struct ResumeBannerTests {
    @Test func `the page is told how far what waited at the start has gone, and in the end what came of it`()
        async throws
    {
        let scene = try DashboardScene(resuming: Array(1...9))
        for job in 1...7 as ClosedRange<Int64> {
            scene.log.emit(
                .jobFinished(job: job, path: "/in/a", state: .delivered, disposition: "kept", route: "all"))
        }
        let waiting = AgentEvent.JobRef(job: 8, delivery: 8, path: "/in/b", route: "all", destination: "disk")
        scene.log.emit(.jobWaiting(waiting, until: .now, saying: nil, isRepeated: false))
        try await scene.serving { port in
            let client = try RawClient(port: port)
            let status = try await client.request("GET", "/api/v1/status")
            let told = status.object["resuming"] as? [String: Int]
            #expect(told == ["of": 9, "resumed": 7, "failed": 0, "waiting": 1])
            scene.log.emit(.queueResumed(ResumeSummary(of: 9, resumed: 7, failed: 1, waiting: 1)))
            let log = try await client.request("GET", "/api/v1/log?level=info")
            let ended = try #require(log.list.last)
            #expect(ended["event"] as? String == "queue.resumed")
            #expect(["of", "resumed", "failed", "waiting"].map { ended[$0] as? Int } == [9, 7, 1, 1])
        }
    }

    @Test func `an agent that had nothing to resume tells nothing of it`() async throws {
        try await DashboardScene().serving { port in
            let status = try await RawClient(port: port).request("GET", "/api/v1/status")
            #expect(status.status == 200 && status.object["resuming"] == nil)
        }
    }
}
