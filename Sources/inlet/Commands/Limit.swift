import ArgumentParser
import InletConfig
import InletDashboard

struct Limit: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Says how fast the running agent may send, and why, or sets that.",
        discussion: """
            Takes effect at once, on what is under way too. It lasts until 'auto' or until the agent is started again;
            what is to last longer belongs into the configuration (limits.bandwidth, schedule). 0 sends nothing while
            connections stay; 'off' lifts the limit, that of the schedule included; 'auto' goes by the configuration again.
            The limits of a destination hold beside that of all together. Exits with 75 when no agent runs.

            Examples:
              inlet limit
              inlet limit 5MiB/s
              inlet limit 20Mbit/s --to archive
              inlet limit auto
            """)

    @OptionGroup var options: ConfigOption
    @Argument(
        help: "5MiB/s, 20Mbit/s, 0, off or auto; without it, what holds is shown.",
        completion: .list(["auto", "off", "0"]))
    var rate: String?
    @Option(help: "The destination; without it, all of them together.", completion: .destinations)
    var to: String?

    func validate() throws {
        guard let rate else {
            if to != nil { throw ValidationError("--to needs a rate: 5MiB/s, 0, off or auto") }
            return
        }
        let (order, fault) = LimitRequest.order(rate)
        if order == nil { throw ValidationError("'\(rate)' \(fault)") }
    }

    func run() async throws {
        let config = try options.load()
        try await ControlAccess.useRunning(
            at: config.controlSocket,
            absence: { "no agent is running; its limits are in the configuration" }
        ) { agent in
            if let rate {
                return try await agent.ask(Endpoints.setLimit, body: LimitRequest(limit: rate, destination: to)).show()
            }
            let shown = try await agent.ask(Endpoints.limits).filter { $0.destination == nil || $0.isNotable }
            Console.print(shown.map(\.text).joined(separator: "\n"))
        }
    }
}
