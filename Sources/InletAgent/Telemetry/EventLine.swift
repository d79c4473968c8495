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
}

/// What a log line says of an event.
package struct EventLine: Sendable {
    package var name: String
    package var level: LogSettings.Level
    package var fields: [(String, EventValue)]

    /// Whether any number of such lines may come at once, and one tells as much as all: warnings that belong to no job.
    var mayFlood: Bool { level >= .warning && !fields.contains { $0.0 == "job" } }
}

extension AgentEvent {
    /// The event as a log line: its stable name, its level, its fields in their order.
    package var line: EventLine {
        switch self {
        case .agentStarted(let version, let configuration):
            Self.line("agent.started", .info, ("version", .text(version)), ("configuration", .text(configuration)))
        case .agentReady(let roots, let destinations):
            Self.line("agent.ready", .info, ("roots", .count(roots)), ("destinations", .count(destinations)))
        case .agentStopping: Self.line("agent.stopping", .info)
        case .agentFailed(let reason): Self.line("agent.failed", .error, ("reason", .safe(reason)))
        case .watchAdded(let root, let directories, let check):
            Self.line(
                "watch.added", .info, ("path", .path(root)), ("directories", .count(directories)),
                ("writer_check", .text(check)))
        case .watchMode(let root, let path, let mode, let reason):
            Self.line(
                "watch.mode", .info, ("root", .path(root)), ("path", .path(path)), ("mode", .text(mode.rawValue)),
                ("reason", .safe(reason)))
        case .watchLost(let root, let reason): Self.trouble("watch.lost", .warning, root, reason)
        case .watchOverflow(let root): Self.line("watch.overflow", .warning, ("path", .path(root)))
        case .watchLimit(let root, let reason): Self.trouble("watch.limit", .warning, root, reason)
        case .fileSettling(let path, let busy):
            Self.line("file.settling", .debug, ("path", .path(path)), ("busy", .text(busy ? "yes" : "no")))
        case .fileUnsettled(let path, let reason, let waiting):
            Self.trouble("file.unsettled", .info, path, reason).waiting(waiting)
        case .fileIgnored(let path, let reason): Self.trouble("file.ignored", .info, path, reason)
        case .fileAwaited(let path, let reason): Self.trouble("file.awaited", .info, path, reason)
        case .fileTrouble(let path, let reason): Self.trouble("file.trouble", .warning, path, reason)
        case .journalFull(let reason): Self.line("journal.full", .error, ("reason", .text(reason)))
        case .journalFailing(let reason): Self.line("journal.failing", .error, ("reason", .safe(reason)))
        case .journalFree: Self.line("journal.free", .info)
        case .journalBackup(let path): Self.line("journal.backup", .info, ("path", .path(path)))
        case .journalBackupFailed(let reason):
            Self.line("journal.backup_failed", .warning, ("reason", .safe(reason)))
        case .journalPruned(let files, let duration):
            Self.line(
                "journal.pruned", .info, ("files", .number(Int64(files))), ("took_ms", .number(duration.milliseconds)))
        case .agentTrouble(let reason): Self.line("agent.trouble", .error, ("reason", .safe(reason)))
        case .agentConfined(let version, let places, let calls, let reason):
            Self.line(
                "agent.confined", .info, ("landlock", .count(version)), ("places", .count(places)),
                ("calls", .count(calls))
            ).saying(reason)
        case .agentUnconfined(let reason): Self.line("agent.unconfined", .info, ("reason", .safe(reason)))
        case .agentHostLost:
            Self.line(
                "agent.host_lost", .error,
                ("reason", .safe("the process that starts programs and looks for writers has ended; restart the agent"))
            )
        case .serviceFailed(let service, let reason, let wait):
            Self.line(
                "agent.service_failed", .error, ("service", .safe(service)), ("reason", .safe(reason)),
                ("wait_ms", .number(wait.milliseconds)))
        case .watchAdopted(let root, let files, let bytes):
            Self.line(
                "watch.adopted", .info, ("path", .path(root)), ("files", .count(files)), ("bytes", .number(bytes)))
        case .fileNotAdopted(let path, let reason):
            Self.line("file.not_adopted", .info, ("path", .path(path)), ("reason", .safe(reason)))
        case .fileDerived(let path, let name, let size, let duration):
            Self.line(
                "file.derived", .info, ("path", .path(path)), ("name", .safe(name)), ("size", .number(size)),
                ("duration_ms", .number(duration.milliseconds)))
        case .fileNotDerived(let path, let name, let reason):
            Self.line(
                "file.not_derived", .warning, ("path", .path(path)), ("name", .safe(name)), ("reason", .safe(reason)))
        case .fileRejected(let job, let path, let route, let reason):
            Self.line(
                "file.rejected", .warning, ("job", .number(job)), ("path", .path(path)), ("route", .text(route)),
                ("reason", .safe(reason)))
        case .jobAdmitted(let job, let path, let route, let size, let deliveries, let labels):
            Self.line(
                "job.admitted", .info, ("job", .number(job)), ("path", .path(path)), ("route", .text(route)),
                ("size", .number(size)), ("destinations", .list(deliveries))
            ).labelled(labels)
        case .fileNote(let job, let path, let route, let note):
            Self.line(
                "file.note", .info, ("job", .number(job)), ("path", .path(path)), ("route", .text(route)),
                ("note", .safe(note)))
        case .jobKnown(let job, let path):
            Self.line("job.known", .debug, ("job", .number(job)), ("path", .path(path)))
        case .jobDuplicate(let job, let path, let route, let destinations, let first):
            Self.line(
                "job.duplicate", .info, ("job", .number(job)), ("path", .path(path)), ("route", .text(route)),
                ("destinations", .list(destinations)), ("same_as", .number(first)))
        case .jobFinished(let job, let path, let state, let disposition, let route):
            Self.line(
                "job.finished", .info, ("job", .number(job)), ("path", .path(path)), ("route", .text(route)),
                ("state", .text(state.rawValue)), ("disposition", .safe(disposition)))
        case .jobRecovered(let claims, let parked, let unparked):
            Self.line(
                "job.recovered", parked > 0 ? .warning : .info, ("claims", .count(claims)), ("parked", .count(parked)),
                ("unparked", .count(unparked)))
        case .dispositionFailed(let job, let path, let reason):
            Self.line(
                "job.disposition_failed", .error, ("job", .number(job)), ("path", .path(path)),
                ("reason", .safe(reason)))
        case .receiptElsewhere(let root, let folder, let reason):
            Self.line(
                "receipt.elsewhere", .warning, ("path", .path(root)), ("folder", .path(folder)),
                ("reason", .safe(reason)))
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
        case .jobStarted(let ref, let key, let attempt, let size, let isPoll, let isResumed):
            ref.line(
                "job.started", isPoll ? .debug : .info, ("key", .safe(key)), ("attempt", .count(attempt)),
                ("size", .number(size))
            ).resumed(isResumed)
        case .transferProgress(let ref, let sent, let size, let step):
            ref.line("transfer.progress", .info, ("sent", .number(sent)), ("size", .number(size))).with(step)
        case .jobCheckpoint(let ref, let notes): ref.line("job.checkpoint", .debug, ("notes", .list(notes)))
        case .jobRetry(let ref, let error, let attempt, let wait):
            ref.line(
                "job.retry", error.isLocal ? .debug : error.code == .cancelled ? .info : .warning,
                ("code", .text(error.code.rawValue)),
                ("reason", .safe(error.reason)),
                ("attempt", .count(attempt)), ("wait_ms", .number(wait.milliseconds)))
        case .jobWaiting(let ref, let until, let saying, let isRepeated):
            ref.line("job.waiting", isRepeated ? .debug : .info, ("until", .text(until.rfc3339))).saying(saying)
        case .jobDelivered(let ref, let proof, let duration):
            ref.line(
                "job.delivered", .info, ("key", .safe(proof.key)), ("size", .number(proof.size)),
                ("verified", .text(proof.method.rawValue)), ("url", .safe(proof.url ?? "")),
                ("duration_ms", .number(duration.milliseconds)))
        case .jobFailed(let ref, let state, let error):
            ref.line(
                "job.failed", state == .superseded || state == .cancelled ? .info : .error,
                ("state", .text(state.rawValue)), ("code", .text(error.code.rawValue)),
                ("reason", .safe(error.reason)))
        case .uploadAborted(let ref): ref.line("transfer.aborted", .info)
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
        case .destinationDown(let name, let reason, let probe):
            Self.line(
                "destination.down", .warning, ("destination", .text(name)), ("reason", .safe(reason)),
                ("next_probe", .text(probe.rfc3339)))
        case .destinationUp(let name): Self.line("destination.up", .info, ("destination", .text(name)))
        case .destinationSlowed(let name, let reason, let until):
            Self.line(
                "destination.slowed", .warning, ("destination", .text(name)), ("reason", .safe(reason)),
                ("until", .text(until.rfc3339)))
        case .destinationTrouble(let name, let reason):
            Self.line("destination.trouble", .warning, ("destination", .text(name)), ("reason", .safe(reason)))
        case .loginOld(let name, let reason):
            Self.line("destination.login_old", .error, ("destination", .text(name)), ("reason", .safe(reason)))
        case .tokenGiven(let name, let receiver):
            Self.line("destination.token_given", .info, ("destination", .text(name)), ("to", .text(receiver)))
        case .destinationPaused(let name, let by):
            Self.line("destination.paused", .info, ("destination", .text(name)), ("by", .text(by)))
        case .destinationResumed(let name, let by):
            Self.line("destination.resumed", .info, ("destination", .text(name)), ("by", .text(by)))
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
        case .limitChanged(let destination, let rate, let cause, let until):
            Self.line(
                "limit.changed", .info, ("destination", .text(destination ?? "*")),
                ("bandwidth", .text(RateText.format(rate))), ("cause", .text(cause.rawValue))
            ).limited(rate, until)
        case .configReloaded(let file, let changes, let parked, let restart, let warnings):
            Self.line(
                "config.reloaded", parked > 0 || !restart.isEmpty || !warnings.isEmpty ? .warning : .info,
                ("path", .path(file)), ("changes", .list(changes)), ("parked", .count(parked)),
                ("restart_needed", .list(restart)), ("warnings", .list(warnings.map(Self.shown))))
        case .configWarning(let file, let warning):
            Self.line("config.warning", .warning, ("path", .path(file)), ("warning", .safe(warning)))
        case .configRefused(let file, let errors):
            Self.line("config.refused", .error, ("path", .path(file)), ("errors", .list(errors.map(Self.shown))))
        case .dashboardReady(let url): Self.line("dashboard.ready", .info, ("url", .safe(url)))
        case .dashboardFailed(let address, let reason):
            Self.line("dashboard.failed", .warning, ("address", .safe(address)), ("reason", .safe(reason)))
        case .dashboardRefused(let address, let wait):
            Self.line(
                "dashboard.refused", .warning, ("address", .safe(address ?? "*")),
                ("wait_ms", .number(wait.milliseconds)))
        case .logLevel(let level, let by):
            Self.line("log.level", .info, ("to", .text(level.rawValue)), ("by", .text(by)))
        case .logTrouble(let reason): Self.line("log.trouble", .error, ("reason", .safe(reason)))
        case .logLost(let lines): Self.line("log.lost", .warning, ("lines", .count(lines)))
        case .logSuppressed(let gap):
            Self.line("log.suppressed", .warning, ("of", .text(gap.event)), ("lines", .count(gap.lines)))
        }
    }

