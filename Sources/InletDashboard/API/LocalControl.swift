internal import Foundation
package import InletAgent
internal import InletCore
package import InletJournal
internal import InletLinux
package import SystemPackage

/// An agent, whether it runs (over its socket) or not (on its journal): everything that `Endpoints` declares can be
/// asked of it.
package protocol ControlAPI: Sendable {
    func ask<Body, Answer: Decodable>(
        _ endpoint: TypedEndpoint<Body, Answer>, _ parameters: KeyValuePairs<Parameter, String?>, body: Body
    ) async throws -> Answer

    /// The figures in Prometheus' text format.
    func metrics() async throws -> String
}

extension ControlAPI {
    package func ask<Answer: Decodable>(
        _ endpoint: TypedEndpoint<NoBody, Answer>, _ parameters: KeyValuePairs<Parameter, String?> = [:]
    ) async throws -> Answer { try await ask(endpoint, parameters, body: nil) }

    package func ask<Body, Answer: Decodable>(
        _ endpoint: TypedEndpoint<Body, Answer>, body: Body
    ) async throws -> Answer { try await ask(endpoint, [:], body: body) }

    /// nil where there is no such thing (404).
    package func find<Answer: Decodable>(
        _ endpoint: TypedEndpoint<NoBody, Answer>, _ parameters: KeyValuePairs<Parameter, String?> = [:]
    ) async throws -> Answer? { try await find(endpoint, parameters, body: nil) }

    package func find<Body, Answer: Decodable>(
        _ endpoint: TypedEndpoint<Body, Answer>, _ parameters: KeyValuePairs<Parameter, String?> = [:], body: Body
    ) async throws -> Answer? {
        do {
            return try await ask(endpoint, parameters, body: body)
        } catch let fault as APIFault where fault.status == 404 {
            return nil
        } catch let failure as ControlClient.Failure where failure.isMissing {
            return nil
        }
    }

    /// Queues files, a batch at a time. - Returns: the outcome for each, in their order.
    package func send(
        _ paths: [FilePath], to destination: String?, again: Bool
    ) async throws -> [CommandReport] {
        var answers: [CommandReport] = []
        for start in stride(from: 0, to: paths.count, by: SendOrder.most) {
            let some = paths[start..<min(start + SendOrder.most, paths.count)].map { Data($0.bytes) }
            answers += try await ask(Endpoints.send, body: SendOrder(paths: some, to: destination, again: again))
        }
        return answers
    }
}

