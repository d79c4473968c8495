import ArgumentParser
import InletConfig
import InletCore
import InletDashboard

struct Limit: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "limit", abstract: "Show or set the bandwidth limit.",
        discussion: """
            A new limit takes effect at once, also for running transfers, and lasts until 'auto' or the next start. For a
            permanent limit, edit the configuration (limits.bandwidth, schedule). 0 sends nothing and keeps connections
            open; 'off' lifts the limit and its schedule; 'auto' returns to the configuration. The limit of a destination
            applies in addition to the limit of all destinations. Exits with 75 when no agent runs.

            Examples:
              inlet limit
              inlet limit 5MiB/s
              inlet limit 20Mbit/s --to archive
              inlet limit auto
            """)

    @OptionGroup var options: ConfigOption
    @Argument(
        help: "5MiB/s, 20Mbit/s, 0, off or auto; without it, the limits are shown.",
        completion: .list(["auto", "off", "0"]))
    var rate: String?
    @Option(help: "The destination; without it, all of them together.", completion: .destinations)
    var to: String?
    @Flag(help: "Print one JSON object a line: one for each limit.") var json = false

    func validate() throws {
        if rate != nil, json { throw ValidationError("--json prints the limits; leave out the rate") }
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
            absence: { "no agent is running; the configuration sets its limits" }
        ) { agent in
            if let rate {
                return try await agent.ask(Endpoints.setLimit, body: LimitRequest(limit: rate, destination: to)).show()
            }
            let limits = try await agent.ask(Endpoints.limits)
            if json {
                for limit in limits { Console.print(try Console.json(limit)) }
            } else {
                Console.print(Self.table(limits.filter { $0.destination == nil || $0.isNotable }))
            }
        }
    }
    private static func table(_ limits: [LimitReport]) -> String {
        Console.table(
            [.text("DESTINATION"), .number("LIMIT"), .text("SET BY"), .text("UNTIL")],
            limits.map { limit in
                [
                    StyledText(limit.destination ?? "all"), StyledText(RateText.format(limit.bytes_per_second)),
                    StyledText(limit.why), StyledText(limit.until.map(Console.time) ?? "-"),
                ]
            })
    }
}
