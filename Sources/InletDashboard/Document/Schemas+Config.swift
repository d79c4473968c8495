internal import InletAgent
internal import InletCore

extension ReloadReport: Described {
    static var schemaName: String { "Reload" }
    static var schema: Schema {
        .object([
            .must("done", .flag), .must("message", .text), .must("changes", .list(.named(Change.self))),
            .must("errors", .list(.named(ConfigFault.self))),
            .may("warnings", .list(.named(ConfigFault.self)), "What works but should be changed."),
        ])
    }
}

extension ReloadReport.Change: Described {
    static var schemaName: String { "Change" }
    static var schema: Schema {
        .object([
            .must("path", .text, "As destinations.r2.part_size."), .may("from", .text), .may("to", .text),
            .must("effect", .word(["now", "restart"])),
        ])
    }
}

extension ConfigFault: Described {
    static var schemaName: String { "ConfigFault" }
    static var schema: Schema {
        .object([
            .must("file", .text), .must("line", .integer), .must("column", .integer), .must("message", .text),
            .must("excerpt", .text, "The line, and a caret below the place."), .must("text", .text, "All of it."),
        ])
    }
}

extension ConfigReport: Described {
    static var schemaName: String { "Configuration" }
    static var schema: Schema {
        .object([.must("file", .text), .must("text", .text, "YAML."), .must("loaded_at", .time)])
    }
}

extension LogLevelReport: Described {
    static var schemaName: String { "LogLevel" }
    static var schema: Schema {
        .object([
            .must("level", level), .may("configured", level, "Where another one holds."), .must("levels", .list(level)),
        ])
    }

    fileprivate static let level = Schema.word(LogSettings.Level.allCases.map(\.rawValue))
}

extension LogLevelWish: Described {
    static var schemaName: String { "LogLevelOrder" }
    static var schema: Schema { .object([.must("level", LogLevelReport.level)]) }
}
