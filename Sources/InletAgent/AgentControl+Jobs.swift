internal import InletCore
package import InletJournal
internal import InletLinux

/// What can be done to files of the queue.
package enum JobAction: String, Sendable, CaseIterable {
    case retry
    case cancel
    case forget
}

/// What came of a command on a selection.
package struct SelectionOutcome: Sendable {
    package var matched = 0
    package var bytes: Int64 = 0
    package var done = 0
    /// Of those, the files that waited, and are tried as soon as they may.
    package var hurried = 0
    /// How many files nothing was done to, by the reason.
    package var skipped: [String: Int] = [:]
    /// The first of them.
    package var shown: [MatchedFile] = []

    /// How many files are shown one by one.
    fileprivate static let mostShown = 20

    fileprivate mutating func add(_ files: ArraySlice<MatchedFile>) {
        matched += files.count
        bytes += files.reduce(0) { $0 + $1.size }
        shown += files.prefix(max(0, Self.mostShown - shown.count))
    }

    fileprivate mutating func add(_ outcomes: [ActionOutcome]) {
        for outcome in outcomes {
            switch outcome {
            case .done: done += 1
            case .hurried:
                done += 1
                hurried += 1
            case .skipped(let reason): skipped[reason, default: 0] += 1
            }
        }
    }
}

extension AgentControl {
    /// Files in one transaction: more would keep what is being delivered from the journal.
    private static let group = 256

    /// Does `action` to every file that `filter` lets through, oldest first: what ended with the file that it belongs to is
    /// sent again with that. Each file is done whole or not at all.
    ///
    /// - Parameter dryRun: only says what would be done.
    package func act(
        _ action: JobAction, on filter: FileFilter, dryRun: Bool = false
    ) async throws(JournalError) -> SelectionOutcome {
        var outcome = SelectionOutcome()
        var filter = filter
        // A marker that failed with its unit is sent nowhere; who names it by its number is told so.
        filter.hasDeliveries = action == .retry && filter.ids == nil
        var cursor: Int64?
        while outcome.matched < filter.limit {
            let part = try await journal.matches(filter, from: cursor)
            let files = part.files.prefix(filter.limit - outcome.matched)
            outcome.add(files)
            if !dryRun { outcome.add(try await act(action, on: files.map(\.id))) }
            guard let next = part.next else { break }
            cursor = next
        }
        if outcome.hurried > 0 { probeNow(filter.destination) }
        return outcome
    }

    /// The same for one file.
    package func act(_ action: JobAction, on file: Int64) async throws(JournalError) -> ActionOutcome {
        let outcome = try await act(action, on: [file])[0]
        if outcome == .hurried { probeNow(nil) }
        return outcome
    }

    private func act(_ action: JobAction, on files: [Int64]) async throws(JournalError) -> [ActionOutcome] {
        var outcomes: [ActionOutcome] = []
        for start in stride(from: 0, to: files.count, by: Self.group) {
            let group = Array(files[start..<min(start + Self.group, files.count)])
            Failpoint.acting.reached()
            let (these, running) =
                action == .retry
                ? try await retry(group) : try await journal.act(command(action), on: group, at: .now)
            Failpoint.acted.reached()
            outcomes += these
            switch action {
            case .retry: live?.shared.signals.raiseDeliverable()
            case .cancel: ended(running)
            case .forget: break
            }
        }
        return outcomes
    }

    private func command(_ action: JobAction) async throws(JournalError) -> FileAction {
        switch action {
        case .retry: try await retrying()
        case .cancel: .cancel
        case .forget: .forget
        }
    }

    private func retrying(_ returned: [Int64: FileIdentity] = [:]) async throws(JournalError) -> FileAction {
        let stored = try await journal.uptimes()
        return .retry(uptimes: live?.shared.destinations.uptimes() ?? stored, returned: returned)
    }

    /// What lies in quarantine goes back to its place first; what cannot stays there, and says where that is.
    private func retry(
        _ files: [Int64]
    ) async throws(JournalError) -> (outcomes: [ActionOutcome], running: [Int64]) {
        let lying = try await journal.quarantined(byRetryOf: files)
        if lying.isEmpty { return try await journal.act(retrying(), on: files, at: .now) }
        var returned: [Int64: FileIdentity] = [:]
        var refusals: [Int64: String] = [:]
        for file in files { refusals[file] = try await bringBack(lying[file] ?? [], &returned) }
        let ready = files.filter { refusals[$0] == nil }
        var (outcomes, running) = try await journal.act(retrying(returned), on: ready, at: .now)
        outcomes.reverse()
        return (files.map { refusals[$0].map { .skipped($0) } ?? outcomes.removeLast() }, running)
    }

    /// - Returns: why one of them stays in quarantine.
    private func bringBack(
        _ files: [FileRow], _ returned: inout [Int64: FileIdentity]
    ) async throws(JournalError) -> String? {
        if files.isEmpty { return nil }
        try await journal.beginReturn(of: files.map(\.id))
        for file in files where returned[file.id] == nil {
            switch await returning.run({
                Result { () throws(QuarantineReturn.Refusal) in try QuarantineReturn(file: file).run() }
            }) {
            case .success(let identity): returned[file.id] = identity
            case .failure(let refusal):
                // Also of what was moved: it is taken as a new file then.
                try await journal.endReturn(of: files.map(\.id))
                return refusal.description
            }
        }
        return nil
    }

    /// Asks destinations that are down at once whether they are back; nil = all of them.
    private func probeNow(_ destination: String?) {
        live?.shared.destinations.probeNow(destination)
        live?.shared.signals.raise(.destination)
    }

    /// A person says that it is worth trying: what waits after a failed try is due, and a destination that is down is asked.
    func tryNow(_ destination: String) async throws(JournalError) {
        _ = try await journal.hurry(to: destination, at: .now)
        probeNow(destination)
    }
}
