package import InletCore

/// What each event's log line has: one table for the JSON schema and for the test that holds real lines against it.
package struct LogEventSpec: Sendable {
    package enum Kind: String, Sendable {
        case text
        case number
        case list
        case flag
    }

    package struct Field: Sendable {
        package var name: String
        package var kind: Kind
        /// Whether only some lines of the event have it.
        package var isOptional: Bool
    }

    package var name: String
    /// The level, or the levels that it can have.
    package var levels: [LogSettings.Level]
    package var fields: [Field]

    /// - Parameter fields: names with what is not text marked: `size#` a number, `notes*` a list, `resumed!` a flag; `?` at
    ///   the end for what only some lines have.
    init(_ name: String, _ levels: LogSettings.Level..., fields: String = "") {
        self.name = name
        self.levels = levels
        self.fields = fields.split(separator: " ").map { word in
            var word = word
            let isOptional = word.hasSuffix("?")
            if isOptional { word = word.dropLast() }
            let kind: Kind =
                switch word.last {
                case "#": .number
                case "*": .list
                case "!": .flag
                default: .text
                }
            return Field(name: String(kind == .text ? word : word.dropLast()), kind: kind, isOptional: isOptional)
        }
    }
}

/// The JSON Schema (draft 2020-12) of a log line.
package enum LogSchema {
    /// The schema's text, the same for the same table. An event that it does not know may be of a later version: such a line
    /// needs the common fields only.
    package static var json: String {
        let events = LogEventSpec.all.map { event in "    \(conditional(event))" }.joined(separator: ",\n")
        let levels = LogSettings.Level.allCases.map { JSONString.quote($0.rawValue) }.joined(separator: ", ")
        return """
            {
              "$schema": "https://json-schema.org/draft/2020-12/schema",
              "title": "Inlet log line",
              "type": "object",
              "properties": {
                "ts": {"type": "string", "format": "date-time", "description": "RFC 3339, milliseconds, UTC"},
                "level": {"enum": [\(levels)]},
                "event": {"type": "string"}
              },
              "required": ["ts", "level", "event"],
              "allOf": [
            \(events)
              ]
            }

            """
    }

    /// `{"if": the event's name, "then": what its lines have}`.
    private static func conditional(_ event: LogEventSpec) -> String {
        let levels = event.levels.map { JSONString.quote($0.rawValue) }.joined(separator: ", ")
        let fields = event.fields.map { "\(JSONString.quote($0.name)): \(type($0.kind))" }
        let properties = (["\"ts\": true", "\"event\": true", "\"level\": {\"enum\": [\(levels)]}"] + fields)
            .joined(separator: ", ")
        let required = event.fields.filter { !$0.isOptional }.map { JSONString.quote($0.name) }.joined(separator: ", ")
        let name = JSONString.quote(event.name)
        return """
            {"if": {"properties": {"event": {"const": \(name)}}, "required": ["event"]}, \
            "then": {"properties": {\(properties)}, "required": [\(required)], "additionalProperties": false}}
            """
    }

    private static func type(_ kind: LogEventSpec.Kind) -> String {
        switch kind {
        case .text: #"{"type": "string"}"#
        case .number: #"{"type": "integer"}"#
        case .flag: #"{"type": "boolean"}"#
        case .list: #"{"type": "array", "items": {"type": "string"}}"#
        }
    }
}

extension LogEventSpec {
    private static let job = "job# path destination route "
    private static let volume = "path volume files# bytes# unproved# missing# unmarked# unread# ignored# others#"

    /// Every event, in the order of the README's table.
    package static let all: [LogEventSpec] =
        agent + watch + file + jobs + groups + queue + journal + destinations + others

    private static let agent = [
        LogEventSpec("agent.started", .info, fields: "version configuration"),
        LogEventSpec("agent.confined", .info, fields: "landlock# places# calls# reason?"),
        LogEventSpec("agent.unconfined", .info, fields: "reason"),
        LogEventSpec("agent.host_lost", .error, fields: "reason"),
        LogEventSpec("agent.ready", .info, fields: "roots# destinations#"),
        LogEventSpec("agent.stopping", .info),
        LogEventSpec("agent.failed", .error, fields: "reason"),
        LogEventSpec("agent.trouble", .error, fields: "reason"),
        LogEventSpec("agent.service_failed", .error, fields: "service reason wait_ms#"),
    ]

    private static let watch = [
        LogEventSpec("watch.added", .info, fields: "path directories# writer_check"),
        LogEventSpec("watch.mode", .info, fields: "root path mode reason"),
        LogEventSpec("watch.lost", .warning, fields: "path reason"),
        LogEventSpec("watch.limit", .warning, fields: "path reason"),
        LogEventSpec("watch.overflow", .warning, fields: "path"),
        LogEventSpec("watch.adopted", .info, fields: "path files# bytes#"),
        LogEventSpec("watch.guard", .error, fields: "path reason"),
        LogEventSpec("watch.resumed", .info, fields: "path by"),
        LogEventSpec("watch.standby", .warning, fields: "path holder"),
        LogEventSpec("volume.added", .info, fields: "path volume waiting#"),
        LogEventSpec("volume.removed", .info, fields: "path volume"),
        LogEventSpec("volume.done", .info, fields: volume),
        LogEventSpec("volume.unproved", .warning, fields: volume),
    ]

