import InletCore
import InletJournal

extension Bench {
    /// Long after everything.
    static let later = start + .seconds(365 * 86_400)

    /// Moves all that was finished then or before to the history. - Returns: how many files that were.
    @discardableResult
    func prune(at time: WallTime = later) async throws -> Int {
        var files = 0
        var place: HistoryPlace? = HistoryPlace()
        while let from = place {
            let step = try await journal.moveToHistory(finishedBy: time, from: from)
            (files, place) = (files + step.files, step.next)
        }
        return files
    }

    /// Delivers `name`, finishes it as kept, and moves it to the history. - Returns: its number.
    func bury(_ name: String, _ identity: FileIdentity = .test(), key: String? = nil) async throws -> Int64 {
        let id = try await admit(name, identity, key: key)
        try await settle(.delivered(.test(key ?? name)))
        try await finishAll()
        guard try await prune() == 1 else { throw Unexpected(what: "\(name) did not go to the history") }
        return id
    }
}

extension Job {
    /// Without what nobody asks of a delivery that has ended: when it would have been due.
    var lasting: Job {
        var job = self
        for index in job.deliveries.indices where job.deliveries[index].state.isFinal {
            job.deliveries[index].nextAt = WallTime(milliseconds: 0)
        }
        return job
    }
}
