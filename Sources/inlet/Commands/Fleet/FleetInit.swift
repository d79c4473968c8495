import ArgumentParser
import InletCore
import InletFleet
import InletLinux

extension FleetCommands {
    struct Init: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "init",
            abstract: "Make or update the fleet's schema in a database, and show what agents need.",
            discussion: """
                Needs PostgreSQL 15 or newer, an empty UTF8 database, and a role that may create schemas and roles. The
                join secret and the login role are shown once, by the first run. Running it again is harmless.

                Examples:
                  inlet fleet init --url-file /root/fleet-admin.url
                  inlet fleet init --url postgresql:///inlet?host=/run/postgresql --name studio --ttl 15s
                  inlet fleet init --url-file /root/fleet-admin.url --failover lossless
                """)

        enum Failover: String, CaseIterable, ExpressibleByArgument {
            case lossless, reports
        }

        @OptionGroup var options: ConfigOption
        @OptionGroup(title: "Database") var access: FleetURLOption
        @Option(help: "The fleet's name.") var name: String?
        @Option(
            help: ArgumentHelp(
                "How long an agent's session lasts without a sign of life: 1s to 10m; 15s in a new fleet.",
                valueName: "TIME"))
        var ttl: PositiveTime?
        @Option(
            help: ArgumentHelp(
                """
                After the promotion of a standby: 'reports' lets all agents report; 'lossless' promises that only \
                standbys in synchronous_standby_names are promoted, so that they need not. A new fleet has 'reports'.
                """, valueName: "MODE"))
        var failover: Failover?

        func validate() throws {
            if let ttl, !(.seconds(1) ... .seconds(600)).contains(ttl.duration) {
                throw ValidationError("--ttl must be from 1s to 10m")
            }
            if let name, let objection = FleetSettings.objection(toName: name) {
                throw ValidationError("--name \(objection)")
            }
        }

        func run() async throws {
            let address = try access.required(options)
            let (report, secret) = try await FleetConnection.use(address) { [name, ttl] fleet in
                let report = try fleet.initialise()
                if name != nil || ttl != nil { try fleet.settings(name: name, ttl: ttl?.duration, days: nil) }
                return (report, report.before == nil ? try fleet.newSecret() : nil)
            }
            for warning in report.warnings { Console.printError("warning: \(DisplayText.escape(warning))") }
            Console.print(Self.head(report, address))
            if name != nil || ttl != nil {
                Console.print("Set what was given: the fleet's name or ttl.")
            } else if report.before == report.after, failover == nil {
                Console.print("Nothing was changed.")
            }
            Console.print(
                secret.map { Self.text(report, $0) } ?? "For another join secret, run 'inlet fleet secret'.")
            guard let failover else { return }
            // It may be refused: the secret is shown by then.
            try await FleetConnection.use(address) { fleet in
                try fleet.promise(isLossless: failover == .lossless)
            }
            Console.print("Set what follows the promotion of a standby: \(failover.rawValue).")
        }

        private static func head(_ report: FleetSchemaReport, _ address: PostgresAddress) -> String {
            switch report.before {
            case nil: "Made the schema 'inlet', version \(report.after), at \(address.display)."
            case report.after?: "The schema is there, version \(report.after)."
            case let before?: "Updated the schema at \(address.display) from version \(before) to \(report.after)."
            }
        }

        private static func text(_ report: FleetSchemaReport, _ secret: String) -> String {
            """

            \(Console.tint("The join secret", .strong)), shown only now, for a file that fleet.join_file names:

              \(secret)

            \(Console.tint("A login role for the agents", .strong)) with the least rights. Run this in the database:

            \(indented(report.loginRole))

            \(Console.tint("Lines for pg_hba.conf", .strong)), before others. Narrow the addresses to your agents':

            \(indented(report.hostRules.joined(separator: "\n")))

            Then give each agent 'fleet: { url_file: FILE, join_file: FILE }', and start it.
            """
        }

        private static func indented(_ text: String) -> String {
            text.split(separator: "\n", omittingEmptySubsequences: false).map { "  \($0)" }.joined(separator: "\n")
        }
    }

    struct Secret: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "secret", abstract: "Make another join secret, or let no more agents join.",
            discussion: """
                The earlier secret stops working. Agents that have joined stay.

                Examples:
                  inlet fleet secret > /etc/inlet/fleet.join
                  inlet fleet secret --close
                """)

        @OptionGroup var options: ConfigOption
        @OptionGroup(title: "Database") var access: FleetURLOption
        @Flag(help: "No agent can join until the next secret is made.") var close = false

        func run() async throws {
            let address = try access.required(options)
            guard !close else {
                try await FleetConnection.use(address) { try $0.closeSecret() }
                return Console.print("No agent can join now. To let one join, run 'inlet fleet secret'.")
            }
            // Alone on standard output, so that it can go to a file.
            Console.print(try await FleetConnection.use(address) { try $0.newSecret() })
            if Console.isTerminal { Console.printError("It is shown only now; the earlier one no longer works.") }
        }
    }
}
