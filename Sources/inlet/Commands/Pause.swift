import ArgumentParser
import InletConfig
import InletCore
import InletDashboard
import SystemPackage

struct Pause: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Pause deliveries to one destination, or to all.",
        discussion: """
            Deliveries that are under way finish; the pause survives restarts. New files still enter the queue.

            Examples:
              inlet pause
              inlet pause archive
            """)

    @OptionGroup var options: ConfigOption
    @Argument(help: "The destination; without it, all of them.", completion: .destinations)
    var destination: String?

    func run() async throws { try await options.setPaused(true, destination) }
}

extension ConfigOption {
    /// Pauses or resumes deliveries to a destination; nil = all destinations.
    func setPaused(_ isPaused: Bool, _ destination: String?) async throws {
        try await use { try await $0.ask(Endpoints.setPaused(isPaused), [.destination: destination]) }.show()
    }
}

struct Resume: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract:
            "End a pause, and try now: also destinations that are down, and files that wait after a failure.",
        discussion: """
            --root resumes a watched folder that Inlet paused because it had changed: another disk, or an empty one.

            Examples:
              inlet resume archive
              inlet resume --root /srv/photos
            """)

    @OptionGroup var options: ConfigOption
    @Argument(help: "The destination; without it, all of them.", completion: .destinations)
    var destination: String?

    @Option(help: "A watched folder whose change is intended.", completion: .roots)
    var root: String?

    func validate() throws {
        if root != nil, destination != nil { throw ValidationError("either a destination or --root") }
    }

    func run() async throws {
        guard let root else { return try await options.setPaused(false, destination) }
        let config = try options.load()
        let path = FilePath.absolute(root)
        guard config.settings.watch.contains(where: { $0.pattern == nil && $0.path == path }) else {
            throw ExitStatus.failed.saying("\(path.display) is not a watched folder")
        }
        try await ControlAccess.use(config) { control in
            try await control.ask(Endpoints.resumeRoot, body: RootOrder(path: path))
        }.show()
    }
}
