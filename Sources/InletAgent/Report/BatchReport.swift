internal import InletCore
package import InletJournal

/// Files that belong together: a file with its companions, or a folder delivered as one.
package struct BatchReport: Codable, Sendable {
    package var batch: Int64
    package var name: String
    package var route: String
    /// `open` while the unit collects files, `pending` until it ends, then the worst of its files' states.
    package var state: String
    package var created_at: String
    package var closed_at: String?
    package var ended_at: String?
    package var files: [String: Int]
    package var labels: [String: String]?

    package init(_ batch: Batch) {
        self.batch = batch.id
        name = DisplayText.escape(batch.name)
        route = batch.route
        state = batch.isOpen ? "open" : batch.state.rawValue
        created_at = batch.createdAt.rfc3339
        closed_at = batch.closedAt?.rfc3339
        ended_at = batch.endedAt?.rfc3339
        labels = batch.labels.isEmpty ? nil : batch.labels
        files = Dictionary(uniqueKeysWithValues: batch.counts.map { ($0.key.rawValue, $0.value) })
    }
}
