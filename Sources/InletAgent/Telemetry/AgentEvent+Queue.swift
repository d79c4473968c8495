internal import InletCore
internal import InletJournal

/// Lines about the queue as a whole, and about files that belong together.
extension AgentEvent {
    static func expired(_ file: FileRow, _ destination: String) -> AgentEvent {
        .jobExpired(job: file.id, path: file.fullPath, route: file.route ?? "", destinations: [destination])
    }

    var queueLine: EventLine? {
        switch self {
        case .queueWarning(let waiting, let limit):
            Self.line("queue.warning", .warning, ("waiting", .count(waiting)), ("limit", .count(limit)))
        case .queueCalm(let waiting, let limit):
            Self.line("queue.calm", .info, ("waiting", .count(waiting)), ("limit", .count(limit)))
        case .queueFull(let files, let bytes):
            Self.line("queue.full", .warning, ("files", .count(files)), ("bytes", .number(bytes)))
        case .queueFree: Self.line("queue.free", .info)
        case .jobExpired(let job, let path, let route, let destinations):
            Self.line(
                "job.expired", .warning, ("job", .number(job)), ("path", .path(path)), ("route", .text(route)),
                ("destinations", .list(destinations)))
        default: nil
        }
    }

    var batchLine: EventLine? {
        switch self {
        case .batchClosed(let batch, let path, let route, let files):
            Self.line(
                "batch.closed", .info, ("batch", .number(batch)), ("path", .path(path)), ("route", .text(route)),
                ("files", .count(files)))
        case .batchEnded(let batch):
            Self.line(
                "batch.ended", [.delivered, .duplicate].contains(batch.state) ? .info : .warning,
                ("batch", .number(batch.id)),
                ("path", .safe(batch.name)), ("route", .text(batch.route)), ("state", .text(batch.state.rawValue)),
                ("outcome", .text(batch.outcome.rawValue)), ("files", .count(batch.counts.values.reduce(0, +))),
                ("delivered", .count(batch.arrived)),
                (
                    "counts",
                    .list(batch.counts.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key): \($0.value)" })
                )
            ).labelled(batch.labels)
        case .manifestWritten(let batch, let file, let destination):
            Self.line(
                "manifest.written", .info, ("batch", .number(batch.id)), ("path", .safe(batch.name)),
                ("route", .text(batch.route)), ("destination", .text(destination ?? "")), ("file", .path(file)))
        case .manifestFailed(let batch, let reason):
            Self.line(
                "manifest.failed", .warning, ("batch", .number(batch.id)), ("path", .safe(batch.name)),
                ("route", .text(batch.route)), ("reason", .safe(reason)))
        default: nil
        }
    }
}

/// What became of files that belong together.
package enum BatchOutcome: String, Sendable {
    /// All of them are where they belong.
    case complete
    case partial
    /// None of them is.
    case failed
}

extension Batch {
    /// Files that are where they belong.
    package var arrived: Int { (counts[.delivered] ?? 0) + (counts[.duplicate] ?? 0) }

    package var outcome: BatchOutcome {
        if arrived == counts.values.reduce(0, +) { return .complete }
        return arrived > 0 ? .partial : .failed
    }
}
