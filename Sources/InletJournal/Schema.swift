internal import GRDB

/// The journal's tables. Never edit a released migration: add a new one.
enum Schema {
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1 files, deliveries, receipts") { try $0.execute(sql: firstTables) }
        migrator.registerMigration("2 spent keys") { try $0.execute(sql: spentKeys) }
        migrator.registerMigration("3 batches") { try $0.execute(sql: batches) }
        migrator.registerMigration("4 waits and closings") { try $0.execute(sql: waits) }
        migrator.registerMigration("5 labels, contents, notifications") { try $0.execute(sql: evidence) }
        migrator.registerMigration("6 volumes") { try $0.execute(sql: volumes) }
        migrator.registerMigration("7 first listings") { try $0.execute(sql: listings) }
        // Without checking every row's references, which these two do not touch: there are millions.
        migrator.registerMigration("8 priorities", foreignKeyChecks: .immediate) { try $0.execute(sql: priorities) }
        migrator.registerMigration("9 history", foreignKeyChecks: .immediate) {
            try $0.execute(sql: history)
        }
        migrator.registerMigration("10 addresses", foreignKeyChecks: .immediate) { try $0.execute(sql: addresses) }
        migrator.registerMigration("11 cards", foreignKeyChecks: .immediate) { try $0.execute(sql: cards) }
        migrator.registerMigration("12 answers and arrivals", foreignKeyChecks: .immediate) {
            try $0.execute(sql: failedDeliveries + answers + arrivals + resentDeliveries)
        }
        migrator.registerMigration("13 store checksums", foreignKeyChecks: .immediate) {
            try $0.execute(sql: storeChecksums)
        }
        migrator.registerMigration("14 fleet", foreignKeyChecks: .immediate) { try $0.execute(sql: fleet) }
        migrator.registerMigration("15 places", foreignKeyChecks: .immediate) { try $0.execute(sql: places) }
        return migrator
    }

    private static let firstTables = [files, deliveries, checkpoints, receipts, destinations, tallies].joined()

    /// `batch` groups files that belong together. `file` is one arrival: the same path with other content is a new row.
    /// `finished_at` is durable point 3; `intent` is what the finisher was about to do when the process died,
    /// `finish_at` when it should look again.
    private static let files = """
        CREATE TABLE batch (
            id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, state TEXT NOT NULL,
            created_at INTEGER NOT NULL, ended_at INTEGER);
        CREATE TABLE file (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            batch_id INTEGER REFERENCES batch(id),
            root BLOB NOT NULL, path BLOB NOT NULL,
            size INTEGER NOT NULL, modified INTEGER NOT NULL, changed INTEGER NOT NULL,
            inode INTEGER NOT NULL, device INTEGER NOT NULL,
            state TEXT NOT NULL, route TEXT, category TEXT, media_type TEXT, policy BLOB NOT NULL,
            code TEXT, reason TEXT, content BLOB,
            admitted_at INTEGER NOT NULL, ended_at INTEGER, finished_at INTEGER,
            disposition TEXT, intent BLOB, finish_at INTEGER NOT NULL DEFAULT 0);
        CREATE INDEX file_by_path ON file(root, path, id);
        CREATE INDEX file_by_state ON file(state, id);
        CREATE INDEX file_unfinished ON file(finish_at, id) WHERE finished_at IS NULL AND state <> 'pending';
        """

    /// `owner` and `until` are the claim's lease; a cancelled delivery keeps them until its holder lets go. `after_id`
    /// waits for another delivery: its `next_at` is far away until that one is delivered. A key is taken for good once
    /// its row exists; NULL gives it back.
    private static let deliveries = """
        CREATE TABLE delivery (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            file_id INTEGER NOT NULL REFERENCES file(id) ON DELETE CASCADE,
            after_id INTEGER REFERENCES delivery(id),
            destination TEXT NOT NULL, key TEXT, fields BLOB, lane INTEGER NOT NULL,
            state TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, interrupted INTEGER NOT NULL DEFAULT 0,
            next_at INTEGER NOT NULL, expires_at INTEGER,
            owner TEXT, until INTEGER,
            code TEXT, reason TEXT, proof BLOB, ended_at INTEGER);
        CREATE UNIQUE INDEX delivery_by_key ON delivery(destination, key) WHERE key IS NOT NULL;
        CREATE INDEX delivery_by_file ON delivery(file_id);
        CREATE INDEX delivery_after ON delivery(after_id) WHERE after_id IS NOT NULL;
        CREATE INDEX delivery_ready ON delivery(destination, lane, next_at, id) WHERE state = 'ready';
        CREATE INDEX delivery_claimed ON delivery(destination, lane) WHERE state = 'claimed';
        CREATE INDEX delivery_parked ON delivery(destination) WHERE state = 'parked';
        CREATE INDEX delivery_owned ON delivery(id) WHERE owner IS NOT NULL;
        CREATE INDEX delivery_expiring ON delivery(destination, expires_at)
            WHERE state = 'ready' AND expires_at IS NOT NULL;
        """

    /// Keys of forgotten deliveries under which something is, or may be. They are never used again.
    private static let spentKeys = """
        CREATE TABLE spent_key (
            destination TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY (destination, key)) WITHOUT ROWID;
        """

    /// A batch is a file with its companions, or a unit: a folder whose files are delivered as one. `unit` is the
    /// folder below `root`; an open unit (`closed_at` NULL) holds its deliveries back. It ends when all its files are
    /// finished, with the worst of their states. `role` is a file's part in a batch: `Companion.Kind`, or
    /// `unit_marker`.
    private static let batches = """
        ALTER TABLE batch ADD COLUMN root BLOB;
        ALTER TABLE batch ADD COLUMN unit BLOB;
        ALTER TABLE batch ADD COLUMN route TEXT;
        ALTER TABLE batch ADD COLUMN closed_at INTEGER;
        ALTER TABLE file ADD COLUMN role TEXT;
        CREATE UNIQUE INDEX batch_open ON batch(root, unit, route) WHERE closed_at IS NULL;
        CREATE INDEX file_by_batch ON file(batch_id) WHERE batch_id IS NOT NULL;
        CREATE INDEX file_open_in_batch ON file(batch_id, role) WHERE batch_id IS NOT NULL AND finished_at IS NULL;
        """

    /// `waits` counts how often the destination asked for time since the last end. `closes` is the unit that a delivery
    /// reports as sent: one for each unit and destination, in a file of that unit, after all its others there.
    private static let waits = """
        ALTER TABLE delivery ADD COLUMN waits INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE delivery ADD COLUMN closes INTEGER;
        CREATE INDEX delivery_waiting ON delivery(id) WHERE state = 'ready' AND waits > 0;
        CREATE UNIQUE INDEX delivery_closing ON delivery(closes, destination) WHERE closes IS NOT NULL;
        """

    /// `crashes` counts the processes that died while they delivered it, since bytes of it last arrived. `generation`
    /// counts the ends of a batch, which `queue retry` can take back. `manifest` holds the checksum lists that ended
    /// units still need. `content` names the delivery that brings, or first brought, a content (its SHA-256) to a
    /// destination; `twin` names the deliveries that wait for that one. `outbox` keeps a notification until its
    /// receiver has accepted it (`ready`, in order; `refused`, each at its own time; `failed` for good); `subject` is
    /// the file's or batch's id. `sink` lists the configured receivers for an event and a route (empty = any), so that
    /// the event's own transaction can write to the outbox. The table of migration 1 was never used.
    private static let evidence = """
        ALTER TABLE file ADD COLUMN labels BLOB;
        ALTER TABLE file ADD COLUMN digests BLOB;
        ALTER TABLE delivery ADD COLUMN started_at INTEGER;
        ALTER TABLE delivery ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX delivery_retrying ON delivery(destination, next_at) WHERE state = 'ready' AND code IS NOT NULL;
        ALTER TABLE batch ADD COLUMN labels BLOB;
        ALTER TABLE batch ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
        CREATE TABLE manifest (
            batch_id INTEGER PRIMARY KEY REFERENCES batch(id) ON DELETE CASCADE, generation INTEGER NOT NULL,
            rule BLOB NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, next_at INTEGER NOT NULL, reason TEXT);
        CREATE TABLE content (
            destination TEXT NOT NULL, digest BLOB NOT NULL,
            delivery_id INTEGER NOT NULL REFERENCES delivery(id) ON DELETE CASCADE,
            PRIMARY KEY (destination, digest)) WITHOUT ROWID;
        CREATE INDEX content_by_delivery ON content(delivery_id);
        CREATE TABLE twin (
            delivery_id INTEGER PRIMARY KEY REFERENCES delivery(id) ON DELETE CASCADE,
            leader_id INTEGER NOT NULL REFERENCES delivery(id) ON DELETE CASCADE);
        CREATE INDEX twin_by_leader ON twin(leader_id);
        DROP TABLE outbox;
        CREATE TABLE sink (
            event TEXT NOT NULL, name TEXT NOT NULL, route TEXT NOT NULL DEFAULT '',
            PRIMARY KEY (event, name, route)) WITHOUT ROWID;
        CREATE TABLE outbox (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            sink TEXT NOT NULL, event TEXT NOT NULL, subject INTEGER, created_at INTEGER NOT NULL, payload BLOB NOT NULL,
            state TEXT NOT NULL DEFAULT 'ready', attempts INTEGER NOT NULL DEFAULT 0, next_at INTEGER NOT NULL,
            reason TEXT);
        CREATE INDEX outbox_waiting ON outbox(sink, state, id);
        """

    /// `file.volume` is a file's removable volume, with the root's folder on it (`Volume.key`). Such files are known by
    /// it and their path; their root is the last mount point. `root.mark` identifies a watched folder (`RootMark`).
    private static let volumes = """
        ALTER TABLE file ADD COLUMN volume TEXT;
        CREATE INDEX file_by_volume ON file(volume, path, id) WHERE volume IS NOT NULL;
        CREATE INDEX file_open_of_volume ON file(volume) WHERE volume IS NOT NULL AND finished_at IS NULL;
        ALTER TABLE root ADD COLUMN mark BLOB;
        """

    /// A destination's address: proofs of another address are not claimed for this one. `first_address` is the first
    /// known one, and earlier proofs count as made there.
    private static let addresses = """
        ALTER TABLE destination ADD COLUMN address TEXT;
        ALTER TABLE destination ADD COLUMN first_address TEXT;
        """

    /// `card` is a removable volume over its life: its key without the watched folder (`VolumeIdentity.key`), and a name
    /// of its own for ever. Two cards of one label never share a folder. `insertion` is a stay of it in a
    /// reader, with what a person said of it (`CardLabels`) and the last verdict. `others` is the checksum of the files
    /// that a person said may stay, `checked` that of the content whose second read was right.
    private static let cards = """
        CREATE TABLE card (
            id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE,
            label TEXT, uuid TEXT, kind TEXT NOT NULL, first_seen INTEGER NOT NULL, errors BLOB);
        CREATE TABLE insertion (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            card_id INTEGER NOT NULL REFERENCES card(id) ON DELETE CASCADE, mount BLOB NOT NULL,
            inserted_at INTEGER NOT NULL, removed_at INTEGER, labels BLOB, others TEXT, checked TEXT,
            verdict TEXT, headline TEXT, lines BLOB, verdict_at INTEGER,
            files INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0);
        CREATE INDEX insertion_by_card ON insertion(card_id, id);
        """

    /// Finds the deliveries to send again when a destination is back, without a walk through delivered ones.
    private static let failedDeliveries =
        "CREATE INDEX delivery_failed ON delivery(destination, file_id) WHERE state = 'failed';"

    /// Whether the agent itself has sent a failed delivery again. In the history none is: nothing there is sent without
    /// a person.
    private static let resentDeliveries = "ALTER TABLE delivery ADD COLUMN resent INTEGER NOT NULL DEFAULT 0;"

    /// Finds the files that wait for a person's answer among any number of others.
    private static let answers = """
        CREATE INDEX file_unanswered ON file(id) WHERE \(FilePolicy.isUnanswered);
        DROP VIEW IF EXISTS history_as_file;
        ALTER TABLE history_file ADD COLUMN unanswered INTEGER;
        CREATE INDEX history_unanswered ON history_file(id) WHERE unanswered = 1;
        \(fileView)
        UPDATE history_file SET unanswered = 1
        WHERE id IN (SELECT id FROM history_as_file AS file WHERE \(FilePolicy.isUnanswered));
        """

    /// When the last file of a watched folder was admitted. Earlier ones are looked for here, once: adopted files, which
    /// were finished in the moment of their admission, did not arrive.
    private static let arrivals = """
        ALTER TABLE root ADD COLUMN last_file INTEGER;
        UPDATE root SET last_file = ifnull(
            (SELECT max(admitted_at) FROM file
                WHERE file.root = root.path AND finished_at IS NOT admitted_at),
            (SELECT max(admitted_at) FROM history_file
                WHERE place = (SELECT id FROM history_place WHERE name = root.path) AND finished_at <> admitted_at));
        """

    /// The findings of `verify: auto` about a store (`StoreChecksum`), by the address of its destinations. `uncompared`
    /// has its checksums between spaces.
    private static let storeChecksums = """
        CREATE TABLE store_checksum (
            address TEXT PRIMARY KEY, algorithm TEXT NOT NULL, uncompared TEXT NOT NULL, learned_at INTEGER NOT NULL)
            WITHOUT ROWID;
        """

    /// Only an agent of a fleet writes to these. `fleet` has one row: who the agent is there, with its sealed token, the
    /// UUID of the fleet, how often a process said hello, and the highest mark heard. Its `receipts` is the last receipt
    /// that is up. A `key_request` holds a delivery back until its key is granted, and remembers when it was due and
    /// would expire. A `fleet_key` is a key at a destination's address with the `ref` it was asked for. Its `mark` tells
    /// when it was granted: NULL is unconfirmed, and 0 needs no report. `freed` is 1 where its delivery may have given it
    /// up, 2 while it goes back. `fleet_receipt` has receipts whose files went to the history before they were up.
    private static let fleet = """
        CREATE TABLE fleet (
            id INTEGER PRIMARY KEY CHECK (id = 1), identity BLOB, token BLOB, fleet TEXT,
            hello INTEGER NOT NULL DEFAULT 0, seen INTEGER NOT NULL DEFAULT 0, receipts INTEGER NOT NULL DEFAULT 0,
            roster BLOB, is_draining INTEGER NOT NULL DEFAULT 0);
        CREATE TABLE key_request (
            delivery_id INTEGER PRIMARY KEY, destination TEXT NOT NULL, key TEXT NOT NULL, ref INTEGER NOT NULL,
            since INTEGER NOT NULL, next_at INTEGER NOT NULL, expires_at INTEGER, refusals INTEGER NOT NULL DEFAULT 0,
            is_noted INTEGER NOT NULL DEFAULT 0);
        CREATE TABLE fleet_key (
            id INTEGER PRIMARY KEY, destination TEXT NOT NULL, address TEXT NOT NULL, key TEXT NOT NULL,
            ref INTEGER NOT NULL, mark INTEGER, freed INTEGER NOT NULL DEFAULT 0);
        CREATE UNIQUE INDEX fleet_key_by_key ON fleet_key(destination, key, address);
        CREATE INDEX fleet_key_by_mark ON fleet_key(mark, id);
        CREATE INDEX fleet_key_freed ON fleet_key(id) WHERE freed > 0;
        CREATE TABLE own_prefix (address TEXT PRIMARY KEY, prefix TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE fleet_command (id INTEGER PRIMARY KEY, command TEXT NOT NULL UNIQUE);
        CREATE TABLE fleet_receipt (id INTEGER PRIMARY KEY, file_id INTEGER NOT NULL);
        """

    /// Only an agent of a fleet writes to these. `place` has the marker of each share by its name: with `is_made` 0 it
    /// was about to be made. The fleet knows this agent's own files in the folder `told_root` up to the number `told`. A
    /// file of the queue is work of a share while `place_work` has it, by the fleet's number of
    /// the work. Its `session` is 0 where it must be claimed again, and -1 where it was let go while a worker had it.
    /// `place_file` has versions in shares by 16 bytes of the share's marker, of the path and of the version
    /// (`PlaceVersion`). Its `mark` is 0 where only others have reported it, and NULL where the fleet may not know what
    /// this agent does. A `place_row` is a delivery's row in a report after a loss.
    private static let places = """
        CREATE TABLE place (
            name TEXT PRIMARY KEY, marker TEXT NOT NULL, is_made INTEGER NOT NULL,
            told_root BLOB, told INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
        CREATE TABLE place_work (
            file_id INTEGER PRIMARY KEY REFERENCES file(id) ON DELETE CASCADE,
            place TEXT NOT NULL, number INTEGER NOT NULL, fence INTEGER NOT NULL, session INTEGER NOT NULL,
            path TEXT NOT NULL, version TEXT NOT NULL, is_finishing INTEGER NOT NULL);
        CREATE INDEX place_work_by_number ON place_work(number);
        CREATE INDEX place_work_by_version ON place_work(path, version);
        CREATE TABLE place_file (
            place BLOB NOT NULL, path BLOB NOT NULL, version BLOB NOT NULL,
            is_admitted INTEGER NOT NULL, mark INTEGER, is_finished INTEGER NOT NULL DEFAULT 0,
            kept_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000),
            PRIMARY KEY (place, path, version)) WITHOUT ROWID;
        CREATE INDEX place_file_by_age ON place_file(kept_at);
        CREATE TABLE place_row (
            place BLOB NOT NULL, path BLOB NOT NULL, version BLOB NOT NULL, ref INTEGER NOT NULL, body BLOB NOT NULL,
            PRIMARY KEY (place, path, version, ref),
            FOREIGN KEY (place, path, version) REFERENCES place_file(place, path, version) ON DELETE CASCADE);
        """

    /// When everything had been admitted that was on a volume when it was first watched.
    private static let listings = "ALTER TABLE root ADD COLUMN listed_at INTEGER;"

    /// Notes with which a pipeline continues after a restart, and uploads left at a destination that still need an
    /// abort.
    private static let checkpoints = """
        CREATE TABLE checkpoint (
            delivery_id INTEGER NOT NULL REFERENCES delivery(id) ON DELETE CASCADE,
            name TEXT NOT NULL, value BLOB NOT NULL,
            PRIMARY KEY (delivery_id, name)) WITHOUT ROWID;
        CREATE TABLE leftover (
            delivery_id INTEGER PRIMARY KEY REFERENCES delivery(id) ON DELETE CASCADE,
            tries INTEGER NOT NULL DEFAULT 0, next_at INTEGER NOT NULL, frees_key INTEGER NOT NULL DEFAULT 0);
        """

    private static let receipts = """
        CREATE TABLE receipt (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            file_id INTEGER NOT NULL UNIQUE, root BLOB NOT NULL, path BLOB NOT NULL,
            created_at INTEGER NOT NULL, body BLOB NOT NULL);
        CREATE TABLE outbox (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            receipt_id INTEGER REFERENCES receipt(id), sink TEXT NOT NULL, payload BLOB NOT NULL,
            state TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, next_at INTEGER NOT NULL);
        CREATE INDEX outbox_ready ON outbox(next_at) WHERE state = 'ready';
        """

    /// `uptime` is the expiry clock: milliseconds for which the destination was up and not paused.
    private static let destinations = """
        CREATE TABLE destination (
            name TEXT PRIMARY KEY, paused INTEGER NOT NULL DEFAULT 0, uptime INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
        CREATE TABLE root (path BLOB PRIMARY KEY, first_seen INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
        INSERT INTO counter VALUES ('sequence', 0);
        """

    /// Totals by state, kept by triggers, so that `status` never counts a million rows.
    private static let tallies = """
        CREATE TABLE tally (
            state TEXT PRIMARY KEY, files INTEGER NOT NULL, bytes INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TRIGGER tally_insert AFTER INSERT ON file BEGIN
            INSERT INTO tally VALUES (new.state, 1, new.size)
            ON CONFLICT(state) DO UPDATE SET files = files + 1, bytes = bytes + new.size;
        END;
        CREATE TRIGGER tally_update AFTER UPDATE OF state ON file WHEN old.state <> new.state BEGIN
            UPDATE tally SET files = files - 1, bytes = bytes - old.size WHERE state = old.state;
            INSERT INTO tally VALUES (new.state, 1, new.size)
            ON CONFLICT(state) DO UPDATE SET files = files + 1, bytes = bytes + new.size;
        END;
        CREATE TRIGGER tally_delete AFTER DELETE ON file BEGIN
            UPDATE tally SET files = files - 1, bytes = bytes - old.size WHERE state = old.state;
        END;
        """
}

