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
        let lying = try await journal.quarantined(byRetryOf: files)
        var returned: [Int64: FileIdentity] = [:]
        var refusals: [Int64: String] = [:]
        for file in files { refusals[file] = try await bringBack(lying[file] ?? [], &returned) }
        let ready = files.filter { refusals[$0] == nil }
        let action = FileAction.retry(uptimes: uptimes, returned: returned, scope: scope)
        var (outcomes, running) = try await journal.act(action, on: ready, at: .now)
        outcomes.reverse()
        return (files.map { refusals[$0].map { .skipped($0) } ?? outcomes.removeLast() }, running)
    }

    /// - Returns: why a file stays in quarantine.
    private func bringBack(
        _ files: [FileRow], _ returned: inout [Int64: FileIdentity]
    ) async throws(JournalError) -> String? {
        if files.isEmpty { return nil }
        try await journal.beginReturn(of: files.map(\.id))
        for file in files where returned[file.id] == nil {
            switch await pool.run({
                Result { () throws(Refusal) in try file.returnedFromQuarantine() }
            }) {
            case .success(let identity): returned[file.id] = identity
            case .failure(let refusal):
                // For moved files too: each is admitted as a new file then.
                try await journal.endReturn(of: files.map(\.id))
                return refusal.description
            }
        }
        return nil
    }
}
