import ArgumentParser
import InletCore
import InletPipelines

extension Roboscope {
    struct Spaces: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists, shows, makes, changes and deletes spaces.",
            discussion: """
                Examples:
                  inlet roboscope spaces
                  inlet roboscope spaces get atrium
                  inlet roboscope spaces create --key atrium --name "The atrium"
                  inlet roboscope spaces update atrium --description "North wing"
                """,
            subcommands: [List.self, Get.self, Create.self, Update.self, Delete.self], defaultSubcommand: List.self)

        private static let first = [
            "id", "key", "name", "description", "model_glb_url", "model_usdc_url", "preview_url", "scan_url",
        ]

        struct List: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Lists spaces.", discussion: "Example: inlet roboscope spaces list --key atrium --json")

            @OptionGroup var server: ServerOption
            @Option(help: "Only the space with this key.") var key: String?
            @Flag(help: "Print one JSON object a line.") var json = false

            func run() async throws {
                try await Roboscope.use(server) { admin in
                    let query = key.map { [("key", $0)] } ?? []
                    let spaces = try await admin.list(.spaces, query: query).map { Answer($0) }
                    AnswerTable(
                        .init("ID", "id"), .init("KEY", "key"), .init("UPDATED", "updated_at"),
                        .init("MODEL", "model_usdc_url|model_glb_url"), .init("NAME", "name"),
                        none: key.map { "No space has the key '\(DisplayText.escape($0))'." } ?? "There are no spaces."
                    ).print(spaces, json: json)
                }
            }
        }

        struct Get: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Shows one space.", discussion: "Example: inlet roboscope spaces get atrium --json")

            @OptionGroup var server: ServerOption
            @Argument(help: "The space's id or key.") var space: String
            @Flag(help: "Print the JSON object.") var json = false

            func run() async throws {
                try await Roboscope.use(server) { admin in
                    Roboscope.show(try await admin.get(.spaces, space), json: json, first: Spaces.first)
                }
            }
        }

        struct Create: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Makes a space.",
                discussion: "Example: inlet roboscope spaces create --key atrium --name \"The atrium\"")

            @OptionGroup var server: ServerOption
            @Option(help: "Its key; one that another space has is refused here.") var key: String
            @Option(help: "What people call it; the key, if left out.") var name: String?
            @OptionGroup var fields: SpaceFields
            @Flag(help: "Print the JSON object.") var json = false

            func validate() throws { _ = try fields.object() }

            func run() async throws {
                var object = try fields.object()
                object["key"] = .string(key)
                object["name"] = .string(name ?? key)
                try await Roboscope.use(server) { admin in
                    let others = try await admin.list(.spaces, query: [("key", key)]).map { Answer($0) }
                    if let taken = others.first(where: { $0.fields["key"] == .string(key) }) {
                        throw DeliveryError(
                            .giveUp, .conflict,
                            "space \(taken["id"]) has the key '\(DisplayText.escape(key))' already")
                    }
                    Roboscope.show(try await admin.create(.spaces, object), json: json, first: Spaces.first)
                }
            }
        }

        struct Update: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Changes what is given of a space, and nothing else.",
                discussion: """
                    --meta is merged into what is there.

                    Example: inlet roboscope spaces update atrium --name "Main atrium" --meta '{"floor": 2}'
                    """)

            @OptionGroup var server: ServerOption
            @Argument(help: "The space's id or key.") var space: String
            @Option(help: "Its new key.") var key: String?
            @Option(help: "What people call it.") var name: String?
            @OptionGroup var fields: SpaceFields
            @Flag(help: "Print the JSON object.") var json = false

            private func object() throws -> JSONObject {
                var object = try fields.object()
                object["key"] = key.map { .string($0) }
                object["name"] = name.map { .string($0) }
                return object
            }

            func validate() throws {
                if try object().isEmpty { throw ValidationError("say what to change, such as --name NAME") }
            }

            func run() async throws {
                let object = try object()
                try await Roboscope.use(server) { admin in
                    Roboscope.show(try await admin.update(.spaces, space, object), json: json, first: Spaces.first)
                }
            }
        }

        struct Delete: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Deletes a space at the server; stored files stay.",
                discussion: "Example: inlet roboscope spaces delete atrium --yes")

            @OptionGroup var server: ServerOption
            @Argument(help: "The space's id or key.") var space: String
            @Flag(help: "Do it without asking.") var yes = false

            func validate() throws { try Roboscope.confirm(yes, "space \(DisplayText.escape(space))") }

            func run() async throws {
                try await Roboscope.use(server) { admin in
                    let id = try await admin.space(space)
                    try await admin.delete(.spaces, id)
                    Console.print("space \(DisplayText.escape(id)) is deleted")
                }
            }
        }
    }

    /// What can be said of a space besides its key and name.
    struct SpaceFields: ParsableArguments {
        @Option(help: "A description.") var description: String?
        @Option(help: "Address of its model as glTF.") var modelGlbURL: String?
        @Option(help: "Address of its model as USD.") var modelUsdcURL: String?
        @Option(help: "Address of its picture.") var previewURL: String?
        @Option(help: "Address of its scan.") var scanURL: String?
        @Option(help: ArgumentHelp("More about it.", valueName: "JSON")) var meta: String?

        func object() throws -> JSONObject {
            var object: JSONObject = [:]
            let texts = [
                ("description", description), ("model_glb_url", modelGlbURL), ("model_usdc_url", modelUsdcURL),
                ("preview_url", previewURL), ("scan_url", scanURL),
            ]
            for case (let name, let text?) in texts { object[name] = .string(text) }
            object["meta"] = try meta.map { try JSONArgument.object($0, "--meta") }
            return object
        }
    }
}
