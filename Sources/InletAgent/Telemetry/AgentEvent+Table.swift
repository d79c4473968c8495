internal import InletCore
internal import InletJournal
package import SystemPackage

private let rows = EventTable.rows

/// The events without a case of their own: a function for each row of `EventTable`.
extension AgentEvent {
    static func agentStarted(version: String, configuration: String) -> Self {
        say(rows.agentStarted, version, configuration)
    }

    /// The agent is confined to `places` by that version of Landlock, and without so many system calls. `reason` explains why it
    /// filters none.
    static func agentConfined(landlock: Int, places: Int, calls: Int, reason: String?) -> Self {
        say(rows.agentConfined, landlock, places, calls, reason)
    }

    /// The agent is not confined.
    static func agentUnconfined(reason: String) -> Self { say(rows.agentUnconfined, reason) }

    package static var agentHelperLost: Self {
        say(rows.agentHelperLost, "restart the agent: the process that starts programs and finds writers has ended")
    }

    static func agentReady(roots: Int, destinations: Int) -> Self { say(rows.agentReady, roots, destinations) }
    package static func agentFailed(reason: String) -> Self { say(rows.agentFailed, reason) }

    /// This machine is short of something that deliveries need. They wait, without losing attempts. Logged once.
    static func agentError(reason: String) -> Self { say(rows.agentError, reason) }

    /// Somebody changed the file on the page.
    static func configEdited(file: FilePath, by who: String, changes: [String], isUndo: Bool) -> Self {
        say(rows.configEdited, file, who, changes, isUndo ? true : nil)
    }

    package static func configWarning(file: FilePath, warning: String) -> Self {
        say(rows.configWarning, file, warning)
    }

    static func watchLimit(root: FilePath, reason: String) -> Self { say(rows.watchLimit, root, reason) }
    static func watchResumed(root: FilePath, by: String) -> Self { say(rows.watchResumed, root, by) }

    /// Another agent watches the folder. This one waits until the other ends.
    static func watchStandby(root: FilePath, holder: String) -> Self { say(rows.watchStandby, root, holder) }

    /// An existing file that is missing at its destination, and is sent.
    static func fileNotAdopted(path: FilePath, reason: String) -> Self { say(rows.fileNotAdopted, path, reason) }

    static func fileDerived(path: FilePath, name: String, size: Int64, duration: Duration) -> Self {
        say(rows.fileDerived, path, name, size, duration)
    }

    static func fileSettling(path: FilePath, busy: Bool) -> Self { say(rows.fileSettling, path, busy ? "yes" : "no") }

    /// A file has been waiting for a long time. Logged once per file.
    static func fileUnsettled(path: FilePath, reason: String, waiting: Duration) -> Self {
        say(rows.fileUnsettled, path, reason, waiting)
    }

    static func fileAwaited(path: FilePath, reason: String) -> Self { say(rows.fileAwaited, path, reason) }
    package static func jobUnchanged(job: Int64, path: FilePath) -> Self { say(rows.jobUnchanged, job, path) }
    static func jobRenamed(job: Int64, path: FilePath, from: FilePath) -> Self { say(rows.jobRenamed, job, path, from) }

    static func dispositionFailed(job: Int64, path: FilePath, reason: String) -> Self {
        say(rows.dispositionFailed, job, path, reason)
    }

    static func uploadAborted(_ ref: JobRef) -> Self { .said(rows.uploadAborted.line(ref)) }

    static func namesKept(destinations: [String]) -> Self { say(rows.namesKept, destinations) }

    /// Receipts of a watched folder cannot lie beside its files, and go to `folder`. Logged once per watched folder.
    static func receiptElsewhere(root: FilePath, folder: FilePath, reason: String) -> Self {
        say(rows.receiptElsewhere, root, folder, reason)
    }

    /// A unit's checksum list is on the disk: in the state directory, or beside the unit's files at `destination`.
    static func manifestWritten(_ batch: Batch, file: FilePath, destination: String?) -> Self {
        say(rows.manifestWritten, batch.id, batch.name, batch.route, destination ?? "", file)
    }

    static func manifestFailed(_ batch: Batch, reason: String) -> Self {
        say(rows.manifestFailed, batch.id, batch.name, batch.route, reason)
    }

