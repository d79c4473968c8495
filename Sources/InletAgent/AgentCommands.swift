package import InletCore
package import InletJournal
internal import InletLinux
package import InletPipelines
package import SystemPackage

/// What can be asked of an agent: through its control socket, or on its journal while it is not running.
package struct AgentCommands: Sendable {
    let journal: Journal
    /// nil when no agent runs.
    let live: Live?
    private let destination: @Sendable (String) -> Destination?
    /// For files that are moved back from quarantine.
    let returning = BlockingPool(name: "quarantine", threads: 1)

    /// What a running agent is told beside its journal.
    struct Live: Sendable {
        var board: DestinationRegistry
        var inFlight: Transfers
        var lanes: Lanes
        var signals: Signals
        var log: EventLog
        var limits: BandwidthKeeper
        var roots: RootRegistry
        var sending: SendService
        /// nil for an agent that has no configuration file.
        var reload: Reload?
    }

    /// For a journal whose lock the caller holds; `destination` makes one by its name.
    package init(journal: Journal, destination: @escaping @Sendable (String) -> Destination? = { _ in nil }) {
        self.journal = journal
        live = nil
        self.destination = destination
    }

    init(journal: Journal, live: Live) {
        self.journal = journal
        self.live = live
        destination = { live.board[$0] }
    }

    /// Cancels everything that waits or runs now, a group of files at a time.
    /// - Returns: how many files that were, and how many others nothing was done to, by the reason.
    package func clear() async throws(JournalError) -> (files: Int, skipped: [String: Int]) {
        var (files, skipped) = (0, [String: Int]())
        var place: ClearingPlace? = ClearingPlace()
        while let from = place {
            Failpoint.acting.reached()
            let step = try await journal.clear(from: from, at: .now)
            Failpoint.acted.reached()
            // At once: the next step may fail.
            ended(step.running)
            files += step.files
            skipped.merge(step.skipped, uniquingKeysWith: +)
            place = step.next
        }
        return (files, skipped)
    }

    func ended(_ running: [Int64]) {
        for delivery in running {
            guard let live, !live.lanes.letGo(of: delivery) else { continue }
            live.inFlight.cancel(delivery)
        }
        live?.signals.raise(.leftover, .finishable)
        // What was cancelled may have been the last that others waited for.
        live?.signals.raiseDeliverable()
    }

    /// A token for requests to a destination, as its pipeline uses it.
    ///
    /// - Parameters:
    ///   - refused: one that the server no longer takes, so that another is given.
    ///   - by: who asks, for the log.
    package func accessToken(
        _ name: String, after refused: Secret? = nil, by: String
    ) async throws(DeliveryError) -> Secret {
        guard let destination = destination(name) else {
            throw DeliveryError(.giveUp, .notConfigured, "no destination is called '\(name)'")
        }
        guard let give = destination.accessToken else {
            throw DeliveryError(.giveUp, .badRequest, "destination '\(name)' has no tokens to give")
        }
        let token = try await give(refused)
        live?.log.emit(.tokenGiven(destination: name, to: by))
        return token
    }

    /// Deletes at its destination what a file's deliveries of `type` left there, as `InletPipelines.Destination.undo`
    /// does it. The journal remembers that, and forgets what can be used once only.
    ///
    /// - Returns: what was done, a sentence a delivery; empty when the file has none that was delivered there.
    /// - Throws: once every delivery was tried, a `DeliveryError` that says what was done and what was not. One that was
    ///   deleted earlier counts only when nothing else was there to delete.
    package func undo(_ file: Int64, type: String) async throws -> [String] {
        var said: [String] = []
        var failures: [DeliveryError] = []
        var repeated: DeliveryError?
        for delivery in try await journal.job(file)?.deliveries ?? [] {
            guard var proof = delivery.proof,
                let destination = destination(delivery.destination), destination.type == type,
                let undo = destination.undo
            else { continue }
            if let first = proof.sameAs {
                let reason = "nothing was sent to '\(destination.name)': it has the content from job \(first)"
                failures.append(DeliveryError(.giveUp, .conflict, reason))
                continue
            }
            switch await Self.result(of: undo, journal.seal.opened(proof)) {
            case .success(let done): said.append(done)
            case .failure(let error):
                if error.code == .notFound, proof.isDeleted {
                    repeated = error
                } else {
                    failures.append(error)
                }
                continue
            }
            proof.keepsakes = nil
            proof.details = (proof.details ?? [:]).merging([Proof.deletedName: WallTime.now.rfc3339]) { $1 }
            try await journal.replaceProof(of: delivery.id, by: proof)
        }
        if said.isEmpty, failures.isEmpty, let repeated { throw repeated }
        guard let first = failures.first else { return said }
        throw DeliveryError(first.verdict, first.code, (said + failures.map(\.reason)).joined(separator: "\n"))
    }

    private static func result(
        of undo: @Sendable (Proof) async throws(DeliveryError) -> String, _ proof: Proof
    ) async -> Result<String, DeliveryError> {
        do throws(DeliveryError) {
            return .success(try await undo(proof))
        } catch {
            return .failure(error)
        }
    }

    /// Pauses or resumes a destination, or all of them. - Returns: the names that were meant, empty for an unknown one.
    package func setPaused(
        _ paused: Bool, _ destination: String?, known: [String], by: String
    ) async throws(JournalError) -> [String] {
        let names = destination.map { [$0] } ?? known
        guard names.allSatisfy({ known.contains($0) }) else { return [] }
        for name in names {
            Failpoint.acting.reached()
            try await journal.setPaused(name, paused)
            Failpoint.acted.reached()
            if !paused { try await tryNow(name) }
            guard let live, live.board.setPaused(name, paused) else { continue }
            live.log.emit(
                paused
                    ? .destinationPaused(destination: name, by: by) : .destinationResumed(destination: name, by: by))
        }
        // Also when paused: what waits at hand for it goes back to the queue.
        live?.signals.raiseDeliverable()
        return names
    }

    /// Backs the journal up, as `JournalBackups.make` does. - Returns: the backup's path.
    package func backUp(to target: FilePath?) async throws -> FilePath {
        try await JournalBackups(journal).make(at: target, now: .now)
    }

    /// Takes files into the running agent's queue, to `destination` or by their routes. - Returns: what came of each.
    ///
    /// - Parameter again: whether what was delivered before is sent once more.
    package func send(_ paths: [FilePath], to destination: String?, again: Bool = false) async -> [SendAnswer] {
        await live?.sending.send(paths, to: destination, again: again)
            ?? paths.map { _ in .refused("no agent is running") }
    }
}

/// What became of a request to send a file.
package enum SendAnswer: Sendable, Equatable {
    case queued(job: Int64)
    /// It was delivered before, and nothing is sent; with the sentence that says so.
    case known(job: Int64, String)
    case refused(String)
}
