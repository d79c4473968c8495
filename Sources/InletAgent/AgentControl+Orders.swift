package import InletCore
package import InletJournal
internal import InletLinux
internal import InletPipelines
package import SystemPackage

/// What may be ordered.
extension AgentControl {
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
            live.transfers.cancel(delivery)
        }
        live?.shared.signals.raise(.leftover, .finishable)
        // What was cancelled may have been the last that others waited for.
        live?.shared.signals.raiseDeliverable()
    }

    /// Pauses or resumes a destination, or all of them. - Returns: the names that were meant, empty for an unknown one.
    package func setPaused(
        _ paused: Bool, _ destination: String?, by: String
    ) async throws(JournalError) -> [String] {
        let known = destinations.map(\.name)
        let names = destination.map { [$0] } ?? known
        guard names.allSatisfy({ known.contains($0) }) else { return [] }
        for name in names {
            Failpoint.acting.reached()
            try await journal.setPaused(name, paused)
            Failpoint.acted.reached()
            if !paused { try await tryNow(name) }
            guard let live, live.shared.destinations.setPaused(name, paused) else { continue }
            live.shared.log.emit(
                paused
                    ? .destinationPaused(destination: name, by: by) : .destinationResumed(destination: name, by: by))
        }
        // Also when paused: what waits at hand for it goes back to the queue.
        live?.shared.signals.raiseDeliverable()
        return names
    }

    /// Sets how fast may be sent to a destination, or to all together, until `auto` or the next start.
    ///
    /// - Returns: what holds there now; nil for a destination that there is none of, and while no agent runs.
    package func limit(_ order: BandwidthBook.Order, for destination: String?) -> BandwidthBook.Standing? {
        live?.bandwidth.take(order, for: destination)
    }

    /// Takes a watched folder as it is now, although it is not what was watched before.
    ///
    /// - Returns: false when there is no folder at `root`.
    package func resume(root: FilePath, by: String) async throws -> Bool {
        // One of another machine may take its time, or not answer.
        let pool = BlockingPool(name: "mark", threads: 1)
        defer { pool.shutdown() }
        let found = try await pool.run { () throws in
            var mark = try RootCaution.mark(of: root)
            mark?.wasEmptied = RootCaution.isEmpty(root) ? true : nil
            return mark
        }
        guard let mark = found else { return false }
        try await journal.setMark(mark, of: root, at: .now)
        live?.shared.log.emit(.watchResumed(root: root, by: by))
        live?.shared.roots.nudge(root)
        return true
    }

    /// Backs the journal up, as `JournalBackups.make` does. - Returns: the backup's path.
    package func backUp(to target: FilePath?) async throws -> FilePath {
        try await JournalBackups(journal).make(at: target, now: .now)
    }

    /// Takes files into the running agent's queue, to `destination` or by their routes. - Returns: what came of each.
    ///
    /// - Parameter again: whether what was delivered before is sent once more.
    package func send(_ paths: [FilePath], to destination: String?, again: Bool = false) async -> [SendAnswer] {
        guard let live else { return paths.map { _ in .refused("no agent is running") } }
        return await SendService(live.shared, reading: live.asking).send(paths, to: destination, again: again)
    }

    /// Has the running agent read its configuration again. - Returns: nil when none runs that has one.
    package func reload() async -> ReloadOutcome? { await live?.reload?.reload() }

    /// The least important level that the running agent logs, and the configuration's; nil while no agent runs, or none logs.
    package var logLevel: (now: LogSettings.Level, configured: LogSettings.Level)? {
        guard let log = live?.shared.log, let now = log.level, let configured = log.configuredLevel else { return nil }
        return (now, configured)
    }

    /// Logs from now on what is at least as important, until the next start or reload; false while no agent runs.
    package func setLogLevel(_ level: LogSettings.Level, by: String) -> Bool {
        live?.shared.log.setLevel(level, by: by) ?? false
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
        live?.shared.log.emit(.tokenGiven(destination: name, to: by))
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
}

/// What became of a request to send a file.
package enum SendAnswer: Sendable, Equatable {
    case queued(job: Int64)
    /// It was delivered before, and nothing is sent; with the sentence that says so.
    case known(job: Int64, String)
    case refused(String)
}
