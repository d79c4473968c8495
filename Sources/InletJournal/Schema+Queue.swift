internal import GRDB

/// Migration 8: what keeps a queue of a million deliveries as quick as an empty one.
extension Schema {
    /// Claims seek by priority: however much waits for its time in one, what is due in another is found at once. And the
    /// delivery that has waited longest is found without a look at the others. What is claimed has an index of its own: a
    /// second one of what has an owner is for those only that were cancelled meanwhile.
    ///
    /// Some 3 s for a million that wait, less for what has ended.
    static func addPriorities(_ database: Database) throws {
        try database.execute(
            sql: """
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
                """)
        for trigger in queueTriggers { try database.execute(sql: trigger) }
    }

    private static let never = 253_370_764_800_000

    /// Those that are claimed are few, and counted; they would be two changes more for every file.
    private static let open = "('ready', 'parked')"

    /// Where an open delivery is (`QueuePlace`).
    private static func place(of row: String) -> String {
        """
        CASE WHEN \(row).state = 'parked' THEN 'parked' WHEN \(row).next_at >= \(never) THEN 'held'
            WHEN \(row).code IS NOT NULL THEN 'retrying' WHEN \(row).waits > 0 THEN 'working' ELSE 'fresh' END
        """
    }

    /// Whatever statement changes a delivery, its place is counted in the same transaction. Each trigger is for one kind of
    /// change, so that a change costs no more than it must: some 5 µs for an admission, as much for a claim.
    private static let queueTriggers = [
        """
        CREATE TRIGGER queue_insert AFTER INSERT ON delivery WHEN new.state IN \(open)
        BEGIN \(enter) END
        """,
        """
        CREATE TRIGGER queue_delete AFTER DELETE ON delivery WHEN old.state IN \(open)
        BEGIN \(leave) END
        """,
        """
        CREATE TRIGGER queue_leave AFTER UPDATE OF state ON delivery
        WHEN old.state IN \(open) AND new.state NOT IN \(open)
        BEGIN \(leave) END
        """,
        """
        CREATE TRIGGER queue_enter AFTER UPDATE OF state ON delivery
        WHEN old.state NOT IN \(open) AND new.state IN \(open)
        BEGIN \(enter) END
        """,
        """
        CREATE TRIGGER queue_move AFTER UPDATE OF state, next_at, code, waits ON delivery
        WHEN old.state IN \(open) AND new.state IN \(open) AND \(place(of: "old")) <> \(place(of: "new"))
        BEGIN \(leave) \(enter) END
        """,
    ]

    private static let enter = """
        INSERT INTO queue_tally VALUES (new.destination, \(place(of: "new")), 1)
        ON CONFLICT(destination, place) DO UPDATE SET deliveries = deliveries + 1;
        """

    private static let leave = """
        UPDATE queue_tally SET deliveries = deliveries - 1
        WHERE destination = old.destination AND place = \(place(of: "old"));
        """
}