/// Migration 8: keeps a queue of a million deliveries as quick as an empty one.
extension Schema {
    /// Claims seek by priority: however much waits for its time in one, due deliveries of another are found at once,
    /// and so is the delivery that has waited longest. Claimed deliveries have an index of their own; a second one, of
    /// rows with an owner, covers only those cancelled meanwhile.
    ///
    /// Takes some 3 s for a million waiting deliveries, less for ended ones.
    private static let priorities = """
        ALTER TABLE delivery ADD COLUMN priority INTEGER NOT NULL DEFAULT 1;
        DROP INDEX delivery_ready;
        CREATE INDEX delivery_ready ON delivery(destination, lane, priority, next_at, id) WHERE state = 'ready';
        CREATE INDEX delivery_eldest ON delivery(destination, id)
            WHERE state = 'ready' AND next_at < \(never) AND (waits = 0 OR code IS NOT NULL);
        DROP INDEX delivery_owned;
        CREATE INDEX delivery_owned ON delivery(id) WHERE owner IS NOT NULL AND state <> 'claimed';
        CREATE TABLE queue_tally (
            destination TEXT NOT NULL, place TEXT NOT NULL, deliveries INTEGER NOT NULL,
            PRIMARY KEY (destination, place)) WITHOUT ROWID;
        INSERT INTO queue_tally
        SELECT destination, \(place(of: "delivery")), count(*) FROM delivery WHERE state IN \(open) GROUP BY 1, 2;
        \(queueTriggers)
        """

