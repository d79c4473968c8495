import ArgumentParser
import InletAgent
import InletCore
import InletDashboard
import InletFleet

extension FleetCommands {
    struct Status: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "status", abstract: "Show the fleet's state, its agents and shares, and what it waits for.",
            discussion: """
                Asks the running agent, or the database. Exits with 75 where neither can be asked.

                Examples:
                  inlet fleet status
                  inlet fleet status --json | jq -r '.agents[] | select(.is_alive | not) | .name'
                """)

        @OptionGroup var options: ConfigOption
        @OptionGroup(title: "Database") var access: FleetURLOption
        @Flag(help: "Print one JSON object.") var json = false

        func run() async throws {
            let report = try await FleetView(options, access).report()
            Console.print(json ? try Console.json(report, isPretty: true) : report.text)
        }
    }

    struct Agents: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "agents",
            abstract: "List the agents of the fleet.", discussion: "Example: inlet fleet agents --json")

        @OptionGroup var options: ConfigOption
        @OptionGroup(title: "Database") var access: FleetURLOption
        @Flag(help: "Print one JSON object a line.") var json = false

        func run() async throws {
            let report = try await FleetView(options, access).report()
            if json {
                for agent in report.agents { Console.print(try Console.json(agent)) }
            } else {
                Console.print(report.agents.isEmpty ? "No agent has joined yet." : report.agentTable)
            }
        }
    }

    struct Places: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "places",
            abstract: "List the shares that several agents watch: who lists each, and what it waits for.",
            discussion: """
                Asks the running agent, or the database.

                Examples:
                  inlet fleet places
                  inlet fleet places --json | jq -r 'select(.is_held | not) | .name'
                """)

        @OptionGroup var options: ConfigOption
        @OptionGroup(title: "Database") var access: FleetURLOption
        @Flag(help: "Print one JSON object a line.") var json = false

        func run() async throws {
            let report = try await FleetView(options, access).report()
            if json {
                for place in report.places { Console.print(try Console.json(place)) }
            } else {
                Console.print(
                    report.places.isEmpty ? "No agent watches a share together with others." : report.placeTable)
            }
        }
    }

    struct Search: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "search", abstract: "Find which machine has a file, and where it was delivered.",
            discussion: """
                Finds receipts by a file's name, the beginning of a key, or a SHA-256. Asks the running agent, or the
                database. Exits with 1 when nothing is found.

                Examples:
                  inlet fleet search IMG_0001.MOV
                  inlet fleet search videos/2026/
                  inlet fleet search IMG_0001.MOV --json | jq -r .url
                """)

        @OptionGroup var options: ConfigOption
        @OptionGroup(title: "Database") var access: FleetURLOption
        @Argument(help: ArgumentHelp("A name, a key or its beginning, or a SHA-256.", valueName: "TEXT")) var text:
            String
        @Option(help: "At most this many.") var limit = 100
        @Flag(help: "Print one JSON object a line.") var json = false

        func validate() throws {
            if text.isEmpty { throw ValidationError("give a name, the beginning of a key, or a SHA-256") }
            if !(1...1000).contains(limit) { throw ValidationError("--limit must be from 1 to 1000") }
        }

        func run() async throws {
            let found = try await FleetView(options, access).search(text, limit: limit)
            guard !found.isEmpty else {
                throw ExitStatus.failed.saying("no receipt matches '\(DisplayText.escape(text))'")
            }
            if json { return try found.forEach { Console.print(try Console.json($0)) } }
            Console.print(FleetFinding.table(found))
        }
    }
}

/// The fleet as the running agent or the database shows it.
struct FleetView {
    let options: ConfigOption
    let access: FleetURLOption

    init(_ options: ConfigOption, _ access: FleetURLOption) { (self.options, self.access) = (options, access) }

    func report() async throws -> FleetReport {
        try await look({ try await $0.find(Endpoints.fleet) }) { address in
            try await FleetConnection.use(address) { fleet in
                FleetReport(
                    try fleet.status(), try fleet.agents(), try fleet.places(), server: address.display)
            }
        }
    }

    func search(_ text: String, limit: Int) async throws -> [FleetFinding] {
        try await look({ try await $0.find(Endpoints.fleetSearch, [.fleetText: text]).map { Array($0.prefix(limit)) } })
        {
            address in
            try await FleetConnection.use(address) { try $0.search(text, limit: limit) }.map { FleetFinding($0) }
        }
    }

    /// An address of the command line comes before the running agent, and that before one of the surroundings.
    private func look<Value>(
        _ agent: (ControlClient) async throws -> Value?, _ database: (PostgresAddress) async throws -> Value
    ) async throws -> Value {
        if let address = try access.named(options) { return try await database(address) }
        if let value = try await options.askFleet(agent) { return value }
        if let address = try access.found(options) { return try await database(address) }
        throw ExitStatus.tryLater.saying(
            "fleet: no agent runs here: start it, or name the database with --url-file FILE")
    }
}

