import ArgumentParser
import InletCore
import InletDashboard
import InletPipelines

extension Roboscope {
    struct Markers: AsyncParsableCommand, RoboscopeObjects {
        static let configuration = CommandConfiguration(
            commandName: "markers", abstract: "List, show, create, change and delete markers.",
            discussion: """
                A marker is four corners, each x,y,z in metres. To import a list of markers, drop a markers.json into a
                space's folder; the agent does the rest.

                Example:
                  inlet roboscope markers create --session 6F1C… --label Crack --p1 0,0,0 --p2 1,0,0 --p3 1,1,0 --p4 0,1,0
                """,
            subcommands: [List.self, Get<Self>.self, Create.self, Update<Self>.self, Delete<Self>.self],
            defaultSubcommand: List.self)

        static let first = ["id", "work_session_id", "label", "color", "version", "p1", "p2", "p3", "p4"]

        typealias Changes = MarkerFields
        static let kind = RoboscopeAPI.Kind.markers
        static let (noun, name, change) = ("marker", "The marker's id.", "--label TEXT")
        static let get = CommandConfiguration(
            commandName: "get",
            abstract: "Show one marker, with the details that the server has computed.",
            discussion: "Example: inlet roboscope markers get 6F1C… --json")
        static let update = CommandConfiguration(
            commandName: "update",
            abstract: "Change the given fields of a marker.",
            discussion: """
                --meta and --props are merged into the existing fields.

                Example: inlet roboscope markers update 6F1C… --label "Crack, widened" --props '{"severity": "high"}'
                """)
        static let delete = CommandConfiguration(
            commandName: "delete",
            abstract: "Delete a marker from the server.",
            discussion: "Example: inlet roboscope markers delete 6F1C… --yes")

        static func object(_ name: String, _ admin: RoboscopeAPI, isForPeople: Bool) async throws -> JSONValue {
            var fields = try await admin.get(.markers, name).object ?? [:]
            if fields["details"]?.object == nil, let details = try await admin.details(ofMarker: name) {
                fields["details"] = details
            }
            return .object(fields)
        }

        struct List: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                commandName: "list",
                abstract: "List markers.", discussion: "Example: inlet roboscope markers list --session 6F1C… --json")

            @OptionGroup var server: ServerOption
            @Option(help: "Only markers of this session, by its id.") var session: String?
            @Flag(help: "Print one JSON object a line.") var json = false

            func run() async throws {
                try await Roboscope.use(server) { admin in
                    let query = session.map { [("work_session_id", $0)] } ?? []
                    let markers = try await admin.list(.markers, query: query)
                    ResponseTable(
                        (.name("ID"), "id"), (.text("COLOR"), "color"), (.number("VERSION"), "version"),
                        (.name("SESSION"), "work_session_id"), (.name("LABEL"), "label"),
                        none: "There are no such markers."
                    ).print(markers, json: json)
                }
            }
        }

        struct Create: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                commandName: "create", abstract: "Create a marker.",
                discussion: """
                    Example: inlet roboscope markers create --session 6F1C… --p1 0,0,0 --p2 1,0,0 --p3 1,1,0 --p4 0,1,0
                    """)

            @OptionGroup var server: ServerOption
            @Option(help: "The id of its session.") var session: String
            @OptionGroup var fields: MarkerFields
            @Flag(help: "Print the JSON object.") var json = false

            func validate() throws {
                let object = try fields.object()
                guard ["p1", "p2", "p3", "p4"].allSatisfy({ object[$0] != nil }) else {
                    throw ValidationError("a marker has four corners: --p1, --p2, --p3 and --p4")
                }
            }

            func run() async throws {
                let object = try fields.object()
                try await Roboscope.show(server, json: json, first: Markers.first) { admin in
                    let place: JSONObject = ["work_session_id": .string(session)]
                    return try await admin.create(.markers, object.merging(place) { $1 })
                }
            }
        }
    }

    /// The fields of a marker besides its session.
    struct MarkerFields: RoboscopeFields {
        @Option(help: "Its name.") var label: String?
        @Option(help: ArgumentHelp("Its first corner.", valueName: "X,Y,Z")) var p1: String?
        @Option(help: ArgumentHelp("Its second corner.", valueName: "X,Y,Z")) var p2: String?
        @Option(help: ArgumentHelp("Its third corner.", valueName: "X,Y,Z")) var p3: String?
        @Option(help: ArgumentHelp("Its fourth corner.", valueName: "X,Y,Z")) var p4: String?
        @Option(help: ArgumentHelp("Its colour.", valueName: "#RRGGBB")) var color: String?
        @Option(help: ArgumentHelp("More about it.", valueName: "JSON")) var meta: String?
        @Option(help: ArgumentHelp("Its custom_props, such as severity.", valueName: "JSON")) var props: String?

        func object() throws -> JSONObject {
            var object: JSONObject = [:]
            object["label"] = label.map { .string($0) }
            for (name, text) in [("p1", p1), ("p2", p2), ("p3", p3), ("p4", p4)] {
                object[name] = try text.map { try JSONValue.read(point: $0, "--\(name)") }
            }
            object["color"] = try color.map { try JSONValue.read(color: $0) }
            object["meta"] = try meta.map { try JSONValue.read(object: $0, "--meta") }
            object["custom_props"] = try props.map { try JSONValue.read(object: $0, "--props") }
            return object
        }
    }
}
