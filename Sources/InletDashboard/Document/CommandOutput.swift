internal import InletAgent
package import InletCore

/// A command's output with `--json`. The manual's reference page is made from this table.
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

    /// A command that prints the objects of a server as they are.
    package init(server command: String, isLines: Bool = false) { self.init(command, Self.server, isLines: isLines) }

    /// Those of all kinds of destinations.
    package static let all = [
        CommandOutput("batch list", .named(JobReport.Batch.self), isLines: true),
        CommandOutput("cards list", .named(CardsReport.self)),
        CommandOutput("cards show", .named(CardReport.self)),
        CommandOutput("cards history", .named(CardStayReport.self), isLines: true),
        CommandOutput("check", .named(CheckReport.self)),
        CommandOutput("config diff", .named(ReloadReport.Change.self), isLines: true),
        CommandOutput("config show", server),
        CommandOutput("doctor", .named(DoctorReport.self)),
        CommandOutput("limit", .named(LimitReport.self), isLines: true),
        CommandOutput("logs level", .named(LogLevelReport.self)),
        CommandOutput("queue list", .named(JobReport.self), isLines: true),
        CommandOutput("queue show", .named(JobReport.self)),
        CommandOutput("receipts", server, isLines: true),
        CommandOutput("report", .named(OffloadReport.self)),
        CommandOutput("route", .named(RouteReport.self), isLines: true),
        CommandOutput("run", .named(DryRunReport.self), isLines: true),
        CommandOutput("status", .named(StatusReport.self)),
        CommandOutput("storage list", .named(StoredObjectReport.self), isLines: true),
        CommandOutput("verify", .named(VerifyReport.self), isLines: true),
    ]

    /// The schemas of commands by name, and the types that they refer to below `components/schemas`, as in OpenAPI.
    package static func document(_ outputs: [CommandOutput]) -> JSONValue {
        var types: [String: any NamedSchema.Type] = [:]
        for output in outputs { output.schema.collect(&types) }
        let commands = Dictionary(
            uniqueKeysWithValues: outputs.map { output in
                (output.command, JSONValue.object(["lines": .boolean(output.isLines), "schema": output.schema.json]))
            })
        return .object([
            "commands": .object(commands),
            "components": .object(["schemas": .object(types.mapValues { $0.schema.json })]),
        ])
    }
}
