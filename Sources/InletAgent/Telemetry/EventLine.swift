// length: one switch over all events, so that one without a line does not compile
package import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// One field of a log line.
package enum EventValue: Sendable, Equatable {
    case text(String)
    case number(Int64)
    case list([String])
    case flag(Bool)

    static func count(_ number: Int) -> EventValue { .number(Int64(number)) }
    static func path(_ path: FilePath) -> EventValue { .text(path.display) }
    /// Text that may hold bytes from a server or a file name.
    static func safe(_ text: String) -> EventValue { .text(DisplayText.escape(text)) }
    /// A file's labels, as `name=value`; nil for none.
    fileprivate static func labels(_ labels: [String: String]) -> EventValue? {
        labels.isEmpty
            ? nil : .list(labels.sorted { $0.key < $1.key }.map { DisplayText.escape("\($0.key)=\($0.value)") })
    }

    /// Without quotes.
    var plain: String {
        switch self {
        case .text(let text): text
        case .number(let number): String(number)
        case .list(let items): items.joined(separator: ",")
        case .flag(let isSet): isSet ? "yes" : "no"
        }
    }

    fileprivate var quoted: String {
        let text = DisplayText.escape(plain)
        // A quote with an accent is one letter, and still a quote.
        let scalars = text.unicodeScalars
        if !text.isEmpty, !scalars.contains(where: { $0.properties.isWhitespace || $0 == "\"" }) { return text }
        var quoted = "\"".unicodeScalars
        for scalar in scalars {
            if scalar == "\"" || scalar == "\\" { quoted.append("\\") }
            quoted.append(scalar)
        }
        quoted.append("\"")
        return String(quoted)
    }
}

/// What a log line says of an event.
package struct EventLine: Sendable {
    /// nil for a field that the line does not have.
    fileprivate typealias Field = (String, EventValue?)
    fileprivate typealias Level = LogSettings.Level

    package var name: String
    package var level: LogSettings.Level
    package var fields: [(String, EventValue)]

    fileprivate init(_ name: String, _ level: Level, _ fields: [Field]) {
        let was = LogEventSpec.namesBefore[name]
        (self.name, self.level) = (name, level)
        self.fields = (fields + [("was", was.map { .text($0) })]).compactMap { name, value in value.map { (name, $0) } }
    }

    fileprivate init(_ name: String, _ level: Level, _ fields: Field...) { self.init(name, level, fields) }
    fileprivate static func debug(_ name: String, _ fields: Field...) -> Self { Self(name, .debug, fields) }
    fileprivate static func info(_ name: String, _ fields: Field...) -> Self { Self(name, .info, fields) }
    fileprivate static func warning(_ name: String, _ fields: Field...) -> Self { Self(name, .warning, fields) }
    fileprivate static func error(_ name: String, _ fields: Field...) -> Self { Self(name, .error, fields) }

    fileprivate static func trouble(_ name: String, _ level: Level, _ path: FilePath, _ reason: String) -> Self {
        Self(name, level, ("path", .path(path)), ("reason", .safe(reason)))
    }

    fileprivate static func file(
        _ name: String, _ level: Level, _ job: Int64, _ path: FilePath, _ route: String, _ fields: Field...
    ) -> Self {
        Self(name, level, [("job", .number(job)), ("path", .path(path)), ("route", .text(route))] + fields)
    }

    /// Whether any number of such lines may come at once, and one tells as much as all: warnings that belong to no job.
    var mayFlood: Bool { level >= .warning && !fields.contains { $0.0 == "job" } }

    /// The line as it is written, with its end: a JSON object, or text for people.
    func text(_ format: LogSettings.Format, at time: WallTime) -> [UInt8] {
        switch format {
        case .json: json(time)
        case .text: Array("\(time.rfc3339) \(level) \(words)\n".utf8)
        }
    }

    /// `job.delivered job=7 path=/srv/drop/a.mp4`: the text without its time and level. A value with a space or a quote in it
    /// is in quotes, with `\"` and `\\` for those in it, so that none can pass for another field.
    var words: String { name + fields.map { " \($0.0)=\($0.1.quoted)" }.joined() }

    private func json(_ time: WallTime) -> [UInt8] {
        var object = JSONLine()
        object.add("ts", time.rfc3339)
        object.add("level", "\(level)")
        object.add("event", name)
        for (name, value) in fields {
            switch value {
            case .text(let text): object.add(name, text)
            case .number(let number): object.add(name, number)
            case .list(let items): object.add(name, items)
            case .flag(let isSet): object.add(name, isSet)
            }
        }
        return object.finished + [UInt8(ascii: "\n")]
    }
}

