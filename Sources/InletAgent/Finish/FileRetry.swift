internal import InletCore
internal import InletJournal
internal import InletLinux

/// Sends files again, and returns those in quarantine to their places first. One that cannot be returned stays there,
/// and the answer says where.
struct FileRetry: Sendable {
    let journal: Journal
    /// For files that are moved back from quarantine.
    let pool: BlockingPool
    /// The destinations' expiry clocks.
    let uptimes: [String: Int64]
    var scope = RetryScope()

    func run(_ files: [Int64]) async throws(JournalError) -> (outcomes: [ActionOutcome], running: [Int64]) {
        let lying = try await journal.quarantined(byRetryOf: files, scope)
        var (outcomes, running): ([ActionOutcome], [Int64]) = ([], [])
        var together: [Int64] = []
        for file in files + [nil] {
            if let file, lying[file] == nil {
                together.append(file)
                continue
            }
            if !together.isEmpty {
                let these = try await send(together, [:])
                outcomes += these.outcomes
                running += these.running
                together = []
            }
            // One at a time: whatever ends the process, at most one file is on its way.
            if let file { outcomes.append(try await bringBack(file)) }
        }
        return (outcomes, running)
    }

    private func send(
        _ files: [Int64], _ returned: [Int64: FileIdentity]
    ) async throws(JournalError) -> (outcomes: [ActionOutcome], running: [Int64]) {
        try await journal.act(.retry(uptimes: uptimes, returned: returned, scope: scope), on: files, at: .now)
    }

    /// Moves a file and its companions back from quarantine, and sends them again: all of them, or none.
    private func bringBack(_ file: Int64) async throws(JournalError) -> ActionOutcome {
        // A file that was sent with an earlier one has been returned already.
        let lying = try await journal.quarantined(byRetryOf: [file], scope)[file] ?? []
        var returned: [Int64: FileIdentity] = [:]
        try await journal.beginReturn(of: lying.map(\.id))
        for lain in lying {
            switch await pool.run({
                Result { () throws(Refusal) in try lain.returnedFromQuarantine() }
            }) {
            case .success(let identity): returned[lain.id] = identity
            case .failure(let refusal):
                // Files that were moved are known in their places, and wait there.
                try await journal.endReturn(of: lying.map(\.id), returned: returned)
                return .skipped(refusal.description)
            }
        }
        return try await send([file], returned).outcomes[0]
    }
}

/// Returns from quarantine that a process did not complete.
struct InterruptedReturns: Sendable {
    let journal: Journal
    let pool: BlockingPool

    /// Judges each file by its folders: one that is back under its own name is known there; one that lies in quarantine
    /// stays there. Where neither is found its disk may be away, and the next start looks again.
    func end() async throws(JournalError) {
        for file in try await journal.interruptedReturns() {
            switch await pool.run({ file.placeOfReturn() }) {
            case .own(let identity): try await journal.endReturn(of: [file.id], returned: [file.id: identity])
            case .quarantine: try await journal.endReturn(of: [file.id])
            case .unknown: break
            }
        }
    }
}
