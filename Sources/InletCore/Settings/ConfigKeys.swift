// The keys of the configuration file: `log.level` is the key `level` of the section `log`, which is a member above it. Sections
// of lists, and those that stand in several places, are tables of their own; those of destinations stand with their kinds. How
// to add a key: `Sources/InletConfig/InletConfig.docc/InletConfig.md`.

/// The whole file. Each destination has the keys of its type besides `type` itself: see `DestinationType`.
package struct ConfigKeys: KeyTable {
    package static let all = Self()

    package let stateDirectory = Key(
        "state_dir", .path, untilRestart: { $0.stateDirectory = $1.stateDirectory },
        "Folder of the journal, its lock, the control socket and receipts.")
    package let workers = Key(
        "workers", .integer(1...64), default: 4, untilRestart: { $0.workers = $1.workers },
        "Big transfers at once to each destination.")
    package let shutdownTimeout = Key(
        "shutdown_timeout", .duration, default: "30s", "How long running parts may go on after SIGTERM.")
    package let permissions = Key(
        "permissions", .choice(PermissionRule.self), default: .warn,
        "What is done when others may read a credential's file, or write it or this file: warn, or refuse to start (strict)."
    )
    package let landlock = Key(
        "landlock", .choice(LandlockRule.self), default: .auto, untilRestart: { $0.landlock = $1.landlock },
        "Whether the agent gives up, at its start, all of the file system that this file does not name: where the kernel can (auto), or else it does not start (required)."
    )
    package let tlsKeyLog = Key(
        "tls_key_log", .path, untilRestart: { $0.tlsKeyLog = $1.tlsKeyLog },
        "A file to which 'inlet run' appends the keys of its TLS connections, for looking at what is sent; without it nobody gets them."
    )
    package let log = Key("log", .section, "What is logged, where, and how.")
    package let logLevel = Key(
        "log.level", .choice(LogSettings.Level.self), default: .info, "The least important level written.")
    package let logOutput = Key("log.output", .string, default: "stderr", "stderr, stdout, journald, or a file's path.")
    package let logFormat = Key(
        "log.format", .choice(LogSettings.Format.self), default: .auto,
        "auto writes coloured sentences on a terminal and one JSON object per line anywhere else. text writes the sentences too, and EVENT FIELD=VALUE lines into a file or pipe."
    )
    package let logMaxSize = Key(
        "log.max_size", .bytesOrOff, default: "50MiB",
        "A log file that would become larger is set aside as PATH.1, and a new one begun; from 64KiB.")
    package let logKeep = Key(
        "log.keep", .integer(1...1000), default: 5, "How many log files that were set aside are kept.")
    package let dashboard = Key(
        "dashboard", .section, untilRestart: { $0.dashboard = $1.dashboard },
        "The page and the HTTP API on a port; without it there is no port.")
    package let dashboardListen = Key(
        "dashboard.listen", .string, required: true,
        "Address and port, as in 127.0.0.1:8844. Other machines reach it only at another address, which needs a token or a password."
    )
    package let dashboardToken = Key(
        "dashboard.token", .secret, "What programs send as Authorization: Bearer; may do everything.")
    package let dashboardPassword = Key("dashboard.password", .secret, "What people log in with; may do everything.")
    package let dashboardReadOnlyToken = Key(
        "dashboard.read_only_token", .secret, "As token, for those who may look and change nothing.")
    package let dashboardHosts = Key(
        "dashboard.hosts", .list(.string),
        "Names under which browsers reach it besides its address, as in inlet.example or nas.lan:8844.")
    package let dashboardProxy = Key(
        "dashboard.proxy", .boolean,
        "Whether a reverse proxy on this machine says in X-Forwarded-For whom a request comes from.")
    package let limits = Key("limits", LimitKeys(), "Bounds of the whole agent.")
    package let proxy = ProxyKeys.key { $0.proxy = $1.proxy }
    package let journalBackup = Key(
        "journal_backup", .section, "Backups of the journal in state_dir/backups.")
    package let journalBackupEvery = Key(
        "journal_backup.every", .durationOrOff, default: "off",
        "How often the journal is backed up, when something of it has changed; from 1m.")
    package let journalBackupKeep = Key(
        "journal_backup.keep", .integer(1...1000), default: 7, "How many backups are kept.")
    package let journalHistory = Key(
        "journal_history", .section, "The compact history of files that ended long ago.")
    package let journalHistoryAfter = Key(
        "journal_history.after", .durationOrOff, default: "90d",
        "How long after its end a file goes there; from 1s. Its receipt in the journal goes then.")
    package let destinations = Key("destinations", .destinations, "Where files can go, each under a name.")
    package let watch = Key("watch", list: WatchKeys(), "The folders whose files are taken.")
    package let routes = Key("routes", list: RouteKeys(), "Which file goes where; the first that matches takes it.")
    package let notify = Key("notify", list: NotifyKeys(), "Who is told of what happens: webhooks and programs.")
    package let pingURL = Key(
        "ping_url", .secret, "An address that is asked regularly while the agent is well (a dead man's switch).")
    package let pingInterval = Key("ping_interval", .duration, default: "5m", "How often ping_url is asked.")
    package let pingAllowHTTP = Key(
        "ping_allow_http", .boolean, default: false,
        "Allow plain HTTP for ping_url to hosts other than loopback: the address, and what is wrong, are for all to read."
    )
    package let pingCAFile = Key(
        "ping_ca_file", .path, "A PEM file of certificates to trust beside the system's, for ping_url.")
}

