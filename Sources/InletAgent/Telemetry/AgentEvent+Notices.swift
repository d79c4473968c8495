internal import InletCore

extension AgentEvent {
    /// What is said of notices.
    var notificationLine: EventLine? {
        switch self {
        case .notificationSent(let sink, let notice, let event, let tries):
            Self.line(
                "notification.sent", .debug, ("sink", .text(sink)), ("notice", .text(notice)), ("of", .text(event)),
                ("tries", .count(tries)))
        case .notificationFailed(let sink, let notice, let reason, let next):
            Self.line(
                "notification.failed", .warning, ("sink", .text(sink)), ("notice", .text(notice)),
                ("reason", .safe(reason)), ("next_try", .text(next?.rfc3339 ?? "never")))
        case .notificationDropped(let sink, let count, let reason):
            Self.line(
                "notification.dropped", .warning, ("sink", .text(sink)), ("count", .count(count)),
                ("reason", .safe(reason)))
        default: nil
        }
    }
}
