import ArgumentParser
import InletConfig
import InletCore
import InletDashboard
import InletPipelines

struct Roboscope: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "roboscope",
        abstract: "Show and change a Roboscope server's spaces, work sessions and markers.",
        discussion: """
            The server is that of the destination of type roboscope. --json prints objects as the server sent them, one
            a line. A change of a session or marker applies to the version that was read. If somebody else changed it
            meanwhile, the command reads it again and repeats the change, three times at most.

            Exits with 1 when the server refuses or has no such object, 69 when it is unavailable or refuses the token,
            78 when the configuration has no such destination.

            Examples:
              inlet roboscope spaces
              inlet roboscope sessions list --space atrium --status active
              inlet roboscope markers list --session 6F1C… --json | jq -r .label
            """,
        subcommands: [Spaces.self, Sessions.self, Markers.self, Events.self])

    /// Runs `body` with the server's calls, and prints what failed.
    static func use(_ server: ServerOption, _ body: (RoboscopeAPI) async throws -> Void) async throws {
        try await server.use("roboscope") { config, settings, factory in
            try await body(
                try config.checking(settings) { () throws(SettingFault) in try factory.roboscopeAdmin(settings) })
        }
    }

    /// Prints the object that `body` gets from the server, the fields `first` before the others.
    static func show(
        _ server: ServerOption, json: Bool, first: [String], _ body: (RoboscopeAPI) async throws -> JSONValue
    ) async throws {
        try await use(server) { admin in
            let answer = ServerResponse(try await body(admin))
            Console.print(json ? answer.line : answer.story(first: first))
        }
    }

}

/// A kind of objects on a server: the part that the commands of all kinds share.
protocol RoboscopeObjects {
    associatedtype Changes: RoboscopeFields
    static var kind: RoboscopeAPI.Kind { get }
    /// The word for one object.
    static var noun: String { get }
    /// The argument that names an object on the command line.
    static var name: String { get }
    /// The fields that come first.
    static var first: [String] { get }
    static var get: CommandConfiguration { get }
    static var update: CommandConfiguration { get }
    static var delete: CommandConfiguration { get }
    /// An example of a change.
    static var change: String { get }

    /// - Parameter isForPeople: whether the fields may include those that only people need.
    static func object(_ name: String, _ admin: RoboscopeAPI, isForPeople: Bool) async throws -> JSONValue
}

/// Options that set the fields of an object.
protocol RoboscopeFields: ParsableArguments {
    func object() throws -> JSONObject
}

extension Roboscope {
    struct Get<Objects: RoboscopeObjects>: AsyncParsableCommand {
        static var configuration: CommandConfiguration { Objects.get }

        @OptionGroup var server: ServerOption
        @Argument(help: ArgumentHelp(Objects.name, valueName: Objects.noun)) var name: String
        @Flag(help: "Print the JSON object.") var json = false

        func run() async throws {
            try await Roboscope.show(server, json: json, first: Objects.first) { admin in
                try await Objects.object(name, admin, isForPeople: !json)
            }
        }
    }

    struct Update<Objects: RoboscopeObjects>: AsyncParsableCommand {
        static var configuration: CommandConfiguration { Objects.update }

        @OptionGroup var server: ServerOption
        @Argument(help: ArgumentHelp(Objects.name, valueName: Objects.noun)) var name: String
        @OptionGroup var changes: Objects.Changes
        @Flag(help: "Print the JSON object.") var json = false

        func validate() throws {
            if try changes.object().isEmpty {
                throw ValidationError("name a field to change, such as \(Objects.change)")
            }
        }

        func run() async throws {
            let object = try changes.object()
            try await Roboscope.show(server, json: json, first: Objects.first) { admin in
                try await admin.update(Objects.kind, name, object)
            }
        }
    }

    struct Delete<Objects: RoboscopeObjects>: AsyncParsableCommand {
        static var configuration: CommandConfiguration { Objects.delete }

        @OptionGroup var server: ServerOption
        @Argument(help: ArgumentHelp(Objects.name, valueName: Objects.noun)) var name: String
        @Flag(help: "Do it without asking.") var yes = false

        func validate() throws {
            if yes { return }
            throw ValidationError(
                "this deletes \(Objects.noun) \(DisplayText.escape(name)) at the server; confirm with --yes")
        }

        func run() async throws {
            try await Roboscope.use(server) { admin in
                let id = Objects.kind == .spaces ? try await admin.space(name) : name
                try await admin.delete(Objects.kind, id)
                Console.print("\(Objects.noun) \(DisplayText.escape(id)) is deleted")
            }
        }
    }
}

extension Roboscope {
    struct Events: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "events", abstract: "Show the server's audit trail.",
            discussion: "Example: inlet roboscope events --json",
            subcommands: [List.self], defaultSubcommand: List.self)

        struct List: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                commandName: "list", abstract: "List events, in the server's order.",
                discussion: """
                    Exits with 1 when the server keeps no audit trail.

                    Example: inlet roboscope events list --limit 20
                    """)

            @OptionGroup var server: ServerOption
            @Option(help: "The most to return.") var limit = 100
            @Flag(help: "Print one JSON object a line.") var json = false

            func run() async throws {
                try await Roboscope.use(server) { admin in
                    let events = try await admin.list(.events).prefix(max(limit, 0))
                    ResponseTable(
                        (.text("TIME"), "created_at|timestamp|time|at"),
                        (.text("ACTION"), "action|event_type|type|event"),
                        (.name("OBJECT"), "object_id|entity_id|resource_id|object|entity"),
                        (.name("MORE"), "message|details|data"), none: "The server has no events."
                    ).print(events, json: json)
                }
            }
        }
    }
}

