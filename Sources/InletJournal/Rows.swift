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
    static let columns = """
        id, root, path, size, modified, changed, inode, device, state, route, category, media_type, policy, code, \
        reason, content, admitted_at, ended_at, finished_at, disposition, intent, \
        batch_id, role
        """

    init(row: Row) throws {
        id = row["id"]
        root = FilePath(bytes: row["root"] as Data)
        path = FilePath(bytes: row["path"] as Data)
        identity = FileIdentity(
            size: row["size"], modified: row["modified"], changed: row["changed"],
            inode: UInt64(bitPattern: row["inode"]), device: UInt64(bitPattern: row["device"]))
        state = FileState(rawValue: row["state"]) ?? .failed
        route = row["route"]
        category = row["category"]
        mediaType = row["media_type"] ?? "application/octet-stream"
        policy = try JournalJSON.decode(row["policy"])
        code = (row["code"] as String?).flatMap(ErrorCode.init)
        reason = row["reason"]
        content = try (row["content"] as Data?).map { try JournalJSON.decode($0) }
        admittedAt = WallTime(milliseconds: row["admitted_at"])
        endedAt = (row["ended_at"] as Int64?).map { WallTime(milliseconds: $0) }
        finishedAt = (row["finished_at"] as Int64?).map { WallTime(milliseconds: $0) }
        disposition = row["disposition"]
        intent = (row["intent"] as Data?).map(Array.init)
        batchID = row["batch_id"]
        role = row["role"]
    }
}

extension DeliveryRow {
    init(row: Row) throws {
        id = row["id"]
        fileID = row["file_id"]
        afterID = row["after_id"]
        destination = row["destination"]
        key = row["key"]
        fields = try (row["fields"] as Data?).map { try JournalJSON.decode($0) } ?? [:]
        state = DeliveryState(rawValue: row["state"]) ?? .failed
        attempts = row["attempts"]
        nextAt = WallTime(milliseconds: row["next_at"])
        expiresAt = row["expires_at"]
        code = (row["code"] as String?).flatMap(ErrorCode.init)
        reason = row["reason"]
        proof = try (row["proof"] as Data?).map { try JournalJSON.decode($0) }
        endedAt = (row["ended_at"] as Int64?).map { WallTime(milliseconds: $0) }
    }
}
