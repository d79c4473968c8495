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

    func run() async throws { try await options.setPaused(true, destination) }
}

extension ConfigOption {
    /// Pauses or resumes deliveries to a destination; nil = to all.
    func setPaused(_ isPaused: Bool, _ destination: String?) async throws {
        try await use { try await $0.ask(Endpoints.setPaused(isPaused), [.destination: destination]) }.show()
    }
}
