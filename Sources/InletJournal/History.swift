internal import Foundation
internal import GRDB
internal import InletCore
internal import SystemPackage

/// The tables of the history: files that ended long ago, in as few bytes as later questions allow.
///
/// `history_word` stores values that many rows share once: states, routes, destinations, policies. `history_place` does
/// the same for places: a watched folder, or a volume (`Volume.key`). Its `kept` counts the files that were left in
/// place. `history_file.root` is the folder at which the volume was mounted, NULL for files on none. Proofs and
/// checksums have their short form (`ShortProof`). A `history_content` stands for a row of `content`.
///
/// The two views show the history under the names and with the values of `file` and `delivery`, so that one query
/// serves both (`JournalTables`).
extension Schema {
    static let history = [words, files, deliveries, contents, firstFileView, deliveryView].joined()

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

    private static let firstFileView = fileView(with: "")
    /// With the column that migration 12 adds.
    static let fileView = fileView(with: ", past.unanswered AS unanswered")

    private static func fileView(with more: String) -> String {
        """
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
            past.place AS place\(more)
        FROM history_file AS past;
        """
    }

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

extension Journal {
    /// The history finds a file by its volume, or by the folder in which it was found.
    static func placeName(_ root: FilePath, _ volume: String?) -> [UInt8] {
        volume.map { Array($0.utf8) } ?? root.bytes
    }

    /// The condition for a row of `history_as_file`, with the values `placeName` and a path.
    static let placeInHistory = "place = (SELECT id FROM history_place WHERE name = ?) AND path = ?"
}

/// Moves rows to the history, and back.
extension Journal {
    /// Writes a file with its deliveries into the history. The original rows still exist.
    static func insertIntoHistory(_ job: Job, _ database: Database) throws {
        try insertNames(of: job.file.id, database)
        let digests = job.file.digests
        try database.change(
            """
            INSERT INTO history_file (id, place, path, root, size, modified, changed, inode, device, state, route, category,
                media_type, policy, code, reason, content, admitted_at, ended_at, finished_at, disposition, batch_id, role,
                labels, digests, unanswered)
            SELECT id, (SELECT id FROM history_place WHERE name = ifnull(CAST(volume AS BLOB), file.root)), path,
                iif(volume IS NULL, NULL, (SELECT id FROM history_place WHERE name = file.root)), size, modified, changed,
                inode, device, \(number("state")), \(number("route")), \(number("category")), \(number("media_type")),
                \(number("policy")), \(number("code")), reason, ?, admitted_at, ended_at, finished_at,
                ifnull(\(number("disposition")), disposition), batch_id, \(number("role")), labels, ?,
                iif(\(FilePolicy.isUnanswered), 1, NULL)
            FROM file WHERE id = ?
            """, job.file.content?.short, digests.isEmpty ? nil : digests.short, job.file.id)
        for delivery in job.deliveries {
            try database.change(
                """
                INSERT INTO history_delivery (id, file_id, after_id, destination, key, fields, lane, state, attempts,
                    interrupted, expires_at, code, reason, proof, ended_at, waits, closes, started_at, crashes, priority)
                SELECT id, file_id, after_id, \(number("destination")), key, fields, lane, \(number("state")), attempts,
                    interrupted, expires_at, \(number("code")), reason, ?, ended_at, waits, closes, started_at, crashes,
                    priority
                FROM delivery WHERE id = ?
                """, try delivery.proof?.short(of: delivery.key), delivery.id)
        }
        try countKept(1, job.file, database)
        guard digests.sha256 != nil else { return }
        try database.change(
            """
            INSERT OR REPLACE INTO history_content (destination, digest, delivery_id)
            SELECT \(number("destination")), digest, delivery_id FROM content
            WHERE delivery_id IN (SELECT id FROM delivery WHERE file_id = ?)
            """, job.file.id)
    }