// The fleet for people.
extension FleetReport {
    var text: String {
        var lines = ["\(Console.tint(fleet ?? "fleet", .strong)) at \(server): \(stateText)"]
        if let message { lines.append("  \(message)") }
        if !waitingFor.isEmpty {
            lines.append(
                "  Waits for \(waitingFor.joined(separator: ", ")); 'inlet fleet waive NAME' goes on without one.")
        }
        if isDraining { lines.append("  Draining: new files stay in their folders until 'inlet fleet undrain'.") }
        if agent != nil {
            lines.append("This agent is \(name), tag \(tag ?? "-").")
            lines += [(waitingKeys, "waits for its key", "wait for their key"), (receiptsBehind, nil, nil)]
                .filter { $0.0 > 0 }.map { count, one, many in
                    guard let one, let many else { return "  \(count.counted("receipt")) not published yet" }
                    return "  \(count.counted("file \(one)", "files \(many)"))"
                }
        }
        return lines.joined(separator: "\n") + "\n\n" + (agents.isEmpty ? "No agent is known yet." : agentTable)
            + (places.isEmpty ? "" : "\n\n" + placeTable)
    }

    private var stateText: String {
        let since = since.map { " since \(Console.time($0))" } ?? ""
        return switch state {
        case .live: Console.tint("open", .good)
        case .confirming: Console.tint("PostgreSQL was restarted, new keys wait\(since)", .warning)
        case .recovering: Console.tint("recovering, new keys wait\(since)", .warning)
        case .connecting: Console.tint("connecting\(since)", .warning)
        case .away: Console.tint("away\(since)", .bad)
        case .refused: Console.tint("refused\(since)", .bad)
        }
    }

    var agentTable: String {
        Console.table(
            [
                .text("AGENT"), .text("STATE"), .number("WAITING"), .number("RATE"), .text("VERSION"),
                .text("LAST SEEN"),
                .note("PROBLEM"),
            ], agents.map(\.row))
    }
}

extension FleetReport {
    /// The shares, one line for each.
    var placeTable: String {
        Console.table(
            [
                .text("PLACE"), .text("LISTED BY"), .text("SINCE"), .number("WAITING"), .number("CLAIMED"),
                .name("MEMBERS"), .note("PROBLEM"),
            ], places.map(\.row))
    }
}

extension FleetReport.Place {
    fileprivate var row: [StyledText] {
        [
            StyledText(name, .strong),
            isHeld ? StyledText(holder ?? "-", .good) : StyledText("nobody", .warning),
            StyledText(isHeld ? heldSince.map(Console.time) ?? "-" : "-"), StyledText("\(waiting)"),
            StyledText("\(claimed)"), StyledText(members.isEmpty ? "-" : members.joined(separator: ", ")),
            StyledText(problems.joined(separator: "; ")),
        ]
    }
}

extension FleetReport.Member {
    fileprivate var row: [StyledText] {
        [
            StyledText(isSelf ? "\(name) (this)" : name, .strong), stateText,
            StyledText(activity.map { "\($0.open)" } ?? "-"),
            StyledText(activity.map { ByteText.format($0.rate) + "/s" } ?? "-"), StyledText(version ?? "-"),
            StyledText(lastSeen.map(Console.time) ?? "never"), StyledText(activity?.problems.first ?? ""),
        ]
    }

    private var stateText: StyledText {
        switch state {
        case .retired: StyledText("retired", .faint)
        case .missing: StyledText("missing", .bad)
        case .active, .draining:
            if !isAlive {
                StyledText("silent", .bad)
            } else if !hasReported {
                StyledText("has not reported", .warning)
            } else {
                state == .draining ? StyledText("draining", .warning) : StyledText("alive", .good)
            }
        }
    }
}

extension FleetReport.Activity {
    /// Deliveries that have not ended.
    var open: Int { waiting + inFlight + held + parked }
}

extension FleetFinding {
    static func table(_ found: [FleetFinding], hasHeader: Bool = true) -> String {
        let rows: [[StyledText]] = found.map { one in
            [
                StyledText(Console.time(one.at)), StyledText(one.agent, .strong), StyledText(one.state),
                StyledText(one.size.map(ByteText.format) ?? "-"), StyledText(one.destination ?? "-"),
                StyledText(one.path), StyledText(one.key ?? "-"),
            ]
        }
        // The least widths keep pages aligned.
        return Console.table(
            [
                .text("AT").width(16), .text("AGENT").width(12), .text("STATE").width(9), .number("SIZE").width(8),
                .text("DESTINATION").width(12), .name("PATH").width(20), .name("KEY").width(20),
            ], rows, hasHeader: hasHeader)
    }
}
