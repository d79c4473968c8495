import ArgumentParser
import InletConfig
import InletCore
import InletPipelines

struct Roboscope: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "roboscope",
        abstract: "Looks into a Roboscope server and changes what is there: spaces, work sessions, markers.",
        discussion: """
            The server is that of the destination of type roboscope. --json prints objects as the server sent them, one a
            line. A change of a session or marker names the version that was read; when somebody else was faster it is
            read and made again, three times at most.

            Exits with 1 when the server refuses or has no such object, 69 when it is unavailable or refuses the token,
            78 when the configuration has no such destination.

            Examples:
              inlet roboscope spaces
              inlet roboscope sessions list --space atrium --status active
              inlet roboscope markers list --session 6F1C… --json | jq -r .label
            """,
        subcommands: [Spaces.self, Sessions.self, Markers.self, Events.self])

    /// Runs `body` with the server's calls, and says what went wrong.
    static func use(_ server: ServerOption, _ body: (RoboscopeAPI) async throws -> Void) async throws {
        let config = try server.options.load()
        let settings = try server.find("roboscope", in: config)
        let factory = PipelineFactory.standard(config)
        defer { factory.shutdown() }
        let admin = try config.checking(settings) { () throws(SettingFault) in try factory.roboscopeAdmin(settings) }
        do {
            try await body(admin)
        } catch let error as DeliveryError {
            Console.printError("inlet: \(error)")
            throw ExitStatus.of(error)
        }
    }

    static func show(_ object: JSONValue, json: Bool, first: [String]) {
        let answer = Answer(object)
        Console.print(json ? answer.line : answer.story(first: first))
    }

    /// What deletes at the server says it twice.
    static func confirm(_ yes: Bool, _ what: String) throws {
        guard yes else { throw ValidationError("this deletes \(what) at the server; say --yes if you mean it") }
    }
}

extension Roboscope {
    struct Events: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the server's trail of what was done.",
            discussion: "Example: inlet roboscope events --json",
            subcommands: [List.self], defaultSubcommand: List.self)

        struct List: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Lists events, as the server orders them.",
                discussion: """
                    A server without a trail answers that it has none; then this exits with 1.

                    Example: inlet roboscope events list --limit 20
                    """)

            @OptionGroup var server: ServerOption
            @Option(help: "At most so many.") var limit = 100
            @Flag(help: "Print one JSON object a line.") var json = false

            func run() async throws {
                try await Roboscope.use(server) { admin in
                    let events = try await admin.list(.events).prefix(max(limit, 0)).map { Answer($0) }
                    AnswerTable(
                        .init("TIME", "created_at|timestamp|time|at"), .init("ACTION", "action|event_type|type|event"),
                        .init("OBJECT", "object_id|entity_id|resource_id|object|entity"),
                        .init("MORE", "message|details|data"), none: "The server has no events."
                    ).print(events, json: json)
                }
            }
        }
    }
}
