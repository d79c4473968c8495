import InletAgent
import InletCore
import InletJournal
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Many videos at a server that takes its time.
@Suite(.timeLimit(.minutes(8))) struct VOPIFlightTests {
    private static func section(_ values: [String: ConfigValue]) -> ConfigSection {
        ConfigSection(values: values, positions: [:], position: SourcePosition(line: 1, column: 1))
    }

    /// Videos go to the server, everything else to a folder; one worker for all.
    private static func scene(
        _ sandbox: VOPISandbox, _ factory: PipelineFactory, in directory: TemporaryDirectory
    ) async throws -> Scene {
        var scene = try Scene(in: directory)
        let seed = try directory.write(sandbox.signIn().refreshToken.reveal().utf8, to: "seed")
        let products: [String: ConfigValue] = [
            "url": .string("http://127.0.0.1:\(try await sandbox.port())"),
            "auth": .section(section(["refresh_token_file": .string(seed.string)])),
            "results": .string(directory.path.appending("results").string),
            // Nothing is looked at a second time while the test runs.
            "poll": .duration(.seconds(600)),
        ]
        let library = try directory.makeDirectory("library")
        scene.destinations = [
            try factory.make(DestinationSettings(name: "products", type: "vopi", values: section(products))),
            try factory.make(
                DestinationSettings(
                    name: "library", type: "folder", values: section(["path": .string(library.string)]))),
        ]
        scene.route.match = RouteMatch(extensions: ["mp4"])
        scene.route.to = ["products"]
        scene.others = [Route(name: "rest", key: try KeyTemplate("{name}"), to: ["library"])]
        scene.workers = 1
        return scene
    }

    @Test func `a hundred jobs in flight keep the one worker from nothing`() async throws {
        let directory = try TemporaryDirectory()
        let factory = PipelineFactory(
            pool: BlockingPool(name: "pipelines", threads: 4), userAgent: "inlet-tests/1",
            tokens: directory.path.appending("tokens"))
        defer { factory.shutdown() }
        let sandbox = try VOPISandbox(
            directory: directory.path.appending("server"), credits: 1000, rules: VOPIRules(pace: .manual))
        try await whileServing({ try await sandbox.run() }) {
            let scene = try await Self.scene(sandbox, factory, in: directory)
            try await scene.run { stage in
                for number in 1...100 { try scene.drop(FilePath("clip-\(number).mp4"), "video \(number)") }
                try await eventually("all have a job, and wait", within: .seconds(120)) {
                    try await stage.journal.waiting(limit: 200).count == 100
                }
                try scene.drop("note.txt", "meanwhile")
                try await stage.finished("note.txt")
                #expect(try text(directory.path.appending("library").appending("note.txt")) == "meanwhile")
                let tally = sandbox.tally
                #expect((tally.presigns, tally.puts, tally.jobs, tally.cancels) == (100, 100, 100, 0))
                #expect(Set(sandbox.jobs().map(\.videoURL)).count == 100)
                #expect(stage.agent.control.live?.inFlight.isEmpty == true)
                #expect(try await stage.jobs().count { $0.file.state == .pending } == 100)
            }
            // First, so that no connection of ours outlives its server.
            factory.shutdown()
        }
    }
}
