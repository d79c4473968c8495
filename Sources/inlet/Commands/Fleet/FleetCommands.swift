import ArgumentParser
import InletDashboard

/// The agents that share a PostgreSQL. Orders go to its functions, with an administrator's address; looks ask the
/// running agent where no address is given.
struct FleetCommands: AsyncParsableCommand, ServerCommand {
    static let configuration = CommandConfiguration(
        commandName: "fleet",
        abstract: "Set up a fleet of agents that share a PostgreSQL, and look after it.",
        discussion: """
            'status', 'agents', 'places' and 'search' ask the running agent. With --url or --url-file they ask the
            database, and so they do where no agent runs and 'fleet.admin_url_file' or $INLET_FLEET_ADMIN has an
            address. All other commands except 'join', 'rejoin' and 'leave' need such an address.

            Exit codes: 69 the database cannot be reached, 75 try later, 78 the configuration, the certificate or
            the login is wrong, 1 the fleet refuses the order.

            Examples:
              inlet fleet init --url-file /root/fleet-admin.url
              inlet fleet join
              inlet fleet status
              inlet fleet search IMG_0001.MOV
              inlet fleet takeover station-3
            """,
        subcommands: [
            Init.self, Secret.self, Join.self, Rejoin.self, Leave.self, Status.self, Agents.self, Places.self,
            Search.self, Receipts.self, Export.self, Limit.self, Drain.self, Undrain.self, Takeover.self,
            Restored.self, Waive.self,
        ],
        defaultSubcommand: Status.self)

    static let outputs = [
        CommandOutput(server: "fleet status"), CommandOutput(server: "fleet agents", isLines: true),
        CommandOutput(server: "fleet places", isLines: true), CommandOutput(server: "fleet search", isLines: true),
        CommandOutput(server: "fleet receipts", isLines: true),
    ]
}
