internal import InletAgent
internal import InletCore
internal import InletJournal

extension StatusReport: Described {
    static var schemaName: String { "Status" }
    static var schema: Schema {
        .object([
            .may("health", .named(Health.self)), .must("running", .flag), .must("queue", .named(Queue.self)),
            .may("version", .text),
            .may("started_at", .time), .must("journal_failing", .flag),
            .may("journal_reason", .text),
            .must("seen", .integer, "Files seen: the sum of files and ignored."), .must("pending", .integer),
            .must("ignored", .integer), .must("files", .map(.integer), "Files by state."),
            .must("bytes", .map(.integer), "Their bytes by state."), .may("oldest_pending", .time),
            .must("destinations", .list(.named(Destination.self))), .must("roots", .list(.named(Root.self))),
            .must("in_flight", .list(.named(Transfer.self))), .may("notices_waiting", .integer),
            .may("notices_failed", .integer), .may("resuming", .named(ResumeSummary.self)),
            .may(
                "incidents", .list(.named(Incident.self)),
                "Parts of the agent that have ended unasked, and begin again."),
            .may("away", .list(.named(AwayVolume.self)), "Removable volumes that files wait for."),
            .may("log", .named(Log.self), "Why the log is not written as it should be."),
            .may("stuck", .named(Stuck.self), "Files that could not be archived, deleted or quarantined at their end."),
            .may("forbidden", .named(Stuck.self), "Files that wait because they may not be read."),
            .may("gone_soon", .integer, "Files that ended as gone within seconds of their admission, since yesterday."),
            .may("limits", .list(.named(LimitReport.self))), .may("windows", .list(.named(WindowReport.self))),
            .may("dashboard", .named(DashboardReport.self)), .may("confinement", .named(ConfinementReport.self)),
        ])
    }
}

extension StatusReport.AwayVolume: Described {
    static var schemaName: String { "AwayVolume" }
    static var schema: Schema {
        .object([
            .must("volume", .text, "Its UUID, label or device, and the folder on it."),
            .must("path", .text, "Where it was last."), .must("files", .integer),
        ])
    }
}

extension StatusReport.Stuck: Described {
    static var schemaName: String { "Stuck" }
    static var schema: Schema {
        .object([.must("files", .integer, "At most 10,000."), .must("reason", .text, "Of the oldest.")])
    }
}

extension StatusReport.Log: Described {
    static var schemaName: String { "Log" }
    static var schema: Schema {
        .object([.must("reason", .text), .must("lost", .integer, "Lines that were lost since it began.")])
    }
}

extension StatusReport.Incident: Described {
    static var schemaName: String { "Incident" }
    static var schema: Schema { .object([.must("service", .text, "What it does."), .must("reason", .text)]) }
}

extension Health: Described {
    static var schemaName: String { "Health" }
    static var schema: Schema {
        .object([
            .must("state", .word(["ok", "attention", "trouble"])),
            .must("sentence", .text, "What a person should know first."),
            .must("needs", .list(.text), "What needs a person, the worst first, each with its remedy."),
            .may(
                "findings", .list(.named(HealthFinding.self)),
                "The same one by one, and after them what needs nobody."),
            .may("needing", .integer, "How many things need a person."),
        ])
    }
}

extension HealthFinding: Described {
    static var schemaName: String { "Finding" }
    static var schema: Schema {
        .object([
            .must("state", .word(["ok", "attention", "trouble"]), "ok: it needs nobody."), .must("text", .text),
            .must("remedy", .text, "What to do, or what happens by itself."),
            .must("about", .word(Subject.allCases.map(\.rawValue))),
            .may("name", .text, "Of the destination, the watched folder, or the state of the files."),
        ])
    }
}

extension StatusReport.Destination: Described {
    static var schemaName: String { "Destination" }
    static var schema: Schema {
        .object([
            .must("name", .text), .must("type", .text),
            .must(
                "state", .text, "up, down, credentials refused, asks for time, not asked yet, paused, or not running"),
            .may("last_error", .text), .may("next_probe", .time), .must("waiting", .integer, "Deliveries."),
        ])
    }
}

