package import InletAgent
package import InletCore
package import InletJournal
internal import InletLinux
package import SystemPackage

/// Everything that can be asked of an agent, the same whether it runs (over its socket) or not (on its journal).
package protocol ControlAPI: Sendable {
    func status() async throws -> StatusReport
    func jobs(states: [FileState], destination: String?, limit: Int) async throws -> [JobReport]
    /// Files of a selection, newest first; 100 of them if it names no limit.
    func jobs(_ selection: JobSelection) async throws -> [JobReport]
    func job(_ id: Int64) async throws -> JobReport?
    /// Newest first.
    func batches(limit: Int) async throws -> [JobReport.Batch]
    /// nil = the batch that ended last.
    func offload(_ batch: Int64?) async throws -> OffloadReport?
    /// `retry`, `cancel`, `forget`.
    func act(_ action: JobAction, on job: Int64) async throws -> CommandReport
    /// The same for every file of a selection, oldest first; with `dryRun` only says what would be done.
    func act(_ action: JobAction, on selection: JobSelection, dryRun: Bool) async throws -> SelectionReport
    /// Deletes at its destination what was delivered to one of `type`.
    func undo(_ job: Int64, type: String) async throws -> CommandReport
    /// A token for requests to a destination, as the agent uses it; after one that the server has refused, another.
    func accessToken(_ destination: String, after refused: Secret?) async throws -> TokenReport
    func clear() async throws -> CommandReport
    /// nil = every destination.
    func setPaused(_ paused: Bool, destination: String?) async throws -> CommandReport
    /// How fast may be sent, all destinations together first; empty while no agent runs.
    func limits() async throws -> [LimitReport]
    /// Sets that, until `auto` or the agent's next start.
    func limit(_ wish: LimitWish) async throws -> CommandReport
    /// Takes a watched folder as it is now.
    func resume(root: FilePath) async throws -> CommandReport
    /// Receipts as JSON lines, newest first.
    func receipts(limit: Int) async throws -> [String]
    /// The proofs of what was delivered, a page at a time.
    func proofs(_ wish: ProofWish) async throws -> ProofPage
    /// Takes files into the queue. - Returns: what came of each, in their order.
    func send(_ paths: [FilePath], to destination: String?, again: Bool) async throws -> [CommandReport]
    /// How far jobs are, for somebody who tells of them in their order.
    func follow(_ jobs: [Int64]) async throws -> FollowReport
    /// Backs the journal up; nil = under a name of its own in the state directory.
    func backUp(to target: FilePath?) async throws -> CommandReport
    /// The jobs that brought a content to some of the destinations.
    func originals(_ question: ContentQuestion) async throws -> [ContentReport]
    /// Has the configuration read again: a right one holds from then on, a wrong one changes nothing.
    func reload() async throws -> ReloadReport
    /// The configuration that holds; nil while no agent runs, and for one that has no file.
    func config() async throws -> ConfigReport?
}

