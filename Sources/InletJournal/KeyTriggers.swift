internal import GRDB

/// Holds deliveries back until their keys are granted, whichever statement makes, renames or releases them: admissions,
/// companions, closings, renames, retries. The triggers belong to the writing connection and end with it, so that a
/// journal without a fleet has none.
enum KeyTriggers {
    static let removal = """
        \(names.map { "DROP TRIGGER IF EXISTS temp.\($0);" }.joined(separator: " "))
        DROP TABLE IF EXISTS temp.reserved_destination;
        """

    /// The destinations whose keys are asked for, with the agent's own prefix there.
    static let table = "CREATE TEMP TABLE reserved_destination (name TEXT PRIMARY KEY, prefix TEXT) WITHOUT ROWID;"

    static let all = [ask, change, hold, free].joined(separator: "\n")

    private static let names = [
        "fleet_key_of_new", "fleet_key_asked", "fleet_key_changed", "fleet_key_held", "fleet_key_freed",
        "fleet_key_gone",
    ]

    /// The address of a row's destination.
    static func address(of row: String) -> String {
        "ifnull((SELECT address FROM destination WHERE name = \(row).destination), '')"
    }

    /// Whether a row needs a key that is not granted. Where something may be visible under its key, or is under way
    /// there, it keeps the key. Only a key of an address that the destination has left is asked for again. Work of a share
    /// came with its key.
    static func wants(_ row: String) -> String {
        """
        \(row).state = 'ready' AND \(row).key IS NOT NULL
            AND EXISTS (
                SELECT 1 FROM reserved_destination AS reserved WHERE reserved.name = \(row).destination
                    AND (prefix IS NULL OR substr(\(row).key, 1, length(prefix)) <> prefix))
            AND NOT EXISTS (SELECT 1 FROM fleet_key WHERE \(known(row)) AND mark IS NOT NULL AND freed < 2)
            AND NOT EXISTS (SELECT 1 FROM place_work WHERE file_id = \(row).file_id)
            AND (\(row).interrupted = 0 AND \(row).waits = 0
                    AND NOT EXISTS (SELECT 1 FROM checkpoint WHERE delivery_id = \(row).id)
                OR EXISTS (SELECT 1 FROM fleet_key WHERE \(known(row, "<>")) AND mark IS NOT NULL))
        """
    }

    /// - Parameter comparison: of the address with the present one.
    static func known(_ row: String, _ comparison: String = "=") -> String {
        """
        fleet_key.destination = \(row).destination AND fleet_key.key = \(row).key
            AND fleet_key.address \(comparison) \(address(of: row))
        """
    }

    private static let isWaiting = "EXISTS (SELECT 1 FROM key_request WHERE delivery_id = new.id)"

    /// The place must exist before the count of it is lowered: these triggers may run before those that count.
    private static let holdBack = """
        INSERT OR IGNORE INTO queue_tally VALUES (new.destination, \(Schema.place(of: "new")), 0);
        UPDATE delivery SET next_at = \(Journal.never), expires_at = NULL
        WHERE id = new.id AND next_at < \(Journal.never);
        """

    /// The earlier `ref` of a key that was asked for before: the answer is the same.
    private static let request = """
        INSERT OR IGNORE INTO key_request (delivery_id, destination, key, ref, since, next_at, expires_at)
        VALUES (new.id, new.destination, new.key,
            ifnull((SELECT ref FROM fleet_key WHERE \(known("new"))), random() & \(Int64.max)),
            iif(new.next_at < \(Journal.never), new.next_at,
                (SELECT admitted_at FROM file WHERE id = new.file_id)),
            new.next_at, new.expires_at);
        """

    /// The second one must not take the holding back itself for a change.
    private static let ask = """
        CREATE TEMP TRIGGER fleet_key_of_new AFTER INSERT ON delivery WHEN \(wants("new"))
        BEGIN \(holdBack) \(request) END;
        CREATE TEMP TRIGGER fleet_key_asked AFTER UPDATE OF state, key, next_at ON delivery
        WHEN (new.next_at < \(Journal.never) OR new.state <> old.state OR new.key IS NOT old.key)
            AND \(wants("new")) AND NOT \(isWaiting)
        BEGIN \(holdBack) \(request) END;
        """

    /// A request goes with its delivery's end, and follows a new key. Its former key may still be granted. A delivery
    /// that is delivered while it waits was adopted, and never asked.
    private static let change = """
        CREATE TEMP TRIGGER fleet_key_changed AFTER UPDATE OF state, key ON delivery WHEN \(isWaiting)
        BEGIN
            \(remember("""
                delivery_id = new.id
                    AND (key IS NOT new.key OR new.state NOT IN ('ready', 'parked', 'delivered'))
                """, isFree: "key IS NOT new.key"))
            DELETE FROM key_request WHERE delivery_id = new.id AND new.state NOT IN ('ready', 'parked');
            UPDATE key_request SET
                key = new.key, ref = ifnull((SELECT ref FROM fleet_key WHERE \(known("new"))), ref)
            WHERE delivery_id = new.id AND key <> new.key;
        END;
        """

    /// Releasing a waiting delivery, or holding it for another reason, changes only when it is due once it has its key.
    /// A parked one may have been released meanwhile.
    private static let hold = """
        CREATE TEMP TRIGGER fleet_key_held AFTER UPDATE OF state, next_at ON delivery
        WHEN new.state = 'ready' AND (old.state = 'ready' OR new.next_at < \(Journal.never)) AND \(isWaiting)
        BEGIN
            \(holdBack)
            UPDATE key_request SET next_at = new.next_at,
                expires_at = iif(new.next_at < \(Journal.never), new.expires_at, expires_at)
            WHERE delivery_id = new.id;
        END;
        """

    /// A delivery that goes to the history keeps its key.
    private static let free = """
        CREATE TEMP TRIGGER fleet_key_freed AFTER UPDATE OF key ON delivery
        WHEN old.key IS NOT NULL AND new.key IS NOT old.key
        BEGIN \(giveUp) END;
        CREATE TEMP TRIGGER fleet_key_gone AFTER DELETE ON delivery
        WHEN old.key IS NOT NULL AND NOT EXISTS (SELECT 1 FROM history_delivery WHERE id = old.id)
        BEGIN
            \(remember("delivery_id = old.id", isFree: "1"))
            DELETE FROM key_request WHERE delivery_id = old.id;
            \(giveUp)
        END;
        """

    private static let giveUp = """
        UPDATE fleet_key SET freed = 1 WHERE destination = old.destination AND key = old.key AND freed = 0;
        """

    /// Keeps the keys of requests that go unanswered, which the fleet may have granted.
    static func remember(_ condition: String, isFree: String) -> String {
        """
        INSERT INTO fleet_key (destination, address, key, ref, freed)
        SELECT destination, \(address(of: "key_request")), key, ref, \(isFree) FROM key_request WHERE \(condition)
        ON CONFLICT (destination, key, address) DO UPDATE SET freed = max(freed, excluded.freed);
        """
    }

    /// Receipts whose files go to the history before they are up.
    static let receipts = """
        CREATE TEMP TRIGGER IF NOT EXISTS fleet_receipt_kept AFTER DELETE ON receipt
        WHEN old.id > (SELECT receipts FROM fleet) AND EXISTS (SELECT 1 FROM history_file WHERE id = old.file_id)
        BEGIN INSERT OR IGNORE INTO fleet_receipt VALUES (old.id, old.file_id); END;
        """
}
