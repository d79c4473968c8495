import InletCore
import InletJournal
import SystemPackage
import Testing

/// The questions that loops ask must not read tables from end to end, however long the history is.
@Suite(.seated, .enabled(if: SQLiteShell.isInstalled)) struct IndexTests {
    @Test(arguments: [
        (
            "SELECT next_at, id FROM delivery INDEXED BY delivery_ready WHERE destination = ? AND lane = ? AND priority = ?"
                + " AND state = 'ready' AND next_at <= ? AND owner IS NULL ORDER BY next_at, id LIMIT 1",
            "delivery_ready (destination=? AND lane=? AND priority=? AND next_at<?)"
        ),
        ("SELECT id FROM batch WHERE root = ? AND unit = ? AND route = ? AND closed_at IS NULL", "batch_open"),
        ("SELECT * FROM batch WHERE root = ? AND closed_at IS NULL", "batch_open"),
        (
            "SELECT 1 FROM file INDEXED BY file_open_in_batch WHERE batch_id = ? AND finished_at IS NULL AND ifnull(role, '') <> ? LIMIT 1",
            "file_open_in_batch"
        ),
        (
            "SELECT 1 FROM file INDEXED BY file_open_in_batch WHERE batch_id = ? AND finished_at IS NULL LIMIT 1",
            "file_open_in_batch"
        ),
        ("SELECT 1 FROM batch WHERE id = ? AND closed_at IS NOT NULL AND ended_at IS NULL", "INTEGER PRIMARY KEY"),
        ("SELECT state, count(*) AS n FROM file WHERE batch_id = ?", "file_by_batch"),
        ("SELECT * FROM delivery WHERE after_id = ? AND state IN ('ready', 'parked')", "delivery_after"),
        (
            "UPDATE delivery INDEXED BY delivery_by_file SET next_at = ?"
                + " WHERE file_id IN (SELECT id FROM file WHERE batch_id = ?) AND state IN ('ready', 'parked')"
                + " AND next_at = ? AND after_id IS NULL", "file_by_batch"
        ),
        (
            "SELECT count(*) FROM delivery WHERE destination = ? AND lane = ? AND state = 'claimed'",
            "delivery_claimed"
        ),
        ("SELECT 1 FROM delivery WHERE destination = ? AND key = ?", "delivery_by_key"),
        (
            "SELECT id FROM delivery WHERE state = 'ready' AND waits > 0 AND code IS NULL ORDER BY id LIMIT ?",
            "delivery_waiting"
        ),
        (
            "UPDATE delivery SET next_at = ? WHERE closes = (SELECT batch_id FROM file WHERE id = ?) AND destination = ?",
            "delivery_closing"
        ),
        ("SELECT * FROM delivery WHERE file_id = ? ORDER BY id", "delivery_by_file"),
        ("SELECT id FROM delivery WHERE after_id = ? AND state IN ('ready', 'parked')", "delivery_after"),
        (
            "SELECT id FROM delivery WHERE destination = ? AND state = 'ready' AND expires_at BETWEEN 0 AND ?"
                + " AND (waits = 0 OR code IS NOT NULL)",
            "delivery_expiring (destination=? AND expires_at>? AND expires_at<?)"
        ),
        (
            "SELECT DISTINCT destination FROM delivery WHERE state = 'ready' AND expires_at IS NOT NULL",
            "delivery_expiring"
        ),
        (
            "SELECT expires_at FROM delivery WHERE destination = ? AND state = 'ready' AND expires_at >= 0"
                + " AND (waits = 0 OR code IS NOT NULL) ORDER BY expires_at LIMIT 1",
            "delivery_expiring (destination=?"
        ),
        ("UPDATE delivery SET owner = NULL WHERE owner IS NOT NULL AND state <> 'claimed'", "delivery_owned"),
        ("UPDATE delivery SET state = 'ready' WHERE state = 'parked' AND destination IN (?)", "delivery_parked"),
        ("UPDATE delivery SET state = 'ready' WHERE state = 'claimed'", "delivery_claimed"),
        ("SELECT * FROM file WHERE root = ? AND path = ? AND volume IS NULL ORDER BY id DESC LIMIT 1", "file_by_path"),
        ("SELECT * FROM file WHERE volume = ? AND path = ? ORDER BY id DESC LIMIT 1", "file_by_volume"),
        ("SELECT 1 FROM file WHERE volume = ? AND finished_at IS NULL LIMIT 1", "file_open_of_volume"),
        (
            "SELECT * FROM file WHERE finished_at IS NULL AND state <> 'pending' AND finish_at <= ?"
                + " ORDER BY finish_at, id LIMIT ?", "file_unfinished"
        ),
        ("SELECT min(finish_at) FROM file WHERE finished_at IS NULL AND state <> 'pending'", "file_unfinished"),
        ("SELECT admitted_at FROM file WHERE state = 'pending' ORDER BY id LIMIT 1", "file_by_state"),
        (
            "SELECT destination FROM delivery WHERE state = 'ready' AND waits > 0 AND code IS NULL AND next_at < 1",
            "delivery_waiting"
        ),
        (
            "UPDATE delivery SET next_at = 1 WHERE id IN (SELECT id FROM delivery INDEXED BY delivery_retrying"
                + " WHERE destination = ? AND state = 'ready' AND code IS NOT NULL AND next_at > 1 AND next_at < 9"
                + " LIMIT 256)", "delivery_retrying"
        ),
        ("SELECT files, bytes FROM tally WHERE state = 'pending'", "PRIMARY KEY"),
        ("SELECT min(id) FROM file INDEXED BY file_by_state WHERE state = 'failed' AND id > ?", "file_by_state"),
        (
            "SELECT id FROM file INDEXED BY file_by_state WHERE state IN ('failed', 'expired') AND id BETWEEN ? AND ?",
            "state=? AND id"
        ),
        (
            "SELECT id FROM file INDEXED BY file_by_batch WHERE batch_id = ? AND id BETWEEN ? AND ?",
            "batch_id=? AND rowid"
        ),
        (
            "SELECT id, state FROM history_as_file WHERE place = (SELECT id FROM history_place WHERE name = ?) AND path = ?"
                + " ORDER BY id DESC LIMIT 1", "history_by_path (place=? AND path=?)"
        ),
        (
            "SELECT 1 FROM history_delivery WHERE destination = (SELECT id FROM history_word WHERE word = ?) AND key = ?",
            "history_by_key (destination=? AND key=?)"
        ),
        ("SELECT max(id) FROM history_as_file AS file WHERE id < ?", "INTEGER PRIMARY KEY (rowid<?)"),
        ("SELECT id FROM history_as_file AS file WHERE batch_id = ? AND id > ? ORDER BY id", "history_by_batch"),
        ("SELECT id FROM history_as_delivery AS delivery WHERE file_id = ? ORDER BY id", "history_delivery_by_file"),
        (
            "SELECT id, admitted_at, finished_at FROM file INDEXED BY file_by_state WHERE state = 'delivered' AND id > ?"
                + " ORDER BY id LIMIT 25", "file_by_state (state=? AND id>?)"
        ),
        ("SELECT DISTINCT delivery_id FROM checkpoint ORDER BY delivery_id DESC LIMIT ?", "checkpoint"),
    ])
    func `a question of a loop has its index`(question: String, index: String) throws {
        let bench = try Bench()
        bench.journal.close()
        let plan = try SQLiteShell.run(bench.journal.path, "EXPLAIN QUERY PLAN \(question)")
        #expect(plan.contains(index), "\(plan)")
        #expect(!plan.contains("TEMP B-TREE"), "\(plan)")
    }
}
