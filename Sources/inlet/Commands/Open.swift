import ArgumentParser
import InletAgent
import InletConfig
import InletDashboard
import InletLinux

struct Open: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "open", abstract: "Print a link to the page that logs a browser in, once.",
        discussion: """
            The link works for ten minutes, for one browser, and gives full access. Only root and the agent's own user can
            ask for one. Exits with 75 when no agent runs, and with 78 when its configuration opens no port.

            Examples:
              inlet open
              xdg-open "$(inlet open)"
            """)

    @OptionGroup var options: ConfigOption

    func run() async throws {
        let link = try await ControlAccess.useRunning(
            at: options.socket(), absence: { "no agent is running; start one with 'inlet run'" }
        ) { agent in try await agent.ask(Endpoints.loginLink) }
        guard let url = link.url else { throw ExitStatus.configuration.saying(link.message) }
        Console.print(url)
    }
}
