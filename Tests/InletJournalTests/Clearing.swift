import InletCore
import InletJournal

extension Journal {
    /// Cancels everything that waits, step after step. - Returns: how many files, and the deliveries that were running.
    func clearAll(at now: WallTime) async throws -> (files: Int, running: [Int64]) {
        var (files, running) = (0, [Int64]())
        var place: ClearingPlace? = ClearingPlace()
        while let from = place {
            let step = try await clear(from: from, at: now)
            (files, running, place) = (files + step.files, running + step.running, step.next)
        }
        return (files, running)
    }
}
