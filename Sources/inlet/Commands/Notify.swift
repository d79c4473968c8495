import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletLinux
import InletPipelines

struct Notify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notify", abstract: "Send test notifications.",
        discussion: """
            Examples:
              inlet notify test phone
            """,
        subcommands: [Test.self])

    struct Test: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "test", abstract: "Send one receiver a notification with the event 'test', once.",
            discussion: """
                Exits with 0 when the receiver accepts it, 69 when it does not.

                Examples:
                  inlet notify test ops
                """)

        @OptionGroup var options: ConfigOption
        @Argument(help: "The receiver's name in the configuration.", completion: .receivers)
        var name: String

        func run() async throws {
            let config = try options.load()
            let names = config.settings.notify.map(\.name)
            guard let settings = config.settings.notify.first(where: { $0.name == name }) else {
                throw ValidationError("no receiver is called '\(name)'\(Suggestion.hint(name, in: names))")
            }
            let factory = PipelineFactory.standard(config)
            defer { factory.shutdown() }
            let notificationClients = try config.makeNotificationClients(factory)
            let pool = BlockingPool(name: "hook", threads: 1)
            let receiver = NotificationReceiver(settings, notificationClients, pool: pool)
            try report(await receiver.test(at: .now))
        }

        private func report(_ outcome: NotificationOutcome) throws {
            switch outcome {
            case .taken: return Console.print("\(name) accepted the test notification")
            case .cancelled: throw ExitStatus.failed.code
            case .unanswered(_, let reason), .refused(let reason, _), .gone(let reason):
                throw ExitStatus.unavailable.saying("\(name) did not accept the test notification: \(reason)")
            }
        }
    }
}
