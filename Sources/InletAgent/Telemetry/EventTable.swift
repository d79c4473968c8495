internal import InletCore
internal import InletJournal
package import SystemPackage

/// Every event of the log, a row each: its name, its levels and fields, what it says in words, and what the manual adds. The
/// schema, the sentences and the manual's table are made from these rows, and no line is written without one.
///
/// A new event is a row, and a function below that fills its fields; a case of `AgentEvent` in place of the function where
/// somebody takes it apart. A row begins with the name, the levels, the usual one first, and the fields. A field is text unless
/// it is marked: `size#` is a number, `notes*` a list, `resumed!` a flag; `?` behind it means that only some lines have it. For
/// the sentence see `EventSpec`.
package struct EventTable: Sendable {
    package static let rows = EventTable()

    /// All of them, in this order.
    package static let all = Mirror(reflecting: rows).children.compactMap { $0.value as? EventSpec }

    /// By their names, and by those that they had before 0.9.
    package static let named = all.reduce(into: [String: EventSpec]()) { table, event in
        for name in [event.name, event.formerName].compactMap(\.self) { table[name] = event }
    }

    let agentStarted = EventSpec(
        "agent.started info version configuration", "inlet {version} starts[ with {configuration}]")
    let agentConfined = EventSpec(
        "agent.confined info landlock# places# calls# reason?",
        "confined to {places} places (Landlock {landlock}), {calls} system calls given up[ ({reason})]",
        note: "`reason` says why there are no filters of system calls")
    let agentUnconfined = EventSpec("agent.unconfined info reason", "not confined to its own folders: {reason}")
    let agentHelperLost = EventSpec("agent.helper_lost error reason", "{reason}", was: "agent.host_lost")
    let agentReady = EventSpec(
        "agent.ready info roots# destinations#", "ready: {roots} watched folders, {destinations} destinations",
        isGood: true)
    let agentStopping = EventSpec("agent.stopping info", "stopping")
    let agentFailed = EventSpec(
        "agent.failed error reason", "cannot go on: {reason}", note: "it ends, because it cannot begin or go on")
    let agentError = EventSpec(
        "agent.error error reason", "trouble: {reason}", was: "agent.trouble",
        mayRepeat: true, note: "this machine lacks descriptors or memory; deliveries wait")
    let serviceFailed = EventSpec(
        "agent.service_failed error service reason wait_ms#",
        "{service} has stopped: {reason}; it begins again[ in {wait_ms}]",
        mayRepeat: true, note: "a part of the agent ended unasked, and begins again by itself")

    let watchAdded = EventSpec(
        "watch.added info path directories# writer_check",
        "watches {path}: {directories} folders, writer check {writer_check}")
    let watchMode = EventSpec(
        "watch.mode info root path mode reason", "{path} is watched by {mode}: {reason}",
        note: "`mode` is `inotify`, `poll` or `fanotify`; once per mount, and when it changes")
    let watchLost = EventSpec("watch.lost warning path reason", "{path} is not watched: {reason}")
    let watchLimit = EventSpec("watch.limit warning path reason", "no more watches for {path}: {reason}", mayRepeat: true)
    let watchOverflow = EventSpec(
        "watch.overflow warning path", "{path} changed too fast to follow; it is looked through again", mayRepeat: true)
    let watchAdopted = EventSpec(
        "watch.adopted info path files# bytes#",
        "{path}: {files} files ({bytes}) were there before, and are known without being sent",
        note: "known as delivered without being sent (`existing: adopt`)")
    let watchPaused = EventSpec(
        "watch.paused error path reason", "{path} is paused: {reason}", was: "watch.guard",
        note: "the folder is not what it was, and is paused")
    let watchResumed = EventSpec("watch.resumed info path by", "{path} goes on as it is, by {by}")
    let watchStandby = EventSpec(
        "watch.standby warning path holder",
        "{path} is watched by another agent, and by this one when that ends: {holder}",
        note: "another agent watches it, this one when that ends")
    let volumeAdded = EventSpec(
        "volume.added info path volume waiting#", "volume {volume} at {path}[: {waiting} files wait for it]",
        note: "`waiting` files of it go on")
    let volumeRemoved = EventSpec("volume.removed info path volume", "volume {volume} left {path}")
    let volumeDone = EventSpec(
        "volume.done info \(volume)",
        "all files of volume {volume} at {path} that routes take are delivered: {files}, {bytes}; "
            + "{others} others are on it",
        note: "all that routes take is delivered")
    let volumeUnverified = EventSpec(
        "volume.unverified warning \(volume)",
        "volume {volume} at {path} is NOT safe to erase: {unproved} not delivered, {missing} not at their destination "
            + "any more, {unmarked} not marked, {unread} not read; {files} are delivered, {others} others are on it",
        was: "volume.unproved", note: "all of it has ended, but not all is delivered, or a destination has lost it")

    let fileError = EventSpec("file.error warning path reason", "{path}: {reason}", was: "file.trouble", mayRepeat: true)
    let fileNotAdopted = EventSpec(
        "file.not_adopted info path reason", "{path} is not known there, and is sent: {reason}",
        note: "a destination does not have it, it is sent")
    let fileDerived = EventSpec(
        "file.derived info path name size# duration_ms#", "{name} was made of {path} ({size}) in {duration_ms}",
        note: "`name` is the rule's")
    let fileNotDerived = EventSpec(
        "file.not_derived warning path name reason", "{name} was not made of {path}: {reason}",
        mayRepeat: true, note: "the original goes without")
    let fileSettling = EventSpec("file.settling debug path busy", "{path} is not quiet yet")
    let fileUnsettled = EventSpec(
        "file.unsettled info path reason waiting_ms#", "{path} waits: {reason}[, for {waiting_ms}]",
        note: "once per file that is not complete after a quarter of an hour")
    let fileIgnored = EventSpec(
        "file.ignored info path reason", "{path} is ignored: {reason}", note: "once per folder and extension")
    let fileAwaited = EventSpec(
        "file.awaited info path reason", "{path} waits: {reason}",
        note: "once per folder and extension, a file without its marker")
    let fileRejected = EventSpec(
        "file.rejected warning job# path route reason", "{path} is rejected by {route}: {reason}")
    let fileNote = EventSpec(
        "file.note info job# path route note", "{path}: {note}",
        note: "what is unusual about an admitted file, such as mtime for `{captured}`")

    let jobAdmitted = EventSpec(
        "job.admitted info job# path route size# destinations* labels*?",
        "{path} ({size}) goes to {destinations}[, route {route}]")
    let jobUnchanged = EventSpec(
        "job.unchanged debug job# path", "{path} is known already", was: "job.known",
        note: "touched, but the same content")
    let jobRenamed = EventSpec(
        "job.renamed info job# path from", "{from} is now {path}",
        note: "the same file under another path, nothing is sent again")
    let jobDuplicate = EventSpec(
        "job.duplicate info job# path route destinations* same_as#",
        "{path} is there already, as job {same_as}[: {destinations}]",
        note: "nothing is sent to them, they have it from job `same_as`")
    let jobStarted = EventSpec(
        "job.started info/debug \(job) key attempt# size# resumed!?",
        "{path} → {destination} begins[ as {key}][, {size}][, attempt {attempt}]",
        note: "debug when it only asks how far the destination is; `resumed` when it goes on with what an earlier "
            + "process began")
    let transferProgress = EventSpec(
        "transfer.progress info \(job) sent# size# percent#? step?",
        "{path} → {destination}: {sent} of {size}[, {step} {percent} %]",
        note: "`percent` and `step` where bytes do not tell; every 5 % or 5 s, whichever is later")
    let jobCheckpoint = EventSpec("job.checkpoint debug \(job) notes*", "{path} → {destination}: noted[ {notes}]")
    let jobRetry = EventSpec(
        "job.retry warning/info/debug \(job) code reason attempt# wait_ms#",
        "{path} → {destination}: {reason}[ ({code})]; tried again in {wait_ms}",
        mayRepeat: true, note: "debug where this machine is the cause, info where somebody ended it")
    let jobWaiting = EventSpec(
        "job.waiting info/debug \(job) until reason?",
        "{path} → {destination}: it works on it[: {reason}][; asked again at {until}]",
        note: "the destination works on it, and is asked again then; debug after the first")
    let jobDelivered = EventSpec(
        "job.delivered info \(job) key size# verified url duration_ms#",
        "{path} → {destination}[ as {key}][, {size}][ in {duration_ms}][, verified: {verified}]", isGood: true)
    let jobFailed = EventSpec(
        "job.failed error/info \(job) state code reason", "{path} → {destination} {state}: {reason}[ ({code})]",
        note: "info if superseded or cancelled")
    let jobFinished = EventSpec(
        "job.finished info job# path route state disposition", "{path} is {state}[; the file: {disposition}]")
    let dispositionFailed = EventSpec(
        "job.disposition_failed error job# path reason", "{path} could not be put away: {reason}",
        mayRepeat: true, note: "tried again every minute")
    let jobExpired = EventSpec(
        "job.expired warning job# path route destinations*",
        "{path} was not delivered in its time[ to {destinations}]; nothing of it is deleted")
    let jobRecovered = EventSpec(
        "job.recovered info/warning claims# parked# unparked#",
        "{claims} deliveries go on after the last end[, {parked} have no destination any more]",
        note: "warning if any are parked")
    let uploadAborted = EventSpec(
        "transfer.aborted info \(job)", "{path} → {destination}: the unfinished upload was removed there")
    let receiptElsewhere = EventSpec(
        "receipt.elsewhere warning path folder reason", "receipts of {path} go to {folder}: {reason}",
        note: "once per watched folder, where receipts cannot be beside its files")

    let batchClosed = EventSpec(
        "batch.closed info batch# path route files#", "{path} is complete: {files} files",
        note: "a unit is complete, its files are sent")
    let batchEnded = EventSpec(
        "batch.ended info/warning batch# path route state outcome files# delivered# counts* labels*?",
        "{path} is {state}: {delivered} of {files} files delivered[ ({counts})]",
        note: "warning unless delivered or duplicate; `labels` of the unit")
    let manifestWritten = EventSpec(
        "manifest.written info batch# path route destination file", "the checksum list of {path} is {file}",
        note: "without a destination it is the one in `state_dir`")
    let manifestFailed = EventSpec(
        "manifest.failed warning batch# path route reason", "no checksum list of {path}: {reason}",
        mayRepeat: true, note: "tried again")
    let manifestSkipped = EventSpec(
        "manifest.skipped warning batch# path route destination reason",
        "no checksum list of {path} at {destination}: {reason}",
        note: "what was delivered lies inside a watched folder")

    let queueResuming = EventSpec(
        "queue.resuming info waiting#", "{waiting} files waited at the start and go on",
        note: "files that waited at the start (the oldest 50,000)")
    let queueResumed = EventSpec(
        "queue.resumed info/warning resumed# of# failed# waiting#",
        "of {of} that waited at the start {resumed} went on, {failed} failed, {waiting} wait again",
        note: "each of them has ended, or was tried and waits again; warning if any failed")
    let queueWarning = EventSpec("queue.warning warning waiting# limit#", "{waiting} files wait, more than {limit}")
    let queueNormal = EventSpec(
        "queue.normal info waiting# limit#", "{waiting} files wait, no more than {limit}",
        was: "queue.calm", isGood: true, note: "after `queue.warning`, when no more wait than that")
    let queueFull = EventSpec(
        "queue.full warning files# bytes#",
        "the queue is full ({files} files, {bytes}): new files stay in their folders",
        note: "files stay in their folders (`queue_max_files`, `queue_max_bytes`) until `queue.recovered`")
    let queueRecovered = EventSpec("queue.recovered info", "the queue has room again", was: "queue.free", isGood: true)

    let journalFull = EventSpec(
        "journal.full error reason", "the journal's disk is full: {reason}",
        note: "nothing is admitted until `journal.recovered`")
    let journalFailing = EventSpec(
        "journal.failing error reason", "the journal cannot be written: {reason}",
        note:
            "nothing is admitted until `journal.recovered`; a journal that was removed or replaced under the agent is "
            + "saved in `backups`"
    )
    let journalRecovered = EventSpec(
        "journal.recovered info", "the journal can be written again", was: "journal.free", isGood: true)
    let journalPruned = EventSpec(
        "journal.pruned info files# took_ms#", "{files} old files went to the history[ in {took_ms}]",
        note: "files that ended long ago are in the journal's history now")
    let journalBackup = EventSpec(
        "journal.backup info path", "the journal was backed up as {path}",
        note: "a backup that `journal_backup` asked for")
    let journalBackupFailed = EventSpec(
        "journal.backup_failed warning reason", "the journal was not backed up: {reason}",
        mayRepeat: true, note: "of a backup that `journal_backup` asked for")

    let destinationDown = EventSpec(
        "destination.down warning destination reason next_probe",
        "{destination} is down: {reason}[; asked again at {next_probe}]")
    let destinationUp = EventSpec("destination.up info destination", "{destination} is up", isGood: true)
    let destinationThrottled = EventSpec(
        "destination.throttled warning destination reason until",
        "{destination} asks for time[ until {until}]: {reason}", was: "destination.slowed",
        mayRepeat: true, note: "it asked for time, nothing is sent until then")
    let destinationError = EventSpec(
        "destination.error warning destination reason", "{destination}: {reason}", was: "destination.trouble",
        mayRepeat: true, note: "its credentials could not be kept alive; tried again every hour")
    let loginExpiring = EventSpec(
        "destination.login_expiring error destination reason", "{destination}: {reason}", was: "destination.login_old",
        note: "not renewed for 5 days, it ends after 7; said once a day")
    let tokenGiven = EventSpec(
        "destination.token_given info destination to", "{destination}: a token was given to {to}",
        note: "a command has asked for a token")
    let destinationPaused = EventSpec("destination.paused info destination by", "{destination} is paused by {by}")
    let destinationResumed = EventSpec("destination.resumed info destination by", "{destination} goes on, by {by}")

    let limitChanged = EventSpec(
        "limit.changed info destination bandwidth cause bytes_per_second#? until?",
        "limit of {destination}: {bandwidth} ({cause})[ until {until}]",
        note:
            "`*` is all destinations together; `cause` is `start`, `schedule`, `command` or `reload`; `until` when the "
            + "schedule changes it")
    let notificationSent = EventSpec(
        "notification.sent debug sink notice of tries#", "{sink} was told of {of}[, at try {tries}]")
    let notificationFailed = EventSpec(
        "notification.failed warning sink notice reason next_try",
        "{sink} was not told of {notice}: {reason}[; tried again at {next_try}]",
        mayRepeat: true, note: "once until the receiver takes something again, and for each that is given up (`never`)")
    let notificationDropped = EventSpec(
        "notification.dropped warning sink count# reason", "{count} notices for {sink} were given up: {reason}")
    let configReloaded = EventSpec(
        "config.reloaded info/warning path changes* parked# restart_needed* warnings*",
        "the configuration was read again[: {changes}][; only after a restart: {restart_needed}]",
        note: "warning when something is parked, waits for a restart or should be changed")
    let configWarning = EventSpec(
        "config.warning warning path warning", "the configuration should be changed: {warning}",
        note: "at a start: works, and should be changed")
    let configRefused = EventSpec(
        "config.refused error path errors*", "the new configuration cannot be used, the old one stays: {errors}",
        note: "each error with its place, its line and a caret")
    let dashboardReady = EventSpec(
        "dashboard.ready info url", "the page is at {url}", note: "the page and the HTTP API listen there")
    let dashboardFailed = EventSpec(
        "dashboard.failed warning address reason", "no page at {address}: {reason}",
        note: "they cannot listen, and try again until they can; said once for each reason")
    let dashboardRefused = EventSpec(
        "dashboard.refused warning address wait_ms#",
        "too many wrong tries to log in from {address}; refused for {wait_ms}",
        note: "too many wrong tokens or passwords came from `address` (`*` for all)")
    let logLevel = EventSpec(
        "log.level info to by", "the log is at level {to} now[, by {by}]", note: "written whatever the level")
    let logError = EventSpec(
        "log.error error reason", "the log cannot be written: {reason}", was: "log.trouble",
        note: "the log file cannot be written, the journal does not take lines, or nobody reads standard error; once "
            + "until it is over")
    let logLost = EventSpec(
        "log.lost warning lines#", "{lines} lines of the log were lost",
        note: "so many could not be written, and it is over")
    let logSuppressed = EventSpec(
        "log.suppressed warning of lines#", "{lines} more lines of {of} were not written",
        note: "so many warnings of the event `of` were left out, because there were too many at once")
}