/// `limits:`
package struct LimitKeys: KeyTable {
    package static let all = Self()

    package let queueWarning = Key(
        "queue_warning", .integer(1...1_000_000_000), default: 20, "A warning is logged when more files than this wait."
    )
    package let queueMaxFiles = Key(
        "queue_max_files", .integer(1...1_000_000_000),
        "No more files than this are in the queue; others wait in their folders. Without it there is no limit.")
    package let queueMaxBytes = Key(
        "queue_max_bytes", .bytes,
        "No more than this is in the queue, all files together; others wait in their folders.")
    package let zone = Key(
        "zone", .string,
        "The time zone of schedule and of windows (IANA, as in Europe/Berlin); the system's without it.")
    package let bandwidth = BandwidthKeys()
}

/// One entry of `watch:`.
package struct WatchKeys: KeyTable {
    package static let all = Self()

    package let path = Key(
        "path", .path, required: true,
        "The folder; it may not exist yet. With *, ? or [] in it: all such folders, as they come and go with their volumes."
    )
    package let volumeWrites = Key(
        "volume_writes", .boolean,
        "Whether anything may be moved, deleted or written on the volumes of a path with a pattern; without it, nothing is."
    )
    package let volumeDoneAfter = Key(
        "volume_done_after", .integer(1...100),
        "To how many destinations each file of a volume must be delivered before that is said to be done; to all without it."
    )
    package let shared = Key(
        "shared", .boolean,
        "Whether other agents may watch the folder at the same time; without it, one waits while another one does.")
    package let recursive = Key("recursive", .boolean, default: true, "Whether sub-folders are watched too.")
    package let settle = Key(
        "settle", .duration, default: "5s", "How long a file must be quiet before it counts as complete.")
    package let settleEmpty = Key(
        "settle_empty", .duration, default: "30s",
        "The same of an empty file, which may only hold a name for what is on its way; 0s takes it as any other.")
    package let rescan = Key(
        "rescan", .durationOrOff, default: "1h",
        "How often the whole folder is listed as a safety net, give or take a quarter.")
    package let existing = Key(
        "existing", .choice(WatchSettings.Existing.self), default: .ingest,
        "What happens to files that were there before the folder was first watched.")
    package let adoptCheck = Key(
        "adopt_check", .boolean, default: false,
        "With existing: adopt, whether destinations are asked for each file; what they do not have is sent.")
    package let owners = Key(
        "owners", .list(.string),
        "Only files of these users, by name or number, are taken; files of any user without it.")
    package let hardLinks = Key(
        "hard_links", .choice(SourceRule.HardLinks.self), default: .allow,
        "Whether a file with more than one name is taken.")
    package let ignore = Key(
        "ignore", .list(.string), "Patterns of files to leave alone, by gitignore's rules, besides the built-in ones.")
    package let archiveDirectory = Key(
        "archive_dir", .string, default: ".inlet/done",
        "Where on_success: archive puts files; below path unless absolute.")
    package let quarantineDirectory = Key(
        "quarantine_dir", .string, default: ".inlet/failed",
        "Where on_failure: quarantine puts files; below path unless absolute.")
    package let hold = Key(
        "hold", .duration, default: "24h",
        "How long a file whose writers cannot be known is held before it is deleted or archived.")
    package let mode = Key(
        "mode", .choice(WatchSettings.Mode.self), default: .auto,
        "How changes are noticed: auto decides for each mount, inotify and poll hold for all. fanotify is auto with "
            + "one mark for a whole file system, needs privileges, and is for trees of very many folders.")
    package let poll = Key(
        "poll", .duration, default: "10s",
        "The least pause between two looks at what is polled, from 1s; it grows with what a look costs.")
}