/// The API of an agent in this process, or of the journal of an agent that does not run.
package struct LocalControl: ControlAPI {
    let agent: AgentControl
    let by: String
    private let dashboard: DashboardStatus?

    /// - Parameters:
    ///   - by: the caller, for the log.
    ///   - dashboard: nil where no port is open.
    package init(_ agent: AgentControl, by: String = "a person", dashboard: DashboardStatus? = nil) {
        self.agent = agent
        self.by = by
        self.dashboard = dashboard
    }

    /// The same API, on behalf of another caller.
    func acting(for who: String) -> LocalControl { LocalControl(agent, by: who, dashboard: dashboard) }

    package func ask<Body, Answer: Decodable>(
        _ endpoint: TypedEndpoint<Body, Answer>, _ parameters: KeyValuePairs<Parameter, String?>, body: Body
    ) async throws -> Answer {
        let call = APICall(
            context: APIContext(control: self), principal: Principal(access: .full, name: by),
            parameters: endpoint.row.given(parameters))
        return try await endpoint.answer(call, body)
    }

    package func metrics() async throws -> String { try await MetricsPage(agent).text() }

    package func status() async throws -> StatusReport {
        var report = try await StatusReport(agent)
        report.dashboard = dashboard?.current
        return report
    }

    /// A link to the page that logs a browser in, once.
    func loginLink() -> LoginLinkReport {
        guard let dashboard else {
            return LoginLinkReport(
                message: "the configuration opens no port; add 'dashboard: { listen: \"127.0.0.1:8844\" }'")
        }
        if let error = dashboard.current.error {
            return LoginLinkReport(message: "the page cannot be served: \(error)")
        }
        return LoginLinkReport(url: dashboard.loginLink())
    }

    // MARK: - Files of the queue

    package func jobs(_ filter: FileFilter) async throws -> [JobReport] {
        try await agent.jobs(filter).map { JobReport($0, actions: agent.actions(on: $0)) }
    }

    func job(_ id: Int64) async throws -> JobReport? {
        guard let job = try await agent.job(id) else { return nil }
        return JobReport(job, batch: try await agent.journal.batch(of: id), actions: agent.actions(on: job))
    }

    func act(
        _ action: JobAction, on selection: JobSelection, dryRun: Bool
    ) async throws -> SelectionReport {
        let outcome = try await agent.act(action, on: try selection.filter(at: .now), dryRun: dryRun)
        var report = SelectionReport(outcome, dryRun: dryRun)
        if outcome.hurried > 0 { report.waits_for = obstacles(to: selection.destination, at: .now) }
        return report
    }

    func act(_ action: JobAction, on job: Int64) async throws -> CommandReport {
        guard try await agent.journal.job(job) != nil else {
            return .refused("there is no job \(job)")
        }
        switch try await agent.act(action, on: job) {
        case .skipped(let why): return .refused("job \(job) \(why)")
        case .hurried:
            let obstacles = try await obstacles(job, at: .now)
            let fate = obstacles.isEmpty ? "is tried now" : "is tried later: \(obstacles.joined(separator: "; "))"
            return .done("job \(job) \(fate)")
        case .done:
            let what =
                switch action {
                case .retry: "is queued again"
                case .cancel: "is cancelled"
                case .forget: "is forgotten"
                case .first: "goes before the others"
                case .leave: "stays where it is"
                case .aside: "is moved aside"
                case .remove: "is removed once its destinations have proved that they have it"
                }
            let obstacles = action == .retry && agent.live != nil ? try await obstacles(job, at: .now) : []
            return .done("job \(job) \(what)" + obstacles.map { "; \($0)" }.joined())
        }
    }

    func undo(_ job: Int64, type: String) async throws -> CommandReport {
        guard let report = try await self.job(job) else {
            return .refused("there is no job \(job)")
        }
        do {
            let said = try await agent.undo(job, type: type)
            guard said.isEmpty else {
                return CommandReport(done: true, message: said.joined(separator: "\n"), job: job)
            }
            return .refused("\(report.path) was not delivered to a destination of type \(type)")
        } catch let error as DeliveryError {
            return .refused("\(error)")
        }
    }

    // MARK: - What is sent

    func setPaused(_ paused: Bool, destination: String?) async throws -> CommandReport {
        let names = try await agent.setPaused(paused, destination, by: by)
        if names.isEmpty, let destination { return unknownDestination(destination) }
        return .done(
            "\(paused ? "paused" : "resumed"): \(names.joined(separator: ", "))"
                + (paused ? "" : stillAway(names)))
    }

    /// Accepts a watched folder in its present state, after a pause because it had changed.
    func resume(root: FilePath) async throws -> CommandReport {
        let root = watched(root)
        if let live = agent.live, !live.watched.contains(root) {
            return .refused("\(root.display) is not watched")
        }
        let isThere: Bool
        do {
            isThere = try await agent.resume(root: root, by: by)
        } catch let error as SystemError {
            return .refused("\(root.display) cannot be looked at: \(error)")
        }
        return CommandReport(
            done: isThere, message: isThere ? "watched as it is: \(root.display)" : "\(root.display) is not a folder")
    }

    func unknownDestination(_ name: String) -> CommandReport {
        let hint = Suggestion.hint(name, in: agent.destinations.map(\.name))
        return .refused("there is no destination '\(DisplayText.escape(name))'\(hint)")
    }

    func limit(_ request: LimitRequest) -> CommandReport {
        let (order, fault) = LimitRequest.order(request.limit)
        guard let order else { return .refused("'\(request.limit)' \(fault)") }
        guard agent.live != nil else {
            return .refused("no agent is running; its limits are in the configuration")
        }
        guard let limit = agent.limit(order, for: request.destination) else {
            return unknownDestination(request.destination ?? "")
        }
        return .done(LimitReport(limit).text)
    }

    // MARK: - The log

    /// nil while no agent runs.
    var logLevel: LogLevelReport? {
        agent.logLevel.map { now, configured in
            LogLevelReport(level: now.rawValue, configured: now == configured ? nil : configured.rawValue)
        }
    }

    func setLogLevel(_ request: LogLevelRequest) -> CommandReport {
        guard let level = LogSettings.Level(rawValue: request.level) else {
            let levels = LogSettings.Level.allCases.map(\.rawValue)
            let hint = Suggestion.hint(request.level, in: levels)
            return .refused(
                "'\(DisplayText.escape(request.level))' is not a level; choose one of \(levels.joined(separator: ", "))\(hint)"
            )
        }
        guard agent.setLogLevel(level, by: by), let report = logLevel else {
            return .refused("no agent is running; set log.level in the configuration")
        }
        return .done("log level: \(report.text)")
    }
}

