// The keys of the configuration file: `log.level` is the key `level` of the section `log`, which is a member above it.
// Lists of sections, and sections that appear in several places, have their own tables; the tables of destinations are
// with their kinds. To add a key, see `Sources/InletConfig/InletConfig.docc/InletConfig.md`.

/// The whole file. Each destination has `type` and the keys of its type: see `DestinationType`.
package struct ConfigKeys: KeyTable {
    package static let all = Self()
    /// Of `all`: a mirror looks at some hundred keys for them.
    package static let specs = all.specs

    package let stateDirectory = Key(
        "state_dir", .path, untilRestart: { $0.stateDirectory = $1.stateDirectory },
        "The folder for the journal, its lock, the control socket and receipts; on a local disk.")
    package let workers = Key(
        "workers", .integer(1...64), default: 4, untilRestart: { $0.workers = $1.workers },
        "How many big files are sent to each destination at once.")
    package let shutdownTimeout = Key(
        "shutdown_timeout", .duration, default: "30s", "How long transfers may take to finish after SIGTERM.")
    package let permissions = Key(
        "permissions", .choice(PermissionRule.self), default: .warn,
        "What to do when other users can read a file with credentials, or write to it or to this file: warn, or refuse to start (strict)."
    )
    package let landlock = Key(
        "landlock", .choice(LandlockRule.self), default: .auto, untilRestart: { $0.landlock = $1.landlock },
        "Confine the agent to the files that this configuration names (Landlock): auto where the kernel supports it; required refuses to start without it."
    )
    package let tlsKeyLog = Key(
        "tls_key_log", .path, untilRestart: { $0.tlsKeyLog = $1.tlsKeyLog },
        "For debugging: 'inlet run' appends its TLS session keys to this file, so that Wireshark can decrypt the traffic. Without it they are never written."
    )
    package let log = Key("log", .section, "The log: its level, output and format.")
    package let logLevel = Key(
        "log.level", .choice(LogSettings.Level.self), default: .info, "The lowest level to log.")
    package let logOutput = Key("log.output", .string, default: "stderr", "stderr, stdout, journald, or a file's path.")
    package let logFormat = Key(
        "log.format", .choice(LogSettings.Format.self), default: .auto,
        "auto writes coloured sentences on a terminal and one JSON object per line anywhere else. text writes the sentences too, and EVENT FIELD=VALUE lines into a file or pipe."
    )
    package let logMaxSize = Key(
        "log.max_size", .bytesOrOff, default: "50MiB",
        "Rotate a log file to PATH.1 before it exceeds this size, at least 64KiB; off never rotates.")
    package let logKeep = Key(
        "log.keep", .integer(1...1000), default: 5, "How many rotated log files to keep.")
    package let dashboard = Key(
        "dashboard", .section, untilRestart: { $0.dashboard = $1.dashboard },
        "Serves the page and the HTTP API on a port; without it, no port is opened.")
    package let dashboardListen = Key(
        "dashboard.listen", .string, required: true,
        "Address and port, as in 127.0.0.1:8844. An address that other machines can reach needs a token or a password."
    )
    package let dashboardToken = Key(
        "dashboard.token", .secret, "The token that programs send as 'Authorization: Bearer'; gives full access.")
    package let dashboardPassword = Key(
        "dashboard.password", .secret, "The password that people log in with; gives full access.")
    package let dashboardReadOnlyToken = Key(
        "dashboard.read_only_token", .secret, "A token that gives read-only access.")
    package let dashboardKioskToken = Key(
        "dashboard.kiosk_token", .secret, "A token for a screen beside the card readers: it shows the cards only.")
    package let dashboardLogin = Key(
        "dashboard.login", .choice(DashboardLogin.self),
        "How people log in where there is no token and no password: not at all (open, the default), or by a link that 'inlet open' prints (link)."
    )
    package let dashboardEdit = Key(
        "dashboard.edit", .boolean,
        "Whether people with full access may change this file on the page, within ten minutes of their login; false by default. The agent must be allowed to write it."
    )
    package let dashboardHosts = Key(
        "dashboard.hosts", .list(.string),
        "Other host names under which browsers reach the page, as in inlet.example or nas.lan:8844.")
    package let dashboardProxy = Key(
        "dashboard.proxy", .boolean,
        "Trust the client address that a reverse proxy on this machine sends in X-Forwarded-For.")
    package let fleet = FleetKeys.key
    package let limits = Key("limits", LimitKeys(), "Limits of the whole agent.")
    package let proxy = ProxyKeys.key { $0.proxy = $1.proxy }
    package let journalBackup = Key(
        "journal_backup", .section, "Automatic backups of the journal, in state_dir/backups.")
    package let journalBackupEvery = Key(
        "journal_backup.every", .durationOrOff, default: "off",
        "How often to back up the journal if it has changed; at least 1m.")
    package let journalBackupKeep = Key(
        "journal_backup.keep", .integer(1...1000), default: 7, "How many backups to keep.")
    package let journalHistory = Key(
        "journal_history", .section, "The compact history of files that finished long ago.")
    package let journalHistoryAfter = Key(
        "journal_history.after", .durationOrOff, default: "90d",
        "How long after a file is finished it moves to the history; at least 1s. The journal drops its receipt then.")
    package let destinations = Key(
        "destinations", .destinations,
        "The destinations that routes can send files to, each under a name of your choice.")
    package let watch = Key("watch", list: WatchKeys(), "The folders to watch.")
    package let routes = Key(
        "routes", list: RouteKeys(),
        "Which files go to which destinations; the first route that matches takes the file.")
    package let notify = Key(
        "notify", list: NotifyKeys(), "Receivers of notifications: phones, chats, mail, webhooks and programs.")
    package let pingURL = Key(
        "ping_url", .secret,
        "A URL to request regularly while the agent is healthy, so that a monitoring service notices when the requests stop (a dead man's switch)."
    )
    package let pingInterval = Key(
        "ping_interval", .duration, default: "5m", "How often to request ping_url; at least 10s.")
    package let pingAllowHTTP = Key(
        "ping_allow_http", .boolean, default: false,
        "Allow plain HTTP for ping_url to hosts other than loopback. Others on the network can then read the URL and the reported problems."
    )
    package let pingCAFile = Key(
        "ping_ca_file", .path, "A PEM file with CA certificates to trust for ping_url, in addition to the system's.")
}

