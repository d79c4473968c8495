package import InletCore
package import InletJournal
internal import InletLinux

/// What can be seen of an agent: the command line and the page read here, and nowhere else.
package struct AgentView: Sendable {
    package let journal: Journal
    /// nil when no agent runs and only the journal is read.
    package let live: LiveView?

    package init(journal: Journal, live: LiveView? = nil) {
        self.journal = journal
        self.live = live
    }

    /// What only a running agent knows.
    package struct LiveView: Sendable {
        package var version: String
        package var startedAt: WallTime
        package var destinations: @Sendable () -> [DestinationBoard.Status]
        package var roots: @Sendable () -> [IntakeStatus]
        package var inFlight: @Sendable () -> [InFlight.Snapshot]
        /// How far a delivery is that its destination works on, as far as is known.
        package var step: @Sendable (Int64) -> StepProgress?
        package var journalIsFailing: @Sendable () -> Bool
    }

    /// The balance: every file seen is in exactly one state.
    package struct Balance: Sendable {
        package var totals: [FileState: StateTotal]
        package var ignored: Int
        package var seen: Int { totals.values.reduce(ignored) { $0 + $1.files } }
        package var pending: Int { totals[.pending]?.files ?? 0 }
    }

    package func balance() async throws(JournalError) -> Balance {
        let ignored = live?.roots().reduce(0) { $0 + $1.ignored } ?? 0
        return Balance(totals: try await journal.totals(), ignored: ignored)
    }
}
