internal import Foundation
internal import GRDB
package import InletCore
package import SystemPackage

/// Files that belong together: a file with its companions, or a unit.
package struct Batch: Sendable, Equatable {
    package var id: Int64
    /// The main file's name, or the unit's folder.
    package var name: String
    /// nil for a file with its companions.
    package var unit: FilePath?
    package var root: FilePath
    package var route: String
    /// `pending` until it ends; then the worst of its files' states.
    package var state: FileState
    package var createdAt: WallTime
    /// nil while files are still collected; then nothing of it is sent.
    package var closedAt: WallTime?
    package var endedAt: WallTime?
    /// How often it has ended: `queue retry` takes an end back.
    package var generation: Int
    /// Files by state; a unit's own marker is not counted.
    package var counts: [FileState: Int]
    /// Of the unit, by its marker or its `.inlet.yaml`.
    package var labels: [String: String]

    package var isOpen: Bool { closedAt == nil }
}

extension Batch {
    init(row: Row, counts: [FileState: Int]) {
        id = row["id"]
        name = row["name"]
        unit = (row["unit"] as Data?).map { FilePath(bytes: $0) }
        root = FilePath(bytes: row["root"] as Data? ?? Data())
        route = row["route"] ?? ""
        state = FileState(rawValue: row["state"]) ?? .failed
        createdAt = WallTime(milliseconds: row["created_at"])
        closedAt = (row["closed_at"] as Int64?).map { WallTime(milliseconds: $0) }
        endedAt = (row["ended_at"] as Int64?).map { WallTime(milliseconds: $0) }
        generation = row["generation"]
        self.counts = counts
        // Labels are shown beside the unit; it ends by its files, with or without them.
        labels = (row["labels"] as Data?).flatMap { try? JournalJSON.decode([UInt8]($0)) } ?? [:]
    }
}