/// `limits:`
package struct LimitKeys: KeyTable {
    package static let all = Self()

    package let queueWarning = Key(
        "queue_warning", .integer(1...1_000_000_000), default: 20,
        "Log a warning when more files than this are waiting."
    )
    package let queueMaxFiles = Key(
        "queue_max_files", .integer(1...1_000_000_000),
        "The most files in the queue; further files wait in their folders. Without it there is no limit.")
    package let queueMaxBytes = Key(
        "queue_max_bytes", .bytes,
        "The most bytes in the queue, all files together; further files wait in their folders. Without it there is no limit."
    )
    package let zone = Key(
        "zone", .string,
        "The time zone of schedule and window (an IANA name, as in Europe/Berlin); the system's by default.")
    package let bandwidth = BandwidthKeys()
}

/// One entry of `watch:`.
package struct WatchKeys: KeyTable {
    package static let all = Self()

    package let path = Key(
        "path", .path, required: true,
        "The folder to watch; it need not exist yet. A pattern with *, ? or [] watches every matching folder as cards and disks come and go."
    )
    package let volumeWrites = Key(
        "volume_writes", .boolean,
        "For a pattern: allow Inlet to move, delete or write files on these cards and disks. Without it, nothing on them changes."
    )
    package let volumeDoneAfter = Key(
        "volume_done_after", .integer(1...100),
        "How many destinations must have each file of a card before Inlet reports the card as done; all of them by default."
    )
    package let volumeSafe = Key(
        "volume_safe", .choice(CardRules.Counting.self),
        "For a pattern: the files that count before a card is safe to remove. everything (the default): all files on it; "
            + "routed: only files that a route takes.")
    package let acceptSize = Key(
        "accept_size", .boolean,
        "For a pattern: call a card safe although a destination compared only the sizes (verify: size).")
    package let copies = Key(
        "copies", .integer(1...20),
        "For a pattern: how many disks or services must have each file of a card. Two folders on one disk are one copy. "
            + "By default every destination of the file's route must have it.")
    package let sourceCheck = Key(
        "source_check", .choice(CardRules.SecondRead.self),
        "For a pattern: read a card's files a second time, past the cache, before it is safe: all (reread), some "
            + "(sample), or none (off, the default).")
    package let cardReport = Key(
        "card_report", .list(.choice(OffloadForm.self)),
        "For a pattern: write a report into the top of each folder destination when a card is safe, in these forms; none by default."
    )
    package let ask = Key(
        "ask", .choice(CardQuestion.self),
        "For a pattern: whether to ask for the roll, camera and operator of a card: never, offer (default), or wait, which holds files whose keys or labels need them."
    )
    package let onComplete = Key(
        "on_complete", .choice(WatchSettings.OnComplete.self),
        "For a pattern: what to do with a card that is safe to remove: keep it mounted (by default), or eject it.")
    package let onCard = Key(
        "on_card", .list(.string),
        "For a pattern: a program and its arguments, run without a shell at each change of a card's state (inserted, copying, safe, problem, out), for a lamp or a beeper."
    )
    package let shared = Key(
        "shared", .boolean,
        "Allow several agents to watch the folder at the same time. Without it, one waits while another watches.")
    package let place = Key(
        "place", .string,
        "The folder's name in the fleet: all agents that give it the same name watch the same folder. One of them lists it, and all deliver its files."
    )
    package let recursive = Key("recursive", .boolean, default: true, "Watch subfolders too.")
    package let settle = Key(
        "settle", .duration, default: "5s", "How long a file must stay unchanged before it counts as complete.")
    package let settleEmpty = Key(
        "settle_empty", .duration, default: "30s",
        "How long an empty file must stay unchanged: it may be a placeholder for a file that is still arriving. 0s treats it like any other file."
    )
    package let rescan = Key(
        "rescan", .durationOrOff, default: "1h",
        "How often to list the whole folder again as a safety net, give or take a quarter of the time.")
    package let existing = Key(
        "existing", .choice(WatchSettings.Existing.self), default: .ingest,
        "What to do with files that were there before Inlet first watched the folder: ingest them, skip them, or adopt them as already delivered."
    )
    package let adoptCheck = Key(
        "adopt_check", .boolean, default: false,
        "With 'existing: adopt', ask the destinations for each file and send the files that they do not have.")
    package let owners = Key(
        "owners", .list(.string),
        "Take only files that these users own, by name or number; by default, files of any user.")
    package let hardLinks = Key(
        "hard_links", .choice(SourceRule.HardLinks.self), default: .allow,
        "Whether to take files that have more than one name (hard links).")
    package let ignore = Key(
        "ignore", .list(.string),
        "Patterns of files to ignore, with the rules of .gitignore, in addition to the built-in ones.")
    package let archiveDirectory = Key(
        "archive_dir", .string, default: ".inlet/done",
        "Where 'on_success: archive' moves files; relative to path unless absolute.")
    package let quarantineDirectory = Key(
        "quarantine_dir", .string, default: ".inlet/failed",
        "Where 'on_failure: quarantine' moves files; relative to path unless absolute.")
    package let hold = Key(
        "hold", .duration, default: "24h",
        "How long to wait before archiving or deleting a file when Inlet cannot tell whether a program still has it open."
    )
    package let expect = Key(
        "expect", .durationOrOff, default: "off",
        "How often a new file is to come into this folder, at least 1s. If none comes for so long, the folder is quiet: "
            + "Inlet shows that and sends a notification.")
    package let readers = Key(
        "readers", .choice(ReaderRule.self), default: .auto,
        "How many files are read at once from the disk of this folder; auto reads one from a disk that turns, and any "
            + "number from others.")
    package let mode = Key(
        "mode", .choice(WatchSettings.Mode.self), default: .auto,
        "How to notice changes: auto decides for each mount; inotify and poll apply to all. Like auto, fanotify "
            + "decides for each mount, but with one mark for a file system; it needs privileges and suits very many folders."
    )
    package let poll = Key(
        "poll", .duration, default: "10s",
        "The shortest pause between two polls of a folder, at least 1s; it grows with the cost of a poll.")
}

