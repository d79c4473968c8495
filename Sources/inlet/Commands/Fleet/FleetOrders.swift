import ArgumentParser
import InletAgent
import InletCore
import InletDashboard
import InletFleet
import InletLinux

extension FleetCommands {
    struct Limit: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "limit", abstract: "Set what all agents together may send to a destination.",
            discussion: """
                It holds instead of the limits in the agents' configurations, within a third of the fleet's ttl. Where
                the destination had none, it may take a minute. 'off' without --slots lets these hold again.

                Examples:
                  inlet fleet limit archive 100MiB/s
                  inlet fleet limit archive 100MiB/s --slots 64
                  inlet fleet limit archive off
                """)

        @OptionGroup var options: ConfigOption
        @OptionGroup(title: "Database") var access: FleetURLOption
        @Argument(help: ArgumentHelp("The destination's name in the configurations, or its number.", valueName: "DEST"))
        var destination: String
        @Argument(help: "100MiB/s, 800Mbit/s, 0, or off for no limit.", completion: .list(["off", "0"]))
        var rate: String
        @Option(help: "The most big files at once, of all agents together; without it, any number.") var slots: Int?

        func validate() throws {
            if RateText.parse(rate) == nil { throw ValidationError("'\(rate)' \(RateText.fault(of: rate))") }
            if let slots, !(1...100_000).contains(slots) { throw ValidationError("--slots must be from 1 to 100000") }
        }

        func run() async throws {
            let bandwidth = RateText.parse(rate) ?? nil
            try await FleetConnection.use(access.required(options)) { [destination, slots] fleet in
                try fleet.setLimit(destination: destination, bandwidth: bandwidth, slots: slots)
            }
            let places = slots.map { ", \($0.counted("big file")) at once" } ?? ""
            Console.print(
                "\(DisplayText.escape(destination)): \(RateText.format(bandwidth))\(places), for all agents together")
        }
    }

    struct Drain: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "drain", abstract: "Let an agent take no new files, and send what it has.",
            discussion: """
                Without NAME: the agent of this configuration. New files stay in its own folders: nobody else can send
                those. Shares go to the other agents at once, and so do files of shares that it does not send yet.
                With --wait it shows how many are left to send, and ends when none is. To undo this, use 'undrain'.

                Examples:
                  inlet fleet drain station-3
                  inlet fleet drain --wait
                """)

        @OptionGroup var options: ConfigOption
        @OptionGroup(title: "Database") var access: FleetURLOption
        @Argument(help: "The agent's name in the fleet.") var name: String?
        @Flag(help: "Wait until it has sent everything.") var wait = false

        private static let pause = Duration.seconds(1)

        func run() async throws {
            let (address, name) = (try access.required(options), try name ?? options.load().requiredFleet().agentName)
            let shown = DisplayText.escape(name)
            try await FleetConnection.use(address) { try $0.setAgent(name, state: "draining") }
            Console.print("\(shown) is draining: it takes no new files, and sends what it has.")
            guard wait else { return }
            var left: Int?
            while true {
                let agent = try await FleetConnection.use(address) { try $0.requiredAgent(name) }
                guard agent.isAlive else {
                    throw ExitStatus.tryLater.saying(
                        "fleet: \(shown) does not run: start it, and it sends the rest; "
                            + "'inlet fleet takeover' retires one that is gone for good")
                }
                // A report from before the order does not count.
                let open = agent.activity.flatMap { $0.isDraining ? $0.open : nil }
                if open == 0 { return Console.print("\(shown) has sent everything.") }
                if let open, open != left { Console.print("\(open.counted("file")) left") }
                left = open
                try await Task.sleep(for: Self.pause)
            }
        }
    }

    struct Undrain: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "undrain",
            abstract: "Let a drained agent take new files again.", discussion: "Example: inlet fleet undrain station-3")

        @OptionGroup var options: ConfigOption
        @OptionGroup(title: "Database") var access: FleetURLOption
        @Argument(help: "The agent's name in the fleet; without it, that of this configuration.") var name: String?

        func run() async throws {
            let (address, name) = (try access.required(options), try name ?? options.load().requiredFleet().agentName)
            try await FleetConnection.use(address) { try $0.setAgent(name, state: "active") }
            Console.print("\(DisplayText.escape(name)) is active again.")
        }
    }

    struct Takeover: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "takeover", abstract: "Retire an agent that is gone for good, so that nobody waits for it.",
            discussion: """
                Its name, its keys and its receipts stay. Other agents go on with its files of shares; files in its own
                folders are sent by nobody else. It cannot come back; a machine that replaces it joins under another
                name. Refuses an agent that is alive.

                Example: inlet fleet takeover station-3
                """)

        @OptionGroup var options: ConfigOption
        @OptionGroup(title: "Database") var access: FleetURLOption
        @Argument(help: "The agent's name in the fleet.") var name: String
        @Flag(help: "Do it without asking.") var yes = false

        func run() async throws {
            let (address, shown) = (try access.required(options), DisplayText.escape(name))
            let agent = try await FleetConnection.use(address) { [name] in try $0.requiredAgent(name, isAlive: false) }
            let seen = agent.lastSeen.map { "was last seen \(Console.time($0))" } ?? "was never seen"
            let open = agent.activity?.open ?? 0
            let files =
                open > 0 ? " with \(open.counted("file")) to send; nobody else sends those of its own folders" : ""
            try Console.requireYes(yes, "\(shown) \(seen)\(files); it cannot come back afterwards")
            // It may have come back while somebody read the question.
            try await FleetConnection.use(address) { [name] fleet in
                _ = try fleet.requiredAgent(name, isAlive: false)
                try fleet.setAgent(name, state: "retired")
            }
            Console.print("\(shown) is retired. Its name and its keys stay taken.")
        }
    }

    struct Restored: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "restored",
            abstract:
                "Say that the database was restored from a backup, so that all agents report what they did since.",
            discussion: """
                The last line of a restore. No key is granted until every agent has reported; 'status' names those that
                have not. Meanwhile agents work as if PostgreSQL were away.

                Example: inlet fleet restored --why 'backup of 03:00'
                """)

        @OptionGroup var options: ConfigOption
        @OptionGroup(title: "Database") var access: FleetURLOption
        @Option(help: "The reason, for the fleet's log.") var why: String?

        func run() async throws {
            let status = try await FleetConnection.use(access.required(options)) { [why] fleet in
                try fleet.restored(why)
                return try fleet.status()
            }
            let report = FleetReport(status, [], server: "")
            Console.print(
                report.waitingFor.isEmpty
                    ? "No agent has to report. The fleet is \(DisplayText.escape(status.state))."
                    : "The fleet is recovering. It waits for \(report.waitingFor.joined(separator: ", ")).")
        }
    }

    struct Waive: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "waive", abstract: "Let a recovering fleet go on without the report of one agent.",
            discussion: """
                For an agent that is gone for good. The database has forgotten the keys that it was given since the
                backup. Others may get them, and overwrite its files where a destination does not prevent that. Files
                of shares that it sent since may be sent again, or end as failed where only it knew of a delivery. Start
                the agent instead where you can.

                Example: inlet fleet waive station-3
                """)

        @OptionGroup var options: ConfigOption
        @OptionGroup(title: "Database") var access: FleetURLOption
        @Argument(help: "The agent's name in the fleet.") var name: String
        @Flag(help: "Do it without asking.") var yes = false

        func run() async throws {
            let (address, shown) = (try access.required(options), DisplayText.escape(name))
            let status = try await FleetConnection.use(address) { [name] fleet in
                _ = try fleet.requiredAgent(name)
                return try fleet.status()
            }
            guard status.waitingFor.contains(name) else {
                return Console.print("The fleet does not wait for \(shown). Nothing was changed.")
            }
            try Console.requireYes(
                yes, "keys that \(shown) was given since the backup may be given to others, who may overwrite its files"
            )
            let state = try await FleetConnection.use(address) { [name] in try $0.waive(name) }
            Console.print("The fleet goes on without \(shown); it is \(DisplayText.escape(state)).")
        }
    }
}

extension FleetAdministration {
    /// The agent of this name. Prints why it cannot be and exits where there is none.
    ///
    /// - Parameter isAlive: false refuses one that lives.
    fileprivate mutating func requiredAgent(_ name: String, isAlive: Bool = true) throws -> FleetReport.Member {
        let agents = try agents()
        guard let row = agents.first(where: { $0.name == name }) else {
            let hint = Suggestion.hint(name, in: agents.map(\.name))
            throw ExitStatus.failed.saying(DisplayText.escape("fleet: no agent is called '\(name)'\(hint)"))
        }
        if !isAlive, row.isAlive {
            throw ExitStatus.tryLater.saying(
                "fleet: \(DisplayText.escape(name)) is alive: stop it there, or let it send what it has with "
                    + "'inlet fleet drain'")
        }
        return FleetReport.Member(row)
    }
}
