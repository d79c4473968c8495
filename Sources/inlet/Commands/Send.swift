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
            Uses the running agent; without one, the journal of the configuration's state directory, so that repeating a 'send'
            that was killed goes on where it stopped, and repeating one that was done sends nothing, and says so. What was delivered at another
            address of its destination (endpoint, bucket, folder) is sent there.
            What a running agent has taken is sent also when this command is stopped.

            Examples:
              inlet send movie.mov
              inlet send --to archive *.wav
            """)

    @OptionGroup var options: ConfigOption
    @Argument(help: "The files.", completion: .file()) var files: [NamedFiles]
    @Option(
        help: ArgumentHelp("The destination; without it, the routes decide.", valueName: "DEST"),
        completion: ConfiguredNames.destinations)
    var to: String?
    @Flag(help: "Sends also what was delivered there before.") var again = false

    func run() async throws {
        ProcessMemory.boundHeap()
        let config = try options.load()
        let folder = FilePath(FileManager.default.currentDirectoryPath)
        let socket = StateDirectory.controlSocket(in: config.settings.stateDirectory)
        let client = ControlClient(socket: socket)
        defer { client.shutdown() }
        // What does not answer may run all the same: then it has the lock, and this command ends with 75 and the reason.
        let isRunning = (try? FileLook.look(at: socket)).map { $0 != .missing } ?? false
        // As above.
        if isRunning, let status = try? await client.ask(Endpoints.status) {
            ProcessMemory.releaseColdPages()
            do {
                return try Self.exit(await send(config, folder, through: client, status.confinement))
            } catch let failure as ControlClient.Failure where failure.isRefusal {
                Console.printError("inlet: \(failure)")
                throw ExitStatus.failed
            }
        }
        try Self.exit(await sendAlone(config, folder, in: Self.state(config.settings.stateDirectory)))
    }

    /// Hands the files to the agent, but for those that it has given up to read: this command sends those itself.
    private func send(
        _ config: LoadedConfig, _ folder: FilePath, through client: ControlClient, _ confinement: ConfinementReport?
    ) async throws -> Sending.Outcome? {
        let isTheirs: @Sendable (FilePath) -> Bool = { confinement?.reaches($0) ?? true }
        let theirs = try await Sending(control: client, to: to, again: again).send(files, from: folder, where: isTheirs)
        var others = NameReader(files, from: folder) { !isTheirs($0) }
        guard let first = others.next(1).first else { return theirs }
        Console.printError(
            "inlet: the agent keeps to the folders of its configuration (landlock:); this command sends what lies elsewhere "
                + "itself, \(first.display) first")
        let own = try await sendAlone(config, folder, in: Self.ownState()) { !isTheirs($0) }
        return theirs == .delivered ? own : theirs
    }

    /// - Parameter outcome: nil = it was stopped before there was one.
    private static func exit(_ outcome: Sending.Outcome?) throws {
        switch outcome {
        case .delivered?: return
        case .failed?: throw ExitStatus.failed
        case .unavailable?: throw ExitStatus.unavailable
        case .agentGone?: throw ExitStatus.tryLater
        case nil:
            Console.printError("inlet: stopped before all was sent; repeating the command goes on")
            throw ExitStatus.interrupted
        }
    }

    /// Runs an agent without watched folders until the files have ended. What waits in the journal goes on meanwhile.
    private func sendAlone(
        _ config: LoadedConfig, _ folder: FilePath, in stateDirectory: FilePath,
        where takes: @escaping @Sendable (FilePath) -> Bool = { _ in true }
    ) async throws -> Sending.Outcome? {
        ProcessSetup.ignoreSignals()
        let factory = PipelineFactory.standard(config)
        let destinations = try config.makeDestinations(factory)
        var settings = config.settings
        let roots = settings.watch
        settings.watch = []
        settings.ping = nil
        // Who waits for the command sees what comes of it; receivers are told by the agent whose journal it is.
        if stateDirectory != settings.stateDirectory { settings.notify = [] }
        settings.stateDirectory = stateDirectory
        let state = try await AgentSession.takeState(settings.stateDirectory)
        let session = try await AgentSession(
            settings, destinations: destinations, factory: factory, log: try EventLog(nil), state: state,
            label: config.file.display, sendRoots: roots)
        let result = SendResult()
        let (files, sending) = (files, Sending(control: session.control, to: to, again: again, isAlone: true))
        try await session.run {
            ProcessMemory.releaseColdPages()
            result.set(try await sending.send(files, from: folder, where: takes))
        }
        _ = state.path
        return result.outcome
    }

    /// The agent's, where we may use it.
    private static func state(_ path: FilePath) -> FilePath {
        do throws(StateDirectory.Fault) {
            _ = try StateDirectory(path)
        } catch .system(let error) where error.isPermission {
            let own = ownState()
            Console.printError(
                "inlet: \(error); this command keeps what it knows in \(own.display), apart from what the agent knows")
            return own
        } catch {
            // Whoever takes it says what is wrong with it.
        }
        return path
    }

    private static func ownState() -> FilePath {
        let base =
            ProcessSetup.environment("XDG_STATE_HOME").flatMap { $0.isEmpty ? nil : FilePath($0) }
            ?? ProcessSetup.homeDirectory?.appending(".local").appending("state") ?? "/var/tmp"
        return base.appending("inlet").appending("send")
    }
}