/// One entry of `routes:`.
package struct RouteKeys: KeyTable {
    package static let all = Self()

    package let name = Key("name", .string, required: true, "The route's name, as shown in logs and by `inlet route`.")
    package let match = Key(
        "match", .section, "The conditions a file must meet, all of them; without conditions, every file matches.")
    package let matchPath = Key(
        "match.path", .list(.string),
        "Patterns for the path below the watched folder, with the rules of .gitignore; one must match.")
    package let matchExtensions = Key(
        "match.extensions", .list(.string), "File name extensions, in upper or lower case; one must match.")
    package let matchMinSize = Key("match.min_size", .bytes, "The smallest size that matches.")
    package let matchMaxSize = Key("match.max_size", .bytes, "The largest size that matches.")
    package let matchMediaType = Key(
        "match.media_type", .list(.string),
        "Media types, as in video/*; one must match. libmagic determines the type from the file's content."
    )
    package let matchCamera = Key(
        "match.camera", .list(.string),
        "Cameras, as in Sony or \"Canon EOS*\", in upper or lower case; one must match. The file's metadata and the card's folders tell the camera."
    )
    package let validate = Key(
        "validate", .section, "Requirements; a file that violates one is rejected with a reason.")
    package let validateMinSize = Key("validate.min_size", .bytes, "Reject smaller files.")
    package let validateMaxSize = Key("validate.max_size", .bytes, "Reject larger files.")
    package let validateExtensions = Key(
        "validate.extensions", .list(.string), "Reject files with other extensions.")
    package let validateMediaType = Key(
        "validate.media_type", .list(.string),
        "Reject files whose content has another media type, whatever their names say; as in video/*.")
    package let category = Key(
        "category", .string, "The value of {category} in keys; by default it follows from the file's extension.")
    package let key = Key(
        "key", .string, default: KeyTemplate.standard.text,
        "The template for the file's key, its name at the destination.")
    package let names = Key(
        "names", .choice(NameRule.self),
        "Whether file names stay as they are in keys (keep) or get _ for white space and unusual characters (clean). By "
            + "default, each destination decides.")
    package let owner = Key(
        "owner", .string, "The value of {owner} in keys; without it, that segment of the key is dropped.")
    package let to = Key("to", .list(.string), required: true, "The destinations; each of them gets the file.")
    package let with = Key("with", .texts, "Templates for fields that the destination defines.")
    package let onSuccess = Key(
        "on_success", .choice(Route.OnSuccess.self), default: .keep,
        "What to do with the source once every destination has proved that it has the bytes.")
    package let onFailure = Key(
        "on_failure", .choice(Route.OnFailure.self), default: .keep,
        "What to do with a file that is rejected or fails for good.")
    package let retry = Key("retry", .section, "How to retry failed attempts.")
    package let retryAttempts = Key(
        "retry.attempts", .integer(1...1000), default: 3,
        "How many attempts a delivery gets; outages of the destination do not count.")
    package let retryBackoff = Key(
        "retry.backoff", .duration, default: "1s", "The wait before the first retry; it doubles each time.")
    package let retryMaxBackoff = Key(
        "retry.max_backoff", .duration, default: "5m", "The longest wait between two attempts.")
    package let retryExpire = Key(
        "retry.expire", .durationOrOff, default: "24h",
        "How long a delivery may keep failing while its destination is up; off never gives up.")
    package let priority = Key(
        "priority", .choice(Priority.self), default: .normal,
        "Which route's files go first when several wait for one destination; running transfers are not interrupted.")
    package let settle = Key("settle", .duration, "Overrides the watched folder's settle for files of this route.")
    package let sidecars = Key(
        "sidecars", .section, "Small files that belong to this route's files and travel with them.")
    package let sidecarsMetadata = Key(
        "sidecars.metadata", .boolean, default: false,
        "Read fields for the destination from <file>.yaml; they override those of 'with'.")
    package let sidecarsExtensions = Key(
        "sidecars.extensions", .list(.string),
        "Extensions of companions: with xmp, both clip.xmp and clip.mp4.xmp belong to clip.mp4.")
    package let sidecarsWait = Key(
        "sidecars.wait", .duration, default: "10s",
        "How long a file waits for missing companions, and a companion for its file.")
    package let unit = Key(
        "unit", .choice(RouteUnit.self), default: .file,
        "folder delivers all files of a folder as one unit, once the folder is complete.")
    package let completion = Key(
        "completion", .choice(Completion.self), default: .quiet,
        "How to tell that a file or unit is complete: its settle time (quiet), or a marker file: <name>.done, or DONE in a unit's folder."
    )
    package let type = Key("type", .string, "Your own type for the file, as a template; it becomes the label 'type'.")
    package let labels = Key(
        "labels", .texts,
        "Templates for texts of your own that accompany the file in lists, receipts and notifications.")
    package let receipts = Key(
        "receipts", .choice(ReceiptLocation.self), default: ReceiptLocation.none,
        "Where to write receipts in addition to the journal: in state_dir/receipts (folder), or beside the file (sidecar)."
    )
    package let dedupe = Key(
        "dedupe", .choice(DuplicateRule.self), default: .off,
        "For a content that the destination already has: send it again (off), finish the file as a duplicate (skip), or as delivered at the first copy's key (link)."
    )
    package let derive = Key(
        "derive", list: DeriveKeys(), "Small files that a program makes from each original, delivered beside it.")
    package let manifest = Key("manifest", .section, "A checksum list of each unit, which other tools can verify.")
    package let manifestFormat = Key(
        "manifest.format", .choice(["none"] + ManifestRule.Format.allCases.map(\.rawValue)), default: "none",
        "The list's format: ascmhl (ASC MHL 2.0), mhl (classic MHL 1.1), or none.")
    package let manifestHash = Key(
        "manifest.hash", .choice(ManifestRule.algorithms), default: .xxh64,
        "The hash to compute for each file while it is read.")
    package let window = Key(
        "window", SpanKeys(), "The hours in which deliveries of big files may start; smaller files go at any time.")
    // No default, so that a route without a window shows none.
    package let windowAbove = Key(
        "window.above", .bytes, "Files of at least this size wait for the window; 1GiB by default.")
}