    static func line(
        _ name: String, _ level: LogSettings.Level, _ fields: (String, EventValue)...
    ) -> EventLine {
        EventLine(name: name, level: level, fields: fields)
    }

    /// A place with its line and caret keeps its lines.
    private static func shown(_ error: String) -> String {
        error.split(separator: "\n", omittingEmptySubsequences: false).map { DisplayText.escape(String($0)) }
            .joined(separator: "\n")
    }

    private static func trouble(
        _ name: String, _ level: LogSettings.Level, _ path: FilePath, _ reason: String
    ) -> EventLine {
        line(name, level, ("path", .path(path)), ("reason", .safe(reason)))
    }
}

/// Fields of lines that only some events have.
extension EventLine {
    fileprivate func waiting(_ time: Duration) -> EventLine {
        var line = self
        line.fields.append(("waiting_ms", .number(time.milliseconds)))
        return line
    }

    /// The line with how far a delivery is, where bytes do not tell.
    fileprivate func with(_ step: StepProgress?) -> EventLine {
        guard let step else { return self }
        var line = self
        line.fields += [
            ("percent", .number(Int64(step.percent.rounded(.down)))), ("step", .text(DisplayText.escape(step.step))),
        ]
        return line
    }

    /// The line with a rate that is one, and with when another holds.
    fileprivate func limited(_ rate: Int64?, _ until: WallTime?) -> EventLine {
        var line = self
        if let rate { line.fields.append(("bytes_per_second", .number(rate))) }
        if let until { line.fields.append(("until", .text(until.rfc3339))) }
        return line
    }

