package import InletCore

/// What a command prints with `--json`. The manual's reference page is made from this table.
package struct CommandOutput: Sendable {
    /// As it is typed after `inlet`: `queue list`.
    package let command: String
    /// Whether each line is an object; otherwise all of the output is one.
    package let isLines: Bool
    private let schema: Schema

    private init(_ command: String, _ schema: Schema, isLines: Bool = false) {
        (self.command, self.isLines, self.schema) = (command, isLines, schema)
    }

    private static let server = Schema.object([], more: .anything)

    package static let all = [
        CommandOutput("batch list", .named(JobReport.Batch.self), isLines: true),
        CommandOutput("check", .named(CheckReport.self)),
        CommandOutput("config diff", .named(ReloadReport.Change.self), isLines: true),
        CommandOutput("config show", server),
        CommandOutput("limit", .named(LimitReport.self), isLines: true),
        CommandOutput("logs level", .named(LogLevelReport.self)),
        CommandOutput("queue list", .named(JobReport.self), isLines: true),
        CommandOutput("queue show", .named(JobReport.self)),
        CommandOutput("receipts", server, isLines: true),
        CommandOutput("report", .named(OffloadReport.self)),
        CommandOutput("roboscope events list", server, isLines: true),
        CommandOutput("roboscope markers get", server),
        CommandOutput("roboscope markers list", server, isLines: true),
        CommandOutput("roboscope sessions get", server),
        CommandOutput("roboscope sessions list", server, isLines: true),
        CommandOutput("roboscope spaces get", server),
        CommandOutput("roboscope spaces list", server, isLines: true),
        CommandOutput("route", .named(RouteReport.self), isLines: true),
        CommandOutput("run", .named(DryRunReport.self), isLines: true),
        CommandOutput("status", .named(StatusReport.self)),
        CommandOutput("storage list", .named(StoredObjectReport.self), isLines: true),
        CommandOutput("verify", .named(VerifyReport.self), isLines: true),
        CommandOutput("vopi frames", server, isLines: true),
        CommandOutput("vopi images", server, isLines: true),
        CommandOutput("vopi jobs", server, isLines: true),
        CommandOutput("vopi show", server),
    ]

    /// The schemas of all commands by name, and the types that they refer to below `components/schemas`, as in OpenAPI.
    package static var document: JSONValue {
        var types: [String: any NamedSchema.Type] = [:]
        for output in all { output.schema.collect(&types) }
        let commands = Dictionary(
            uniqueKeysWithValues: all.map { output in
                (output.command, JSONValue.object(["lines": .boolean(output.isLines), "schema": output.schema.json]))
            })
        return .object([
            "commands": .object(commands),
            "components": .object(["schemas": .object(types.mapValues { $0.schema.json })]),
        ])
    }
}