/// One entry of `routes:`.
package struct RouteKeys: KeyTable {
    package static let all = Self()

    package let name = Key("name", .string, required: true, "The route's name, in logs and in `inlet route`.")
    package let match = Key("match", .section, "All given conditions must hold; without any, every file matches.")
    package let matchPath = Key(
        "match.path", .list(.string),
        "Patterns of the path below the watched folder, by gitignore's rules; any of them.")
    package let matchExtensions = Key(
        "match.extensions", .list(.string), "Any of them; upper and lower case are the same.")
    package let matchMinSize = Key("match.min_size", .bytes, "The smallest size that matches.")
    package let matchMaxSize = Key("match.max_size", .bytes, "The largest size that matches.")
    package let matchMediaType = Key(
        "match.media_type", .list(.string),
        "What the file is by its content, as in video/*; any of them. Read with libmagic."
    )
    package let validate = Key(
        "validate", .section, "What the route demands; a violation rejects the file with a reason.")
    package let validateMinSize = Key("validate.min_size", .bytes, "A smaller file is rejected.")
    package let validateMaxSize = Key("validate.max_size", .bytes, "A larger file is rejected.")
    package let validateExtensions = Key(
        "validate.extensions", .list(.string), "A file with another extension is rejected.")
    package let validateMediaType = Key(
        "validate.media_type", .list(.string),
        "A file whose content is of another type is rejected, whatever its name says; as in video/*.")
    package let category = Key("category", .string, "The {category} of keys; without it, by the file's extension.")
    package let key = Key(
        "key", .string, default: KeyTemplate.standard.text, "The template of the name at the destination.")
    package let owner = Key("owner", .string, "The {owner} of keys; without it, that segment is dropped.")
    package let to = Key("to", .list(.string), required: true, "The destinations; each gets the file.")
    package let with = Key("with", .texts, "Templates for the destination's own fields.")
    package let onSuccess = Key(
        "on_success", .choice(Route.OnSuccess.self), default: .keep,
        "What happens to the source once every destination has proved its bytes.")
    package let onFailure = Key(
        "on_failure", .choice(Route.OnFailure.self), default: .keep,
        "What happens to a file that is rejected or fails for good.")
    package let retry = Key("retry", .section, "How failed attempts are repeated.")
    package let retryAttempts = Key(
        "retry.attempts", .integer(1...1000), default: 3, "How often a delivery is tried; outages do not count.")
    package let retryBackoff = Key("retry.backoff", .duration, default: "1s", "The first wait; it doubles each time.")
    package let retryMaxBackoff = Key("retry.max_backoff", .duration, default: "5m", "The longest wait.")
    package let retryExpire = Key(
        "retry.expire", .durationOrOff, default: "24h",
        "How long a delivery may go on failing while its destination is up.")
    package let priority = Key(
        "priority", .choice(Priority.self), default: .normal,
        "Whose files go first where several wait for one destination; what is on its way is not interrupted.")
    package let settle = Key("settle", .duration, "The watched folder's settle, for this route's files.")
    package let sidecars = Key(
        "sidecars", .section, "Small files that belong to this route's files and travel with them.")
    package let sidecarsMetadata = Key(
        "sidecars.metadata", .boolean, default: false,
        "Whether <file>.yaml holds fields for the destination (as in with).")
    package let sidecarsExtensions = Key(
        "sidecars.extensions", .list(.string), "Companions: clip.xmp and clip.mp4.xmp belong to clip.mp4.")
    package let sidecarsWait = Key(
        "sidecars.wait", .duration, default: "10s",
        "How long a file waits for companions that are missing, and a companion for its file.")
    package let unit = Key(
        "unit", .choice(RouteUnit.self), default: .file,
        "folder: all files of a folder are delivered as one, once the folder is complete.")
    package let completion = Key(
        "completion", .choice(Completion.self), default: .quiet,
        "What says that a file or unit is complete: its quiet time, or a marker (<name>.done, in a unit DONE).")
    package let type = Key("type", .string, "What the file is to you, as a template: the label called type.")
    package let labels = Key(
        "labels", .texts, "Templates of texts that go with the file into lists, receipts and notifications.")
    package let receipts = Key(
        "receipts", .choice(ReceiptLocation.self), default: ReceiptLocation.none,
        "Where receipts are written besides the journal: receipts of state_dir, or beside the file.")
    package let dedupe = Key(
        "dedupe", .choice(DuplicateRule.self), default: .off,
        "What happens to a content that the destination has: off sends it again, skip ends it as a duplicate, link as delivered where the first one is."
    )
    package let derive = Key(
        "derive", list: DeriveKeys(), "Small files that programs make of the originals, delivered beside them.")
    package let manifest = Key("manifest", .section, "The checksum list of each unit, for other tools to verify.")
    package let manifestFormat = Key(
        "manifest.format", .choice(["none"] + ManifestRule.Format.allCases.map(\.rawValue)), default: "none",
        "ASC MHL 2.0, the classic MHL 1.1, or no list.")
    package let manifestHash = Key(
        "manifest.hash", .choice(ManifestRule.algorithms), default: .xxh64,
        "What is computed of every file as it is read.")
    package let window = Key(
        "window", SpanKeys(), "When deliveries of big files may begin; smaller ones go at any time.")
    // Without a default, so that a route without a window shows none.
    package let windowAbove = Key(
        "window.above", .bytes, "Files of at least this size wait for the window; 1GiB without it.")
}