/// One entry of a route's `derive:`.
package struct DeriveKeys: KeyTable {
    package static let all = Self()

    package let thumbnail = Key(
        "thumbnail", .choice(DeriveRule.Preset.self),
        "A built-in rule for thumbnails: vips for pictures, ffmpeg for videos. Give either this, or name, command and suffix."
    )
    package let name = Key("name", .string, "The rule's name, as shown in logs.")
    package let command = Key(
        "command", .list(.string),
        "A program and its arguments, run without a shell; {in} is the original, {out} the file to write.")
    package let extensions = Key(
        "extensions", .list(.string), "Extensions of the originals; by default, all files of the route.")
    package let suffix = Key("suffix", .string, "The suffix to append to the original's key, as in .thumb.jpg.")
    package let timeout = Key(
        "timeout", .duration, default: "60s",
        "How long the program may run; after that Inlet ends it and delivers the original alone.")
    package let maxSize = Key("max_size", .bytes, default: "16MiB", "The largest file that the program may write.")
}

/// One entry of `notify:`.
package struct NotifyKeys: KeyTable {
    package static let all = Self()

    package let name = Key(
        "name", .string,
        "The receiver's name, as shown in logs and by `inlet notify`; by default its kind, such as ntfy.")
    package let webhook = Key(
        "webhook", .secret,
        "The URL to post notifications to, as JSON. Give a receiver one of webhook, exec, ntfy, gotify, pushover, apprise, discord, telegram and smtp."
    )
    package let exec = Key(
        "exec", .list(.string),
        "A program and its arguments, run without a shell; it reads the notification from its standard input.")
    package let ntfy = Key(
        "ntfy", .secret, "The URL of an ntfy topic, as in https://ntfy.sh/TOPIC; whoever knows it can read it.")
    package let gotify = Key("gotify", .string, "The URL of a Gotify server; needs token.")
    package let pushover = Key("pushover", .secret, "The key of a Pushover user or group; needs token.")
    package let apprise = Key(
        "apprise", .secret,
        "The URL of an Apprise API with a stored configuration, as in https://apprise.lan/notify/KEY.")
    package let discord = Key("discord", .secret, "The URL of a Discord channel's webhook.")
    package let telegram = Key(
        "telegram", .string, "The number of a Telegram chat, or the @name of a channel; needs token.")
    package let smtp = Key(
        "smtp", .string,
        "The mail server: smtps://HOST with TLS, or smtp://HOST with STARTTLS. The ports are 465 and 587 unless it names one."
    )
    package let token = Key(
        "token", .secret,
        "The token of a Gotify or Pushover application or a Telegram bot, or the access token of an ntfy account.")
    package let server = Key(
        "server", .string, "The server to use instead of api.pushover.net or api.telegram.org.")
    package let user = Key("user", .string, "The login at the mail server; by default none.")
    package let password = Key("password", .secret, "The password of user.")
    package let from = Key(
        "from", .string, "The sender of mails; by default user where it is an address, otherwise the first of to.")
    package let to = Key("to", .list(.string), "The recipients of mails.")
    package let secret = Key(
        "secret", .secret,
        "The secret that signs webhook requests (Standard Webhooks, and X-Hub-Signature-256): whsec_ and base64, or any text."
    )
    package let on = Key(
        "on", .list(.choice(NotificationEvent.self)), "The events to send; by default all but delivered.")
    package let routes = Key(
        "routes", .list(.string), "Send events only for files and batches of these routes; by default of all.")
    package let timeout = Key(
        "timeout", .duration, default: "10s", "How long the receiver may take; Inlet ends a program that takes longer.")
    package let caFile = Key(
        "ca_file", .path,
        "A PEM file with CA certificates to trust for the receiver's server, in addition to the system's.")
    package let allowHTTP = Key(
        "allow_http", .boolean, default: false,
        "Allow plain HTTP, and SMTP without TLS, to hosts other than loopback.")
}

/// The bandwidth limits, in `limits:` and in every destination on the network.
package struct BandwidthKeys: KeyTable {
    package init() {}

    package let rate = Key(
        "bandwidth", .rate,
        "The highest sending rate, as in 20MiB/s or 50Mbit/s; 0 sends nothing. Without it there is no limit.")
    package let schedule = Key(
        "schedule", list: ScheduleKeys(),
        "Other rates for parts of the day. The first entry that matches applies; outside all entries, bandwidth applies."
    )
}

/// One entry of `schedule:`.
package struct ScheduleKeys: KeyTable {
    package let rate = Key(
        "bandwidth", .rate, required: true, "The rate during this time; 0 sends nothing, off lifts the limit.")
    package let span = SpanKeys()
}

/// A part of the day.
package struct SpanKeys: KeyTable {
    package let from = Key("from", .time, required: true, "When it starts, in local time, as in \"22:00\".")
    package let to = Key(
        "to", .time, required: true, "When it ends, up to \"24:00\"; a time before 'from' is on the next day.")
    package let days = Key(
        "days", .list(.choice(Weekday.allCases.map(\.name))), "The days on which it starts; every day by default.")
}