    /// No checksum list may lie beside the unit's files at `destination`. Logged once per unit.
    static func manifestSkipped(_ batch: Batch, destination: String, reason: String) -> Self {
        say(rows.manifestSkipped, batch.id, batch.name, batch.route, destination, reason)
    }

    /// The unit's list is not a generation of the history in its folder. Logged once per list.
    static func manifestStandalone(_ batch: Batch, destination: String, reason: String) -> Self {
        say(rows.manifestStandalone, batch.id, batch.name, batch.route, destination, reason)
    }

    package static func queueResuming(waiting: Int) -> Self { say(rows.queueResuming, waiting) }
    static func queueWarning(waiting: Int, limit: Int) -> Self { say(rows.queueWarning, waiting, limit) }
    static func queueNormal(waiting: Int, limit: Int) -> Self { say(rows.queueNormal, waiting, limit) }

    /// Files stay in their folders until the queue has room. Logged once until then.
    static func queueFull(files: Int, bytes: Int64) -> Self { say(rows.queueFull, files, bytes) }
    package static var queueRecovered: Self { say(rows.queueRecovered) }
    static func journalFull(reason: String) -> Self { say(rows.journalFull, reason) }

    /// The journal cannot be written, for a reason other than a full disk.
    static func journalFailing(reason: String) -> Self { say(rows.journalFailing, reason) }
    static var journalRecovered: Self { say(rows.journalRecovered) }
    static func journalBackup(path: FilePath) -> Self { say(rows.journalBackup, path) }
    static func journalBackupFailed(reason: String) -> Self { say(rows.journalBackupFailed, reason) }

    /// A problem with a destination that needs attention, but delays no delivery.
    static func destinationError(destination: String, reason: String) -> Self {
        say(rows.destinationError, destination, reason)
    }

    static func loginExpiring(destination: String, reason: String) -> Self {
        say(rows.loginExpiring, destination, reason)
    }

    /// Files that failed because a destination was away are sent again.
    static func destinationRecovered(destination: String, files: Int) -> Self {
        say(rows.destinationRecovered, destination, files)
    }

    static func tokenGiven(destination: String, to: String) -> Self { say(rows.tokenGiven, destination, to) }

    static func destinationPaused(destination: String, by: String) -> Self {
        say(rows.destinationPaused, destination, by)
    }

    static func destinationResumed(destination: String, by: String) -> Self {
        say(rows.destinationResumed, destination, by)
    }

    static func notificationSent(sink: String, notice: String, event: String, tries: Int) -> Self {
        say(rows.notificationSent, sink, notice, event, tries)
    }

    /// A notification failed. `next` is the time of the next try; nil gives it up.
    static func notificationFailed(sink: String, notice: String, reason: String, next: WallTime?) -> Self {
        say(rows.notificationFailed, sink, notice, reason, next?.rfc3339 ?? "never")
    }

    static func notificationDropped(sink: String, count: Int, reason: String) -> Self {
        say(rows.notificationDropped, sink, count, reason)
    }

    package static func dashboardReady(url: String) -> Self { say(rows.dashboardReady, url) }

    /// The page and the API cannot listen, and retry. Logged once per reason.
    package static func dashboardFailed(address: String, reason: String) -> Self {
        say(rows.dashboardFailed, address, reason)
    }

    static func logLevel(_ level: LogSettings.Level, by: String) -> Self { say(rows.logLevel, level.rawValue, by) }

    /// Lines are lost, or go elsewhere. Logged once until the log recovers.
    static func logError(reason: String) -> Self { say(rows.logError, reason) }
    static func logLost(lines: Int) -> Self { say(rows.logLost, lines) }
    static func logSuppressed(_ gap: (event: String, lines: Int)) -> Self {
        say(rows.logSuppressed, gap.event, gap.lines)
    }

    static func say(_ event: EventSpec, _ values: (any LoggedValue)?...) -> Self {
        .said(event.line(values))
    }
}

extension EventSpec {
    /// A line about one delivery.
    func line(_ ref: AgentEvent.JobRef, _ values: (any LoggedValue)?..., level: Level? = nil) -> EventLine {
        line([ref.job, ref.path, ref.destination, ref.route] + values, level: level)
    }
}
