import ArgumentParser
import InletLinux

/// The process that `inlet run` starts for itself; no command for people.
struct HostCommand: ParsableCommand {
    static let name = "process-host"

    static let configuration = CommandConfiguration(
        commandName: name, abstract: "Starts programs for a confined 'inlet run'.", shouldDisplay: false)

    func run() { ProcessHostServer.serve() }
}
