package import InletAgent
package import InletCore

/// The bandwidth limit of one destination, or of all together, and its cause.
package struct LimitReport: Codable, Sendable, NamedSchema {
    package var destination: String?
    package var bytes_per_second: Int64?
    package var why: String
    /// The schedule's next change, by the limits' clock, with its offset.
    package var until: String?

    static let notes: [String: SchemaDescription] = [
        "destination": "Left out for the common limit.",
        "bytes_per_second": "0 pauses; left out where there is no limit.",
        "why": "configuration, schedule, command or fleet", "until": .time,
    ]

    package init(_ status: BandwidthPolicy.Status) {
        destination = status.destination
        bytes_per_second = status.rate
        why = status.cause.rawValue
        until = status.until?.rfc3339(in: status.zone)
    }

    /// Whether it is worth a line: a destination without its own limit follows the common one.
    package var isNotable: Bool { bytes_per_second != nil || until != nil || why != "configuration" }

    /// `all destinations: 5 MiB/s by the schedule, until 2026-11-22T18:00:00+01:00`.
    package var text: String {
        let option = destination.map { " --to \($0)" } ?? ""
        let reason =
            switch BandwidthPolicy.Cause(rawValue: why) {
            case .command: " by 'inlet limit', until 'inlet limit auto\(option)' or the next start"
            case .schedule: " by the schedule"
            case .fleet: " by the fleet"
            default: ""
            }
        return "\(destination ?? "all destinations"): \(RateText.format(bytes_per_second))\(reason)"
            + (until.map { ", until \($0)" } ?? "")
    }
}

/// When deliveries of a route's big files may begin.
package struct WindowReport: Codable, Sendable, NamedSchema {
    package var route: String
    /// In words.
    package var window: String
    package var open: Bool
    /// When it opens or closes, by its own clock, with its offset.
    package var next_change: String?

    static let notes: [String: SchemaDescription] = ["next_change": .time]

    package init(route: String, _ window: DeliveryWindow, at now: WallTime) {
        self.route = route
        self.window = window.text
        open = window.opening(at: now) == nil
        next_change = window.nextChange(after: now)?.rfc3339(in: window.zone)
    }

    package var text: String {
        let change = next_change.map { " until \($0)" } ?? ""
        return "route \(route): \(window); \(open ? "open" : "closed")\(change)"
    }
}

/// The body that `inlet limit` posts.
package struct LimitRequest: Codable, Sendable, NamedSchema {
    package var limit: String
    package var destination: String?

    static var schemaName: String { "LimitWish" }
    static let notes: [String: SchemaDescription] = [
        "limit": "20MiB/s, 160Mbit/s, 0 (pause), off, or auto (the configured limit)",
        "destination": "Default: all together.",
    ]

    package init(limit: String, destination: String?) {
        self.limit = limit
        self.destination = destination
    }

    /// nil, with the end of a sentence, for an invalid limit.
    package static func order(_ text: String) -> (order: BandwidthPolicy.Order?, fault: String) {
        if text == "auto" { return (.auto, "") }
        do {
            return (.rate(try RateText.read(text)), "")
        } catch {
            return (nil, error.message)
        }
    }
}

/// `GET log/level`.
package struct LogLevelReport: Codable, Sendable, NamedSchema {
    /// The least important level that is logged.
    package var level: String
    package var configured: String?
    /// Every level, the least important first.
    package var levels = LogSettings.Level.allCases.map(\.rawValue)

    static let notes: [String: SchemaDescription] = [
        "level": .schema(.level), "configured": .schema(.level, "Where another one holds."),
        "levels": .schema(.list(.level)),
    ]

    /// `debug, until the next start or reload (the configuration says info)`.
    package var text: String {
        level + (configured.map { ", until the next start or reload (the configuration says \($0))" } ?? "")
    }
}

/// The body that `inlet logs level` posts.
package struct LogLevelRequest: Codable, Sendable, NamedSchema {
    package var level: String

    static var schemaName: String { "LogLevelOrder" }
    static let notes: [String: SchemaDescription] = ["level": .schema(.level)]

    package init(level: String) { self.level = level }
}

/// The outcome of a reload.
package struct ReloadReport: Codable, Sendable, Equatable, NamedSchema {
    package struct Change: Codable, Sendable, Equatable, NamedSchema {
        package var path: String
        /// nil where there is none.
        package var from: String?
        package var to: String?
        package var effect: String

        static let notes: [String: SchemaDescription] = [
            "path": "As destinations.r2.part_size.", "effect": .schema(.word(["now", "restart"])),
        ]

        package init(_ change: ConfigChange) {
            (path, from, to) = (change.path, change.from, change.to)
            effect = change.needsRestart ? "restart" : "now"
        }
    }

    package var done: Bool
    package var message: String
    package var changes: [Change] = []
    package var errors: [ConfigFault] = []
    package var warnings: [ConfigFault]?

    static let notes: [String: SchemaDescription] = ["warnings": "Settings that work but should be changed."]

    /// - Parameter outcome: nil when no agent with a configuration file runs.
    package init(_ outcome: ReloadOutcome?) {
        switch outcome {
        case .done(let changes, let parked, let warnings):
            done = true
            message = Self.message(changes, parked)
            self.changes = changes.map { Change($0) }
            self.warnings = warnings.isEmpty ? nil : warnings
        case .refused(let errors):
            done = false
            message = "the configuration is invalid; the old one stays in force"
            self.errors = errors
        case .failed(let reason):
            done = false
            message = reason
        case nil:
            done = false
            message = "this agent has no configuration file to reload"
        }
    }

    private static func message(_ changes: [ConfigChange], _ parked: Int) -> String {
        var parts = [
            changes.isEmpty ? "nothing has changed" : changes.count.counted("change")
        ]
        let waiting = changes.filter(\.needsRestart).map(\.path)
        if !waiting.isEmpty { parts.append("restart needed: \(waiting.joined(separator: ", "))") }
        if parked > 0 {
            parts.append(
                "\(parked.counted("delivery waits", "deliveries wait")) for destinations that are no longer configured")
        }
        return parts.joined(separator: "; ")
    }
}

/// The configuration of a running agent.
package struct ConfigReport: Codable, Sendable, Equatable, NamedSchema {
    package var file: String
    /// As `inlet config show` prints it, with secrets as `***`.
    package var text: String
    package var loaded_at: String

    static var schemaName: String { "Configuration" }
    static let notes: [String: SchemaDescription] = ["text": "YAML.", "loaded_at": .time]

    init(_ shown: RunningConfig) {
        file = shown.file.display
        text = shown.text
        loaded_at = shown.loadedAt.rfc3339
    }
}

/// A receiver of notifications.
package struct ReceiverReport: Codable, Sendable, Equatable, NamedSchema {
    package var name: String
    package var kind: String
    package var events: [String]
    /// As good as a password.
    package var subscribe: String?

    static var schemaName: String { "Receiver" }
    static let notes: [String: SchemaDescription] = [
        "kind": "webhook, exec, or a service, such as ntfy.",
        "subscribe": "The address for a phone to subscribe to; whoever has it reads the notifications.",
    ]

    init(_ receiver: NotifySettings) {
        (name, kind) = (receiver.name, receiver.receiver.kind)
        events = NotificationEvent.allCases.filter(receiver.events.contains).map(\.rawValue)
        if case .service(let service) = receiver.receiver { subscribe = service.subscription?.reveal() }
    }
}

extension ConfigFault: NamedSchema {
    static let notes: [String: SchemaDescription] = [
        "excerpt": "The line, and a caret below the place.", "text": "All of it.",
    ]
}