extension AgentEvent {
    /// The event as a log line: its stable name, its level, its fields in their order.
    package var line: EventLine {
        switch self {
        case .agentStarted(let version, let configuration):
            .info("agent.started", ("version", .text(version)), ("configuration", .text(configuration)))
        case .agentReady(let roots, let destinations):
            .info("agent.ready", ("roots", .count(roots)), ("destinations", .count(destinations)))
        case .agentStopping: .info("agent.stopping")
        case .agentFailed(let reason): .error("agent.failed", ("reason", .safe(reason)))
        case .watchAdded(let root, let directories, let check):
            .info(
                "watch.added", ("path", .path(root)), ("directories", .count(directories)),
                ("writer_check", .text(check)))
        case .watchMode(let root, let path, let mode, let reason):
            .info(
                "watch.mode", ("root", .path(root)), ("path", .path(path)), ("mode", .text(mode.rawValue)),
                ("reason", .safe(reason)))
        case .watchLost(let root, let reason): .trouble("watch.lost", .warning, root, reason)
        case .watchOverflow(let root): .warning("watch.overflow", ("path", .path(root)))
        case .watchLimit(let root, let reason): .trouble("watch.limit", .warning, root, reason)
        case .fileSettling(let path, let busy):
            .debug("file.settling", ("path", .path(path)), ("busy", .text(busy ? "yes" : "no")))
        case .fileUnsettled(let path, let reason, let waiting):
            .info(
                "file.unsettled", ("path", .path(path)), ("reason", .safe(reason)),
                ("waiting_ms", .number(waiting.milliseconds)))
        case .fileIgnored(let path, let reason): .trouble("file.ignored", .info, path, reason)
        case .fileAwaited(let path, let reason): .trouble("file.awaited", .info, path, reason)
        case .fileError(let path, let reason): .trouble("file.error", .warning, path, reason)
        case .journalFull(let reason): .error("journal.full", ("reason", .text(reason)))
        case .journalFailing(let reason): .error("journal.failing", ("reason", .safe(reason)))
        case .journalRecovered: .info("journal.recovered")
        case .journalBackup(let path): .info("journal.backup", ("path", .path(path)))
        case .journalBackupFailed(let reason): .warning("journal.backup_failed", ("reason", .safe(reason)))
        case .journalPruned(let files, let duration):
            .info("journal.pruned", ("files", .count(files)), ("took_ms", .number(duration.milliseconds)))
        case .agentError(let reason): .error("agent.error", ("reason", .safe(reason)))
        case .agentConfined(let version, let places, let calls, let reason):
            .info(
                "agent.confined", ("landlock", .count(version)), ("places", .count(places)), ("calls", .count(calls)),
                ("reason", reason.map { .safe($0) }))
        case .agentUnconfined(let reason): .info("agent.unconfined", ("reason", .safe(reason)))
        case .agentHelperLost:
            .error(
                "agent.helper_lost",
                ("reason", .safe("the process that starts programs and looks for writers has ended; restart the agent"))
            )
        case .serviceFailed(let service, let reason, let wait):
            .error(
                "agent.service_failed", ("service", .safe(service)), ("reason", .safe(reason)),
                ("wait_ms", .number(wait.milliseconds)))
        case .watchAdopted(let root, let files, let bytes):
            .info("watch.adopted", ("path", .path(root)), ("files", .count(files)), ("bytes", .number(bytes)))
        case .fileNotAdopted(let path, let reason): .trouble("file.not_adopted", .info, path, reason)
        case .fileDerived(let path, let name, let size, let duration):
            .info(
                "file.derived", ("path", .path(path)), ("name", .safe(name)), ("size", .number(size)),
                ("duration_ms", .number(duration.milliseconds)))
        case .fileNotDerived(let path, let name, let reason):
            .warning("file.not_derived", ("path", .path(path)), ("name", .safe(name)), ("reason", .safe(reason)))
        case .fileRejected(let job, let path, let route, let reason):
            .file("file.rejected", .warning, job, path, route, ("reason", .safe(reason)))
        case .jobAdmitted(let job, let path, let route, let size, let deliveries, let labels):
            .file(
                "job.admitted", .info, job, path, route, ("size", .number(size)), ("destinations", .list(deliveries)),
                ("labels", .labels(labels)))
        case .fileNote(let job, let path, let route, let note):
            .file("file.note", .info, job, path, route, ("note", .safe(note)))
        case .jobUnchanged(let job, let path): .debug("job.unchanged", ("job", .number(job)), ("path", .path(path)))
        case .jobDuplicate(let job, let path, let route, let destinations, let first):
            .file(
                "job.duplicate", .info, job, path, route, ("destinations", .list(destinations)),
                ("same_as", .number(first)))
        case .jobFinished(let job, let path, let state, let disposition, let route):
            .file(
                "job.finished", .info, job, path, route, ("state", .text(state.rawValue)),
                ("disposition", .safe(disposition)))
        case .jobRecovered(let claims, let parked, let unparked):
            EventLine(
                "job.recovered", parked > 0 ? .warning : .info, ("claims", .count(claims)), ("parked", .count(parked)),
                ("unparked", .count(unparked)))
        case .dispositionFailed(let job, let path, let reason):
            .error("job.disposition_failed", ("job", .number(job)), ("path", .path(path)), ("reason", .safe(reason)))
        case .receiptElsewhere(let root, let folder, let reason):
            .warning("receipt.elsewhere", ("path", .path(root)), ("folder", .path(folder)), ("reason", .safe(reason)))
        case .batchClosed(let batch, let path, let route, let files):
            .info(
                "batch.closed", ("batch", .number(batch)), ("path", .path(path)), ("route", .text(route)),
                ("files", .count(files)))
        case .batchEnded(let batch):
            batch.line(
                "batch.ended", [.delivered, .duplicate].contains(batch.state) ? .info : .warning,
                ("state", .text(batch.state.rawValue)), ("outcome", .text(BatchOutcome(batch.counts).rawValue)),
                ("files", .count(batch.counts.values.reduce(0, +))), ("delivered", .count(batch.arrived)),
                (
                    "counts",
                    .list(batch.counts.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key): \($0.value)" })
                ), ("labels", .labels(batch.labels)))
        case .manifestWritten(let batch, let file, let destination):
            batch.line("manifest.written", .info, ("destination", .text(destination ?? "")), ("file", .path(file)))
        case .manifestFailed(let batch, let reason): batch.line("manifest.failed", .warning, ("reason", .safe(reason)))
        case .manifestSkipped(let batch, let destination, let reason):
            batch.line("manifest.skipped", .warning, ("destination", .text(destination)), ("reason", .safe(reason)))
        case .jobStarted(let ref, let key, let attempt, let size, let isPoll, let isResumed):
            ref.line(
                "job.started", isPoll ? .debug : .info, ("key", .safe(key)), ("attempt", .count(attempt)),
                ("size", .number(size)), ("resumed", isResumed ? .flag(true) : nil))
        case .transferProgress(let ref, let sent, let size, let step):
            ref.line(
                "transfer.progress", .info, ("sent", .number(sent)), ("size", .number(size)),
                ("percent", step.map { .number(Int64($0.percent.rounded(.down))) }),
                ("step", step.map { .safe($0.step) }))
        case .jobCheckpoint(let ref, let notes): ref.line("job.checkpoint", .debug, ("notes", .list(notes)))
        case .jobRetry(let ref, let error, let attempt, let wait):
            ref.line(
                "job.retry", error.isLocal ? .debug : error.code == .cancelled ? .info : .warning,
                ("code", .text(error.code.rawValue)), ("reason", .safe(error.reason)), ("attempt", .count(attempt)),
                ("wait_ms", .number(wait.milliseconds)))
        case .jobWaiting(let ref, let until, let saying, let isRepeated):
            ref.line(
                "job.waiting", isRepeated ? .debug : .info, ("until", .text(until.rfc3339)),
                ("reason", saying.map { .safe($0) }))
        case .jobDelivered(let ref, let proof, let duration):
            ref.line(
                "job.delivered", .info, ("key", .safe(proof.key)), ("size", .number(proof.size)),
                ("verified", .text(proof.method.rawValue)), ("url", .safe(proof.url ?? "")),
                ("duration_ms", .number(duration.milliseconds)))
        case .jobFailed(let ref, let state, let error):
            ref.line(
                "job.failed", state == .superseded || state == .cancelled ? .info : .error,
                ("state", .text(state.rawValue)), ("code", .text(error.code.rawValue)), ("reason", .safe(error.reason)))
        case .uploadAborted(let ref): ref.line("transfer.aborted", .info)
        case .queueResuming(let waiting): .info("queue.resuming", ("waiting", .count(waiting)))
        case .queueResumed(let summary):
            EventLine(
                "queue.resumed", summary.failed > 0 ? .warning : .info, ("resumed", .count(summary.resumed)),
                ("of", .count(summary.of)), ("failed", .count(summary.failed)), ("waiting", .count(summary.waiting)))
        case .queueWarning(let waiting, let limit):
            .warning("queue.warning", ("waiting", .count(waiting)), ("limit", .count(limit)))
        case .queueNormal(let waiting, let limit):
            .info("queue.normal", ("waiting", .count(waiting)), ("limit", .count(limit)))
        case .queueFull(let files, let bytes):
            .warning("queue.full", ("files", .count(files)), ("bytes", .number(bytes)))
        case .queueRecovered: .info("queue.recovered")
        case .jobExpired(let job, let path, let route, let destinations):
            .file("job.expired", .warning, job, path, route, ("destinations", .list(destinations)))
        case .jobRenamed(let job, let path, let old):
            .info("job.renamed", ("job", .number(job)), ("path", .path(path)), ("from", .path(old)))
        case .destinationDown(let name, let reason, let probe):
            .warning(
                "destination.down", ("destination", .text(name)), ("reason", .safe(reason)),
                ("next_probe", .text(probe.rfc3339)))
        case .destinationUp(let name): .info("destination.up", ("destination", .text(name)))
        case .destinationThrottled(let name, let reason, let until):
            .warning(
                "destination.throttled", ("destination", .text(name)), ("reason", .safe(reason)),
                ("until", .text(until.rfc3339)))
        case .destinationError(let name, let reason):
            .warning("destination.error", ("destination", .text(name)), ("reason", .safe(reason)))
        case .loginExpiring(let name, let reason):
            .error("destination.login_expiring", ("destination", .text(name)), ("reason", .safe(reason)))
        case .tokenGiven(let name, let receiver):
            .info("destination.token_given", ("destination", .text(name)), ("to", .text(receiver)))
        case .destinationPaused(let name, let by):
            .info("destination.paused", ("destination", .text(name)), ("by", .text(by)))
        case .destinationResumed(let name, let by):
            .info("destination.resumed", ("destination", .text(name)), ("by", .text(by)))
        case .notificationSent(let sink, let notice, let event, let tries):
            .debug(
                "notification.sent", ("sink", .text(sink)), ("notice", .text(notice)), ("of", .text(event)),
                ("tries", .count(tries)))
        case .notificationFailed(let sink, let notice, let reason, let next):
            .warning(
                "notification.failed", ("sink", .text(sink)), ("notice", .text(notice)), ("reason", .safe(reason)),
                ("next_try", .text(next?.rfc3339 ?? "never")))
        case .notificationDropped(let sink, let count, let reason):
            .warning("notification.dropped", ("sink", .text(sink)), ("count", .count(count)), ("reason", .safe(reason)))
        case .watchPaused(let root, let reason): .trouble("watch.paused", .error, root, reason)
        case .watchResumed(let root, let by): .info("watch.resumed", ("path", .path(root)), ("by", .text(by)))
        case .watchStandby(let root, let holder):
            .warning("watch.standby", ("path", .path(root)), ("holder", .safe(holder)))
        case .volumeAdded(let root, let volume, let waiting):
            .info("volume.added", ("path", .path(root)), ("volume", .safe(volume)), ("waiting", .count(waiting)))
        case .volumeRemoved(let root, let volume):
            .info("volume.removed", ("path", .path(root)), ("volume", .safe(volume)))
        case .volumeDone(let end):
            EventLine(
                end.isDone ? "volume.done" : "volume.unverified", end.isDone ? .info : .warning,
                ("path", .path(end.root)), ("volume", .safe(end.volume)), ("files", .count(end.files)),
                ("bytes", .number(end.bytes)), ("unproved", .count(end.unproved)), ("missing", .count(end.missing)),
                ("unmarked", .count(end.unmarked)), ("unread", .count(end.unread)), ("ignored", .count(end.ignored)),
                ("others", .count(end.others)))
        case .limitChanged(let destination, let rate, let cause, let until):
            .info(
                "limit.changed", ("destination", .text(destination ?? "*")),
                ("bandwidth", .text(RateText.format(rate))), ("cause", .text(cause.rawValue)),
                ("bytes_per_second", rate.map { .number($0) }), ("until", until.map { .text($0.rfc3339) }))
        case .configReloaded(let file, let changes, let parked, let restart, let warnings):
            EventLine(
                "config.reloaded", parked > 0 || !restart.isEmpty || !warnings.isEmpty ? .warning : .info,
                ("path", .path(file)), ("changes", .list(changes)), ("parked", .count(parked)),
                ("restart_needed", .list(restart)), ("warnings", .list(warnings.map(Self.shown))))
        case .configWarning(let file, let warning):
            .warning("config.warning", ("path", .path(file)), ("warning", .safe(warning)))
        case .configRefused(let file, let errors):
            .error("config.refused", ("path", .path(file)), ("errors", .list(errors.map(Self.shown))))
        case .dashboardReady(let url): .info("dashboard.ready", ("url", .safe(url)))
        case .dashboardFailed(let address, let reason):
            .warning("dashboard.failed", ("address", .safe(address)), ("reason", .safe(reason)))
        case .dashboardRefused(let address, let wait):
            .warning("dashboard.refused", ("address", .safe(address ?? "*")), ("wait_ms", .number(wait.milliseconds)))
        case .logLevel(let level, let by): .info("log.level", ("to", .text(level.rawValue)), ("by", .text(by)))
        case .logError(let reason): .error("log.error", ("reason", .safe(reason)))
        case .logLost(let lines): .warning("log.lost", ("lines", .count(lines)))
        case .logSuppressed(let gap): .warning("log.suppressed", ("of", .text(gap.event)), ("lines", .count(gap.lines)))
        }
    }

    /// A place with its line and caret keeps its lines.
    private static func shown(_ error: String) -> String {
        error.split(separator: "\n", omittingEmptySubsequences: false).map { DisplayText.escape(String($0)) }
            .joined(separator: "\n")
    }
}

extension Batch {
    /// Files that are where they belong.
    fileprivate var arrived: Int { counts.reduce(0) { $1.key.isWhereItBelongs ? $0 + $1.value : $0 } }

    fileprivate func line(_ name: String, _ level: EventLine.Level, _ fields: EventLine.Field...) -> EventLine {
        EventLine(
            name, level, [("batch", .number(id)), ("path", .safe(self.name)), ("route", .text(route))] + fields)
    }
}

extension AgentEvent.JobRef {
    fileprivate func line(_ name: String, _ level: EventLine.Level, _ fields: EventLine.Field...) -> EventLine {
        let common: [EventLine.Field] = [
            ("job", .number(job)), ("path", .path(path)), ("destination", .text(destination)), ("route", .text(route)),
        ]
        return EventLine(name, level, common + fields)
    }
}
