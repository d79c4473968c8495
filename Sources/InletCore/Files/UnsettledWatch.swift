import SystemPackage

/// Which of the files that are not complete have kept a person waiting for so long that he should hear why. Each is told of
/// once, and none is given up for it.
package struct UnsettledWatch: Sendable {
    private let after: Duration
    private var told: Set<FilePath> = []

    /// - Parameter after: how long a file may take without being mentioned.
    package init(after: Duration) { self.after = after }

    /// Those of `waiting`, the files that have waited longest, that are to be told of now. Files that wait for others, or only
    /// for room, are not: that is said elsewhere.
    package mutating func overdue(
        _ waiting: [Settler.Waiting], at now: ContinuousClock.Instant
    ) -> [Settler.Waiting] {
        let late = waiting.filter { file in
            file.since.duration(to: now) >= after && (file.isBusy || file.changes > 0 && file.why == nil)
        }
        defer { told = Set(late.map(\.path)) }
        return late.filter { !told.contains($0.path) }
    }
}

extension Settler.Waiting {
    /// What keeps it, as far as that is known without looking for its writers.
    package var reason: String? {
        if isBusy { return "open for writing" }
        if let why { return why }
        return changes > 1 ? "it keeps changing: \(changes) times since it was seen" : nil
    }
}
