import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletFleet
import InletJournal

extension FleetCommands {
    struct Join: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "join", abstract: "Join the fleet of the configuration.",
            discussion: """
                The agent joins by itself at its start where fleet.join_file has the secret; this does the same while no
                agent runs. The secret is not needed again. An agent that has joined stays as it is.

                Examples:
                  inlet fleet join
                  inlet fleet join --secret-file /run/secrets/fleet_join
                """)

        @OptionGroup var options: ConfigOption
        @OptionGroup var secret: JoinSecretOption

        func run() async throws {
            let config = try options.load()
            let fleet = try config.requiredFleet()
            if let report = try await options.askFleet({ try await $0.find(Endpoints.fleet) }) {
                guard report.agent != nil else {
                    throw ExitStatus.tryLater.saying(
                        "the agent runs and has not joined; its log says why: it needs the secret in fleet.join_file")
                }
                return Console.print(Self.standing(report.name, report.tag ?? "", report.server))
            }
            let joining = try FleetJoining(fleet, secretFile: secret.secretFile)
            try await config.useStoppedJournal { journal in
                if let identity = try await journal.fleetIdentity() {
                    return Console.print(Self.standing(identity.name, identity.tag, joining.address.display))
                }
                let identity = try await joining.join(journal)
                Console.print(
                    "Joined at \(joining.address.display) as \(DisplayText.escape(identity.name)), tag \(identity.tag)."
                )
            }
        }

        private static func standing(_ name: String, _ tag: String, _ server: String) -> String {
            "This agent has joined at \(DisplayText.escape(server)) as \(DisplayText.escape(name)), tag "
                + "\(DisplayText.escape(tag)). Nothing was changed."
        }
    }

    struct Rejoin: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rejoin",
            abstract: "Come back after the journal was restored, or as another agent after it was copied.",
            discussion: """
                A fleet refuses a journal that is older than it knows, or that is used twice. Use this while no agent
                runs, with the join secret. Without --new-identity this machine must be the only one with this journal:
                the fleet refuses copies of it from then on. With --new-identity the agent gets another tag. Give it a
                fleet.name of its own first.

                Examples:
                  inlet fleet rejoin --secret-file /run/secrets/fleet_join
                  inlet fleet rejoin --new-identity
                """)

        @OptionGroup var options: ConfigOption
        @OptionGroup var secret: JoinSecretOption
        @Flag(help: "Join as another agent: this journal is a copy of one that is still used.") var newIdentity = false

        func run() async throws {
            let config = try options.load()
            let joining = try FleetJoining(try config.requiredFleet(), secretFile: secret.secretFile)
            let identity = try await config.useStoppedJournal { journal in
                if newIdentity { return try await joining.join(journal) }
                guard let former = try await journal.fleetIdentity() else {
                    throw ExitStatus.failed.saying("fleet: this agent has not joined; run 'inlet fleet join'")
                }
                return try await joining.rejoin(former, journal)
            }
            Console.print(
                "\(DisplayText.escape(identity.name)), tag \(identity.tag), is in the fleet at "
                    + "\(joining.address.display). Start the agent now.")
        }
    }

    struct Leave: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "leave", abstract: "Leave the fleet for good.",
            discussion: """
                Retires this agent there: its name and its keys stay taken, and its files of shares go to the others.
                Then remove 'fleet:' from the configuration, and 'place' from its watched folders. Files that wait for a
                key go on once the agent starts without it. Use this while no agent runs.

                Example: inlet fleet leave --yes
                """)

        @OptionGroup var options: ConfigOption
        @Flag(help: "Do it without asking.") var yes = false

        func run() async throws {
            let config = try options.load()
            let joining = try FleetJoining(try config.requiredFleet())
            try await config.useStoppedJournal { journal in
                guard let identity = try await journal.fleetIdentity() else {
                    return Console.print("This agent is in no fleet. Nothing was changed.")
                }
                let name = DisplayText.escape(identity.name)
                try Console.requireYes(yes, "\(name) leaves the fleet for good, and its name stays taken")
                try await joining.leave(identity, journal)
                Console.print("\(name) has left the fleet. Remove 'fleet:' from \(config.file.display) now.")
            }
        }
    }
}

/// `--secret-file FILE`.
struct JoinSecretOption: ParsableArguments {
    @Option(
        help: ArgumentHelp("The join secret; without it, fleet.join_file.", valueName: "FILE"), completion: .file())
    var secretFile: String?
}