private let job = "job# path destination route"
private let volume = "path volume files# bytes# unproved# missing# unmarked# unread# ignored# others#"
private let rows = EventTable.rows

// MARK: - Events that are only said

extension AgentEvent {
    static func agentStarted(version: String, configuration: String) -> Self {
        say(rows.agentStarted, version, configuration)
    }

    /// The agent has given up all of the file system but `places`, by that version of Landlock, and so many system calls;
    /// `reason` says why none.
    static func agentConfined(landlock: Int, places: Int, calls: Int, reason: String?) -> Self {
        say(rows.agentConfined, landlock, places, calls, reason)
    }

    /// It has not, and why.
    static func agentUnconfined(reason: String) -> Self { say(rows.agentUnconfined, reason) }

    package static var agentHelperLost: Self {
        say(rows.agentHelperLost, "the process that starts programs and looks for writers has ended; restart the agent")
    }

    static func agentReady(roots: Int, destinations: Int) -> Self { say(rows.agentReady, roots, destinations) }
    package static func agentFailed(reason: String) -> Self { say(rows.agentFailed, reason) }

    /// This machine cannot do its part for deliveries; they wait, and nothing is held against them. Said once.
    static func agentError(reason: String) -> Self { say(rows.agentError, reason) }

    package static func configWarning(file: FilePath, warning: String) -> Self {
        say(rows.configWarning, file, warning)
    }

