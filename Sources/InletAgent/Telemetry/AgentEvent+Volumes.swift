internal import InletCore

extension AgentEvent {
    /// What is said of watched folders that are not what they were, and of removable volumes.
    var volumeLine: EventLine? {
        switch self {
        case .watchGuard(let root, let reason):
            Self.line("watch.guard", .error, ("path", .path(root)), ("reason", .safe(reason)))
        case .watchResumed(let root, let by):
            Self.line("watch.resumed", .info, ("path", .path(root)), ("by", .text(by)))
        case .watchStandby(let root, let holder):
            Self.line("watch.standby", .warning, ("path", .path(root)), ("holder", .safe(holder)))
        case .volumeAdded(let root, let volume, let waiting):
            Self.line(
                "volume.added", .info, ("path", .path(root)), ("volume", .safe(volume)), ("waiting", .count(waiting)))
        case .volumeRemoved(let root, let volume):
            Self.line("volume.removed", .info, ("path", .path(root)), ("volume", .safe(volume)))
        case .volumeDone(let end):
            Self.line(
                end.isDone ? "volume.done" : "volume.unproved", end.isDone ? .info : .warning,
                ("path", .path(end.root)),
                ("volume", .safe(end.volume)), ("files", .count(end.files)), ("bytes", .number(end.bytes)),
                ("unproved", .count(end.unproved)), ("missing", .count(end.missing)),
                ("unmarked", .count(end.unmarked)),
                ("unread", .count(end.unread)), ("ignored", .count(end.ignored)), ("others", .count(end.others)))
        default: nil
        }
    }
}