    /// Adds the words and places that the history does not know yet.
    private static func insertNames(of file: Int64, _ database: Database) throws {
        try database.change(
            """
            INSERT OR IGNORE INTO history_word (word)
            SELECT state FROM file WHERE id = ?1 UNION ALL SELECT route FROM file WHERE id = ?1
            UNION ALL SELECT category FROM file WHERE id = ?1 UNION ALL SELECT media_type FROM file WHERE id = ?1
            UNION ALL SELECT policy FROM file WHERE id = ?1 UNION ALL SELECT code FROM file WHERE id = ?1
            UNION ALL SELECT role FROM file WHERE id = ?1
            UNION ALL SELECT disposition FROM file
            WHERE id = ?1 AND disposition IN ('\(Disposition.kept)', '\(Disposition.deleted)')
            UNION ALL SELECT destination FROM delivery WHERE file_id = ?1
            UNION ALL SELECT state FROM delivery WHERE file_id = ?1
            UNION ALL SELECT code FROM delivery WHERE file_id = ?1
            """, file)
        try database.change(
            """
            INSERT OR IGNORE INTO history_place (name)
            SELECT root FROM file WHERE id = ?1 UNION ALL SELECT CAST(volume AS BLOB) FROM file WHERE id = ?1
            """, file)
    }

    /// The number of the word in a column. The plus removes the column's type, so that the index on words serves.
    private static func number(_ column: String) -> String { "(SELECT id FROM history_word WHERE word = +\(column))" }

    /// Adjusts the count of files that were left in place there.
    private static func countKept(_ files: Int, _ file: FileRow, _ database: Database) throws {
        guard Disposition.isKept(file.disposition) else { return }
        try database.change(
            "UPDATE history_place SET kept = kept + ? WHERE id = (SELECT place FROM history_file WHERE id = ?)", files,
            file.id)
    }

    /// Moves the file back to the working tables. Its deliveries follow separately: they may wait for other files'
    /// deliveries.
    static func insertBack(_ file: FileRow, _ database: Database) throws {
        _ = try insert(file, database)
        // The totals counted it all along.
        try count(-1, file, database)
        try countKept(-1, file, database)
        try database.change("DELETE FROM history_file WHERE id = ?", file.id)
    }

    /// The file that it came after may be forgotten by now.
    static func insertBack(_ row: DeliveryRow, of file: FileRow, _ database: Database) throws {
        try database.change(
            """
            INSERT INTO delivery (id, file_id, after_id, destination, key, fields, lane, state, attempts, interrupted,
                next_at, expires_at, code, reason, proof, ended_at, waits, closes, started_at, crashes, priority)
            SELECT id, file_id, (SELECT leader.id FROM delivery AS leader WHERE leader.id = past.after_id), destination,
                key, fields, lane, state, attempts, interrupted, next_at, expires_at, code, reason, ?, ended_at, waits,
                closes, started_at, crashes, priority
            FROM history_as_delivery AS past WHERE id = ?
            """, row.proof?.note, row.id)
        try database.change("DELETE FROM history_delivery WHERE id = ?", row.id)
        guard let digest = file.digests.sha256?.bytes else { return }
        let past = """
            FROM history_content WHERE destination = (SELECT id FROM history_word WHERE word = ?1) AND digest = ?2
                AND delivery_id = ?3
            """
        // Another file may have brought the content since this one was deleted there.
        try database.change(
            "INSERT OR IGNORE INTO content (destination, digest, delivery_id) SELECT ?1, digest, delivery_id \(past)",
            row.destination, digest, row.id)
        try database.change("DELETE \(past)", row.destination, digest, row.id)
    }
}

/// Short forms of values that the journal writes as JSON elsewhere: most of a history is checksums. The first character
/// distinguishes the two, so a reader accepts either.

extension ContentHash {
    /// `md5/8388608:BASE64`; without `/…` where it is over the whole content.
    var short: String {
        let parts = partSize.map { "/\($0)" } ?? ""
        return "\(digest.algorithm.rawValue)\(parts):\(Data(digest.bytes).base64EncodedString())"
    }

