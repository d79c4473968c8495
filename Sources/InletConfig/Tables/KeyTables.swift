package import InletCore

/// Every key of the configuration file, apart from those of the destination types, which come from the pipelines.
///
/// The reader's checks, `inlet.schema.json` and the documentation are made from these tables.
package enum KeyTables {
    /// The whole file. The values of `destinations` have the keys of their type besides `type` itself.
    package static func top(types: [DestinationType]) -> [KeySpec] {
        [
            KeySpec("state_dir", .path, "Folder of the journal, its lock, the control socket and receipts."),
            KeySpec("workers", .integer(1...64), default: "4", "Big transfers at once to each destination."),
            KeySpec(
                "shutdown_timeout", .duration(offAllowed: false), default: "30s",
                "How long running parts may go on after SIGTERM."),
            KeySpec(
                "permissions", .choice(names(FileTrust.Rule.self)), default: "warn",
                "What is done when others may read a credential's file, or write it or this file: warn, or refuse to start (strict)."
            ),
            KeySpec(
                "landlock", .choice(names(LandlockRule.self)), default: "auto",
                "Whether the agent gives up, at its start, all of the file system that this file does not name: where the kernel can (auto), or else it does not start (required)."
            ),
            KeySpec(
                "tls_key_log", .path,
                "A file to which 'inlet run' appends the keys of its TLS connections, for looking at what is sent; without it nobody gets them."
            ),
            KeySpec("log", .section(log), "What is logged, where, and how."),
            KeySpec(
                "dashboard", .section(dashboard), "The page and the HTTP API on a port; without it there is no port."),
            KeySpec("limits", .section(limits), "Bounds of the whole agent."),
            KeySpec.proxy,
            KeySpec("journal_backup", .section(journalBackup), "Backups of the journal in state_dir/backups."),
            KeySpec("journal_history", .section(journalHistory), "The compact history of files that ended long ago."),
            KeySpec(
                "destinations", .map(.section([destinationType(types)])), "Where files can go, each under a name."),
            KeySpec("watch", .list(.section(watch)), "The folders whose files are taken."),
            KeySpec("routes", .list(.section(route)), "Which file goes where; the first that matches takes it."),
        ] + notifications
    }

    package static let log: [KeySpec] = [
        KeySpec("level", .choice(names(LogSettings.Level.self)), default: "info", "The least important level written."),
        KeySpec("output", .string, default: "stderr", "stderr, stdout, journald, or a file's path."),
        KeySpec(
            "format", .choice(names(LogSettings.Format.self)), default: "json",
            "One JSON object a line, or text for people. journald has fields of its own, and text as the message."),
        KeySpec(
            "max_size", .bytesOrOff, default: "50MiB",
            "A log file that would become larger is set aside as PATH.1, and a new one begun; from 64KiB."),
        KeySpec("keep", .integer(1...1000), default: "5", "How many log files that were set aside are kept."),
    ]

    package static let limits: [KeySpec] =
        [
            KeySpec(
                "queue_warning", .integer(1...1_000_000_000), default: "20",
                "A warning is logged when more files than this wait."),
            KeySpec(
                "queue_max_files", .integer(1...1_000_000_000),
                "No more files than this are in the queue; others wait in their folders. Without it there is no limit."),
            KeySpec(
                "queue_max_bytes", .bytes,
                "No more than this is in the queue, all files together; others wait in their folders."),
            KeySpec(
                "zone", .string,
                "The time zone of schedule and of windows (IANA, as in Europe/Berlin); the system's without it."),
        ] + KeySpec.bandwidth

    package static let journalBackup: [KeySpec] = [
        KeySpec(
            "every", .duration(offAllowed: true), default: "off",
            "How often the journal is backed up, when something of it has changed; from 1m."),
        KeySpec("keep", .integer(1...1000), default: "7", "How many backups are kept."),
    ]

    package static let journalHistory: [KeySpec] = [
        KeySpec(
            "after", .duration(offAllowed: true), default: "90d",
            "How long after its end a file goes there; from 1s. Its receipt in the journal goes then.")
    ]

    package static let watch: [KeySpec] = [
        KeySpec(
            "path", .path, required: true,
            "The folder; it may not exist yet. With *, ? or [] in it: all such folders, as they come and go with their volumes."
        ),
        KeySpec(
            "volume_writes", .boolean,
            "Whether anything may be moved, deleted or written on the volumes of a path with a pattern; without it, nothing is."
        ),
        KeySpec(
            "volume_done_after", .integer(1...100),
            "To how many destinations each file of a volume must be delivered before that is said to be done; to all without it."
        ),
        KeySpec(
            "shared", .boolean,
            "Whether other agents may watch the folder at the same time; without it, one waits while another one does."),
        KeySpec("recursive", .boolean, default: "true", "Whether sub-folders are watched too."),
        KeySpec(
            "settle", .duration(offAllowed: false), default: "5s",
            "How long a file must be quiet before it counts as complete."),
        KeySpec(
            "settle_empty", .duration(offAllowed: false), default: "30s",
            "The same of an empty file, which may only hold a name for what is on its way; 0s takes it as any other."),
        KeySpec(
            "rescan", .duration(offAllowed: true), default: "1h",
            "How often the whole folder is listed as a safety net, give or take a quarter."),
        KeySpec(
            "existing", .choice(names(WatchSettings.Existing.self)), default: "ingest",
            "What happens to files that were there before the folder was first watched."),
        KeySpec(
            "adopt_check", .boolean, default: "false",
            "With existing: adopt, whether destinations are asked for each file; what they do not have is sent."),
        KeySpec(
            "owners", .list(.string),
            "Only files of these users, by name or number, are taken; files of any user without it."),
        KeySpec(
            "hard_links", .choice(names(SourceRule.HardLinks.self)), default: "allow",
            "Whether a file with more than one name is taken."),
        KeySpec(
            "ignore", .list(.string),
            "Patterns of files to leave alone, by gitignore's rules, besides the built-in ones."
        ),
        KeySpec(
            "archive_dir", .string, default: ".inlet/done",
            "Where on_success: archive puts files; below path unless absolute."
        ),
        KeySpec(
            "quarantine_dir", .string, default: ".inlet/failed",
            "Where on_failure: quarantine puts files; below path unless absolute."),
        KeySpec(
            "hold", .duration(offAllowed: false), default: "24h",
            "How long a file whose writers cannot be known is held before it is deleted or archived."),
        KeySpec(
            "mode", .choice(names(WatchSettings.Mode.self)), default: "auto",
            "How changes are noticed: auto decides for each mount, inotify and poll hold for all. fanotify is auto with "
                + "one mark for a whole file system, needs privileges, and is for trees of very many folders."),
        KeySpec(
            "poll", .duration(offAllowed: false), default: "10s",
            "The least pause between two looks at what is polled, from 1s; it grows with what a look costs."),
    ]

    package static let route: [KeySpec] = [
        KeySpec("name", .string, required: true, "The route's name, in logs and in `inlet route`."),
        KeySpec("match", .section(match), "All given conditions must hold; without any, every file matches."),
        KeySpec("validate", .section(validate), "What the route demands; a violation rejects the file with a reason."),
        KeySpec("category", .string, "The {category} of keys; without it, by the file's extension."),
        KeySpec("key", .string, default: KeyTemplate.standard.text, "The template of the name at the destination."),
        KeySpec("owner", .string, "The {owner} of keys; without it, that segment is dropped."),
        KeySpec("to", .list(.string), required: true, "The destinations; each gets the file."),
        KeySpec("with", .map(.string), "Templates for the destination's own fields."),
        KeySpec(
            "on_success", .choice(names(Route.OnSuccess.self)), default: "keep",
            "What happens to the source once every destination has proved its bytes."),
        KeySpec(
            "on_failure", .choice(names(Route.OnFailure.self)), default: "keep",
            "What happens to a file that is rejected or fails for good."),
        KeySpec("retry", .section(retry), "How failed attempts are repeated."),
        KeySpec(
            "priority", .choice(names(Priority.self)), default: "normal",
            "Whose files go first where several wait for one destination; what is on its way is not interrupted."),
        KeySpec("settle", .duration(offAllowed: false), "The watched folder's settle, for this route's files."),
        KeySpec("sidecars", .section(sidecars), "Small files that belong to this route's files and travel with them."),
        KeySpec(
            "unit", .choice(names(RouteUnit.self)), default: "file",
            "folder: all files of a folder are delivered as one, once the folder is complete."),
        KeySpec(
            "completion", .choice(names(Completion.self)), default: "quiet",
            "What says that a file or unit is complete: its quiet time, or a marker (<name>.done, in a unit DONE)."),
        KeySpec("type", .string, "What the file is to you, as a template: the label called type."),
        KeySpec(
            "labels", .map(.string), "Templates of texts that go with the file into lists, receipts and notifications."),
        KeySpec(
            "receipts", .choice(names(ReceiptPlace.self)), default: "none",
            "Where receipts are written besides the journal: receipts of state_dir, or beside the file."),
        KeySpec(
            "dedupe", .choice(names(DuplicateRule.self)), default: "off",
            "What happens to a content that the destination has: off sends it again, skip ends it as a duplicate, link as delivered where the first one is."
        ),
        KeySpec(
            "derive", .list(.section(derive)), "Small files that programs make of the originals, delivered beside them."
        ),
        KeySpec("manifest", .section(manifest), "The checksum list of each unit, for other tools to verify."),
        KeySpec("window", .section(window), "When deliveries of big files may begin; smaller ones go at any time."),
    ]

    package static let manifest: [KeySpec] = [
        KeySpec(
            "format", .choice(["none"] + names(ManifestRule.Format.self)), default: "none",
            "ASC MHL 2.0, the classic MHL 1.1, or no list."),
        KeySpec(
            "hash", .choice(manifestHashes), default: "xxh64", "What is computed of every file as it is read."),
    ]

    package static let manifestHashes = ["xxh64", "md5", "sha1"]

    package static let sidecars: [KeySpec] = [
        KeySpec(
            "metadata", .boolean, default: "false", "Whether <file>.yaml holds fields for the destination (as in with)."
        ),
        KeySpec("extensions", .list(.string), "Companions: clip.xmp and clip.mp4.xmp belong to clip.mp4."),
        KeySpec(
            "wait", .duration(offAllowed: false), default: "10s",
            "How long a file waits for companions that are missing, and a companion for its file."),
    ]

    package static let match: [KeySpec] = [
        KeySpec(
            "path", .list(.string), "Patterns of the path below the watched folder, by gitignore's rules; any of them."),
        KeySpec("extensions", .list(.string), "Any of them; upper and lower case are the same."),
        KeySpec("min_size", .bytes, "The smallest size that matches."),
        KeySpec("max_size", .bytes, "The largest size that matches."),
        KeySpec(
            "media_type", .list(.string),
            "What the file is by its content, as in video/*; any of them. Read with libmagic."),
    ]

    package static let validate: [KeySpec] = [
        KeySpec("min_size", .bytes, "A smaller file is rejected."),
        KeySpec("max_size", .bytes, "A larger file is rejected."),
        KeySpec("extensions", .list(.string), "A file with another extension is rejected."),
        KeySpec(
            "media_type", .list(.string),
            "A file whose content is of another type is rejected, whatever its name says; as in video/*."),
    ]

    package static let retry: [KeySpec] = [
        KeySpec("attempts", .integer(1...1000), default: "3", "How often a delivery is tried; outages do not count."),
        KeySpec("backoff", .duration(offAllowed: false), default: "1s", "The first wait; it doubles each time."),
        KeySpec("max_backoff", .duration(offAllowed: false), default: "5m", "The longest wait."),
        KeySpec(
            "expire", .duration(offAllowed: true), default: "24h",
            "How long a delivery may go on failing while its destination is up."),
    ]

    /// The key every destination has.
    package static func destinationType(_ types: [DestinationType]) -> KeySpec {
        KeySpec("type", .choice(types.map(\.name)), required: true, "The kind of destination.")
    }

    /// Keys of the house plan that this version does not have yet, by section; they are told apart from mistakes.
    static let planned: [String: Set<String>] = [:]

    /// Values of the house plan that this version does not have yet, by key.
    static let plannedChoices: [String: Set<String>] = [:]

    /// Top-level keys that begin so are not read: a place for anchors to be used further down.
    static let extensionPrefix = "x-"

    /// Keys whose files hold credentials.
    static let credentialFiles: Set = ["refresh_token_file", "credentials_file"]

    /// The names of destinations and routes.
    static let namePattern = "^[A-Za-z0-9._-]{1,64}$"

    private static func names<Choice: RawRepresentable<String> & CaseIterable>(_: Choice.Type) -> [String] {
        Choice.allCases.map(\.rawValue)
    }
}
