import ArgumentParser

struct Resume: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Ends a pause, and tries now: a destination that is down is asked, and what waits after a failure is due.",
        discussion: "Example: inlet resume spiral")

    @OptionGroup var options: ConfigOption
    @Argument(help: "The destination; without it, all of them.") var destination: String?

    func run() async throws { try await Pausing.set(false, destination, options) }
}
