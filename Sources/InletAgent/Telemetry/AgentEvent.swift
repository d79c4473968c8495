package import InletCore
package import InletJournal
package import SystemPackage

/// Everything the agent ever says, once: the log's schema, the API's event type and the table in the docs.
///
/// Lower modules return; only the agent's services emit.
package enum AgentEvent: Sendable {
    case agentStarted(version: String, configuration: String)
    /// The agent has given up all of the file system but `places`, by that version of Landlock, and so many system calls;
    /// `reason` says why none.
    case agentConfined(landlock: Int, places: Int, calls: Int, reason: String?)
    /// It has not, and why.
    case agentUnconfined(reason: String)
    /// The process that starts programs for a confined agent has ended.
    case agentHelperLost
    case agentReady(roots: Int, destinations: Int)
    case agentStopping
    /// It ends, because it cannot begin or go on.
    case agentFailed(reason: String)
    /// What is right in a configuration and still unwise, at the start.
    case configWarning(file: FilePath, warning: String)
    /// Another configuration holds. `parked` deliveries wait for destinations that are gone; `restart` names what waits for a
    /// restart.
    case configReloaded(file: FilePath, changes: [String], parked: Int, restart: [String], warnings: [String])
    /// One was not taken: the old one holds.
    case configRefused(file: FilePath, errors: [String])
    case watchAdded(root: FilePath, directories: Int, writerCheck: String)
    /// How changes below `path`, which is `root` or a mount below it, are found out; said once, and when it changes.
    case watchMode(root: FilePath, path: FilePath, mode: WatchMode, reason: String)
    case watchLost(root: FilePath, reason: String)
    case watchOverflow(root: FilePath)
    case watchLimit(root: FilePath, reason: String)
    /// So many files that were there before the root was watched are known as delivered now.
    case watchAdopted(root: FilePath, files: Int, bytes: Int64)
    /// One that was to be adopted is not where it should be, and is sent.
    case fileNotAdopted(path: FilePath, reason: String)
    /// A program has made a file of the original at `path`.
    case fileDerived(path: FilePath, name: String, size: Int64, duration: Duration)
    /// It has not: the original goes without.
    case fileNotDerived(path: FilePath, name: String, reason: String)
    /// A watched folder is not what it was: nothing is taken from it, or given up of it, until it is.
    case watchPaused(root: FilePath, reason: String)
    case watchResumed(root: FilePath, by: String)
    /// Another agent watches the folder: this one waits until that ends.
    case watchStandby(root: FilePath, holder: String)
    /// A removable volume is there; `waiting` files of it go on.
    case volumeAdded(root: FilePath, volume: String, waiting: Int)
    case volumeRemoved(root: FilePath, volume: String)
    /// Everything that routes take of a removable volume has ended, if not always as it should.
    case volumeDone(VolumeReport)
    case fileSettling(path: FilePath, busy: Bool)
    /// A file has been waited for for long, and still is; said once.
    case fileUnsettled(path: FilePath, reason: String, waiting: Duration)
    case fileIgnored(path: FilePath, reason: String)
    /// A file waits for its marker; said once for each folder and extension.
    case fileAwaited(path: FilePath, reason: String)
    case fileRejected(job: Int64, path: FilePath, route: String, reason: String)
    case fileError(path: FilePath, reason: String)
    /// This machine cannot do its part for deliveries; they wait, and nothing is held against them. Said once.
    case agentError(reason: String)
    /// A part of the agent has ended although nobody asked it to; it begins anew after `wait`.
    case serviceFailed(service: String, reason: String, wait: Duration)
    case journalFull(reason: String)
    /// The journal cannot be written for another reason than a full disk.
    case journalFailing(reason: String)
    case journalRecovered
    case journalBackup(path: FilePath)
    case journalBackupFailed(reason: String)
    /// Files that ended long ago are in the journal's history now.
    case journalPruned(files: Int, duration: Duration)
    case jobAdmitted(
        job: Int64, path: FilePath, route: String, size: Int64, deliveries: [String], labels: [String: String] = [:])
    /// Something of an admitted file's plan that a person should know.
    case fileNote(job: Int64, path: FilePath, route: String, note: String)
    case jobUnchanged(job: Int64, path: FilePath)
    /// A file that was renamed goes on under its new path; nothing of it is sent again.
    case jobRenamed(job: Int64, path: FilePath, from: FilePath)
    /// Nothing is sent to `destinations`: they have the content, which another job brought there.
    case jobDuplicate(job: Int64, path: FilePath, route: String, destinations: [String], sameAs: Int64)
    /// `isPoll`: it only asks how far the destination is, which it said it works on. `isResumed`: it goes on from the notes of
    /// an earlier process.
    case jobStarted(JobRef, key: String, attempt: Int, size: Int64, isPoll: Bool = false, isResumed: Bool = false)
    case transferProgress(JobRef, sent: Int64, size: Int64, step: StepProgress? = nil)
    case jobCheckpoint(JobRef, notes: [String])
    case jobRetry(JobRef, DeliveryError, attempt: Int, wait: Duration)
    case jobWaiting(JobRef, until: WallTime, saying: String? = nil, isRepeated: Bool = false)
    case jobDelivered(JobRef, Proof, duration: Duration)
    case jobFailed(JobRef, state: DeliveryState, DeliveryError)
    /// A file was not delivered in its time; nothing of it is deleted.
    case jobExpired(job: Int64, path: FilePath, route: String, destinations: [String])
    /// `route` is empty for a file that none has taken.
    case jobFinished(job: Int64, path: FilePath, state: FileState, disposition: String, route: String = "")
    case jobRecovered(claims: Int, parked: Int, unparked: Int)
    /// A unit is complete: all its files are sent now.
    case batchClosed(batch: Int64, path: FilePath, route: String, files: Int)
    case batchEnded(Batch)
    /// A unit's checksum list is on the disk: in the state directory, or beside what `destination` has of the unit.
    case manifestWritten(Batch, file: FilePath, destination: String?)
    case manifestFailed(Batch, reason: String)
    /// What `destination` has of a unit lies where no list may be; said once for each unit.
    case manifestSkipped(Batch, destination: String, reason: String)
    case dispositionFailed(job: Int64, path: FilePath, reason: String)
    /// Receipts of a folder's files cannot be beside them, and are in `folder`; said once for each watched folder.
    case receiptElsewhere(root: FilePath, folder: FilePath, reason: String)
    case uploadAborted(JobRef)
    /// What waited at the start goes on now.
    case queueResuming(waiting: Int)
    /// All of that has ended, or waits again for a reason of its own.
    case queueResumed(ResumeSummary)
    case queueWarning(waiting: Int, limit: Int)
    /// After a warning, no more wait than it allows.
    case queueNormal(waiting: Int, limit: Int)
    /// Files stay in their folders because the queue has no room for them; said once, until there is.
    case queueFull(files: Int, bytes: Int64)
    case queueRecovered
    case destinationDown(destination: String, reason: String, probe: WallTime)
    case destinationUp(destination: String)
    /// It asks for time: nothing is sent to it until then.
    case destinationThrottled(destination: String, reason: String, until: WallTime)
    /// Something about a destination that should be seen to, but holds nothing up.
    case destinationError(destination: String, reason: String)
    /// A login has not been renewed for days, and will end; said once a day.
    case loginExpiring(destination: String, reason: String)
    /// Somebody was given a token for requests of his own.
    case tokenGiven(destination: String, to: String)
    /// Another rate holds, in bytes per second: nil is no limit, 0 sends nothing. For all destinations together where none is named.
    case limitChanged(destination: String?, rate: Int64?, cause: LimitCause, until: WallTime? = nil)
    case destinationPaused(destination: String, by: String)
    case destinationResumed(destination: String, by: String)
    /// A receiver of `notify:` has taken a notice.
    case notificationSent(sink: String, notice: String, event: String, tries: Int)
    /// One was not taken; `next` is when it is tried again, nil when it is given up.
    case notificationFailed(sink: String, notice: String, reason: String, next: WallTime?)
    case notificationDropped(sink: String, count: Int, reason: String)
    /// The page and the API listen there.
    case dashboardReady(url: String)
    /// They cannot listen; tried again until they can. Said once for each reason.
    case dashboardFailed(address: String, reason: String)
    /// Somebody has given too many wrong tokens or passwords, and is not listened to for a while; nil = whoever it is.
    case dashboardRefused(address: String?, wait: Duration)
    /// Another level is written, until the configuration is read again.
    case logLevel(LogSettings.Level, by: String)
    /// Lines are lost, or go elsewhere; said once, until it is over.
    case logError(reason: String)
    /// So many lines were lost, and it is over.
    case logLost(lines: Int)
    /// So many lines of one event were not written: there were too many of them.
    case logSuppressed(LogLimit.Gap)

    /// What a delivery's events have in common.
    package struct JobRef: Sendable, Equatable {
        package var job: Int64
        package var delivery: Int64
        package var path: FilePath
        package var route: String
        package var destination: String
    }
}

extension AgentEvent {
    static func expired(_ file: FileRow, _ destination: String) -> AgentEvent {
        .jobExpired(job: file.id, path: file.fullPath, route: file.route ?? "", destinations: [destination])
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