    static func watchLimit(root: FilePath, reason: String) -> Self { say(rows.watchLimit, root, reason) }
    static func watchResumed(root: FilePath, by: String) -> Self { say(rows.watchResumed, root, by) }

    /// Another agent watches the folder: this one waits until that ends.
    static func watchStandby(root: FilePath, holder: String) -> Self { say(rows.watchStandby, root, holder) }

    static func volumeAdded(root: FilePath, volume: String, waiting: Int) -> Self {
        say(rows.volumeAdded, root, volume, waiting)
    }

    static func volumeRemoved(root: FilePath, volume: String) -> Self { say(rows.volumeRemoved, root, volume) }

    /// One that was to be adopted is not where it should be, and is sent.
    static func fileNotAdopted(path: FilePath, reason: String) -> Self { say(rows.fileNotAdopted, path, reason) }

    static func fileDerived(path: FilePath, name: String, size: Int64, duration: Duration) -> Self {
        say(rows.fileDerived, path, name, size, duration)
    }

    static func fileSettling(path: FilePath, busy: Bool) -> Self { say(rows.fileSettling, path, busy ? "yes" : "no") }

    /// A file has been waited for for long, and still is; said once.
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

    /// Receipts of a folder's files cannot be beside them, and are in `folder`; said once for each watched folder.
    static func receiptElsewhere(root: FilePath, folder: FilePath, reason: String) -> Self {
        say(rows.receiptElsewhere, root, folder, reason)
    }