    private static let never = 253_370_764_800_000

    /// Claimed deliveries are few, and counted when asked; keeping their number would cost two more changes for every
    /// file.
    private static let open = "('ready', 'parked')"

    /// The place of an open delivery (`QueueState`).
    static func place(of row: String) -> String {
        """
        CASE WHEN \(row).state = 'parked' THEN 'parked' WHEN \(row).next_at >= \(never) THEN 'held'
            WHEN \(row).code IS NOT NULL THEN 'retrying' WHEN \(row).waits > 0 THEN 'working' ELSE 'fresh' END
        """
    }

    /// Whichever statement changes a delivery, the same transaction counts its place. Each trigger serves one kind of
    /// change, so that a change costs no more than it must: some 5 µs for an admission, as much for a claim.
    private static let queueTriggers = """
        CREATE TRIGGER queue_insert AFTER INSERT ON delivery WHEN new.state IN \(open)
        BEGIN \(enter) END;
        CREATE TRIGGER queue_delete AFTER DELETE ON delivery WHEN old.state IN \(open)
        BEGIN \(leave) END;
        CREATE TRIGGER queue_leave AFTER UPDATE OF state ON delivery
        WHEN old.state IN \(open) AND new.state NOT IN \(open)
        BEGIN \(leave) END;
        CREATE TRIGGER queue_enter AFTER UPDATE OF state ON delivery
        WHEN old.state NOT IN \(open) AND new.state IN \(open)
        BEGIN \(enter) END;
        CREATE TRIGGER queue_move AFTER UPDATE OF state, next_at, code, waits ON delivery
        WHEN old.state IN \(open) AND new.state IN \(open) AND \(place(of: "old")) <> \(place(of: "new"))
        BEGIN \(leave) \(enter) END;
        """

    private static let enter = """
        INSERT INTO queue_tally VALUES (new.destination, \(place(of: "new")), 1)
        ON CONFLICT(destination, place) DO UPDATE SET deliveries = deliveries + 1;
        """

    private static let leave = """
        UPDATE queue_tally SET deliveries = deliveries - 1
        WHERE destination = old.destination AND place = \(place(of: "old"));
        """
}
