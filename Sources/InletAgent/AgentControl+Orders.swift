package import InletCore
package import InletJournal
internal import InletLinux
internal import InletPipelines
package import SystemPackage

/// The result of a command on a selection.
package struct SelectionOutcome: Sendable {
    package var matched = 0
    package var bytes: Int64 = 0
    package var done = 0
    /// Of those, the files that waited; they are tried as soon as possible.
    package var hurried = 0
    /// How many files were skipped, by reason.
    package var skipped: [String: Int] = [:]
    /// The first of them.
    package var shown: [MatchedFile] = []
    /// The highest number that was looked at: an order that follows a dry run is about no later file. 0 without any.
    package private(set) var highest: Int64 = 0
    /// When the files were looked for.
    package let askedAt = WallTime.now

    /// How many files are listed one by one.
    fileprivate static let mostShown = 20

    fileprivate mutating func add(_ files: some Collection<MatchedFile>) {
        matched += files.count
        bytes += files.reduce(0) { $0 + $1.size }
        shown += files.prefix(max(0, Self.mostShown - shown.count))
    }

    /// They come in the order of their numbers.
    fileprivate mutating func look(at files: [MatchedFile]) { highest = files.last?.id ?? highest }

    fileprivate mutating func add(_ outcomes: [ActionOutcome]) {
        for outcome in outcomes {
            switch outcome {
            case .done: done += 1
            case .hurried: (done, hurried) = (done + 1, hurried + 1)
            case .skipped(let reason): skipped[reason, default: 0] += 1
            }
        }
    }
}

/// The result of a request to send a file.
package enum SendResult: Sendable, Equatable {
    case queued(job: Int64)
    /// It was delivered before and is not sent; with a sentence that reports it.
    case known(job: Int64, String)
    case refused(String)
}

/// The orders.
extension AgentControl {
    // MARK: - Files of the queue

    /// Files per transaction: more would keep deliveries from the journal.
    private static let group = 256

    /// Applies `action` to every file that passes `filter`, oldest first. Files that ended with their main file are
    /// sent again with it. Each file is changed whole or not at all.
    ///
    /// - Parameter dryRun: only reports the effect.
    package func act(
        _ action: JobAction, on filter: FileFilter, dryRun: Bool = false
    ) async throws(JournalError) -> SelectionOutcome {
        var outcome = SelectionOutcome()
        var filter = filter
        // A marker that failed with its unit is not sent; a person who names it by its number gets the reason.
        filter.hasDeliveries = action == .retry && filter.ids == nil
        var cursor: Int64?
        while outcome.matched < filter.limit {
            let part = try await journal.matches(filter, from: cursor)
            let files = Array(part.files.prefix(filter.limit - outcome.matched))
            outcome.look(at: files)
            // The number that is said before an order is of the files that it really concerns. The other orders decide
            // that for each file when they are carried out.
            let isAsked = dryRun || action.answer != nil
            let meant = isAsked ? try await concerned(files, action, &outcome) : files
            outcome.add(meant)
            if !dryRun { outcome.add(try await act(action, on: meant.map { $0.id })) }
            guard let next = part.next else { break }
            cursor = next
        }
        if outcome.hurried > 0 { probeNow(filter.destination) }
        return outcome
    }

    /// The files that an order concerns; the others are counted by their reason.
    private func concerned(
        _ files: [MatchedFile], _ action: JobAction, _ outcome: inout SelectionOutcome
    ) async throws(JournalError) -> [MatchedFile] {
        var meant: [MatchedFile] = []
        for group in files.groups(of: Self.group) {
            for (file, job) in zip(group, try await journal.jobs(group.map { $0.id }) { _ in true }) {
                guard let job else { continue }
                if let refusal = refusal(of: action, on: job) {
                    outcome.skipped[refusal, default: 0] += 1
                } else {
                    meant.append(file)
                }
            }
        }
        return meant
    }

    /// The orders that would do something to a file now.
    package func actions(on job: Job) -> [JobAction] {
        JobAction.allCases.filter { refusal(of: $0, on: job) == nil }
    }

    private func refusal(of action: JobAction, on job: Job) -> String? {
        job.refusal(of: action) ?? obstacle(to: action, on: job.file)
    }