    private static let file = [
        LogEventSpec("file.trouble", .warning, fields: "path reason"),
        LogEventSpec("file.not_adopted", .info, fields: "path reason"),
        LogEventSpec("file.derived", .info, fields: "path name size# duration_ms#"),
        LogEventSpec("file.not_derived", .warning, fields: "path name reason"),
        LogEventSpec("file.settling", .debug, fields: "path busy"),
        LogEventSpec("file.unsettled", .info, fields: "path reason waiting_ms#"),
        LogEventSpec("file.ignored", .info, fields: "path reason"),
        LogEventSpec("file.awaited", .info, fields: "path reason"),
        LogEventSpec("file.rejected", .warning, fields: "job# path route reason"),
        LogEventSpec("file.note", .info, fields: "job# path route note"),
    ]

    private static let jobs = [
        LogEventSpec("job.admitted", .info, fields: "job# path route size# destinations* labels*?"),
        LogEventSpec("job.known", .debug, fields: "job# path"),
        LogEventSpec("job.renamed", .info, fields: "job# path from"),
        LogEventSpec("job.duplicate", .info, fields: "job# path route destinations* same_as#"),
        LogEventSpec("job.started", .info, .debug, fields: job + "key attempt# size# resumed!?"),
        LogEventSpec("transfer.progress", .info, fields: job + "sent# size# percent#? step?"),
        LogEventSpec("job.checkpoint", .debug, fields: job + "notes*"),
        LogEventSpec("job.retry", .warning, .info, .debug, fields: job + "code reason attempt# wait_ms#"),
        LogEventSpec("job.waiting", .info, .debug, fields: job + "until reason?"),
        LogEventSpec("job.delivered", .info, fields: job + "key size# verified url duration_ms#"),
        LogEventSpec("job.failed", .error, .info, fields: job + "state code reason"),
        LogEventSpec("job.finished", .info, fields: "job# path route state disposition"),
        LogEventSpec("job.disposition_failed", .error, fields: "job# path reason"),
        LogEventSpec("job.expired", .warning, fields: "job# path route destinations*"),
        LogEventSpec("job.recovered", .info, .warning, fields: "claims# parked# unparked#"),
        LogEventSpec("transfer.aborted", .info, fields: job),
        LogEventSpec("receipt.elsewhere", .warning, fields: "path folder reason"),
    ]

    private static let groups = [
        LogEventSpec("batch.closed", .info, fields: "batch# path route files#"),
        LogEventSpec(
            "batch.ended", .info, .warning,
            fields: "batch# path route state outcome files# delivered# counts* labels*?"),
        LogEventSpec("manifest.written", .info, fields: "batch# path route destination file"),
        LogEventSpec("manifest.failed", .warning, fields: "batch# path route reason"),
        LogEventSpec("manifest.skipped", .warning, fields: "batch# path route destination reason"),
    ]

    private static let queue = [
        LogEventSpec("queue.resuming", .info, fields: "waiting#"),
        LogEventSpec("queue.resumed", .info, .warning, fields: "resumed# of# failed# waiting#"),
        LogEventSpec("queue.warning", .warning, fields: "waiting# limit#"),
        LogEventSpec("queue.calm", .info, fields: "waiting# limit#"),
        LogEventSpec("queue.full", .warning, fields: "files# bytes#"),
        LogEventSpec("queue.free", .info),
    ]

    private static let journal = [
        LogEventSpec("journal.full", .error, fields: "reason"),
        LogEventSpec("journal.failing", .error, fields: "reason"),
        LogEventSpec("journal.free", .info),
        LogEventSpec("journal.pruned", .info, fields: "files# took_ms#"),
        LogEventSpec("journal.backup", .info, fields: "path"),
        LogEventSpec("journal.backup_failed", .warning, fields: "reason"),
    ]

    private static let destinations = [
        LogEventSpec("destination.down", .warning, fields: "destination reason next_probe"),
        LogEventSpec("destination.up", .info, fields: "destination"),
        LogEventSpec("destination.slowed", .warning, fields: "destination reason until"),
        LogEventSpec("destination.trouble", .warning, fields: "destination reason"),
        LogEventSpec("destination.login_old", .error, fields: "destination reason"),
        LogEventSpec("destination.token_given", .info, fields: "destination to"),
        LogEventSpec("destination.paused", .info, fields: "destination by"),
        LogEventSpec("destination.resumed", .info, fields: "destination by"),
    ]

    private static let others = [
        LogEventSpec(
            "limit.changed", .info, fields: "destination bandwidth cause bytes_per_second#? until?"),
        LogEventSpec("notification.sent", .debug, fields: "sink notice of tries#"),
        LogEventSpec("notification.failed", .warning, fields: "sink notice reason next_try"),
        LogEventSpec("notification.dropped", .warning, fields: "sink count# reason"),
        LogEventSpec("config.reloaded", .info, .warning, fields: "path changes* parked# restart_needed* warnings*"),
        LogEventSpec("config.warning", .warning, fields: "path warning"),
        LogEventSpec("config.refused", .error, fields: "path errors*"),
        LogEventSpec("dashboard.ready", .info, fields: "url"),
        LogEventSpec("dashboard.failed", .warning, fields: "address reason"),
        LogEventSpec("dashboard.refused", .warning, fields: "address wait_ms#"),
        LogEventSpec("log.level", .info, fields: "to by"),
        LogEventSpec("log.trouble", .error, fields: "reason"),
        LogEventSpec("log.lost", .warning, fields: "lines#"),
        LogEventSpec("log.suppressed", .warning, fields: "of lines#"),
    ]
}