    /// A unit's checksum list is on the disk: in the state directory, or beside what `destination` has of the unit.
    static func manifestWritten(_ batch: Batch, file: FilePath, destination: String?) -> Self {
        say(rows.manifestWritten, batch.id, batch.name, batch.route, destination ?? "", file)
    }

    static func manifestFailed(_ batch: Batch, reason: String) -> Self {
        say(rows.manifestFailed, batch.id, batch.name, batch.route, reason)
    }

    /// What `destination` has of a unit lies where no list may be; said once for each unit.
    static func manifestSkipped(_ batch: Batch, destination: String, reason: String) -> Self {
        say(rows.manifestSkipped, batch.id, batch.name, batch.route, destination, reason)
    }

    package static func queueResuming(waiting: Int) -> Self { say(rows.queueResuming, waiting) }
    static func queueWarning(waiting: Int, limit: Int) -> Self { say(rows.queueWarning, waiting, limit) }
    static func queueNormal(waiting: Int, limit: Int) -> Self { say(rows.queueNormal, waiting, limit) }

    /// Files stay in their folders because the queue has no room for them; said once, until there is.
    static func queueFull(files: Int, bytes: Int64) -> Self { say(rows.queueFull, files, bytes) }
    package static var queueRecovered: Self { say(rows.queueRecovered) }
    static func journalFull(reason: String) -> Self { say(rows.journalFull, reason) }

