import ArgumentParser
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
        commandName: "send", abstract: "Send single files now, with a progress bar, and leave them where they are.",
        discussion: """
            Uses the running agent; without one, the journal in state_dir. Repeat a killed 'send' to continue where it
            stopped; repeating a finished one sends nothing, and says so. If a destination's address has changed
            (endpoint, bucket, folder), files are sent to the new one. A running agent finishes the files that it has
            taken, even when you stop this command.

            Examples:
              inlet send movie.mov
              inlet send --to archive *.wav
            """)

    @OptionGroup var options: ConfigOption
    @Argument(help: "The files.", completion: .file()) var files: [NamedFiles]
    @Option(
        help: ArgumentHelp("The destination; without it, the routes decide.", valueName: "DEST"),
        completion: .destinations)
    var to: String?
    @Flag(help: "Send files again that were delivered before.") var again = false

    func run() async throws {
        ProcessMemory.boundHeap()
        let config = try options.load()
        let folder = FilePath.workingDirectory
        let socket = config.controlSocket
        let client = ControlClient(socket: socket)
        defer { client.shutdown() }
        // An agent that does not answer may still run and hold the lock: then this command exits with 75 and the
        // reason.
        let isRunning = FileLook.glance(at: socket).map { $0 != .missing } ?? false
        if isRunning, let status = try? await client.ask(Endpoints.status) {
            do {
                return try Self.exit(await send(config, folder, through: client, status.confinement))
            } catch let failure as ControlClient.Failure where failure.isRefusal {
                throw ExitStatus.failed.saying("\(failure)")
            }
        }
        try Self.exit(await sendAlone(config, folder, in: Self.state(config.settings.stateDirectory)))
    }

    /// Hands the files to the agent. This command itself sends the files that a confined agent cannot read.
    private func send(
        _ config: LoadedConfig, _ folder: FilePath, through client: ControlClient, _ confinement: ConfinementReport?
    ) async throws -> Sending.Outcome? {
        let isTheirs: @Sendable (FilePath) -> Bool = { confinement?.reaches($0) ?? true }
        let theirs = try await Sending(control: client, to: to, again: again).send(files, from: folder, where: isTheirs)
        var others = NameReader(files, from: folder) { !isTheirs($0) }
        guard let first = others.next(1).first else { return theirs }
        Console.printError(
            "inlet: the agent keeps to the folders of its configuration (landlock:); this command itself sends "
                + "the files elsewhere, \(first.display) first")
        let own = try await sendAlone(config, folder, in: FilePath.userState.appending("send")) { !isTheirs($0) }
        return theirs == .delivered ? own : theirs
    }

    /// - Parameter outcome: nil = stopped before there was one.
    private static func exit(_ outcome: Sending.Outcome?) throws {
        switch outcome {
        case .delivered?: return
        case .failed?: throw ExitStatus.failed.code
        case .unavailable?: throw ExitStatus.unavailable.code
        case .agentGone?: throw ExitStatus.tryLater.code
        case nil:
            throw ExitStatus.interrupted.saying("stopped before all files were sent; repeat the command to continue")
        }
    }

    /// Runs an agent without watched folders until the files have ended. It also delivers the waiting files of the
    /// journal.
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
        // The user watches this command; the journal's agent notifies the receivers.
        if stateDirectory != settings.stateDirectory { settings.notify = [] }
        settings.stateDirectory = stateDirectory
        let state = try await AgentSession.takeState(settings.stateDirectory)
        let session = try await AgentSession(
            settings, destinations: destinations, factory: factory, log: try EventLog(nil), state: state,
            label: config.file.display, sendRoots: roots)
        let (files, sending) = (files, Sending(control: session.control, to: to, again: again, isAlone: true))
        let outcome = try await session.run {
            return try await sending.send(files, from: folder, where: takes)
        }
        _ = state.path
        return outcome
    }

    /// The agent's access token, where this user may use it.
    private static func state(_ path: FilePath) -> FilePath {
        do throws(StateDirectory.Fault) {
            _ = try StateDirectory(path)
        } catch .system(let error) where error.isPermission {
            let own = FilePath.userState.appending("send")
            Console.printError(
                "inlet: \(error); this command keeps its journal in \(own.display), apart from the agent's")
            return own
        } catch {
            // The agent that takes the file reports its problems.
        }
        return path
    }
}