/// Why a delivery that somebody wants to try now has to wait.
extension LocalControl {
    /// Why none of a job's waiting deliveries can start now; empty when one can.
    func obstacles(_ job: Int64, at now: WallTime) async throws -> [String] {
        guard let job = try await agent.job(job), job.file.state == .pending else { return [] }
        let away = awayDestinations()
        let ready = job.deliveries.filter { $0.state == .ready }
        let reasons = ready.map { delivery -> String? in
            if let why = away[delivery.destination] { return why }
            guard delivery.waits == 0, delivery.closes == nil, delivery.afterID == nil,
                let window = job.file.policy.window, window.concerns(size: job.file.identity.size)
            else { return nil }
            return window.opening(at: now).map { Self.closed(window, until: $0) }
        }
        let known = Set(reasons.compactMap(\.self)).sorted()
        return reasons.contains(nil) ? [] : known
    }

    /// Why some of many jobs may have to wait.
    ///
    /// - Parameter destination: the only destination that counts; nil = all.
    func obstacles(to destination: String?, at now: WallTime) -> [String] {
        let away = awayDestinations().filter { destination == nil || $0.key == destination }
        let windows = (agent.live?.windows ?? []).compactMap { route, window in
            window.opening(at: now).map { "route \(route): \(Self.closed(window, until: $0))" }
        }
        return Set(away.values).sorted() + windows
    }

    private static func closed(_ window: DeliveryWindow, until opening: WallTime) -> String {
        "its window (\(window.text)) opens at \(opening.rfc3339(in: window.zone))"
    }

    /// Those of `names` to which nothing is sent although they are not paused, for the end of a sentence.
    func stillAway(_ names: [String]) -> String {
        guard agent.live != nil else { return "" }
        let away = awayDestinations()
        return Set(names.compactMap { away[$0] }).sorted().map { "; \($0)" }.joined()
    }
}

/// Jobs that somebody is waiting for.
extension LocalControl {
    func follow(_ jobs: [Int64]) async throws -> FollowReport {
        let jobs = Array(jobs.prefix(FollowReport.most))
        let away = awayDestinations()
        let found = try await agent.jobs(jobs) { $0.file.state != .pending || Self.obstacle($0, away) != nil }
        var report = FollowReport(ends: [], moving: [])
        for (id, job) in zip(jobs, found) {
            let shown = job.map { FollowReport.File($0) }
            guard let job, job.file.state == .pending else {
                report.ends.append(FollowReport.End(job: id, report: shown))
                continue
            }
            if let why = Self.obstacle(job, away) {
                report.ends.append(FollowReport.End(job: id, report: shown, waits_for: why))
            } else {
                report.next = shown
                report.moving = try await moving(id)
            }
        }
        return report
    }

    /// Destinations to which nothing can be sent now, each with the reason.
    func awayDestinations() -> [String: String] {
        guard let live = agent.live else {
            return Dictionary(uniqueKeysWithValues: agent.destinations.map { ($0.name, "\($0.name) is not running") })
        }
        let shut = live.limits.filter { $0.rate == 0 }
        // Destinations about to be probed, or that asked for time themselves, count as available.
        let fine = ["up", "not asked yet", "asks for time"]
        return live.destinations.reduce(into: [:]) { away, status in
            let report = StatusReport.destination(status, [:])
            if !fine.contains(report.state) {
                away[report.name] = "\(report.name) is \(report.state)" + (report.last_error.map { ": \($0)" } ?? "")
            } else if status.isShut,
                let limit = shut.first(where: { $0.destination == nil || $0.destination == report.name })
            {
                away[report.name] = "the limit is 0 (\(LimitReport(limit).text))"
            }
        }
    }

    /// Why a job's end is not in sight; nil while it is in progress.
    private static func obstacle(_ job: Job, _ away: [String: String]) -> String? {
        if away.isEmpty { return nil }
        return job.deliveries.lazy.filter { $0.state == .ready }.compactMap { away[$0.destination] }.first
    }

    private func moving(_ job: Int64) async throws -> [StatusReport.Transfer] {
        let running = (agent.live?.inFlight ?? []).filter { $0.ref.job == job }
        if !running.isEmpty { return running.map { StatusReport.transfer($0) } }
        return try await agent.journal.waiting(limit: StatusReport.mostWaiting).filter { $0.file == job }
            .map { StatusReport.transfer($0, agent.live?.step($0.id)) }
    }
}
