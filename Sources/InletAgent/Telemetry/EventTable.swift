/// Every event of the log, one row each: name, levels, fields, sentence, and a note for the manual. The schema, the sentences
/// and the manual's table come from these rows. No line is written without a row.
///
/// To add an event, add a row, and in `AgentEvent+Table.swift` a function that fills its fields. Where code takes the event
/// apart, add a case of `AgentEvent` instead of the function. A row lists the name, the levels with the usual one first, and
/// the fields. A field is text unless it is marked: `size#` is a number, `notes*` a list, `resumed!` a flag. A trailing `?`
/// marks a field that only some lines have. For the sentence see `EventSpec`.
package struct EventTable: Sendable {
    package static let rows = EventTable()

    /// All events, in the order of the table.
    package static let all = Mirror(reflecting: rows).children.compactMap { $0.value as? EventSpec }

    /// All events by name, and by the name before 0.9.
    package static let named = all.reduce(into: [String: EventSpec]()) { table, event in
        for name in [event.name, event.formerName].compactMap(\.self) { table[name] = event }
    }

    let agentStarted = EventSpec(
        "agent.started info version configuration", "inlet {version} starts[ with {configuration}]")
    let agentConfined = EventSpec(
        "agent.confined info landlock# places# calls# reason?",
        "confined to {places} paths (Landlock {landlock}), without {calls} system calls[ ({reason})]",
        note: "`reason` explains missing system call filters")
    let agentUnconfined = EventSpec("agent.unconfined info reason", "not confined to its folders: {reason}")
    let agentHelperLost = EventSpec("agent.helper_lost error reason", "{reason}", was: "agent.host_lost")
    let agentReady = EventSpec(
        "agent.ready info roots# destinations#", "ready: {roots} watched folders, {destinations} destinations",
        isGood: true)
    let agentStopping = EventSpec("agent.stopping info", "stopping")
    let agentFailed = EventSpec(
        "agent.failed error reason", "failed: {reason}", note: "the agent cannot start or continue, and exits")
    let agentError = EventSpec(
        "agent.error error reason", "error: {reason}", was: "agent.trouble",
        mayRepeat: true, note: "this machine is short of descriptors or memory; deliveries wait")
    let serviceFailed = EventSpec(
        "agent.service_failed error service reason wait_ms#",
        "{service} failed: {reason}; restarting[ in {wait_ms}]",
        mayRepeat: true, note: "a part of the agent failed, and restarts automatically")

    let watchAdded = EventSpec(
        "watch.added info path directories# writer_check",
        "watching {path}: {directories} folders, writer check {writer_check}")
    let watchMode = EventSpec(
        "watch.mode info root path mode reason", "watching {path} with {mode}: {reason}",
        note: "`mode` is `inotify`, `poll` or `fanotify`; logged once per mount, and when it changes")
    let watchLost = EventSpec("watch.lost warning path reason", "{path} is not watched: {reason}")
    let watchLimit = EventSpec(
        "watch.limit warning path reason", "watch limit reached for {path}: {reason}", mayRepeat: true)
    let watchOverflow = EventSpec(
        "watch.overflow warning path", "{path} changed too fast to follow; scanning it again", mayRepeat: true)
    let watchAdopted = EventSpec(
        "watch.adopted info path files# bytes#",
        "{path}: {files} existing files ({bytes}) count as delivered",
        note: "existing files that count as delivered and are not sent (`existing: adopt`)")
    let watchPaused = EventSpec(
        "watch.paused error path reason", "{path} is paused: {reason}", was: "watch.guard",
        note: "the folder is not the same as before")
    let watchResumed = EventSpec("watch.resumed info path by", "{path} resumed by {by}")
    let watchStandby = EventSpec(
        "watch.standby warning path holder",
        "another agent watches {path}: {holder}; this agent takes over when that one ends",
        note: "this agent takes over when the other one ends")
    let rootQuiet = EventSpec(
        "root.quiet warning path since expect_ms#",
        "no file came from {path} since {since}; one is expected every {expect_ms}",
        note: "logged once until `root.recovered`, also over restarts (`expect`)")
    let rootRecovered = EventSpec(
        "root.recovered info path since", "files come from {path} again; it was quiet since {since}", isGood: true,
        note: "the end of `root.quiet`")
    let volumeAdded = EventSpec(
        "volume.added info path volume waiting#", "volume {volume} mounted at {path}[; {waiting} waiting files resume]",
        note: "`waiting` counts its files that resume")
    let volumeRemoved = EventSpec("volume.removed info path volume", "volume {volume} removed from {path}")
    let volumeDone = EventSpec(
        "volume.done info \(volume)",
        "card {volume} at {path} is safe to remove: {files} files, {bytes}, {others} other files",
        note: "the card is safe to remove: everything on it is accounted for")
    let volumeUnverified = EventSpec(
        "volume.unverified warning \(volume)",
        "card {volume} at {path} is NOT safe to remove[ ({verdict})]: {unproved} not delivered, {missing} gone from their "
            + "destination, {unmarked} not marked, {unread} unreadable; {files} delivered, {others} other files",
        was: "volume.unproved", note: "nothing moves any more, but a person has to do something before it is safe")

    let volumeUnknown = EventSpec(
        "volume.unknown warning path volume files#", "no watched folder fits {volume} at {path}: {files} files on it",
        note: "a disk was mounted where cards are expected, and no pattern fits anything on it")
    let cardLabelled = EventSpec("card.labelled info volume labels by", "card {volume} is {labels}, says {by}")
    let cardOthersLeft = EventSpec(
        "card.others_left info volume files# by", "{files} other files on {volume} may stay, says {by}")
    let cardResent = EventSpec(
        "card.resent info volume files# by", "{files} files of {volume} are sent again, by {by}")
    let cardEjected = EventSpec("card.ejected info volume result by", "{volume} is out: {result}")
    let cardNotEjected = EventSpec(
        "card.not_ejected warning volume reason", "{volume} could not be ejected: {reason}")

    let fileError = EventSpec(
        "file.error warning path reason", "{path}: {reason}", was: "file.trouble", mayRepeat: true)
    let fileNotAdopted = EventSpec(
        "file.not_adopted info path reason", "{path} is not at its destination, and is sent: {reason}",
        note: "an existing file that its destination does not have")
    let fileDerived = EventSpec(
        "file.derived info path name size# duration_ms#", "derived {name} from {path} ({size}) in {duration_ms}",
        note: "`name` is the name of the rule")
    let fileNotDerived = EventSpec(
        "file.not_derived warning path name reason", "could not derive {name} from {path}: {reason}",
        mayRepeat: true, note: "the original is delivered without it")
    let fileSettling = EventSpec("file.settling debug path busy", "{path} is still changing")
    let fileUnsettled = EventSpec(
        "file.unsettled info path reason waiting_ms#", "{path} has been waiting[ for {waiting_ms}]: {reason}",
        note: "logged once per file that is not complete after 15 min")
    let fileIgnored = EventSpec(
        "file.ignored info path reason", "ignoring {path}: {reason}", note: "logged once per folder and extension")
    let fileAwaited = EventSpec(
        "file.awaited info path reason", "{path} waits: {reason}",
        note:
            "a file without its marker, logged once per folder and extension; or a card's first file that waits for labels"
    )
    let fileRejected = EventSpec(
        "file.rejected warning job# path route reason", "{path} rejected by {route}: {reason}")
    let fileNote = EventSpec(
        "file.note info job# path route note", "{path}: {note}",
        note: "something unusual about an admitted file, such as mtime used for `{captured}`")

    let jobAdmitted = EventSpec(
        "job.admitted info job# path route size# destinations* labels*?",
        "{path} ({size}) queued for {destinations}[, route {route}]")
    let jobUnchanged = EventSpec(
        "job.unchanged debug job# path", "{path} is already known", was: "job.known",
        note: "touched, with the same content")
    let jobRenamed = EventSpec(
        "job.renamed info job# path from", "{from} renamed to {path}",
        note: "the same file under another path; it is not sent again")
    let jobDuplicate = EventSpec(
        "job.duplicate info job# path route destinations* same_as#",
        "{path} is a duplicate of job {same_as}[ at {destinations}]",
        note: "the destinations have the content from job `same_as`; it is not sent again")
    let jobStarted = EventSpec(
        "job.started info/debug \(job) key attempt# size# resumed!?",
        "{path} → {destination} started[ as {key}][, {size}][, attempt {attempt}]",
        note:
            "debug when it only asks the destination for progress; `resumed` when it continues an attempt of an earlier "
            + "process")
    let transferProgress = EventSpec(
        "transfer.progress info \(job) sent# size# percent#? step?",
        "{path} → {destination}: {sent} of {size}[, {step} {percent} %]",
        note: "`percent` and `step` where bytes do not show the progress; every 5 % or 5 s, whichever is later")
    let jobCheckpoint = EventSpec("job.checkpoint debug \(job) notes*", "{path} → {destination}: checkpoint[ {notes}]")
    let jobRetry = EventSpec(
        "job.retry warning/info/debug \(job) code reason attempt# wait_ms#",
        "{path} → {destination}: {reason}[ ({code})]; retrying in {wait_ms}",
        mayRepeat: true, note: "debug when this machine is the cause, info when a person cancelled the attempt")
    let jobWaiting = EventSpec(
        "job.waiting info/debug \(job) until reason?",
        "{path} → {destination}: processing[: {reason}][; next check at {until}]",
        note: "the destination is processing the file; debug after the first")
    let jobDelivered = EventSpec(
        "job.delivered info \(job) key size# verified url duration_ms#",
        "{path} → {destination}[ as {key}][, {size}][ in {duration_ms}][, verified: {verified}]", isGood: true)
    let jobFailed = EventSpec(
        "job.failed error/info \(job) state code reason", "{path} → {destination} {state}: {reason}[ ({code})]",
        note: "info if superseded or cancelled")
    let jobFinished = EventSpec(
        "job.finished info job# path route state disposition", "{path} {state}[; source {disposition}]")
    let jobAnswered = EventSpec(
        "job.answered info job# path route disposition", "{path}: as you ordered; source {disposition}",
        note: "after 'inlet queue aside' or 'remove'; the file has ended before")
    let dispositionFailed = EventSpec(
        "job.disposition_failed error job# path reason", "could not finish the source {path}: {reason}",
        mayRepeat: true, note: "retried every minute")
    let jobExpired = EventSpec(
        "job.expired warning job# path route destinations*",
        "{path} expired before delivery[ to {destinations}]; the file stays")
    let jobRecovered = EventSpec(
        "job.recovered info/warning claims# parked# unparked#",
        "{claims} interrupted deliveries resume[; {parked} have no destination any more]",
        note: "warning if deliveries are parked")
    let uploadAborted = EventSpec(
        "transfer.aborted info \(job)", "{path} → {destination}: unfinished upload removed")
    let namesKept = EventSpec(
        "names.kept warning destinations*",
        "new files keep their names at {destinations}; to clean them as before, add 'names: clean' there",
        note: "once, after an update from a version that cleaned all names")
    let receiptElsewhere = EventSpec(
        "receipt.elsewhere warning path folder reason", "receipts for {path} are written to {folder}: {reason}",
        note: "logged once per watched folder that cannot hold receipts beside its files")

    let batchClosed = EventSpec(
        "batch.closed info batch# path route files#", "{path} is complete: {files} files",
        note: "a unit is complete, and its files are sent")
    let batchEnded = EventSpec(
        "batch.ended info/warning batch# path route state outcome files# delivered# counts* labels*?",
        "{path} is {state}: {delivered} of {files} files delivered[ ({counts})]",
        note: "warning unless `state` is delivered or duplicate; `labels` are those of the unit")
    let manifestWritten = EventSpec(
        "manifest.written info batch# path route destination file", "checksum list of {path} written to {file}",
        note: "an empty `destination` is the list in `state_dir`")
    let manifestFailed = EventSpec(
        "manifest.failed warning batch# path route reason", "checksum list of {path} not written: {reason}",
        mayRepeat: true, note: "retried")
    let manifestSkipped = EventSpec(
        "manifest.skipped warning batch# path route destination reason",
        "checksum list of {path} not written at {destination}: {reason}",
        note: "the delivered files are inside a watched folder, or in a folder `ascmhl`")
    let manifestStandalone = EventSpec(
        "manifest.standalone warning batch# path route destination reason",
        "checksum list of {path} at {destination} does not continue the ASC MHL history there: {reason}",
        note: "the history came with the files, or was there before them; the list stands alone beside it")

    let reportWritten = EventSpec(
        "report.written info volume destination file", "report on {volume} written to {file}")
    let reportFailed = EventSpec(
        "report.failed warning volume destination reason", "report on {volume} not written at {destination}: {reason}",
        note: "not retried; `inlet report --card` prints the same")

    let queueResuming = EventSpec(
        "queue.resuming info waiting#", "resuming {waiting} waiting files",
        note: "files that waited at the start, at most 50,000")
    let queueResumed = EventSpec(
        "queue.resumed info/warning resumed# of# failed# waiting#",
        "of {of} files waiting at the start, {resumed} resumed, {failed} failed, {waiting} wait again",
        note: "each of them has ended, or was tried and waits again; warning if some failed")
    let queueWarning = EventSpec(
        "queue.warning warning waiting# limit#", "{waiting} files are waiting, more than {limit}")
    let queueNormal = EventSpec(
        "queue.normal info waiting# limit#", "{waiting} files are waiting, within the limit of {limit}",
        was: "queue.calm", isGood: true, note: "the end of `queue.warning`")
    let queueFull = EventSpec(
        "queue.full warning files# bytes#",
        "queue full ({files} files, {bytes}); new files stay in their folders",
        note: "new files stay in their folders until `queue.recovered` (`queue_max_files`, `queue_max_bytes`)")
    let queueRecovered = EventSpec("queue.recovered info", "the queue has room again", was: "queue.free", isGood: true)

    let journalFull = EventSpec(
        "journal.full error reason", "journal disk full: {reason}",
        note: "no file is admitted until `journal.recovered`")
    let journalFailing = EventSpec(
        "journal.failing error reason", "cannot write the journal: {reason}",
        note:
            "no file is admitted until `journal.recovered`; if the journal was removed or replaced, the agent saves "
            + "its own copy in `backups`"
    )
    let journalRecovered = EventSpec(
        "journal.recovered info", "journal recovered", was: "journal.free", isGood: true)
    let journalPruned = EventSpec(
        "journal.pruned info files# took_ms#", "moved {files} old files to the history[ in {took_ms}]",
        note: "files that ended long ago move to the journal's history")
    let journalBackup = EventSpec(
        "journal.backup info path", "journal backed up to {path}",
        note: "a backup by `journal_backup`")
    let journalBackupFailed = EventSpec(
        "journal.backup_failed warning reason", "journal backup failed: {reason}",
        mayRepeat: true, note: "a backup by `journal_backup`")

    let destinationDown = EventSpec(
        "destination.down warning destination reason next_probe",
        "{destination} is down: {reason}[; next check at {next_probe}]")
    let destinationUp = EventSpec("destination.up info destination", "{destination} is up", isGood: true)
    let destinationRecovered = EventSpec(
        "destination.recovered info destination files#",
        "{destination} works again: {files} files that failed for want of it are sent again", isGood: true,
        note: "`files` failed because it was away or full, and count as new attempts")
    let destinationThrottled = EventSpec(
        "destination.throttled warning destination reason until",
        "{destination} is throttled[ until {until}]: {reason}", was: "destination.slowed",
        mayRepeat: true, note: "the destination asked for a pause; no file is sent to it until then")
    let destinationError = EventSpec(
        "destination.error warning destination reason", "{destination}: {reason}", was: "destination.trouble",
        mayRepeat: true, note: "its credentials could not be renewed; retried every hour")
    let loginExpiring = EventSpec(
        "destination.login_expiring error destination reason", "{destination}: {reason}", was: "destination.login_old",
        note: "the login was not renewed for 5 days, and expires after 7; logged once a day")
    let tokenGiven = EventSpec(
        "destination.token_given info destination to", "{destination}: token issued to {to}",
        note: "a command asked for a token")
    let destinationPaused = EventSpec("destination.paused info destination by", "{destination} paused by {by}")
    let destinationResumed = EventSpec("destination.resumed info destination by", "{destination} resumed by {by}")

    let limitChanged = EventSpec(
        "limit.changed info destination bandwidth cause bytes_per_second#? until?",
        "bandwidth limit for {destination}: {bandwidth} ({cause})[ until {until}]",
        note:
            "`*` means all destinations together; `cause` is `start`, `schedule`, `command` or `reload`; `until` is the "
            + "next change by the schedule")
    let notificationSent = EventSpec(
        "notification.sent debug sink notice of tries#", "notification {of} sent to {sink}[ on try {tries}]")
    let notificationFailed = EventSpec(
        "notification.failed warning sink notice reason next_try",
        "notification {notice} to {sink} failed: {reason}[; next try at {next_try}]",
        mayRepeat: true,
        note: "logged once until the receiver accepts a notification, and for each that is given up (`never`)")
    let notificationDropped = EventSpec(
        "notification.dropped warning sink count# reason", "{count} notifications[ to {sink}] dropped: {reason}")
    let configReloaded = EventSpec(
        "config.reloaded info/warning path changes* parked# restart_needed* warnings*",
        "configuration reloaded[: {changes}][; restart needed for {restart_needed}]",
        note: "warning if deliveries are parked, a change needs a restart, or the configuration has warnings")
    let configEdited = EventSpec(
        "config.edited info path by changes* undo!?",
        "configuration changed on the page by {by}[: {changes}]",
        note: "`undo` where a former version of the file came back; `config.reloaded` tells what took effect")
    let configWarning = EventSpec(
        "config.warning warning path warning", "configuration warning: {warning}",
        note: "at a start; the configuration works, but should be changed")
    let configRefused = EventSpec(
        "config.refused error path errors*", "the configuration is not valid, and does not take effect: {errors}",
        note:
            "each error has its place, its line and a caret; at a reload the former configuration stays, a start fails")
    let dashboardReady = EventSpec(
        "dashboard.ready info url", "dashboard at {url}", note: "the page and the HTTP API listen there")
    let dashboardFailed = EventSpec(
        "dashboard.failed warning address reason", "no dashboard at {address}: {reason}",
        note: "the page and the HTTP API cannot listen, and retry; logged once per reason")
    let dashboardRefused = EventSpec(
        "dashboard.refused warning address wait_ms#",
        "too many failed logins from {address}; blocked for {wait_ms}",
        note: "too many wrong tokens or passwords from `address` (`*` is all addresses)")
    let logLevel = EventSpec(
        "log.level info to by", "log level set to {to}[ by {by}]", note: "written at every level")
    let logError = EventSpec(
        "log.error error reason", "cannot write the log: {reason}", was: "log.trouble",
        note:
            "the log file cannot be written, systemd's journal accepts no lines, or standard error has no reader; logged "
            + "once until it recovers")
    let logLost = EventSpec(
        "log.lost warning lines#", "{lines} log lines lost",
        note: "the number of lines that could not be written, once the log recovered")
    let logSuppressed = EventSpec(
        "log.suppressed warning of lines#", "{lines} more {of} lines left out",
        note: "warnings of the event `of` that were left out: repeats, and a flood of more than 100 at once")

    let fleetJoined = EventSpec(
        "fleet.joined info name server", "joined the fleet at {server} as {name}", isGood: true,
        note: "once for each journal")
    let fleetConnected = EventSpec(
        "fleet.connected info server agent# session#", "connected to the fleet at {server}",
        note: "`agent` is this agent's number there")
    let fleetAway = EventSpec(
        "fleet.away warning server reason since paused*",
        "fleet: {reason} since {since}; local folders go on[; paused: {paused}]",
        note: "PostgreSQL does not answer; `reason` names the server; logged once, then each hour")
    let fleetBack = EventSpec(
        "fleet.back info server away_ms#", "fleet: {server} is back[ after {away_ms}]", isGood: true)
    let fleetSessionLost = EventSpec(
        "fleet.session_lost warning reason", "fleet: the session is over: {reason}",
        mayRepeat: true, note: "the agent asks for another one automatically")
    let fleetKeyTagged = EventSpec(
        "fleet.key_tagged info job# path destination key", "{path} is delivered to {destination} as {key}",
        note: "PostgreSQL granted no key within `patience`: the name ends in this agent's tag")
    let fleetKeyClash = EventSpec(
        "fleet.key_clash error destination key owner", "fleet: {key} at {destination} belongs to {owner} too",
        note: "a key was given again after PostgreSQL lost commits; it stays spent, and this agent's file gets another")
    let fleetIdentityTwice = EventSpec(
        "fleet.identity_twice error name reason", "fleet: {name} is used twice: {reason}",
        note: "a copy of a state directory, or a second process; see `inlet fleet rejoin`")
    let fleetJournalWentBack = EventSpec(
        "fleet.journal_went_back error reason", "fleet: this journal is older than the fleet knows: {reason}",
        note: "a restored journal; see `inlet fleet rejoin`")
    let fleetRecovering = EventSpec(
        "fleet.recovering warning reason waiting*",
        "fleet: nothing is granted: {reason}[; waiting for {waiting}]",
        note: "PostgreSQL lost commits; it grants again when the agents in `waiting` have reported")
    let fleetReported = EventSpec(
        "fleet.reported info keys# files#", "fleet: reported {keys} keys and {files} files",
        note: "what this agent had and PostgreSQL had lost")
    let fleetOpen = EventSpec(
        "fleet.open info", "fleet: keys are granted again", isGood: true, note: "the end of `fleet.recovering`")
    let fleetCommand = EventSpec("fleet.command info verb by", "fleet: {verb}, by {by}")
    let fleetSilent = EventSpec(
        "fleet.silent warning name since", "fleet: nothing was heard of {name} since {since}",
        note: "one of the agents that are alive says so, after 5 min")
    let fleetDrained = EventSpec(
        "fleet.drained info/warning left#", "fleet: this agent takes no new files; {left} are left",
        note: "warning while files of local folders are left, which no other agent can read")
    let fleetSchemaOld = EventSpec(
        "fleet.schema_old error reason needed#",
        "fleet: the schema is not version {needed}, which this agent needs ({reason}); run 'inlet fleet init'")
    let fleetPlaceHeld = EventSpec("fleet.place_held info place fence#", "fleet: this agent lists {place}")
    let fleetPlaceLost = EventSpec(
        "fleet.place_lost warning place reason", "fleet: this agent no longer lists {place}: {reason}")
    let fleetPlaceTaken = EventSpec(
        "fleet.place_taken info place from", "fleet: this agent lists {place} instead of {from}")
    let fleetTookOver = EventSpec(
        "fleet.took_over info place path from", "fleet: goes on with {path} of {place}, which {from} had begun")
    let fleetFenced = EventSpec(
        "fleet.fenced warning path destination",
        "fleet: {path} for {destination} went to another agent; this one left it alone",
        mayRepeat: true, note: "this agent was late, for example because its machine slept")
    let fleetSourceLeft = EventSpec(
        "fleet.source_left warning place path",
        "fleet: {path} stays where it is: it was replaced, or {place} shows other inode numbers here than at the "
            + "agent that admitted it; mount SMB with 'serverino'",
        note: "once a share; the receipts name further sources")
}

private let job = "job# path destination route"
private let volume = "path volume files# bytes# unproved# missing# unmarked# unread# ignored# others# verdict?"