/// The API on an agent of this process, or on the journal of one that does not run: says what came of it, in reports.
package struct LocalControl: ControlAPI {
    let agent: AgentControl
    let by: String
    private let dashboard: DashboardStanding?

    /// - Parameters:
    ///   - by: who asks, for the log.
    ///   - dashboard: nil where nothing listens on a port.
    package init(_ agent: AgentControl, by: String = "a person", dashboard: DashboardStanding? = nil) {
        self.agent = agent
        self.by = by
        self.dashboard = dashboard
    }

    package func status() async throws -> StatusReport {
        var report = try await StatusReport(agent)
        report.dashboard = dashboard?.current
        return report
    }

    package func jobs(states: [FileState], destination: String?, limit: Int) async throws -> [JobReport] {
        try await jobs(FileFilter(states: states, destination: destination, limit: limit))
    }

    func jobs(_ filter: FileFilter) async throws -> [JobReport] {
        try await agent.jobs(filter).map { JobReport($0) }
    }

    package func jobs(_ selection: JobSelection) async throws -> [JobReport] {
        var filter = try selection.filter(at: .now)
        filter.limit = min(filter.limit, selection.limit == nil ? 100 : 10_000)
        return try await agent.jobs(filter).map { JobReport($0) }
    }

    package func act(
        _ action: JobAction, on selection: JobSelection, dryRun: Bool
    ) async throws -> SelectionReport {
        let outcome = try await agent.act(action, on: try selection.filter(at: .now), dryRun: dryRun)
        var report = SelectionReport(outcome, dryRun: dryRun)
        if outcome.hurried > 0 { report.waits_for = obstacles(to: selection.destination, at: .now) }
        return report
    }

    package func job(_ id: Int64) async throws -> JobReport? {
        guard let job = try await agent.job(id) else { return nil }
        return JobReport(job, batch: try await agent.journal.batch(of: id))
    }

    package func batches(limit: Int) async throws -> [JobReport.Batch] {
        try await agent.journal.batches(limit: limit).map { JobReport.Batch($0) }
    }

    package func offload(_ batch: Int64?) async throws -> OffloadReport? {
        guard let found = try await agent.journal.batch(batch) else { return nil }
        return OffloadReport(found, try await agent.journal.jobs(ofBatch: found.id), at: .now)
    }

    package func act(_ action: JobAction, on job: Int64) async throws -> CommandReport {
        guard try await agent.journal.job(job) != nil else {
            return CommandReport(done: false, message: "there is no job \(job)")
        }
        switch try await agent.act(action, on: job) {
        case .skipped(let why): return CommandReport(done: false, message: "job \(job) \(why)")
        case .hurried:
            let obstacles = try await obstacles(job, at: .now)
            let fate = obstacles.isEmpty ? "is tried now" : "is tried later: \(obstacles.joined(separator: "; "))"
            return CommandReport(done: true, message: "job \(job) \(fate)")
        case .done:
            let what =
                switch action {
                case .retry: "is queued again"
                case .cancel: "is cancelled"
                case .forget: "is forgotten"
                }
            let obstacles = action == .retry && agent.live != nil ? try await obstacles(job, at: .now) : []
            return CommandReport(
                done: true, message: "job \(job) \(what)" + obstacles.map { "; \($0)" }.joined())
        }
    }

    package func undo(_ job: Int64, type: String) async throws -> CommandReport {
        guard let report = try await self.job(job) else {
            return CommandReport(done: false, message: "there is no job \(job)")
        }
        do {
            let said = try await agent.undo(job, type: type)
            guard said.isEmpty else {
                return CommandReport(done: true, message: said.joined(separator: "\n"), job: job)
            }
            return CommandReport(
                done: false, message: "\(report.path) was not delivered to a destination of type \(type)")
        } catch let error as DeliveryError {
            return CommandReport(done: false, message: "\(error)")
        }
    }

    package func accessToken(_ destination: String, after refused: Secret?) async throws -> TokenReport {
        do throws(DeliveryError) {
            return TokenReport(token: try await agent.accessToken(destination, after: refused, by: by))
        } catch {
            return TokenReport(message: "\(error)")
        }
    }

    package func clear() async throws -> CommandReport {
        let (files, skipped) = try await agent.clear()
        let left = skipped.sorted { $0.key < $1.key }.map { "; \(Self.files($0.value)) skipped: \($0.key)" }
        return CommandReport(done: true, message: "\(Self.files(files)) cancelled" + left.joined())
    }

    private static func files(_ count: Int) -> String { count == 1 ? "1 file" : "\(count) files" }

    package func setPaused(_ paused: Bool, destination: String?) async throws -> CommandReport {
        let names = try await agent.setPaused(paused, destination, by: by)
        if names.isEmpty, let destination { return unknownDestination(destination) }
        return CommandReport(
            done: true,
            message: "\(paused ? "paused" : "resumed"): \(names.joined(separator: ", "))"
                + (paused ? "" : stillAway(names)))
    }

    /// Takes a watched folder as it is now, which was paused because it is not what it was.
    package func resume(root: FilePath) async throws -> CommandReport {
        let root = watched(root)
        if let live = agent.live, !live.watched.contains(root) {
            return CommandReport(done: false, message: "\(root.display) is not watched")
        }
        let isThere: Bool
        do {
            isThere = try await agent.resume(root: root, by: by)
        } catch let error as SystemError {
            return CommandReport(done: false, message: "\(root.display) cannot be looked at: \(error)")
        }
        return CommandReport(
            done: isThere, message: isThere ? "watched as it is: \(root.display)" : "\(root.display) is not a folder")
    }

    package func receipts(limit: Int) async throws -> [String] {
        try await agent.journal.receipts(limit: limit).map { String(decoding: $0, as: UTF8.self) }
    }

    package func proofs(_ wish: ProofWish) async throws -> ProofPage {
        let (page, next) = try await agent.journal.delivered(wish.filter, after: wish.after, limit: ProofPage.size)
        return ProofPage(proofs: page.map { ProofReport($0) }, next: next)
    }

    package func send(
        _ paths: [FilePath], to destination: String?, again: Bool
    ) async throws -> [CommandReport] {
        await agent.send(paths, to: destination, again: again).map { answer in
            switch answer {
            case .known(let job, let what): CommandReport(done: true, message: what, job: job, known: true)
            case .queued(let job): CommandReport(done: true, message: "queued as job \(job)", job: job)
            case .refused(let why): CommandReport(done: false, message: why)
            }
        }
    }

    package func backUp(to target: FilePath?) async throws -> CommandReport {
        do {
            let path = try await agent.backUp(to: target)
            return CommandReport(done: true, message: "the journal is backed up as \(path.display)")
        } catch {
            return CommandReport(done: false, message: "no backup was made: \(error)")
        }
    }

    package func originals(_ question: ContentQuestion) async throws -> [ContentReport] {
        let found = try await agent.journal.originals(question)
        return question.destinations.compactMap { name in
            found[name].map {
                ContentReport(destination: name, job: $0.job, path: $0.path.display, key: $0.proof.key)
            }
        }
    }

    package func reload() async throws -> ReloadReport { ReloadReport(await agent.reload()) }

    package func config() async throws -> ConfigReport? { agent.live?.config.map { ConfigReport($0) } }

    func unknownDestination(_ name: String) -> CommandReport {
        let hint =
            Suggestion.nearest(to: name, in: agent.destinations.map(\.name)).map { "; did you mean '\($0)'?" } ?? ""
        return CommandReport(done: false, message: "no destination is called '\(DisplayText.escape(name))'\(hint)")
    }

    /// The same API, on behalf of somebody else.
    func acting(for who: String) -> LocalControl {
        LocalControl(agent, by: who, dashboard: dashboard)
    }
}
