import ArgumentParser
import Foundation
import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletJournal
import InletLinux
import InletPipelines
import SystemPackage

struct Send: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sends single files now, with a progress bar, and leaves them where they are.",
        discussion: """
            Uses the running agent; without one, a journal of its own, so that repeating a 'send' that was killed goes on
            where it stopped, and repeating one that was done sends nothing.

            Examples:
              inlet send movie.mov
              inlet send --to archive *.wav
            """)

    @OptionGroup var options: ConfigOption
    @Argument(help: "The files.") var files: [String]
    @Option(help: ArgumentHelp("The destination; without it, the routes decide.", valueName: "DEST")) var to: String?

    func run() async throws {
        let config = try options.load()
        let paths = files.map { RouteCommand.absolute($0) }
        let socket = StateDirectory.controlSocket(in: config.settings.stateDirectory)
        let client = ControlClient(socket: socket)
        defer { client.shutdown() }
        let isRunning = (try? FileLook.look(at: socket)).map { $0 != .missing } ?? false
        if isRunning, (try? await client.status()) != nil {
            return try Self.exit(await Sending(control: client, to: to).send(paths))
        }
        try Self.exit(await sendAlone(config, paths))
    }

    private static func exit(_ outcome: Sending.Outcome) throws {
        switch outcome {
        case .delivered: return
        case .failed: throw ExitStatus.failed
        case .unavailable: throw ExitStatus.unavailable
        }
    }

    /// Runs an agent without watched folders until the files have ended.
    private func sendAlone(_ config: LoadedConfig, _ paths: [FilePath]) async throws -> Sending.Outcome {
        ProcessMemory.boundHeap()
        ProcessSetup.ignoreSignals()
        let factory = PipelineFactory.standard(config)
        let destinations = try config.makeDestinations(factory)
        var settings = config.settings
        let roots = settings.watch
        settings.watch = []
        // Who waits for the command sees what comes of it, and nobody would be there to try a receiver again.
        (settings.notify, settings.ping) = ([], nil)
        settings.stateDirectory = Self.ownState()
        let state = try AgentSession.takeState(settings.stateDirectory)
        let session = try await AgentSession(
            settings, destinations: destinations, factory: factory, log: try EventLog(nil), state: state,
            label: config.file.display, sendRoots: roots)
        let result = SendResult()
        try await session.run {
            result.set(try await Sending(control: session.control, to: to, isAlone: true).send(paths))
        }
        _ = state.path
        return result.outcome
    }

    private static func ownState() -> FilePath {
        let base =
            ProcessSetup.environment("XDG_STATE_HOME").flatMap { $0.isEmpty ? nil : FilePath($0) }
            ?? ProcessSetup.homeDirectory?.appending(".local").appending("state") ?? "/var/tmp"
        return base.appending("inlet").appending("send")
    }
}