/// The file names of a command line, as bytes.
///
/// A shell expands one `*` to tens of thousands of names, and the parser's time and memory grow with the square of
/// their number. It therefore sees one word for each run of names, which holds their places.
struct NamedFiles: ExpressibleByArgument {
    /// Places in the process's arguments; nil for a name from elsewhere.
    private let row: Range<Int>?
    private let one: FilePath

    init(argument: String) { (row, one) = (Self.row(argument), FilePath(argument)) }

    /// The number of names.
    var count: Int { row?.count ?? 1 }

    /// The names at these places, as they were typed.
    func paths(_ wanted: Range<Int>) -> [FilePath] {
        guard let row else { return wanted.contains(0) ? [one] : [] }
        return wanted.clamped(to: 0..<row.count).compactMap { Self.argument(row.lowerBound + $0) }
    }

    // MARK: - The command line

    /// The commands whose arguments are files.
    private static let commands: Set = ["send", "route"]

    /// The arguments of this process for the parser; nil = unchanged.
    static func commandLine() -> [String]? {
        let count = Int(CommandLine.argc)
        guard count > 2, let command = argument(1)?.string, commands.contains(command) else { return nil }
        return [command] + folded(2..<count) { CommandLine.unsafeArgv[$0].map { String(cString: $0) } ?? "" }
    }

    /// The words at `places`, with one for each run of names. A name does not begin with `-`, and does not follow an
    /// option that may want a value. After `--` every word is a name.
    static func folded(_ places: Range<Int>, _ word: (Int) -> String) -> [String] {
        var result: [String] = []
        var row: Range<Int>?
        var (allAreNames, mayBeValue) = (false, false)
        func endRow() {
            if let row { result.append(mark + "\(row.lowerBound) \(row.upperBound)") }
            row = nil
        }
        for place in places {
            let text = word(place)
            let isOption = !allAreNames && text.hasPrefix("-")
            if isOption || mayBeValue {
                endRow()
                result.append(text)
                allAreNames = allAreNames || (isOption && text == "--")
                mayBeValue = isOption && text != "--" && !text.contains("=")
            } else {
                row = (row?.lowerBound ?? place)..<(place + 1)
            }
        }
        endRow()
        return result
    }

    /// Arguments contain no zero byte.
    private static let mark = "\0"

    private static func row(_ word: String) -> Range<Int>? {
        guard word.hasPrefix(mark) else { return nil }
        let ends = word.dropFirst(mark.count).split(separator: " ").compactMap { Int($0) }
        return ends.count == 2 && ends[0] <= ends[1] ? ends[0]..<ends[1] : nil
    }

    private static func argument(_ place: Int) -> FilePath? {
        guard place < CommandLine.argc else { return nil }
        return CommandLine.unsafeArgv[place].map { FilePath(platformString: $0) }
    }
}

/// Reads the names of a command line in portions, because all of them as paths may need too much memory.
struct NameReader {
    private var left: ArraySlice<NamedFiles>
    private var read = 0
    private let folder: FilePath
    private let takes: (FilePath) -> Bool

    /// - Parameters:
    ///   - folder: where relative names begin.
    ///   - takes: selects the names to read.
    init(_ files: [NamedFiles], from folder: FilePath, where takes: @escaping (FilePath) -> Bool = { _ in true }) {
        left = files[...]
        self.folder = folder
        self.takes = takes
    }

    /// The next `most` names, or all that are left.
    mutating func next(_ most: Int) -> [FilePath] {
        var found: [FilePath] = []
        while let files = left.first, found.count < most {
            let part = files.paths(read..<(read + most - found.count))
            found += part.map { folder.pushing($0).lexicallyNormalized() }.filter(takes)
            read += part.count
            if read >= files.count { (left, read) = (left.dropFirst(), 0) }
        }
        return found
    }
}
