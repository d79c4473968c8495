extension LogWords {
    /// What is said of each event.
    static let patterns: [String: String] = agent.merging(watching) { $1 }.merging(files) { $1 }
        .merging(deliveries) { $1 }.merging(places) { $1 }

    private static let agent = [
        "agent.started": "inlet {version} starts[ with {configuration}]",
        "agent.confined":
            "confined to {places} places (Landlock {landlock}), {calls} system calls given up[ ({reason})]",
        "agent.unconfined": "not confined to its own folders: {reason}",
        "agent.helper_lost": "{reason}",
        "agent.ready": "ready: {roots} watched folders, {destinations} destinations",
        "agent.stopping": "stopping",
        "agent.failed": "cannot go on: {reason}",
        "agent.error": "trouble: {reason}",
        "agent.service_failed": "{service} has stopped: {reason}; it begins again[ in {wait_ms}]",
        "journal.full": "the journal's disk is full: {reason}",
        "journal.failing": "the journal cannot be written: {reason}",
        "journal.recovered": "the journal can be written again",
        "journal.backup": "the journal was backed up as {path}",
        "journal.backup_failed": "the journal was not backed up: {reason}",
        "journal.pruned": "{files} old files went to the history[ in {took_ms}]",
        "queue.resuming": "{waiting} files waited at the start and go on",
        "queue.resumed": "of {of} that waited at the start {resumed} went on, {failed} failed, {waiting} wait again",
        "queue.warning": "{waiting} files wait, more than {limit}",
        "queue.normal": "{waiting} files wait, no more than {limit}",
        "queue.full": "the queue is full ({files} files, {bytes}): new files stay in their folders",
        "queue.recovered": "the queue has room again",
        "notification.sent": "{sink} was told of {of}[, at try {tries}]",
        "notification.failed": "{sink} was not told of {notice}: {reason}[; tried again at {next_try}]",
        "notification.dropped": "{count} notices for {sink} were given up: {reason}",
        "config.reloaded": "the configuration was read again[: {changes}][; only after a restart: {restart_needed}]",
        "config.warning": "the configuration should be changed: {warning}",
        "config.refused": "the new configuration cannot be used, the old one stays: {errors}",
        "log.level": "the log is at level {to} now[, by {by}]",
        "log.error": "the log cannot be written: {reason}",
        "log.lost": "{lines} lines of the log were lost",
        "log.suppressed": "{lines} more lines of {of} were not written",
        "dashboard.ready": "the page is at {url}",
        "dashboard.failed": "no page at {address}: {reason}",
        "dashboard.refused": "too many wrong tries to log in from {address}; refused for {wait_ms}",
        "limit.changed": "limit of {destination}: {bandwidth} ({cause})[ until {until}]",
    ]

    private static let watching = [
        "watch.added": "watches {path}: {directories} folders, writer check {writer_check}",
        "watch.adopted": "{path}: {files} files ({bytes}) were there before, and are known without being sent",
        "watch.mode": "{path} is watched by {mode}: {reason}",
        "watch.lost": "{path} is not watched: {reason}",
        "watch.overflow": "{path} changed too fast to follow; it is looked through again",
        "watch.limit": "no more watches for {path}: {reason}",
        "watch.paused": "{path} is paused: {reason}",
        "watch.resumed": "{path} goes on as it is, by {by}",
        "watch.standby": "{path} is watched by another agent, and by this one when that ends: {holder}",
        "volume.added": "volume {volume} at {path}[: {waiting} files wait for it]",
        "volume.removed": "volume {volume} left {path}",
        "volume.done":
            "all files of volume {volume} at {path} that routes take are delivered: {files}, {bytes}; {others} others are on it",
        "volume.unverified":
            "volume {volume} at {path} is NOT safe to erase: {unproved} not delivered, {missing} not at their destination "
            + "any more, {unmarked} not marked, {unread} not read; {files} are delivered, {others} others are on it",
    ]

    private static let files = [
        "file.settling": "{path} is not quiet yet",
        "file.unsettled": "{path} waits: {reason}[, for {waiting_ms}]",
        "file.ignored": "{path} is ignored: {reason}",
        "file.awaited": "{path} waits: {reason}",
        "file.error": "{path}: {reason}",
        "file.rejected": "{path} is rejected by {route}: {reason}",
        "file.not_adopted": "{path} is not known there, and is sent: {reason}",
        "file.derived": "{name} was made of {path} ({size}) in {duration_ms}",
        "file.not_derived": "{name} was not made of {path}: {reason}",
        "file.note": "{path}: {note}",
        "job.admitted": "{path} ({size}) goes to {destinations}[, route {route}]",
        "job.unchanged": "{path} is known already",
        "job.duplicate": "{path} is there already, as job {same_as}[: {destinations}]",
        "job.finished": "{path} is {state}[; the file: {disposition}]",
        "job.expired": "{path} was not delivered in its time[ to {destinations}]; nothing of it is deleted",
        "job.renamed": "{from} is now {path}",
        "job.recovered": "{claims} deliveries go on after the last end[, {parked} have no destination any more]",
        "job.disposition_failed": "{path} could not be put away: {reason}",
        "receipt.elsewhere": "receipts of {path} go to {folder}: {reason}",
        "batch.closed": "{path} is complete: {files} files",
        "batch.ended": "{path} is {state}: {delivered} of {files} files delivered[ ({counts})]",
        "manifest.written": "the checksum list of {path} is {file}",
        "manifest.failed": "no checksum list of {path}: {reason}",
        "manifest.skipped": "no checksum list of {path} at {destination}: {reason}",
    ]

    private static let deliveries = [
        "job.started": "{path} → {destination} begins[ as {key}][, {size}][, attempt {attempt}]",
        "transfer.progress": "{path} → {destination}: {sent} of {size}[, {step} {percent} %]",
        "transfer.aborted": "{path} → {destination}: the unfinished upload was removed there",
        "job.checkpoint": "{path} → {destination}: noted[ {notes}]",
        "job.retry": "{path} → {destination}: {reason}[ ({code})]; tried again in {wait_ms}",
        "job.waiting": "{path} → {destination}: it works on it[: {reason}][; asked again at {until}]",
        "job.delivered": "{path} → {destination}[ as {key}][, {size}][ in {duration_ms}][, verified: {verified}]",
        "job.failed": "{path} → {destination} {state}: {reason}[ ({code})]",
    ]

    private static let places = [
        "destination.down": "{destination} is down: {reason}[; asked again at {next_probe}]",
        "destination.up": "{destination} is up",
        "destination.throttled": "{destination} asks for time[ until {until}]: {reason}",
        "destination.error": "{destination}: {reason}",
        "destination.login_expiring": "{destination}: {reason}",
        "destination.token_given": "{destination}: a token was given to {to}",
        "destination.paused": "{destination} is paused by {by}",
        "destination.resumed": "{destination} goes on, by {by}",
    ]
}
