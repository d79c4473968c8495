import InletAgent
import InletCore
import InletJournal
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Answers that concern a whole destination end none of its files.
@Suite(.timeLimit(.minutes(5))) struct StrangerTests {
    private static let page = "<!DOCTYPE html><html><title>Not Found</title><body>nginx</body></html>"

    /// Delivers to an API of which something else answers until it has done so so often. - Returns: the agent's events.
    private func deliver(
        _ count: Int, while action: FaultAction, times: Int, _ body: @escaping @Sendable (Stage) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        let factory = PipelineFactory(pool: BlockingPool(name: "strangers", threads: 4), userAgent: "inlet-tests/1")
        defer { factory.shutdown() }
        let sandbox = try SpiralSandbox(directory: directory.path.appending("server"), apiKey: Secret("key"))
        try await whileServing({ try await sandbox.run() }) {
            var scene = try Scene(in: directory)
            let values: [String: ConfigValue] = [
                "api": .string("http://127.0.0.1:\(try await sandbox.port())"), "api_key": .secret(Secret("key")),
            ]
            let section = ConfigSection(
                values: values, positions: [:], position: SourcePosition(line: 1, column: 1))
            scene.destinations = [try factory.make(DestinationSettings(name: "here", type: "r2", values: section))]
            scene.pace = ProbePace(first: .milliseconds(20), interval: .milliseconds(100))
            sandbox.faults.add(Fault(action, times: nil))
            try await scene.run { stage in
                for number in 1...count { try scene.drop(FilePath("\(number)"), "content \(number)") }
                try await eventually("something else has answered \(times) times") { sandbox.faults.injected >= times }
                try await eventually("it is down") { stage.events.count("destination.down") > 0 }
                try await body(stage)
                #expect(stage.events.count("job.failed") == 0)
                sandbox.faults.clear()
                for number in 1...count { try await stage.finished(FilePath("\(number)")) }
                #expect(stage.events.count("job.failed") == 0)
                let jobs = try await stage.jobs()
                #expect(jobs.allSatisfy { $0.file.state == .delivered && $0.deliveries[0].attempts <= 3 })
            }
            #expect(sandbox.objects().count == count)
            // First, so that no connection of ours outlives its server.
            factory.shutdown()
        }
    }

    @Test(arguments: [
        FaultAction.reply(FaultReply(404, type: "text/html", body: page)), .redirect(to: "https://elsewhere.example/"),
        .html, .reply(FaultReply(400, type: "text/html", body: "<html>400 Bad Request</html>")),
    ]) func `twenty files wait while something else answers in the service's place`(_ action: FaultAction) async throws
    {
        try await deliver(20, while: action, times: 12) { stage in
            let status = stage.agent.control.live?.destinations.first
            // The step, with its address: whichever of the files' was answered last.
            let steps = ["asking for an upload URL at http", "creating the upload at http"]
            let said = status?.lastError ?? ""
            #expect(steps.contains { said.contains($0) }, "\(said)")
        }
    }

    @Test func `a lone file outlives a server that fails for longer than its attempts`() async throws {
        try await deliver(1, while: .status(500), times: 8) { _ in }
    }

    // MARK: - In the service's own words

    private static let refusal = DeliveryError(.giveUp, .badRequest, "no", heard: Heard(400, .refusal))
    private static let tooLarge = DeliveryError(.giveUp, .tooLarge, "too large", heard: Heard(413, .object))

    @Test func `a lone file that is refused fails when it is refused again while a probe is good`() async throws {
        let scene = try Scene()
        scene.here.script("a", .fail(Self.refusal), .fail(Self.refusal))
        try await scene.run { stage in
            try scene.drop("a")
            let job = try await stage.finished("a", .failed)
            #expect(job.deliveries[0].attempts == 1 && job.deliveries[0].code == .badRequest)
            #expect(stage.events.count("destination.down") == 0)
        }
        #expect(scene.here.record.calls == ["a", "probe", "a"])
    }

    @Test func `two files that are refused alike are an outage, and are delivered when it is over`() async throws {
        var scene = try Scene()
        scene.pace = ProbePace(first: .milliseconds(20), interval: .milliseconds(100))
        for name in ["a", "b"] { scene.here.script(name, .fail(Self.refusal)) }
        scene.here.failProbes(.outage)
        try await scene.run { stage in
            try scene.drop("a")
            try scene.drop("b")
            try await eventually("it is down") { stage.events.count("destination.down") == 1 }
            try await stage.finished("a")
            try await stage.finished("b")
            #expect(stage.events.count("job.failed") == 0)
        }
    }

    @Test func `a refusal about the file itself ends it at once, and nobody else waits`() async throws {
        let scene = try Scene()
        for name in ["a", "b"] { scene.here.script(name, .fail(Self.tooLarge)) }
        try await scene.run { stage in
            for name in ["a", "b", "c"] as [FilePath] { try scene.drop(name) }
            try await stage.finished("a", .failed)
            try await stage.finished("b", .failed)
            try await stage.finished("c")
            #expect(stage.events.count("destination.down") == 0)
        }
        #expect(!scene.here.record.calls.contains("probe"))
    }
}
