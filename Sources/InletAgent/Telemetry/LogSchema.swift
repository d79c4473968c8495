package import InletCore

/// What each event's log line has: one table for the JSON schema and for the test that holds real lines against it.
package struct LogEventSpec: Sendable {
    /// Each with what the JSON Schema says of it.
    package enum Kind: String, Sendable {
        case text = #"{"type": "string"}"#
        case number = #"{"type": "integer"}"#
        case list = #"{"type": "array", "items": {"type": "string"}}"#
        case flag = #"{"type": "boolean"}"#
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

    private static let marks: [Character: Kind] = ["#": .number, "*": .list, "!": .flag]

    /// - Parameter text: its name, its levels, and the names of its fields with what is not text marked: `size#` a number,
    ///   `notes*` a list, `resumed!` a flag; `?` at the end for what only some lines have.
    private init(_ text: Substring) {
        let words = text.split(separator: " ")
        name = String(words[0])
        levels = words[1].split(separator: "/").compactMap { LogSettings.Level(rawValue: String($0)) }
        fields = words[2...].map { word in
            var word = word
            let isOptional = word.hasSuffix("?")
            if isOptional { word = word.dropLast() }
            let kind = word.last.flatMap { Self.marks[$0] } ?? .text
            return Field(name: String(kind == .text ? word : word.dropLast()), kind: kind, isOptional: isOptional)
        }
        if formerName != nil { fields.append(Field(name: "was", kind: .text, isOptional: true)) }
    }
}

/// The names that events had before 0.9, and what they are called since. The table goes away with 0.10; until then whoever
/// looks for an old name finds the event: its lines have the name in `was`, and lines of old log files are understood.
extension LogEventSpec {
    package static let formerNames = [
        "agent.host_lost": "agent.helper_lost",
        "agent.trouble": "agent.error",
        "destination.login_old": "destination.login_expiring",
        "destination.slowed": "destination.throttled",
        "destination.trouble": "destination.error",
        "file.trouble": "file.error",
        "job.known": "job.unchanged",
        "journal.free": "journal.recovered",
        "log.trouble": "log.error",
        "queue.calm": "queue.normal",
        "queue.free": "queue.recovered",
        "volume.unproved": "volume.unverified",
        "watch.guard": "watch.paused",
    ]

    /// The old names by the new ones.
    static let namesBefore = Dictionary(uniqueKeysWithValues: formerNames.map { ($1, $0) })

    var formerName: String? { Self.namesBefore[name] }
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
        let fields = event.fields.map { "\(JSONString.quote($0.name)): \($0.kind.rawValue)" }
        let properties = (["\"ts\": true", "\"event\": true", "\"level\": {\"enum\": [\(levels)]}"] + fields)
            .joined(separator: ", ")
        let required = event.fields.filter { !$0.isOptional }.map { JSONString.quote($0.name) }.joined(separator: ", ")
        let names = ([event.name] + [event.formerName].compactMap(\.self)).map { JSONString.quote($0) }
        return """
            {"if": {"properties": {"event": {"enum": [\(names.joined(separator: ", "))]}}, "required": ["event"]}, \
            "then": {"properties": {\(properties)}, "required": [\(required)], "additionalProperties": false}}
            """
    }
}

extension LogEventSpec {
    private static let job = "job# path destination route "
    private static let volume = "path volume files# bytes# unproved# missing# unmarked# unread# ignored# others#"

    /// Every event, in the order of the README's table.
    package static let all = table.split(separator: "\n").map { LogEventSpec($0) }

    private static let table = """
        agent.started info version configuration
        agent.confined info landlock# places# calls# reason?
        agent.unconfined info reason
        agent.helper_lost error reason
        agent.ready info roots# destinations#
        agent.stopping info
        agent.failed error reason
        agent.error error reason
        agent.service_failed error service reason wait_ms#

        watch.added info path directories# writer_check
        watch.mode info root path mode reason
        watch.lost warning path reason
        watch.limit warning path reason
        watch.overflow warning path
        watch.adopted info path files# bytes#
        watch.paused error path reason
        watch.resumed info path by
        watch.standby warning path holder
        volume.added info path volume waiting#
        volume.removed info path volume
        volume.done info \(volume)
        volume.unverified warning \(volume)

        file.error warning path reason
        file.not_adopted info path reason
        file.derived info path name size# duration_ms#
        file.not_derived warning path name reason
        file.settling debug path busy
        file.unsettled info path reason waiting_ms#
        file.ignored info path reason
        file.awaited info path reason
        file.rejected warning job# path route reason
        file.note info job# path route note

        job.admitted info job# path route size# destinations* labels*?
        job.unchanged debug job# path
        job.renamed info job# path from
        job.duplicate info job# path route destinations* same_as#
        job.started info/debug \(job)key attempt# size# resumed!?
        transfer.progress info \(job)sent# size# percent#? step?
        job.checkpoint debug \(job)notes*
        job.retry warning/info/debug \(job)code reason attempt# wait_ms#
        job.waiting info/debug \(job)until reason?
        job.delivered info \(job)key size# verified url duration_ms#
        job.failed error/info \(job)state code reason
        job.finished info job# path route state disposition
        job.disposition_failed error job# path reason
        job.expired warning job# path route destinations*
        job.recovered info/warning claims# parked# unparked#
        transfer.aborted info \(job)
        receipt.elsewhere warning path folder reason

        batch.closed info batch# path route files#
        batch.ended info/warning batch# path route state outcome files# delivered# counts* labels*?
        manifest.written info batch# path route destination file
        manifest.failed warning batch# path route reason
        manifest.skipped warning batch# path route destination reason

        queue.resuming info waiting#
        queue.resumed info/warning resumed# of# failed# waiting#
        queue.warning warning waiting# limit#
        queue.normal info waiting# limit#
        queue.full warning files# bytes#
        queue.recovered info

        journal.full error reason
        journal.failing error reason
        journal.recovered info
        journal.pruned info files# took_ms#
        journal.backup info path
        journal.backup_failed warning reason

        destination.down warning destination reason next_probe
        destination.up info destination
        destination.throttled warning destination reason until
        destination.error warning destination reason
        destination.login_expiring error destination reason
        destination.token_given info destination to
        destination.paused info destination by
        destination.resumed info destination by

        limit.changed info destination bandwidth cause bytes_per_second#? until?
        notification.sent debug sink notice of tries#
        notification.failed warning sink notice reason next_try
        notification.dropped warning sink count# reason
        config.reloaded info/warning path changes* parked# restart_needed* warnings*
        config.warning warning path warning
        config.refused error path errors*
        dashboard.ready info url
        dashboard.failed warning address reason
        dashboard.refused warning address wait_ms#
        log.level info to by
        log.error error reason
        log.lost warning lines#
        log.suppressed warning of lines#
        """
}