    /// The line with what a destination says.
    fileprivate func saying(_ text: String?) -> EventLine {
        guard let text else { return self }
        var line = self
        line.fields.append(("reason", .text(DisplayText.escape(text))))
        return line
    }

    /// The line with a file's labels, as `name=value`.
    fileprivate func labelled(_ labels: [String: String]) -> EventLine {
        if labels.isEmpty { return self }
        var line = self
        let pairs = labels.sorted { $0.key < $1.key }.map { DisplayText.escape("\($0.key)=\($0.value)") }
        line.fields.append(("labels", .list(pairs)))
        return line
    }

    /// The line of an attempt that goes on with what an earlier process began.
    fileprivate func resumed(_ isResumed: Bool) -> EventLine {
        guard isResumed else { return self }
        var line = self
        line.fields.append(("resumed", .flag(true)))
        return line
    }
}

extension AgentEvent.JobRef {
    fileprivate func line(
        _ name: String, _ level: LogSettings.Level, _ fields: (String, EventValue)...
    ) -> EventLine {
        let common: [(String, EventValue)] = [
            ("job", .number(job)), ("path", .path(path)), ("destination", .text(destination)), ("route", .text(route)),
        ]
        return EventLine(name: name, level: level, fields: common + fields)
    }
}

extension EventValue {
    static func count(_ number: Int) -> EventValue { .number(Int64(number)) }
    static func path(_ path: FilePath) -> EventValue { .text(path.display) }
    /// Text that may hold bytes from a server or a file name.
    static func safe(_ text: String) -> EventValue { .text(DisplayText.escape(text)) }
}

extension EventLine {
    /// The line as it is written, with its end: a JSON object, or text for people.
    func text(_ format: LogSettings.Format, at time: WallTime) -> [UInt8] {
        switch format {
        case .json: json(time)
        case .text: Array("\(time.rfc3339) \(level) \(words)\n".utf8)
        }
    }

    /// `job.delivered job=7 path=/srv/drop/a.mp4`: the text without its time and level. A value with a space or a quote in it
    /// is in quotes, with `\"` and `\\` for those in it, so that none can pass for another field.
    var words: String { name + fields.map { " \($0.0)=\($0.1.text)" }.joined() }

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

extension EventValue {
    fileprivate var text: String {
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

    /// Without quotes.
    var plain: String {
        switch self {
        case .text(let text): text
        case .number(let number): String(number)
        case .list(let items): items.joined(separator: ",")
        case .flag(let isSet): isSet ? "yes" : "no"
        }
    }
}