    /// Why this agent can put away no source of that folder.
    private func obstacle(to action: JobAction, on file: FileRow) -> String? {
        guard action == .aside || action == .remove else { return nil }
        guard let live else { return "stays: no agent is running" }
        let folder = live.shared.settings.knownRoots.first { $0.covers(file.root) }
        guard FinishFolders(root: file.root, settings: folder, isVolume: file.volume != nil).mayWrite else {
            return "stays: Inlet does not change this volume (volume_writes)"
        }
        guard let changeable = live.changeable else { return nil }
        if let folder, changeable.contains(folder.path) { return nil }
        return "stays: the agent gave up the right to change this folder when it started; "
            + "set 'on_failure: quarantine' at a route, or 'landlock: off', and restart it"
    }

    /// The same for one file.
    package func act(_ action: JobAction, on file: Int64) async throws(JournalError) -> ActionOutcome {
        if action.answer != nil, let job = try await journal.job(file),
            let obstacle = obstacle(to: action, on: job.file)
        {
            return .skipped(obstacle)
        }
        let outcome = try await act(action, on: [file])[0]
        if outcome == .hurried { probeNow(nil) }
        return outcome
    }

    /// - Parameter files: for an answer, those with no obstacle.
    private func act(_ action: JobAction, on files: [Int64]) async throws(JournalError) -> [ActionOutcome] {
        var outcomes: [ActionOutcome] = []
        for group in files.groups(of: Self.group) {
            Failpoint.acting.reached()
            let (these, running) =
                switch action {
                case .retry: try await retry(group)
                case .cancel: try await journal.act(.cancel, on: group, at: .now)
                case .forget: try await journal.act(.forget, on: group, at: .now)
                case .first: try await journal.act(.first, on: group, at: .now)
                case .leave: try await journal.act(.answer(.left), on: group, at: .now)
                case .aside: try await journal.act(.answer(.aside), on: group, at: .now)
                case .remove: try await journal.act(.answer(.removed), on: group, at: .now)
                }
            Failpoint.acted.reached()
            outcomes += these
            switch action {
            case .retry, .first: live?.shared.signals.raiseDeliverable()
            case .cancel: ended(running)
            // To leave a file may withdraw an order.
            case .aside, .remove, .leave: live?.shared.signals.raise(.finishable, .removable)
            case .forget: break
            }
        }
        return outcomes
    }

    private func retry(_ files: [Int64]) async throws(JournalError) -> (outcomes: [ActionOutcome], running: [Int64]) {
        let stored = try await journal.uptimes()
        let uptimes = live?.shared.destinations.uptimes() ?? stored
        return try await FileRetry(journal: journal, pool: returning, uptimes: uptimes).run(files)
    }

    /// Checks at once whether destinations that are down are back; nil is all of them.
    private func probeNow(_ destination: String?) {
        live?.shared.destinations.probeNow(destination)
        live?.shared.signals.raise(.destination)
    }

    /// A person asks for a try: deliveries that wait after a failure are due, and a destination that is down is
    /// checked.
    func tryNow(_ destination: String) async throws(JournalError) {
        _ = try await journal.hurry(to: destination, at: .now)
        probeNow(destination)
    }

    // MARK: - The agent

    /// Cancels all waiting and running deliveries, a group of files at a time.
    /// - Returns: how many files were cancelled, and how many were skipped, by reason.
    package func clear() async throws(JournalError) -> (files: Int, skipped: [String: Int]) {
        var (files, skipped) = (0, [String: Int]())
        var left: Range<Int64>? = Journal.anyFile
        while let numbers = left {
            Failpoint.acting.reached()
            let step = try await journal.clear(numbers, at: .now)
            Failpoint.acted.reached()
            // At once: the next step may fail.
            ended(step.running)
            files += step.files
            skipped.merge(step.skipped, uniquingKeysWith: +)
            left = step.next
        }
        return (files, skipped)
    }

    func ended(_ running: [Int64]) {
        for delivery in running {
            guard let shared = live?.shared, !shared.lanes.letGo(of: delivery) else { continue }
            shared.transfers.cancel(delivery)
        }
        live?.shared.signals.raise(.leftover, .finishable)
        // The cancelled file may have been the last that others waited for.
        live?.shared.signals.raiseDeliverable()
    }

