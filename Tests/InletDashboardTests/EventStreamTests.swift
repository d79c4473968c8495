import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletDashboard

/// What a reader of the event stream is told.
@Suite(.serialized) struct EventStreamTests {
    private static func open(_ port: Int, _ query: String = "", headers: String = "") throws -> RawClient {
        let client = try RawClient(port: port)
        client.send("GET /api/v1/events\(query) HTTP/1.1\r\nHost: 127.0.0.1\r\n\(headers)\r\n")
        return client
    }

    @Test func `hello comes first, then the status, then what happens, as it happens`() async throws {
        let scene = try DashboardScene()
        try await scene.serving { port in
            let reader = try Self.open(port)
            try await reader.receive("hello") { $0.contains("event: hello\ndata: {") }
            #expect(reader.text.contains("Content-Type: text/event-stream"))
            try await reader.receive("a status") { $0.contains("event: status\n") && $0.contains("\"running\":true") }
            scene.log.emit(.jobAdmitted(job: 8, path: "/in/b", route: "all", size: 3, deliveries: ["disk"]))
            scene.log.emit(.jobUnchanged(job: 9, path: "/in/c"))
            scene.log.emit(.queueRecovered)
            try await reader.receive("the events") {
                $0.contains("queue.recovered") && $0.contains("\"was\":\"queue.free\"")
            }
            #expect(reader.text.contains("\"event\":\"job.admitted\"") && !reader.text.contains("job.unchanged"))
            #expect(reader.text.contains("id: \(scene.feed.last)\n"))
        }
    }

    @Test func `a reader that was away goes on where it was`() async throws {
        let scene = try DashboardScene()
        for number in 1...3 { scene.log.emit(.queueResuming(waiting: number)) }
        let last = scene.feed.last
        try await scene.serving { port in
            let back = try Self.open(port, headers: "Last-Event-ID: \(last - 1)\r\n")
            try await back.receive("what it missed") { $0.contains("id: \(last)\n") }
            #expect(!back.text.contains("id: \(last - 1)\n"))
            let old = try Self.open(port, "?after=1&level=debug")
            try await old.receive("all that is remembered") { $0.contains("id: \(last)\n") }
            #expect(old.text.contains("id: \(last - 2)\n"))
        }
    }

    @Test func `a command that says no event is shown all the same, and the status is not older than it`() async throws
    {
        let scene = try DashboardScene()
        let job = try await scene.admit("a.mp4")
        try await scene.serving { port in
            let reader = try Self.open(port)
            try await reader.receive("the file") { $0.contains("\"pending\":1,") }
            let client = try RawClient(port: port)
            _ = try await client.post("jobs/\(job)/cancel")
            try await reader.receive("that it is gone") { $0.contains("\"pending\":0,") }
        }
    }

    @Test func `there are so many streams and no more, and one that is closed makes room`() async throws {
        try await DashboardScene().serving { port in
            var readers: [RawClient] = []
            for _ in 0..<Semaphore.streams {
                let reader = try Self.open(port)
                try await reader.receive("hello") { $0.contains("event: hello") }
                readers.append(reader)
            }
            let refused = try await Self.open(port).answer()
            #expect(refused.status == 503 && refused.error == "streams")
            readers.removeLast()
            try await eventually("there is room") {
                let reader = try Self.open(port)
                try await reader.receive("an answer") { $0.contains("event: hello") || $0.contains(" 503 ") }
                return reader.text.contains("event: hello")
            }
        }
    }

    @Test func `another site's page has no stream, and a session that ends has no more of it`() async throws {
        try await DashboardScene().serving { port in
            let answer = try await Self.open(port, headers: "Sec-Fetch-Site: cross-site\r\n").answer()
            #expect(answer.status == 403 && answer.error == "csrf")
        }
    }
}

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
            let status = try await client.get("status")
            let told = status.object["resuming"] as? [String: Int]
            #expect(told == ["of": 9, "resumed": 7, "failed": 0, "waiting": 1])
            scene.log.emit(.queueResumed(ResumeSummary(of: 9, resumed: 7, failed: 1, waiting: 1)))
            let log = try await client.get("log?level=info")
            let ended = try #require(log.list.last)
            #expect(ended["event"] as? String == "queue.resumed")
            #expect(["of", "resumed", "failed", "waiting"].map { ended[$0] as? Int } == [9, 7, 1, 1])
        }
    }

    @Test func `an agent that had nothing to resume tells nothing of it`() async throws {
        try await DashboardScene().serving { port in
            let status = try await RawClient(port: port).get("status")
            #expect(status.status == 200 && status.object["resuming"] == nil)
        }
    }
}