extension Roboscope {
    struct Spaces: AsyncParsableCommand, RoboscopeObjects {
        static let configuration = CommandConfiguration(
            commandName: "spaces", abstract: "List, show, create, change and delete spaces.",
            discussion: """
                Examples:
                  inlet roboscope spaces
                  inlet roboscope spaces get atrium
                  inlet roboscope spaces create --key atrium --name "The atrium"
                  inlet roboscope spaces update atrium --description "North wing"
                """,
            subcommands: [List.self, Get<Self>.self, Create.self, Update<Self>.self, Delete<Self>.self],
            defaultSubcommand: List.self)

        static let first = [
            "id", "key", "name", "description", "model_glb_url", "model_usdc_url", "preview_url", "scan_url",
        ]

        typealias Changes = SpaceChanges
        static let kind = RoboscopeAPI.Kind.spaces
        static let (noun, name, change) = ("space", "The space's id or key.", "--name NAME")
        static let get = CommandConfiguration(
            commandName: "get",
            abstract: "Show one space.", discussion: "Example: inlet roboscope spaces get atrium --json")
        static let update = CommandConfiguration(
            commandName: "update",
            abstract: "Change the given fields of a space.",
            discussion: """
                --meta is merged into the existing fields.

                Example: inlet roboscope spaces update atrium --name "Main atrium" --meta '{"floor": 2}'
                """)
        static let delete = CommandConfiguration(
            commandName: "delete",
            abstract: "Delete a space from the server; stored files stay.",
            discussion: "Example: inlet roboscope spaces delete atrium --yes")

        static func object(_ name: String, _ admin: RoboscopeAPI, isForPeople: Bool) async throws -> JSONValue {
            try await admin.get(.spaces, name)
        }

        struct List: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                commandName: "list",
                abstract: "List spaces.", discussion: "Example: inlet roboscope spaces list --key atrium --json")

            @OptionGroup var server: ServerOption
            @Option(help: "Only the space with this key.") var key: String?
            @Flag(help: "Print one JSON object a line.") var json = false

            func run() async throws {
                try await Roboscope.use(server) { admin in
                    let query = key.map { [("key", $0)] } ?? []
                    let spaces = try await admin.list(.spaces, query: query)
                    ResponseTable(
                        (.name("ID"), "id"), (.text("KEY"), "key"), (.text("UPDATED"), "updated_at"),
                        (.name("MODEL"), "model_usdc_url|model_glb_url"), (.name("NAME"), "name"),
                        none: key.map { "No space has the key '\(DisplayText.escape($0))'." } ?? "There are no spaces."
                    ).print(spaces, json: json)
                }
            }
        }

        struct Create: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                commandName: "create", abstract: "Create a space.",
                discussion: "Example: inlet roboscope spaces create --key atrium --name \"The atrium\"")

            @OptionGroup var server: ServerOption
            @Option(help: "The space's key; it must not belong to another space.") var key: String
            @Option(help: "The space's name; without it, the key.") var name: String?
            @OptionGroup var fields: SpaceFields
            @Flag(help: "Print the JSON object.") var json = false

            func validate() throws { _ = try fields.object() }

            func run() async throws {
                var object = try fields.object()
                object["key"] = .string(key)
                object["name"] = .string(name ?? key)
                try await Roboscope.show(server, json: json, first: Spaces.first) { admin in
                    let others = try await admin.list(.spaces, query: [("key", key)]).map { ServerResponse($0) }
                    if let taken = others.first(where: { $0.fields["key"] == .string(key) }) {
                        throw DeliveryError(
                            .giveUp, .conflict,
                            "space \(taken["id"]) has the key '\(DisplayText.escape(key))' already")
                    }
                    return try await admin.create(.spaces, object)
                }
            }
        }
    }

    /// The fields of a space that can be changed.
    struct SpaceChanges: RoboscopeFields {
        @Option(help: "The space's new key.") var key: String?
        @Option(help: "The space's name.") var name: String?
        @OptionGroup var fields: SpaceFields

        func object() throws -> JSONObject {
            var object = try fields.object()
            object["key"] = key.map { .string($0) }
            object["name"] = name.map { .string($0) }
            return object
        }
    }

    /// The fields of a space besides its key and name.
    struct SpaceFields: ParsableArguments {
        @Option(help: "A description.") var description: String?
        @Option(help: "The address of its glTF model.") var modelGlbURL: String?
        @Option(help: "The address of its USD model.") var modelUsdcURL: String?
        @Option(help: "The address of its picture.") var previewURL: String?
        @Option(help: "The address of its scan.") var scanURL: String?
        @Option(help: ArgumentHelp("More about it.", valueName: "JSON")) var meta: String?

        func object() throws -> JSONObject {
            var object: JSONObject = [:]
            let texts = [
                ("description", description), ("model_glb_url", modelGlbURL), ("model_usdc_url", modelUsdcURL),
                ("preview_url", previewURL), ("scan_url", scanURL),
            ]
            for case (let name, let text?) in texts { object[name] = .string(text) }
            object["meta"] = try meta.map { try JSONValue.read(object: $0, "--meta") }
            return object
        }
    }
}

extension Roboscope: ServerCommand {
    static let outputs =
        [
            CommandOutput(server: "roboscope events list", isLines: true)
        ]
        + ["markers", "sessions", "spaces"].flatMap { objects in
            [CommandOutput(server: "roboscope \(objects) list", isLines: true)]
                + ["create", "get", "update"].map { CommandOutput(server: "roboscope \(objects) \($0)") }
        }
}
