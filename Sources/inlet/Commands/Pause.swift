import ArgumentParser
import InletDashboard

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
    @Argument(help: "The destination; without it, all of them.", completion: ConfiguredNames.destinations)
    var destination: String?

    func run() async throws { try await Pausing.set(true, destination, options) }
}

/// What `pause` and `resume` share.
enum Pausing {
    static func set(_ paused: Bool, _ destination: String?, _ options: ConfigOption) async throws {
        try tell(
            try await ControlAccess.use(try options.load()) {
                try await $0.ask(Endpoints.setPaused(paused), [.destination: destination])
            })
    }

    static func tell(_ report: CommandReport) throws {
        guard report.done else {
            Console.printError("inlet: \(report.message)")
            throw ExitStatus.failed
        }
        Console.print(report.message)
    }
}
