internal import InletCore
internal import InletJournal

/// Lines about the queue as a whole, and about files that belong together.
extension AgentEvent {
    static func expired(_ file: FileRow, _ destination: String) -> AgentEvent {
        .jobExpired(job: file.id, path: file.fullPath, route: file.route ?? "", destinations: [destination])
    }

    var queueLine: EventLine? {
        switch self {
        case .queueResuming(let waiting): Self.line("queue.resuming", .info, ("waiting", .count(waiting)))
        case .queueResumed(let summary):
            Self.line(
                "queue.resumed", summary.failed > 0 ? .warning : .info, ("resumed", .count(summary.resumed)),
                ("of", .count(summary.of)), ("failed", .count(summary.failed)), ("waiting", .count(summary.waiting)))
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
        case .jobRenamed(let job, let path, let old):
            Self.line("job.renamed", .info, ("job", .number(job)), ("path", .path(path)), ("from", .path(old)))
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
                ("outcome", .text(BatchOutcome(batch.counts).rawValue)),
                ("files", .count(batch.counts.values.reduce(0, +))),
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
        case .manifestSkipped(let batch, let destination, let reason):
            Self.line(
                "manifest.skipped", .warning, ("batch", .number(batch.id)), ("path", .safe(batch.name)),
                ("route", .text(batch.route)), ("destination", .text(destination)), ("reason", .safe(reason)))
        default: nil
        }
    }
}

extension Batch {
    /// Files that are where they belong.
    fileprivate var arrived: Int { counts.reduce(0) { $1.key.isWhereItBelongs ? $0 + $1.value : $0 } }
}