    /// Pauses or resumes a destination, or all of them. - Returns: the affected names, empty for an unknown one.
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
        // Also when paused: claims at hand for it return to the queue.
        live?.shared.signals.raiseDeliverable()
        // Work of shares may be claimed for it again, or goes to others.
        live?.shared.signals.raise(.fleet(.work))
        return names
    }

    /// Limits the bandwidth of a destination, or of all together, until `auto` or the next start.
    ///
    /// - Returns: the limit in effect; nil for an unknown destination, and while no agent runs.
    package func limit(_ order: BandwidthPolicy.Order, for destination: String?) -> BandwidthPolicy.Status? {
        live?.bandwidth.take(order, for: destination)
    }

    /// Accepts a watched folder in its present state, although it differs from the one before.
    ///
    /// - Returns: false without a folder at `root`.
    package func resume(root: FilePath, by: String) async throws -> Bool {
        // A folder of another machine may be slow, or not answer.
        let pool = BlockingPool(name: "mark", threads: 1)
        defer { pool.shutdown() }
        let found = try await pool.run { () throws in
            var mark = try RootCheck.mark(of: root)
            mark?.wasEmptied = RootCheck.isEmpty(root) ? true : nil
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

    /// Queues files in the running agent, for `destination` or by their routes. - Returns: the result for each.
    ///
    /// - Parameter again: sends files once more that were delivered before.
    package func send(_ paths: [FilePath], to destination: String?, again: Bool = false) async -> [SendResult] {
        guard let live else { return paths.map { _ in .refused("no agent is running") } }
        return await Admission(live.shared).send(paths, to: destination, again: again, on: live.asking)
    }

    /// Makes the running agent reload its configuration. - Returns: nil when no agent with a configuration runs.
    package func reload() async -> ReloadOutcome? { await live?.reload?.reload() }

    /// The lowest level that the running agent logs, and the configured one; nil while no agent runs, or none logs.
    package var logLevel: (now: LogSettings.Level, configured: LogSettings.Level)? {
        guard let log = live?.shared.log, let now = log.level, let configured = log.configuredLevel else { return nil }
        return (now, configured)
    }

    /// Sets the lowest level that is logged until the next start or reload; false while no agent runs.
    package func setLogLevel(_ level: LogSettings.Level, by: String) -> Bool {
        live?.shared.log.setLevel(level, by: by) ?? false
    }

    /// An access token for a destination, as its pipeline uses it.
    ///
    /// - Parameters:
    ///   - refused: a token that the server refused, to get another one.
    ///   - by: who asks, for the log.
    package func accessToken(
        _ name: String, after refused: Secret? = nil, by: String
    ) async throws(DeliveryError) -> Secret {
        guard let destination = destination(name) else {
            throw DeliveryError(.giveUp, .notConfigured, "no destination is named '\(name)'")
        }
        guard let give = destination.accessToken else {
            throw DeliveryError(.giveUp, .badRequest, "destination '\(name)' has no tokens to give")
        }
        let token = try await give(refused)
        live?.shared.log.emit(.tokenGiven(destination: name, to: by))
        return token
    }

    /// Deletes the results of a file's deliveries of `type` at their destination, by `InletPipelines.Destination.undo`.
    /// The journal records that, and forgets single-use values.
    ///
    /// - Returns: one sentence per delivery; empty when the file has none that was delivered there.
    /// - Throws: after every delivery was tried, a `DeliveryError` that lists successes and failures. An earlier
    ///   deletion counts only when nothing else was there to delete.
    package func undo(_ file: Int64, type: String) async throws -> [String] {
        var said: [String] = []
        var failures: [DeliveryError] = []
        var repeated: DeliveryError?
        let job = try await journal.job(file)
        for delivery in job?.deliveries ?? [] {
            guard var proof = delivery.proof,
                let destination = destination(delivery.destination), destination.type == type,
                let undo = destination.undo
            else { continue }
            if let owner = proof.sameAsAgent.map({ "\($0) of the fleet" }) ?? proof.sameAs.map({ "job \($0)" }) {
                let reason = "no upload to '\(destination.name)': it has the content from \(owner)"
                failures.append(DeliveryError(.giveUp, .conflict, reason))
                continue
            }
            do throws(DeliveryError) {
                said.append(try await undo(journal.seal.opened(proof)))
            } catch {
                if error.code == .notFound, proof.isDeleted {
                    repeated = error
                } else {
                    failures.append(error)
                }
                continue
            }
            proof.secrets = nil
            proof.details = (proof.details ?? [:]).merging([Proof.deletedName: WallTime.now.rfc3339]) { $1 }
            try await journal.replaceProof(of: delivery.id, by: proof)
            if let job { live?.shared.fleet.contents.deleted(delivery, of: job.file) }
        }
        if said.isEmpty, failures.isEmpty, let repeated { throw repeated }
        guard let first = failures.first else { return said }
        throw DeliveryError(first.verdict, first.code, (said + failures.map(\.reason)).joined(separator: "\n"))
    }
}