    /// The journal cannot be written for another reason than a full disk.
    static func journalFailing(reason: String) -> Self { say(rows.journalFailing, reason) }
    static var journalRecovered: Self { say(rows.journalRecovered) }
    static func journalBackup(path: FilePath) -> Self { say(rows.journalBackup, path) }
    static func journalBackupFailed(reason: String) -> Self { say(rows.journalBackupFailed, reason) }

    /// Something about a destination that should be seen to, but holds nothing up.
    static func destinationError(destination: String, reason: String) -> Self {
        say(rows.destinationError, destination, reason)
    }

    static func loginExpiring(destination: String, reason: String) -> Self {
        say(rows.loginExpiring, destination, reason)
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

    /// One was not taken; `next` is when it is tried again, nil when it is given up.
    static func notificationFailed(sink: String, notice: String, reason: String, next: WallTime?) -> Self {
        say(rows.notificationFailed, sink, notice, reason, next?.rfc3339 ?? "never")
    }

    static func notificationDropped(sink: String, count: Int, reason: String) -> Self {
        say(rows.notificationDropped, sink, count, reason)
    }

    package static func dashboardReady(url: String) -> Self { say(rows.dashboardReady, url) }

    /// They cannot listen; tried again until they can. Said once for each reason.
    package static func dashboardFailed(address: String, reason: String) -> Self {
        say(rows.dashboardFailed, address, reason)
    }

    static func logLevel(_ level: LogSettings.Level, by: String) -> Self { say(rows.logLevel, level.rawValue, by) }

    /// Lines are lost, or go elsewhere; said once, until it is over.
    static func logError(reason: String) -> Self { say(rows.logError, reason) }
    static func logLost(lines: Int) -> Self { say(rows.logLost, lines) }
    static func logSuppressed(_ gap: (event: String, lines: Int)) -> Self {
        say(rows.logSuppressed, gap.event, gap.lines)
    }

    private static func say(_ event: EventSpec, _ values: (any LoggedValue)?...) -> Self {
        .said(event.line(values))
    }
}

extension EventSpec {
    /// A line about one delivery.
    func line(_ ref: AgentEvent.JobRef, _ values: (any LoggedValue)?..., level: Level? = nil) -> EventLine {
        line([ref.job, ref.path, ref.destination, ref.route] + values, level: level)
    }
}
