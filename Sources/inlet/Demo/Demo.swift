import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletLinux
import InletPipelines
import SystemPackage

struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Run an end-to-end demo on this machine: a drop folder, loopback servers, and sample files.",
        discussion: """
            Needs no account. Starts servers on loopback for the Spiral Storage API, S3, GigHive, VOPI and Roboscope.
            Writes a small configuration, drops samples into a folder, and shows each one arriving: a product's video
            becomes pictures, a 3D model appears in its space. Then it keeps watching: drop files of your own. With
            --once it compares every stored object with its source, byte for byte, and ends.

            With --fleet it shows several agents instead. It makes a private PostgreSQL cluster (apt install
            postgresql), and drops equal names at three agents with one store. Then it kills the agent that lists their
            share in the middle of an upload, and shows who goes on. All of it is removed at the end.

            Examples:
              inlet demo
              inlet demo --fleet
              inlet demo --once --dir /tmp/inlet-demo
            """)

    @Flag(help: "End when all samples have ended; exit with 1 if anything differs.") var once = false
    @Flag(help: "Show three agents that share a PostgreSQL.") var fleet = false
    @Option(help: ArgumentHelp("The folder for everything; without it, below XDG_STATE_HOME.", valueName: "DIR"))
    var dir: String?

    func run() async throws {
        ProcessMemory.boundHeap()
        ProcessSetup.ignoreSignals()
        ProcessSetup.raiseDescriptorLimit()
        if fleet {
            let base = dir.map { FilePath.absolute($0) } ?? FilePath.userState.appending("demo-fleet")
            return try await FleetDemo.run(in: base, isOnce: once)
        }
        let place = DemoFolders(dir.map { FilePath.absolute($0) } ?? FilePath.userState.appending("demo"))
        try place.prepare()
        let servers = try DemoServers(place)
        try await servers.serve { try await self.show(place, servers) }
    }

    private func show(_ place: DemoFolders, _ servers: DemoServers) async throws {
        let config = try await place.writeConfiguration(servers)
        let factory = PipelineFactory.standard(config)
        let destinations = try config.makeDestinations(factory)
        let state = try await AgentSession.takeState(config.settings.stateDirectory)
        let log = try EventLog(config.settings.log)
        defer { log.flush() }
        let session = try await AgentSession(
            config.settings, destinations: destinations, factory: factory, log: log, state: state,
            label: config.file.display)
        let stage = DemoProgress(place: place, log: log, control: session.control)
        stage.introduce()
        let isGood = try await session.run { [once] in
            let last = try await stage.lastJob()
            let samples = try DemoSamples.write(into: place.drop)
            try await stage.play(until: samples, after: last)
            if once {
                var comparison = DemoVerifier(place, servers)
                return try await comparison.run(samples, session.control)
            }
            stage.invite()
            try await stage.keepShowing()
            return true
        }
        _ = state.path
        if once, isGood != true { throw ExitStatus.failed.code }
    }
}
