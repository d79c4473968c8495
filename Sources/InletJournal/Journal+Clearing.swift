internal import GRDB
package import InletCore

/// Where the cancelling of everything that waits stands.
package struct ClearingPlace: Sendable, Equatable {
    fileprivate var last: Int64 = 0
    /// The newest file at the beginning; nil = it begins now. What comes later is not meant, and may never end to come.
    fileprivate var end: Int64?

    package init() {}
}

/// What one step of that did.
package struct ClearingStep: Sendable, Equatable {
    /// Files that are cancelled now.
    package var files = 0
    /// Of their deliveries, those that were running.
    package var running: [Int64] = []
    /// How many files nothing was done to, by the reason.
    package var skipped: [String: Int] = [:]
    /// Where to go on; nil when that was all.
    package var next: ClearingPlace?
}

extension Journal {
    /// Bounds how long others wait for one step of `clear`.
    static let clearedAtOnce = 256

    /// Cancels some of the files that wait, in one transaction, and says where to go on: between two steps, everybody else has
    /// a turn. What a step has cancelled stays so if there is no other; who begins again goes on with what is left.
    package func clear(
        from place: ClearingPlace = ClearingPlace(), at now: WallTime
    ) async throws(JournalError) -> ClearingStep {
        let (files, next) = try await read { try Self.waiting(place, $0) }
        if files.isEmpty { return ClearingStep() }
        var step = ClearingStep(next: next)
        let (outcomes, running) = try await act(.cancel, on: files, at: now)
        step.running = running
        for outcome in outcomes {
            // What ended with a file before it, or just now by itself, needs nothing.
            switch outcome {
            case .done, .hurried: step.files += 1
            case .skipped(let reason) where reason == Self.hasEnded: break
            case .skipped(let reason): step.skipped[reason, default: 0] += 1
            }
        }
        return step
    }

    private static func waiting(
        _ place: ClearingPlace, _ database: Database
    ) throws -> (files: [Int64], next: ClearingPlace?) {
        var next = place
        let newest = try next.end ?? database.row("SELECT ifnull(max(id), 0) FROM file") { $0.integer(0) } ?? 0
        let files = try database.rows(
            """
            SELECT id FROM file INDEXED BY file_by_state WHERE state = 'pending' AND id > ? AND id <= ?
            ORDER BY id LIMIT \(clearedAtOnce)
            """, .integer(place.last), .integer(newest)
        ) { $0.integer(0) }
        next.end = newest
        next.last = files.last ?? newest
        return (files, files.count < clearedAtOnce ? nil : next)
    }
}
