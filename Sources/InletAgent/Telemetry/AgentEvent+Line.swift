internal import InletCore
internal import InletJournal
internal import SystemPackage

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
        default: confinementLine ?? intakeLine ?? queueLine ?? jobLine ?? destinationLine
        }
    }

    private var confinementLine: EventLine? {
        switch self {
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
        default: nil
        }
    }

    private var jobLine: EventLine? {
        switch self {
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
        default: batchLine ?? deliveryLine
        }
    }

    private var deliveryLine: EventLine? {
        switch self {
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
        default: nil
        }
    }

    private var destinationLine: EventLine {
        switch self {
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
        default:
            notificationLine ?? volumeLine ?? limitLine ?? configLine ?? dashboardLine ?? logLine
                ?? Self.line("agent.event", .debug)
        }
    }

    static func line(
        _ name: String, _ level: LogSettings.Level, _ fields: (String, EventValue)...
    ) -> EventLine {
        EventLine(name: name, level: level, fields: fields)
    }

    private static func trouble(
        _ name: String, _ level: LogSettings.Level, _ path: FilePath, _ reason: String
    ) -> EventLine {
        line(name, level, ("path", .path(path)), ("reason", .safe(reason)))
    }
}

extension EventLine {
    fileprivate func waiting(_ time: Duration) -> EventLine {
        var line = self
        line.fields.append(("waiting_ms", .number(time.milliseconds)))
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
