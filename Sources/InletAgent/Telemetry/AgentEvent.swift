// length: one switch over all cases, so that a case without a line does not compile
package import InletCore
package import InletJournal
package import SystemPackage

/// Every event that the agent emits. Lower modules return values; only the agent's services emit.
///
/// The row in `EventTable` has an event's name, fields and words. An event is a case where code takes it apart: for a
/// count, a notification or a test. `line` fills the fields of its row, in their order. All other events are `said`,
/// made by the functions beside the table.
package enum AgentEvent: Sendable {
    case agentStopping
    /// A part of the agent failed; it restarts after `wait`.
    case serviceFailed(service: String, reason: String, wait: Duration)
    /// A new configuration takes effect. `parked` deliveries wait for removed destinations; `restart` names changes
    /// that need a restart.
    case configReloaded(file: FilePath, changes: [String], parked: Int, restart: [String], warnings: [String])
    /// The configuration is not valid; the former one stays.
    case configRefused(file: FilePath, errors: [String])
    case watchAdded(root: FilePath, directories: Int, writerCheck: String)
    /// How changes below `path`, the root or a mount below it, are detected. Logged once, and when it changes.
    case watchMode(root: FilePath, path: FilePath, mode: WatchMode, reason: String)
    case watchLost(root: FilePath, reason: String)
    case watchOverflow(root: FilePath)
    /// Files that existed before the root was watched count as delivered.
    case watchAdopted(root: FilePath, files: Int, bytes: Int64)
    /// A watched folder is not the same as before. No file of it is admitted or given up until it is.
    case watchPaused(root: FilePath, reason: String)
    /// No file came from a watched folder since then, which is longer than it says.
    case rootQuiet(root: FilePath, since: WallTime, expect: Duration)
    /// Files come again from a folder that was quiet.
    case rootRecovered(root: FilePath, since: WallTime)
    /// Another agent of the fleet should be alive, and is not.
    case fleetSilent(name: String, since: String)
    /// All files of a removable volume that match a route have ended, though not all may be delivered.
    case volumeDone(VolumeReport)
    /// No program derived a file from the original at `path`, which is delivered without it.
    case fileNotDerived(path: FilePath, name: String, reason: String)
    case fileIgnored(path: FilePath, reason: String)
    case fileRejected(job: Int64, path: FilePath, route: String, reason: String)
    case fileError(path: FilePath, reason: String)
    /// Something unusual about an admitted file's plan.
    case fileNote(job: Int64, path: FilePath, route: String, note: String)
    /// Files that ended long ago moved to the journal's history.
    case journalPruned(files: Int, duration: Duration)
    case jobAdmitted(
        job: Int64, path: FilePath, route: String, size: Int64, deliveries: [String], labels: [String: String] = [:])
    /// No upload to `destinations`: another job delivered the content there.
    case jobDuplicate(job: Int64, path: FilePath, route: String, destinations: [String], sameAs: Int64)
    /// `isPoll`: only asks a destination for the progress of its processing. `isResumed`: continues from the
    /// checkpoints of an earlier process.
    case jobStarted(JobRef, key: String, attempt: Int, size: Int64, isPoll: Bool = false, isResumed: Bool = false)
    case transferProgress(JobRef, sent: Int64, size: Int64, step: StepProgress? = nil)
    case jobCheckpoint(JobRef, notes: [String])
    case jobRetry(JobRef, DeliveryError, attempt: Int, wait: Duration)
    case jobWaiting(JobRef, until: WallTime, saying: String? = nil, isRepeated: Bool = false)
    case jobDelivered(JobRef, Proof, duration: Duration)
    case jobFailed(JobRef, state: DeliveryState, DeliveryError)
    /// A file expired before its delivery. The file stays.
    case jobExpired(job: Int64, path: FilePath, route: String, destinations: [String])
    /// `route` is empty for a file that matched no route.
    case jobFinished(job: Int64, path: FilePath, state: FileState, disposition: String, route: String = "")
    case jobAnswered(job: Int64, path: FilePath, disposition: String, route: String = "")
    case jobRecovered(claims: Int, parked: Int, unparked: Int)
    /// A unit is complete, and all its files are sent.
    case batchClosed(batch: Int64, path: FilePath, route: String, files: Int)
    case batchEnded(Batch)
    /// Every file that waited at the start has ended, or was tried and waits again.
    case queueResumed(ResumeSummary)
    case destinationDown(destination: String, reason: String, probe: WallTime)
    case destinationUp(destination: String)
    /// The destination asked for a pause; no file is sent to it until then.
    case destinationThrottled(destination: String, reason: String, until: WallTime)
    /// A new bandwidth limit in bytes per second: nil is no limit, 0 sends nothing. Without a destination it applies to
    /// all together.
    case limitChanged(destination: String?, rate: Int64?, cause: LimitCause, until: WallTime? = nil)
    /// An address sent too many wrong tokens or passwords, and is blocked for a while. nil is any address.
    case dashboardRefused(address: String?, wait: Duration)
    case said(EventLine)

    static func expired(_ file: FileRow, _ destination: String) -> Self {
        .jobExpired(job: file.id, path: file.fullPath, route: file.route ?? "", destinations: [destination])
    }

    /// The fields that all events of a delivery share.
    package struct JobRef: Sendable, Equatable {
        package var job: Int64
        package var delivery: Int64
        package var path: FilePath
        package var route: String
        package var destination: String
    }

    /// The event as a log line.
    package var line: EventLine {
        switch self {
        case .agentStopping: rows.agentStopping.line()
        case .serviceFailed(let service, let reason, let wait): rows.serviceFailed.line(service, reason, wait)
        case .configReloaded(let file, let changes, let parked, let restart, let warnings):
            rows.configReloaded.line(
                file, changes, parked, restart, warnings.map(Self.shown),
                level: parked > 0 || !restart.isEmpty || !warnings.isEmpty ? .warning : .info)
        case .configRefused(let file, let errors): rows.configRefused.line(file, errors.map(Self.shown))
        case .watchAdded(let root, let directories, let check): rows.watchAdded.line(root, directories, check)
        case .watchMode(let root, let path, let mode, let reason):
            rows.watchMode.line(root, path, mode.rawValue, reason)
        case .watchLost(let root, let reason): rows.watchLost.line(root, reason)
        case .watchOverflow(let root): rows.watchOverflow.line(root)
        case .watchAdopted(let root, let files, let bytes): rows.watchAdopted.line(root, files, bytes)
        case .watchPaused(let root, let reason): rows.watchPaused.line(root, reason)
        case .rootQuiet(let root, let since, let expect): rows.rootQuiet.line(root, since, expect)
        case .rootRecovered(let root, let since): rows.rootRecovered.line(root, since)
        case .fleetSilent(let name, let since): rows.fleetSilent.line(name, since)
        case .volumeDone(let end):
            (end.isSafe ? rows.volumeDone : rows.volumeUnverified).line(
                end.root, end.volume, end.files, end.bytes, end.unproved, end.missing, end.unmarked, end.unread,
                end.ignored, end.others, end.headline)
        case .fileNotDerived(let path, let name, let reason): rows.fileNotDerived.line(path, name, reason)
        case .fileIgnored(let path, let reason): rows.fileIgnored.line(path, reason)
        case .fileRejected(let job, let path, let route, let reason): rows.fileRejected.line(job, path, route, reason)
        case .fileError(let path, let reason): rows.fileError.line(path, reason)
        case .fileNote(let job, let path, let route, let note): rows.fileNote.line(job, path, route, note)
        case .journalPruned(let files, let time): rows.journalPruned.line(files, time)
        case .jobAdmitted(let job, let path, let route, let size, let deliveries, let labels):
            rows.jobAdmitted.line(job, path, route, size, deliveries, labels)
        case .jobDuplicate(let job, let path, let route, let destinations, let first):
            rows.jobDuplicate.line(job, path, route, destinations, first)
        case .jobStarted(let ref, let key, let attempt, let size, let isPoll, let isResumed):
            rows.jobStarted.line(ref, key, attempt, size, isResumed ? true : nil, level: isPoll ? .debug : .info)
        case .transferProgress(let ref, let sent, let size, let step):
            rows.transferProgress.line(ref, sent, size, step.map { Int64($0.percent.rounded(.down)) }, step?.step)
        case .jobCheckpoint(let ref, let notes): rows.jobCheckpoint.line(ref, notes)
        case .jobRetry(let ref, let error, let attempt, let wait):
            rows.jobRetry.line(
                ref, error.code.rawValue, error.reason, attempt, wait,
                level: error.isLocal ? .debug : error.code == .cancelled ? .info : .warning)
        case .jobWaiting(let ref, let until, let saying, let isRepeated):
            rows.jobWaiting.line(ref, until, saying, level: isRepeated ? .debug : .info)
        case .jobDelivered(let ref, let proof, let duration):
            rows.jobDelivered.line(ref, proof.key, proof.size, proof.method.rawValue, proof.url ?? "", duration)
        case .jobFailed(let ref, let state, let error):
            rows.jobFailed.line(
                ref, state.rawValue, error.code.rawValue, error.reason,
                level: state == .superseded || state == .cancelled ? .info : .error)
        case .jobExpired(let job, let path, let route, let destinations):
            rows.jobExpired.line(job, path, route, destinations)
        case .jobFinished(let job, let path, let state, let disposition, let route):
            rows.jobFinished.line(job, path, route, state.rawValue, disposition)
        case .jobAnswered(let job, let path, let disposition, let route):
            rows.jobAnswered.line(job, path, route, disposition)
        case .jobRecovered(let claims, let parked, let unparked):
            rows.jobRecovered.line(claims, parked, unparked, level: parked > 0 ? .warning : .info)
        case .batchClosed(let batch, let path, let route, let files): rows.batchClosed.line(batch, path, route, files)
        case .batchEnded(let batch): Self.line(batch)
        case .queueResumed(let summary):
            rows.queueResumed.line(
                summary.resumed, summary.of, summary.failed, summary.waiting,
                level: summary.failed > 0 ? .warning : .info)
        case .destinationDown(let name, let reason, let probe): rows.destinationDown.line(name, reason, probe)
        case .destinationUp(let name): rows.destinationUp.line(name)
        case .destinationThrottled(let name, let reason, let until): rows.destinationThrottled.line(name, reason, until)
        case .limitChanged(let destination, let rate, let cause, let until):
            rows.limitChanged.line(destination ?? "*", RateText.format(rate), cause.rawValue, rate, until)
        case .dashboardRefused(let address, let wait): rows.dashboardRefused.line(address ?? "*", wait)
        case .said(let line): line
        }
    }

    private static func line(_ batch: Batch) -> EventLine {
        let counts = batch.counts.sorted { $0.key.rawValue < $1.key.rawValue }
        let arrived = counts.reduce(0) { $1.key.isWhereItBelongs ? $0 + $1.value : $0 }
        return rows.batchEnded.line(
            batch.id, batch.name, batch.route, batch.state.rawValue, batch.outcome,
            counts.reduce(0) { $0 + $1.value }, arrived, counts.map { "\($0.key): \($0.value)" }, batch.labels,
            level: [.delivered, .duplicate].contains(batch.state) ? .info : .warning)
    }

    /// Keeps the line breaks of a configuration error with its line and caret.
    private static func shown(_ error: String) -> String {
        error.split(separator: "\n", omittingEmptySubsequences: false).map { DisplayText.escape(String($0)) }
            .joined(separator: "\n")
    }
}

extension AgentEvent.JobRef {
    init(_ crashed: CrashedDelivery) {
        self.init(
            job: crashed.job, delivery: crashed.delivery, path: crashed.path, route: crashed.route,
            destination: crashed.destination)
    }

    init(_ file: FileRow, _ delivery: DeliveryRow) {
        self.init(
            job: file.id, delivery: delivery.id, path: file.fullPath, route: file.route ?? "",
            destination: delivery.destination)
    }
}

private let rows = EventTable.rows