    init(short: String) throws {
        let halves = short.split(separator: ":", maxSplits: 1)
        let names = halves.first?.split(separator: "/") ?? []
        guard halves.count == 2, let algorithm = names.first.flatMap({ Digest.Algorithm(rawValue: String($0)) }),
            let bytes = Data(base64Encoded: String(halves[1])), names.count == 1 || Int64(names[1]) != nil
        else { throw UnusableRow.unreadable }
        self.init(digest: Digest(algorithm, bytes), partSize: names.count == 2 ? Int64(names[1]) : nil)
    }

    /// Reads either form.
    init(note: [UInt8]) throws {
        if note.first == UInt8(ascii: "{") {
            self = try JSON.decode(note)
        } else {
            try self.init(short: String(decoding: note, as: UTF8.self))
        }
    }
}

extension [Digest] {
    /// `sha256:BASE64,md5:BASE64`.
    var short: String { map { ContentHash(digest: $0, partSize: nil).short }.joined(separator: ",") }

    /// Reads either form.
    init(note: [UInt8]) throws {
        if note.first == UInt8(ascii: "[") {
            self = try JSON.decode(note)
        } else {
            self = try String(decoding: note, as: UTF8.self).split(separator: ",").map {
                try ContentHash(short: String($0)).digest
            }
        }
    }
}

extension Proof {
    /// - Parameter key: the key of its delivery, which the short form omits.
    func short(of key: String?) throws -> [UInt8] { try JSON.encode(ShortProof(self, of: key)) }

    /// Reads either form.
    init(note: [UInt8], of key: String?) throws {
        if note.first == UInt8(ascii: "[") {
            let short: ShortProof = try JSON.decode(note)
            self = try short.proof(of: key)
        } else {
            self = try JSON.decode(note)
        }
    }
}

/// A JSON array: method, size, and those of key, content, tag, URL, details, secrets and address that exist.
private struct ShortProof: Codable {
    private var method: Proof.Method
    private var size: Int64
    private var texts: [String?]
    private var details: [String: String]?
    private var secrets: ProofSecrets?
    private var address: String?

    init(_ proof: Proof, of key: String?) {
        (method, size) = (proof.method, proof.size)
        texts = [proof.key == key ? nil : proof.key, proof.content?.short, proof.etag, proof.url]
        (details, secrets, address) = (proof.details, proof.secrets, proof.address)
    }

    func proof(of key: String?) throws -> Proof {
        guard let key = texts[0] ?? key else { throw UnusableRow.unreadable }
        var proof = Proof(
            key: key, size: size, method: method, content: try texts[1].map { try ContentHash(short: $0) },
            etag: texts[2], url: texts[3], details: details, secrets: secrets)
        proof.address = address
        return proof
    }

    init(from decoder: any Decoder) throws {
        var values = try decoder.unkeyedContainer()
        method = try values.decode(Proof.Method.self)
        size = try values.decode(Int64.self)
        texts = []
        for _ in 0..<4 { texts.append(try values.decodeIfPresent(String.self)) }
        details = try values.decodeIfPresent([String: String].self)
        secrets = try values.decodeIfPresent(ProofSecrets.self)
        address = try values.decodeIfPresent(String.self)
    }

    func encode(to encoder: any Encoder) throws {
        var values = encoder.unkeyedContainer()
        try values.encode(method)
        try values.encode(size)
        let hasNotes = details != nil || secrets != nil || address != nil
        let last = hasNotes ? texts.count : texts.lastIndex { $0 != nil }.map { $0 + 1 } ?? 0
        for text in texts.prefix(last) { try values.encode(text) }
        if hasNotes { try values.encode(details) }
        if secrets != nil || address != nil { try values.encode(secrets) }
        if address != nil { try values.encode(address) }
    }
}

/// The two places of files in the journal: the working tables and the history. Both answer the same query:
/// `\(tables.files)` and `\(tables.deliveries)` stand for `file` and `delivery`, with all their columns.
///
/// The history of a path is older than everything in `current`, so a search for the newest asks `current` first, and
/// the history only if that has nothing.
enum JournalTables: CaseIterable {
    case current
    case history

    var files: String { self == .current ? "file" : "history_as_file AS file" }
    var deliveries: String { self == .current ? "delivery" : "history_as_delivery AS delivery" }
}
