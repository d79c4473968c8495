internal import Foundation
internal import GRDB
package import InletCore
package import SystemPackage

/// What is done with a file after its deliveries, frozen at admission with the rest of the plan.
package struct FilePolicy: Sendable, Equatable, Codable {
    package var onSuccess: Route.OnSuccess
    package var onFailure: Route.OnFailure
    package var retry: RetryPolicy

    package init(onSuccess: Route.OnSuccess, onFailure: Route.OnFailure, retry: RetryPolicy) {
        self.onSuccess = onSuccess
        self.onFailure = onFailure
        self.retry = retry
    }
}

/// A row of `file`: one arrival and its fate.
package struct FileRow: Sendable, Equatable {
    package var id: Int64
    package var root: FilePath
    /// Below `root`.
    package var path: FilePath
    package var identity: FileIdentity
    package var state: FileState
    package var route: String?
    package var category: String?
    package var mediaType: String
    package var policy: FilePolicy
    package var code: ErrorCode?
    package var reason: String?
    package var content: ContentHash?
    package var admittedAt: WallTime
    package var endedAt: WallTime?
    package var finishedAt: WallTime?
    /// What became of the source: kept, archived to…, deleted, quarantined to…
    package var disposition: String?
    package var intent: [UInt8]?
    /// The files that it belongs to.
    package var batchID: Int64?
    /// Why it is in the batch, when it is not for its own sake: `Companion.Kind`, or `unit_marker`.
    package var role: String?

    /// The file's whole path.
    package var fullPath: FilePath { root.pushing(path) }
}

/// A row of `delivery`.
package struct DeliveryRow: Sendable, Equatable {
    package var id: Int64
    package var fileID: Int64
    package var afterID: Int64?
    package var destination: String
    package var key: String?
    package var fields: [String: String]
    package var state: DeliveryState
    package var attempts: Int
    package var nextAt: WallTime
    /// On the destination's uptime clock, in milliseconds; nil = never.
    package var expiresAt: Int64?
    package var code: ErrorCode?
    package var reason: String?
    package var proof: Proof?
    package var endedAt: WallTime?
    /// How often the destination has asked for time.
    package var waits: Int
    /// The batch of which it says that all has been sent.
    package var closes: Int64?

    /// Whether the last that was heard is that the destination works on it.
    package var isBeingWorkedOn: Bool { waits > 0 && code == nil }

    /// Whether it waits for another delivery or for its unit, not for a time.
    package var isHeld: Bool { state == .ready && nextAt.milliseconds >= Journal.never }
}

/// A file with its deliveries.
package struct Job: Sendable, Equatable {
    package var file: FileRow
    package var deliveries: [DeliveryRow]
}

/// Big transfers have a worker each; files of at most one part share a destination's connections.
package enum Lane: Int, Sendable, CaseIterable {
    case small = 0
    case big = 1
}

extension FileRow {
    /// By their places in `init(row:)`: looking up names takes longer than reading values.
    static let columns = """
        id, root, path, size, modified, changed, inode, device, state, route, category, media_type, policy, code, \
        reason, content, admitted_at, ended_at, finished_at, disposition, intent, \
        batch_id, role
        """

    init(row: Row) throws {
        id = row[0]
        root = FilePath(bytes: row[1] as Data)
        path = FilePath(bytes: row[2] as Data)
        identity = FileIdentity(
            size: row[3], modified: row[4], changed: row[5],
            inode: UInt64(bitPattern: row[6]), device: UInt64(bitPattern: row[7]))
        state = FileState(rawValue: row[8]) ?? .failed
        route = row[9]
        category = row[10]
        mediaType = row[11] ?? "application/octet-stream"
        policy = try PolicyNotes.shared.policy(row[12])
        code = (row[13] as String?).flatMap(ErrorCode.init)
        reason = row[14]
        content = try (row[15] as Data?).map { try JournalJSON.decode($0) }
        admittedAt = WallTime(milliseconds: row[16])
        endedAt = (row[17] as Int64?).map { WallTime(milliseconds: $0) }
        finishedAt = (row[18] as Int64?).map { WallTime(milliseconds: $0) }
        disposition = row[19]
        intent = (row[20] as Data?).map(Array.init)
        batchID = row[21]
        role = row[22]
    }
}

extension DeliveryRow {
    /// By their places in `init(row:)`: looking up names takes longer than reading values.
    static let columns = """
        id, file_id, after_id, destination, key, fields, state, attempts, next_at, expires_at, code, reason, proof, \
        ended_at, waits, closes
        """

    init(row: Row) throws {
        id = row[0]
        fileID = row[1]
        afterID = row[2]
        destination = row[3]
        key = row[4]
        fields = try (row[5] as Data?).map { try JournalJSON.decode($0) } ?? [:]
        state = DeliveryState(rawValue: row[6]) ?? .failed
        attempts = row[7]
        nextAt = WallTime(milliseconds: row[8])
        expiresAt = row[9]
        code = (row[10] as String?).flatMap(ErrorCode.init)
        reason = row[11]
        proof = try (row[12] as Data?).map { try JournalJSON.decode($0) }
        endedAt = (row[13] as Int64?).map { WallTime(milliseconds: $0) }
        waits = row[14]
        closes = row[15]
    }
}
