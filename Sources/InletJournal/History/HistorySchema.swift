/// The tables of the history: what is kept of files that ended long ago, in as few bytes as all later questions allow.
///
/// `history_word` holds once what many rows say: states, routes, destinations, policies. `history_place` does so for where
/// files are: a watched folder, or a volume (`Volume.key`); `kept` counts its files that were left where they were.
/// `history_file.root` is the folder at which the volume was mounted; NULL for files that are on none. Proofs and checksums
/// are in their short form (`ProofNote`). A `history_content` stands for a row of `content`.
///
/// The two views show it all under the names and with the values of `file` and `delivery`, so that one question can be
/// asked of either (`Shelf`).
enum HistorySchema {
    static let statements = [words, files, deliveries, contents, fileView, deliveryView]

    private static let words = """
        CREATE TABLE history_word (id INTEGER PRIMARY KEY, word BLOB NOT NULL UNIQUE);
        CREATE TABLE history_place (
            id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, kept INTEGER NOT NULL DEFAULT 0);
        """

    private static let files = """
        CREATE TABLE history_file (
            id INTEGER PRIMARY KEY, place INTEGER NOT NULL, path BLOB NOT NULL, root INTEGER,
            size INTEGER NOT NULL, modified INTEGER NOT NULL, changed INTEGER NOT NULL,
            inode INTEGER NOT NULL, device INTEGER NOT NULL,
            state INTEGER NOT NULL, route INTEGER, category INTEGER, media_type INTEGER, policy INTEGER NOT NULL,
            code INTEGER, reason TEXT, content BLOB,
            admitted_at INTEGER NOT NULL, ended_at INTEGER, finished_at INTEGER NOT NULL,
            disposition BLOB, batch_id INTEGER, role INTEGER, labels BLOB, digests BLOB);
        CREATE INDEX history_by_path ON history_file(place, path);
        CREATE INDEX history_by_batch ON history_file(batch_id) WHERE batch_id IS NOT NULL;
        """

    private static let deliveries = """
        CREATE TABLE history_delivery (
            id INTEGER PRIMARY KEY, file_id INTEGER NOT NULL, after_id INTEGER,
            destination INTEGER NOT NULL, key TEXT, fields BLOB, lane INTEGER NOT NULL, state INTEGER NOT NULL,
            attempts INTEGER NOT NULL, interrupted INTEGER NOT NULL, expires_at INTEGER, code INTEGER, reason TEXT,
            proof BLOB, ended_at INTEGER, waits INTEGER NOT NULL, closes INTEGER, started_at INTEGER,
            crashes INTEGER NOT NULL, priority INTEGER NOT NULL);
        CREATE INDEX history_delivery_by_file ON history_delivery(file_id);
        CREATE INDEX history_by_key ON history_delivery(destination, key) WHERE key IS NOT NULL;
        """

    private static let contents = """
        CREATE TABLE history_content (
            destination INTEGER NOT NULL, digest BLOB NOT NULL, delivery_id INTEGER NOT NULL,
            PRIMARY KEY (destination, digest)) WITHOUT ROWID;
        """

    private static let fileView = """
        CREATE VIEW history_as_file AS SELECT
            past.id AS id, (SELECT name FROM history_place WHERE id = ifnull(past.root, past.place)) AS root,
            past.path AS path, past.size AS size, past.modified AS modified, past.changed AS changed,
            past.inode AS inode, past.device AS device,
            \(word("state")), \(word("route")), \(word("category")), \(word("media_type")), \(word("policy")),
            \(word("code")), past.reason AS reason, past.content AS content,
            past.admitted_at AS admitted_at, past.ended_at AS ended_at, past.finished_at AS finished_at,
            ifnull((SELECT word FROM history_word WHERE id = past.disposition), past.disposition) AS disposition,
            NULL AS intent, past.batch_id AS batch_id, \(word("role")), past.labels AS labels, past.digests AS digests,
            iif(past.root IS NULL, NULL,
                (SELECT CAST(name AS TEXT) FROM history_place WHERE id = past.place)) AS volume,
            past.place AS place
        FROM history_file AS past;
        """

    private static let deliveryView = """
        CREATE VIEW history_as_delivery AS SELECT
            past.id AS id, past.file_id AS file_id, past.after_id AS after_id, \(word("destination")),
            past.key AS key, past.fields AS fields, past.lane AS lane, \(word("state")), past.attempts AS attempts,
            past.interrupted AS interrupted, ifnull(past.ended_at, 0) AS next_at, past.expires_at AS expires_at,
            \(word("code")), past.reason AS reason, past.proof AS proof, past.ended_at AS ended_at,
            past.waits AS waits, past.closes AS closes, past.started_at AS started_at, past.crashes AS crashes,
            past.priority AS priority
        FROM history_delivery AS past;
        """

    private static func word(_ column: String) -> String {
        "(SELECT word FROM history_word WHERE id = past.\(column)) AS \(column)"
    }
}