extension StatusReport.Root: Described {
    static var schemaName: String { "Root" }
    static var schema: Schema {
        .object([
            .must("path", .text),
            .must("state", .text, "starting, watching, missing, or failing or paused with the reason behind a colon"),
            .may("mode", .text, "inotify, fanotify, poll, or mixed; absent before any folder of it was entered"),
            .may("watches", .integer, "Of inotify."),
            .may(
                "last_event", .time,
                "The kernel's last news of it, or, where it is polled, the last file found complete."),
            .must("directories", .integer), .must("polled", .integer),
            .must("settling", .integer), .must("ignored", .integer),
            .must("unsettled", .list(.named(StatusReport.Unsettled.self))),
            .may(
                "stuck", .named(StatusReport.Stuck.self),
                "Files that cannot be taken now, and folders that cannot be listed."),
        ])
    }
}

extension StatusReport.Unsettled: Described {
    static var schemaName: String { "Unsettled" }
    static var schema: Schema {
        .object([
            .must("path", .text), .must("writer", .flag), .may("waits_for", .text), .may("held_by", .text),
            .may("waiting_ms", .integer),
        ])
    }
}

extension StatusReport.Transfer: Described {
    static var schemaName: String { "Transfer" }
    static var schema: Schema {
        .object([
            .must("job", .integer), .must("path", .text), .must("destination", .text), .must("sent", .integer),
            .must("size", .integer), .must("since", .time), .may("percent", .number), .may("step", .text),
            .may("next_look", .time),
        ])
    }
}

extension StatusReport.Queue: Described {
    static var schemaName: String { "Queue" }
    static var schema: Schema {
        .object([
            .must("total", .integer, "Open deliveries."), .must("in_flight", .integer), .must("waiting", .integer),
            .must("retrying", .integer), .must("held", .integer), .must("parked", .integer),
            .must("failed", .integer, "Files."), .must("expired", .integer, "Files."), .may("oldest_waiting", .time),
            .may("oldest_waiting_ms", .integer),
        ])
    }
}

extension ResumeSummary: Described {
    static var schemaName: String { "Resuming" }
    static var schema: Schema {
        .object([
            .must("of", .integer), .must("resumed", .integer), .must("failed", .integer), .must("waiting", .integer),
        ])
    }
}

extension LimitReport: Described {
    static var schemaName: String { "Limit" }
    static var schema: Schema {
        .object([
            .may("destination", .text, "Left out for all together."),
            .may("bytes_per_second", .integer, "0 sends nothing; left out where there is no limit."),
            .must("why", .text, "configuration, schedule or command"), .may("until", .time),
        ])
    }
}

extension WindowReport: Described {
    static var schemaName: String { "Window" }
    static var schema: Schema {
        .object([
            .must("route", .text), .must("window", .text), .must("open", .flag), .may("next_change", .time),
        ])
    }
}

extension ConfinementReport: Described {
    static var schemaName: String { "Confinement" }
    static var schema: Schema {
        .object([
            .may("landlock", .integer, "The version of Landlock that holds the agent."),
            .may("denied_calls", .integer, "System calls that it has given up."),
            .may("calls_reason", .text, "Why it has given up none, though Landlock holds it."),
            .may("reason", .text, "Why nothing holds it."),
            .must("readable", .list(.text), "Folders that the agent may read, with all that is below them."),
            .must("writable", .list(.text), "Those of them in which it may make, change and remove files."),
        ])
    }
}

extension DashboardReport: Described {
    static var schemaName: String { "Dashboard" }
    static var schema: Schema {
        .object([
            .must("url", .text), .must("state", .word(State.allCases.map(\.rawValue))), .may("error", .text),
        ])
    }
}

extension LimitWish: Described {
    static var schemaName: String { "LimitWish" }
    static var schema: Schema {
        .object([
            .must("limit", .text, "20MiB/s, 160Mbit/s, 0 (nothing is sent), off, or auto (what is configured)"),
            .may("destination", .text, "Without it, all together."),
        ])
    }
}
