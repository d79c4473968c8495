internal import InletCore
internal import InletJournal

extension JobReport: Described {
    static var schemaName: String { "Job" }
    static var schema: Schema {
        .object([
            .must("job", .integer), .must("path", .text, "Escaped for display."), .must("size", .integer),
            .must("state", .word(FileState.allCases.map(\.rawValue))), .may("route", .text),
            .may("labels", .map(.text)), .may("code", .text), .may("reason", .text), .must("admitted_at", .time),
            .may("ended_at", .time), .may("finished_at", .time), .may("disposition", .text),
            .must("deliveries", .list(.named(Delivery.self))), .may("batch", .named(Batch.self)),
        ])
    }
}

extension JobReport.Delivery: Described {
    static var schemaName: String { "Delivery" }
    static var schema: Schema {
        .object([
            .must("destination", .text), .may("key", .text), .must("state", .text), .must("attempts", .integer),
            .may("after", .text), .may("next_at", .time), .may("code", .text), .may("reason", .text),
            .may("url", .text), .may("etag", .text), .may("verified", .text), .may("details", .map(.text)),
        ])
    }
}

extension JobReport.Batch: Described {
    static var schemaName: String { "Batch" }
    static var schema: Schema {
        .object([
            .must("batch", .integer), .must("name", .text), .must("route", .text), .must("state", .text),
            .must("created_at", .time), .may("closed_at", .time), .may("ended_at", .time),
            .must("files", .map(.integer), "Files by state."), .may("labels", .map(.text)),
        ])
    }
}

extension StoryReport: Described {
    static var schemaName: String { "Story" }
    static var schema: Schema {
        .object([
            .must("job", .named(JobReport.self)), .must("events", .list(.named(EventReport.self)), "Oldest first."),
            .may("events_since", .time, "What happened before is not remembered."),
            .must("parts", .list(.named(Part.self))), .may("receipt", .object([], more: .anything)),
        ])
    }
}

extension StoryReport.Part: Described {
    static var schemaName: String { "Part" }
    static var schema: Schema {
        .object([
            .must("destination", .text), .must("part", .integer), .must("size", .integer), .must("etag", .text),
        ])
    }
}

extension CommandReport: Described {
    static var schemaName: String { "CommandAnswer" }
    static var schema: Schema {
        .object([.must("done", .flag), .must("message", .text), .may("job", .integer), .may("known", .flag)])
    }
}

extension JobSelection: Described {
    static var schemaName: String { "Selection" }
    static var schema: Schema {
        .object([
            .may("jobs", .list(.integer)), .may("states", .list(.word(FileState.allCases.map(\.rawValue)))),
            .may("destination", .text),
            .may("route", .text), .may("path", .text, "A pattern by gitignore's rules."),
            .may("labels", .map(.text)), .may("code", .text), .may("older_ms", .from(0, to: nil)),
            .may("batch", .integer), .may("limit", .from(0, to: nil)),
        ])
    }
}

extension SelectionReport: Described {
    static var schemaName: String { "SelectionAnswer" }
    static var schema: Schema {
        .object([
            .must("matched", .integer), .must("bytes", .integer), .must("done", .integer), .must("hurried", .integer),
            .may("waits_for", .list(.text)), .must("skipped", .map(.integer), "Files by the reason."),
            .must("files", .list(.named(File.self))), .must("dry_run", .flag),
        ])
    }
}

extension SelectionReport.File: Described {
    static var schemaName: String { "SelectedFile" }
    static var schema: Schema {
        .object([
            .must("job", .integer), .must("path", .text), .must("size", .integer),
            .must("state", .word(FileState.allCases.map(\.rawValue))),
        ])
    }
}

extension OffloadReport: Described {
    static var schemaName: String { "Offload" }
    static var schema: Schema {
        .object([
            .must("batch", .named(JobReport.Batch.self)), .must("source", .text), .must("host", .text),
            .must("printed_at", .time), .must("files", .list(.named(File.self))),
        ])
    }
}

extension OffloadReport.File: Described {
    static var schemaName: String { "OffloadFile" }
    static var schema: Schema {
        .object([
            .must("job", .integer), .must("path", .text), .must("size", .integer), .must("modified_at", .time),
            .must("state", .word(FileState.allCases.map(\.rawValue))), .must("digests", .list(.text)),
            .may("reason", .text),
            .must("deliveries", .list(.named(OffloadReport.Delivery.self))),
        ])
    }
}

extension OffloadReport.Delivery: Described {
    static var schemaName: String { "OffloadDelivery" }
    static var schema: Schema {
        .object([
            .must("destination", .text), .must("state", .text), .may("key", .text), .may("url", .text),
            .may("verified", .text), .may("ended_at", .time), .may("reason", .text),
        ])
    }
}
