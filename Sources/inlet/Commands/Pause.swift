import ArgumentParser
import InletConfig
import InletCore
import InletDashboard
import SystemPackage

struct Pause: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Starts no new delivery to a destination (or to any) until it is resumed.",
        discussion: """
            Running deliveries end; the pause outlives restarts. Files are still taken into the queue.

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
    /// Pauses or resumes deliveries to a destination; nil = to all.
    func setPaused(_ isPaused: Bool, _ destination: String?) async throws {
        try await use { try await $0.ask(Endpoints.setPaused(isPaused), [.destination: destination]) }.show()
    }
}

struct Resume: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Ends a pause, and tries now: a destination that is down is asked, and what waits after a failure is due.",
        discussion: """
            With --root, a watched folder goes on as it is now that was paused because it is not what it was before: another
            disk, or an empty one.

            Examples:
              inlet resume archive
              inlet resume --root /srv/photos
            """)

    @OptionGroup var options: ConfigOption
    @Argument(help: "The destination; without it, all of them.", completion: .destinations)
    var destination: String?

    @Option(help: "A watched folder that is right as it is.", completion: .roots)
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
