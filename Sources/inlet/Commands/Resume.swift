import ArgumentParser

struct Resume: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Ends a pause.", discussion: "Example: inlet resume spiral")

    @OptionGroup var options: ConfigOption
    @Argument(help: "The destination; without it, all of them.") var destination: String?

    func run() async throws { try await Pausing.set(false, destination, options) }
}
