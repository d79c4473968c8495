import ArgumentParser
import InletCore
import InletDashboard
import InletPipelines

extension Roboscope {
    struct Sessions: AsyncParsableCommand, RoboscopeObjects {
        static let configuration = CommandConfiguration(
            commandName: "sessions", abstract: "List, show, create, change and delete work sessions.",
            discussion: """
                Examples:
                  inlet roboscope sessions list --space atrium --status active
                  inlet roboscope sessions create --space atrium --type inspection
                  inlet roboscope sessions update 6F1C… --status done
                """,
            subcommands: [List.self, Get<Self>.self, Create.self, Update<Self>.self, Delete<Self>.self],
            defaultSubcommand: List.self)

        static let first = [
            "id", "space_id", "session_type", "status", "version", "started_at", "completed_at",
        ]

        typealias Changes = SessionFields
        static let kind = RoboscopeAPI.Kind.sessions
        static let (noun, name, change) = ("session", "The session's id.", "--status done")
        static let get = CommandConfiguration(
            commandName: "get",
            abstract: "Show one work session, its members, and whether it is locked.",
            discussion: "Example: inlet roboscope sessions get 6F1C… --json")
        static let update = CommandConfiguration(
            commandName: "update",
            abstract: "Change the given fields of a work session.",
            discussion: """
                --meta is merged into the existing fields.

                Example: inlet roboscope sessions update 6F1C… --status done --completed-at 2026-11-21T17:00:00Z
                """)
        static let delete = CommandConfiguration(
            commandName: "delete",
            abstract: "Delete a work session from the server.",
            discussion: "Example: inlet roboscope sessions delete 6F1C… --yes")

        static func object(_ name: String, _ admin: RoboscopeAPI, isForPeople: Bool) async throws -> JSONValue {
            var fields = try await admin.get(.sessions, name).object ?? [:]
            // Older servers have neither.
            if isForPeople, let present = try await admin.presence(inSession: name) {
                fields["present"] = .array(present.map { .string($0) })
            }
            if isForPeople, let isLocked = try await admin.isLocked(session: name) {
                fields["locked"] = .boolean(isLocked)
            }
            return .object(fields)
        }

        struct List: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                commandName: "list", abstract: "List work sessions.",
                discussion: "Example: inlet roboscope sessions list --space atrium --type repair")

            @OptionGroup var server: ServerOption
            @Option(help: "Only sessions of this space, by its id or key.") var space: String?
            @Option(help: ArgumentHelp("Only sessions with this status: \(statuses).", valueName: "STATUS")) var status:
                String?
            @Option(help: ArgumentHelp("Only sessions of this type: \(types).", valueName: "TYPE")) var type: String?
            @Flag(help: "Print one JSON object a line.") var json = false

            func validate() throws { _ = try Roboscope.word(status, type) }

            func run() async throws {
                try await Roboscope.use(server) { admin in
                    var query: [(String, String)] = []
                    if let space { query.append(("space_id", try await admin.space(space))) }
                    if let status { query.append(("status", status)) }
                    if let type { query.append(("session_type", type)) }
                    let sessions = try await admin.list(.sessions, query: query)
                    ResponseTable(
                        (.name("ID"), "id"), (.text("TYPE"), "session_type"), (.text("STATUS"), "status"),
                        (.number("VERSION"), "version"), (.text("STARTED"), "started_at"),
                        (.text("COMPLETED"), "completed_at"),
                        (.name("SPACE"), "space_id"), none: "There are no such work sessions."
                    ).print(sessions, json: json)
                }
            }
        }

        struct Create: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                commandName: "create", abstract: "Create a work session.",
                discussion: "Example: inlet roboscope sessions create --space atrium --type inspection --status active")

            @OptionGroup var server: ServerOption
            @Option(help: "The id or key of its space.") var space: String
            @OptionGroup var fields: SessionFields
            @Flag(help: "Print the JSON object.") var json = false

            func validate() throws { _ = try fields.object() }

            func run() async throws {
                let given = try fields.object()
                let object = given.merging(["session_type": .string("inspection")]) { given, _ in given }
                try await Roboscope.show(server, json: json, first: Sessions.first) { admin in
                    let place: JSONObject = ["space_id": .string(try await admin.space(space))]
                    return try await admin.create(.sessions, object.merging(place) { $1 })
                }
            }
        }
    }

    private static let statusWords = ["draft", "active", "done", "archived"]
    private static let typeWords = ["inspection", "repair", "other"]
    private static let statuses = "draft, active, done or archived"
    private static let types = "inspection, repair or other"

    /// The fields of a session's status and type, limited to the words that servers know.
    private static func word(_ status: String?, _ type: String?) throws -> JSONObject {
        var object: JSONObject = [:]
        object["status"] = try status.map { try JSONValue.read(word: $0, "--status", statusWords) }
        object["session_type"] = try type.map { try JSONValue.read(word: $0, "--type", typeWords) }
        return object
    }

    /// The fields of a work session besides its space.
    struct SessionFields: RoboscopeFields {
        @Option(help: ArgumentHelp("\(types); inspection for a new one.", valueName: "TYPE")) var type: String?
        @Option(help: ArgumentHelp("\(statuses); the server says draft.", valueName: "STATUS")) var status: String?
        @Option(help: ArgumentHelp("When it began.", valueName: "TIME")) var startedAt: String?
        @Option(help: ArgumentHelp("When it ended, as 2026-11-21T17:00:00Z.", valueName: "TIME")) var completedAt:
            String?
        @Option(help: ArgumentHelp("More about it.", valueName: "JSON")) var meta: String?

        func object() throws -> JSONObject {
            var object = try Roboscope.word(status, type)
            object["started_at"] = try startedAt.map { try JSONValue.read(time: $0, "--started-at") }
            object["completed_at"] = try completedAt.map { try JSONValue.read(time: $0, "--completed-at") }
            object["meta"] = try meta.map { try JSONValue.read(object: $0, "--meta") }
            return object
        }
    }
}