/// One entry of a route's `derive:`.
package struct DeriveKeys: KeyTable {
    package static let all = Self()

    package let thumbnail = Key(
        "thumbnail", .choice(DeriveRule.Preset.self),
        "A ready rule: vips for pictures, ffmpeg for videos. Either this, or name, command and suffix.")
    package let name = Key("name", .string, "The rule's name, in logs.")
    package let command = Key(
        "command", .list(.string),
        "A program and its arguments, run without a shell; {in} is the original, {out} the file to be made.")
    package let extensions = Key("extensions", .list(.string), "The files it is for; without it, all of the route.")
    package let suffix = Key("suffix", .string, "What follows the original's key, as in .thumb.jpg.")
    package let timeout = Key(
        "timeout", .duration, default: "60s",
        "How long the program may take; then it is ended, and the original goes alone.")
    package let maxSize = Key("max_size", .bytes, default: "16MiB", "The largest file that the program may write.")
}

/// One entry of `notify:`.
package struct NotifyKeys: KeyTable {
    package static let all = Self()

    package let name = Key("name", .string, required: true, "The receiver's name, in logs and in `inlet notify`.")
    package let webhook = Key(
        "webhook", .secret, "The address that notices are posted to, as JSON. Either this or exec.")
    package let exec = Key(
        "exec", .list(.string),
        "A program and its arguments, run without a shell, with the notice on its standard input.")
    package let secret = Key(
        "secret", .secret,
        "Signs what is posted (Standard Webhooks, and X-Hub-Signature-256): whsec_ and base64, or any text.")
    package let on = Key(
        "on", .list(.choice(NotificationEvent.self)), "The events it is sent; without it, all but delivered.")
    package let routes = Key("routes", .list(.string), "Only files and batches of these routes.")
    package let timeout = Key(
        "timeout", .duration, default: "10s", "How long the receiver may take; a program that takes longer is ended.")
    package let caFile = Key(
        "ca_file", .path, "A PEM file of certificates to trust beside the system's, for a webhook.")
    package let allowHTTP = Key.allowHTTP
}

/// The speed of sending, in `limits:` and in every destination that goes over the network.
package struct BandwidthKeys: KeyTable {
    package init() {}

    package let rate = Key(
        "bandwidth", .rate,
        "How fast may be sent at most, as in 20MiB/s or 50Mbit/s; 0 sends nothing. Without it there is no limit.")
    package let schedule = Key(
        "schedule", list: ScheduleKeys(),
        "Other rates for parts of the day; the first entry that matches holds, outside of all bandwidth does.")
}

/// One entry of `schedule:`.
package struct ScheduleKeys: KeyTable {
    package let rate = Key(
        "bandwidth", .rate, required: true, "The rate meanwhile; 0 sends nothing, off lifts the limit.")
    package let span = SpanKeys()
}

/// A part of the day.
package struct SpanKeys: KeyTable {
    package let from = Key("from", .time, required: true, "When it begins, by the clock on the wall, as in \"22:00\".")
    package let to = Key(
        "to", .time, required: true, "When it ends, up to \"24:00\"; before from, it ends on the next day.")
    package let days = Key(
        "days", .list(.choice(Weekday.allCases.map(\.name))), "The days on which it begins; every day without it.")
}

/// `proxy:` at the top, and of every destination that goes over the network.
package struct ProxyKeys: KeyTable {
    package init() {}

    package let url = Key("url", .url, required: true, "http, https, socks5 or socks5h://host:port, or off.")
    package let user = Key("user", .string, "The user at the proxy.")
    package let password = Key("password", .secret, "The user's password at the proxy.")
    package let noProxy = Key(
        "no_proxy", .list(.string),
        "What is reached directly: hosts with all below them, host:port, addresses, networks like 10.0.0.0/8, or *.")

    /// - Parameter untilRestart: as in `KeySpec`.
    package static func key(
        untilRestart: (@Sendable (inout Settings, Settings) -> Void)? = nil
    ) -> Key<Section<ProxyKeys>> {
        Key(
            "proxy", ProxyKeys(), brief: "url", untilRestart: untilRestart,
            "The proxy that is gone through: off, its address, or a mapping; without it, what the environment says (HTTPS_PROXY …)."
        )
    }
}

extension Key where Value == Bool {
    /// Of what is asked over HTTP.
    package static var allowHTTP: Self {
        Key("allow_http", .boolean, default: false, "Allow plain HTTP to hosts other than loopback.")
    }
}
