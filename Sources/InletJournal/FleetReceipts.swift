internal import GRDB
package import InletCore
internal import Synchronization
package import SystemPackage

/// A file's end at one destination, as the fleet's search finds it.
package struct PublishedReceipt: Sendable, Equatable {
    /// The number of the receipt; a file has a row for each of its destinations.
    package var id: Int64
    /// nil for a file that was sent nowhere.
    package var destination: String?
    package var state: String
    package var root: FilePath
    /// Below `root`.
    package var path: FilePath
    package var size: Int64
    package var modified: WallTime
    package var key: String?
    /// Without what may grant access.
    package var url: String?
    /// The SHA-256 of the content, where it is known.
    package var sha256: [UInt8]?
    package var labels: [String: String]
    /// The file's number.
    package var file: Int64 = 0
}

/// Receipts for the fleet, in the order of their numbers, also those whose files are in the history.
extension Journal {
    /// The rows of the next receipts after `id`, at most `limit` unless one receipt alone has more: a receipt is never
    /// divided. Empty only when all are up. From the first call on, receipts that go to the history are kept.
    package func fleetReceipts(after id: Int64, limit: Int) async throws(JournalError) -> [PublishedReceipt] {
        if !heard.withLock(\.keepsReceipts) {
            try await commit { try $0.execute(sql: KeyTriggers.receipts) }
            heard.withLock { $0.keepsReceipts = true }
        }
        var last = id
        while true {
            let (found, rows) = try await read { [last] in try Self.published(after: last, limit, $0) }
            guard let end = found else { return [] }
            if !rows.isEmpty { return rows }
            // Their files were forgotten, or are under way again.
            last = end
        }
    }

    /// The last receipt that is up.
    package func fleetCursor() async throws(JournalError) -> Int64 {
        try await read { try $0.integer("SELECT receipts FROM fleet") } ?? 0
    }

    package func keepFleetCursor(_ id: Int64) async throws(JournalError) {
        try await commit { database in
            try database.change("UPDATE fleet SET receipts = ?1 WHERE receipts <> ?1", id)
            try database.change("DELETE FROM fleet_receipt WHERE id <= ?", id)
        }
    }

    /// - Returns: the last receipt looked at, nil when there was none, and the rows.
    private static func published(
        after id: Int64, _ limit: Int, _ database: Database
    ) throws -> (last: Int64?, rows: [PublishedReceipt]) {
        let receipts = try database.rows(
            """
            SELECT id, file_id FROM receipt WHERE id > ?1 UNION ALL SELECT id, file_id FROM fleet_receipt WHERE id > ?1
            ORDER BY id LIMIT ?2
            """, id, min(limit, readAtOnce)
        ) { (id: $0.integer(0), file: $0.integer(1)) }
        var rows: [PublishedReceipt] = []
        for receipt in receipts {
            guard let job = try shown(receipt.file, database), job.file.state.isFinal else { continue }
            let own = job.published(as: receipt.id)
            if !rows.isEmpty, rows.count + own.count > limit { break }
            rows += own
        }
        return (receipts.last?.id, rows)
    }
}

extension Job {
    fileprivate func published(as receipt: Int64) -> [PublishedReceipt] {
        var row = PublishedReceipt(
            id: receipt, state: file.state.rawValue, root: file.root, path: file.path, size: file.identity.size,
            modified: WallTime(nanoseconds: file.identity.modified), sha256: file.digests.sha256?.bytes,
            labels: file.labels, file: file.id)
        row.sha256 = row.sha256 ?? file.content?.wholeSHA256
        // Other agents publish what they have delivered of a share.
        if deliveries.isEmpty { return file.policy.isOfPlace ? [] : [row] }
        return deliveries.map { delivery in
            var row = row
            let proof = delivery.proof
            (row.destination, row.state) = (delivery.destination, delivery.state.rawValue)
            (row.key, row.url) = (proof?.key ?? delivery.key, proof?.url.map(Self.withoutSecrets))
            row.sha256 = row.sha256 ?? proof?.content?.wholeSHA256
            return row
        }
    }

    /// An address without its query, its fragment, and the name and password before its host.
    private static func withoutSecrets(_ url: String) -> String {
        let plain = url.prefix { $0 != "?" && $0 != "#" }
        guard let scheme = plain.firstRange(of: "://") else { return String(plain) }
        let rest = plain[scheme.upperBound...]
        let host = rest.prefix { $0 != "/" }
        guard let at = host.lastIndex(of: "@") else { return String(plain) }
        return String(plain[..<scheme.upperBound] + rest[rest.index(after: at)...])
    }
}

extension ContentHash {
    /// nil for every other checksum, and for one of parts.
    fileprivate var wholeSHA256: [UInt8]? { digest.algorithm == .sha256 && partSize == nil ? digest.bytes : nil }
}
