import ArgumentParser
import InletConfig
import InletCore

/// `--destination NAME` and `--config FILE`, for commands about the servers of one type.
struct ServerOption: ParsableArguments {
    @OptionGroup var options: ConfigOption
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("The destination; needed where several are of this type.", valueName: "DEST"))
    var destination: String?

    /// The one destination of `type`, or the one of that name. Says what is wrong and exits otherwise.
    func find(_ type: String, in config: LoadedConfig) throws -> DestinationSettings {
        let all = config.settings.destinations
        let some = all.filter { $0.type == type }
        if let destination {
            if let found = some.first(where: { $0.name == destination }) { return found }
            let other = all.first { $0.name == destination }
            let hint = Suggestion.nearest(to: destination, in: some.map(\.name)).map { "; did you mean '\($0)'?" } ?? ""
            let why = other.map { "'\(destination)' is of type \($0.type), not \(type)" }
            Console.printError(
                "inlet: \(why ?? "no destination '\(DisplayText.escape(destination))' in \(config.file.display)\(hint)")"
            )
            throw ExitStatus.configuration
        }
        if some.count == 1 { return some[0] }
        if some.isEmpty {
            Console.printError("inlet: no destination of type \(type) in \(config.file.display)")
            throw ExitStatus.configuration
        }
        throw ValidationError("say which one with --destination: \(some.map(\.name).joined(separator: ", "))")
    }
}
