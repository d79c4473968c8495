internal import InletCore
internal import InletFleet
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import Synchronization

/// Publishes what this agent does, carries out the fleet's orders, drains it, and does its upkeep.
struct FleetReporter: Sendable {
    let member: FleetMember
    let control: AgentControl
    let view: FleetView
    let places: FleetPlaces

    private var orders: FleetOrders
    /// Whether it was said that all is sent.
    private var saidDrained = false
    /// The last report, and when it was published.
    private var published: (activity: FleetReport.Activity, at: ContinuousClock.Instant)?
    private var upkeepAt: ContinuousClock.Instant?
    private var overviewAt: ContinuousClock.Instant?
    /// Agents whose silence was logged, and is not over.
    private var silent: Set<String> = []
    private let meter = FleetMeter()

    private static let always = Duration.seconds(60)
    private static let hour = Duration.seconds(3600)
    /// An agent without a sign of life for so long is worth a line.
    static let patience = Duration.seconds(300)
    private static let longestBody = 60 << 10

    init(_ parts: FleetParts, _ control: AgentControl) {
        (member, self.control, view, places) = (parts.member, control, parts.view, parts.places)
        orders = FleetOrders(member, control)
    }

    func run() async {
        var reporter = self
        let end = member.log.listen { [meter] in meter.hear($0) }
        defer { end() }
        await member.signals[.fleet(.report)].loop {
            member.remind(at: .now)
            do throws(FleetError) {
                try await reporter.pass(at: .now)
            } catch {
                // The standing has the reason, and the next pass comes soon.
            }
            return .now.advanced(by: member.beat)
        }
    }

    private mutating func pass(at now: ContinuousClock.Instant) async throws(FleetError) {
        await drain()
        guard member.standing.session != nil else { return }
        if member.standing.hasCommands { try await orders.carryOut() }
        try await report(at: now)
        if member.grants, upkeepAt.map({ now - $0 >= Self.hour }) ?? true {
            try await member.link.upkeep()
            upkeepAt = now
        }
        await watch(at: now)
    }

    // MARK: - Draining

    /// Admits nothing while the fleet has this agent as draining. Without an answer the last one holds.
    private func drain() async {
        guard let state = member.standing.agentState, let room = control.live?.shared.room else { return }
        let isDraining = state == "draining"
        guard isDraining != member.isDraining else { return }
        room.hold(isDraining)
        do throws(JournalError) {
            try await member.keepDraining(isDraining)
            member.signals.raise(.fleet(.places), .fleet(.work))
        } catch {
            // Written at the next beat.
        }
    }

    /// Says once that nothing is left that can be sent.
    private mutating func noteDrained(_ queue: AgentControl.Queue) {
        let isDraining = member.isDraining
        let isIdle = control.live?.fleet?.places.isIdle ?? true
        let isDone = isDraining && queue.waiting + queue.inFlight + queue.held == 0 && isIdle
        if isDone, !saidDrained { member.log.emit(.fleetDrained(left: queue.parked)) }
        saidDrained = isDone || saidDrained && isDraining
    }

    // MARK: - The report

    private mutating func report(at now: ContinuousClock.Instant) async throws(FleetError) {
        // Without an answer of the journal it is failing, which the report says.
        let queue = try? await control.queue()
        if let queue { noteDrained(queue) }
        let activity = activity(queue, at: now)
        if let published, published.activity == activity, now - published.at < Self.always { return }
        try await member.link.report(Self.body(activity))
        published = (activity, now)
    }

    /// As JSON, with fewer destinations where it would be too long.
    static func body(_ activity: FleetReport.Activity) -> [UInt8] {
        var activity = activity
        var body = JSON.note(of: activity)
        while body.count > longestBody, !activity.destinations.isEmpty {
            activity.destinations.removeLast(max(1, activity.destinations.count / 4))
            body = JSON.note(of: activity)
        }
        return body
    }

    private func activity(
        _ queue: AgentControl.Queue?, at now: ContinuousClock.Instant
    ) -> FleetReport.Activity {
        var activity = FleetReport.Activity()
        guard let live = control.live else { return activity }
        (activity.version, activity.isDraining) = (live.version, member.isDraining)
        if let queue {
            (activity.waiting, activity.inFlight) = (queue.waiting, queue.inFlight)
            (activity.retrying, activity.held, activity.parked) = (queue.retrying, queue.held, queue.parked)
            activity.oldest = queue.oldest?.rfc3339
        }
        activity.rate = meter.rate(running: live.inFlight.reduce(0) { $0 + $1.sent }, at: now)
        (activity.delivered, activity.failed) = live.recent
        activity.problems = Self.problems(live).prefix(FleetReport.Activity.mostProblems).map { FleetMembers.cut($0) }
        activity.lastError = meter.lastError.map { FleetMembers.cut($0) }
        activity.destinations = live.destinations.prefix(FleetReport.Activity.mostDestinations).map {
            FleetReport.DestinationLine($0, waiting: queue?.counts[$0.name]?.waiting ?? 0)
        }
        activity.places = Array(places.troubles.prefix(FleetReport.Activity.mostPlaces))
        activity.state =
            live.journalIsFailing || queue == nil ? "failing" : activity.problems.isEmpty ? "ok" : "degraded"
        return activity
    }

    /// In words, the gravest first.
    private static func problems(_ live: AgentControl.Running) -> [String] {
        var problems = [live.journalTrouble].compactMap { $0.map { "the journal fails: \($0)" } }
        problems += live.incidents.map { "\($0.service) failed: \($0.reason)" }
        problems += live.destinations.filter(\.isDown).map { state in
            "\(state.name) is down" + (state.lastError.map { ": \($0)" } ?? "")
        }
        problems += live.roots.compactMap { root in
            switch root.state {
            case .guarded(let reason): "\(root.root.display) is paused: \(reason)"
            case .failing(let reason): "\(root.root.display) is not watched: \(reason)"
            case .missing: "\(root.root.display) is missing"
            case .starting, .watching, .standby: nil
            }
        }
        return problems
    }

    // MARK: - Others

    /// Looks at the others now and then; the larger the fleet, the more seldom. One agent speaks of those that are
    /// silent.
    private mutating func watch(at now: ContinuousClock.Instant) async {
        let rest = max(Self.always, .seconds(2) * member.agentsKnown)
        if let overviewAt, now - overviewAt < rest, !view.isWanted { return }
        overviewAt = now
        guard let overview = await view.current() else { return }
        // By the server's clock, as the newest beat has it: this machine's may be wrong.
        let found = Set(overview.silent(for: Self.patience, at: overview.lastSeen.values.max() ?? .now))
        let news = found.subtracting(silent)
        silent = found
        guard overview.speaks, !news.isEmpty else { return }
        for name in news.sorted() {
            let seen = overview.lastSeen[name]?.rfc3339Seconds ?? "long ago"
            member.log.emit(.fleetSilent(name: name, since: seen))
        }
    }
}

/// The bytes that this agent sends, and its last error.
private final class FleetMeter: Sendable {
    private let state = Mutex<State>(State())

    private struct State {
        var done: Int64 = 0
        var last: (sum: Int64, at: ContinuousClock.Instant)?
        var error: String?
    }

    func hear(_ event: AgentEvent) {
        switch event {
        case .jobDelivered(_, let proof, _):
            if !proof.isLink { state.withLock { $0.done += proof.size } }
        case .jobFailed(let ref, _, let error):
            state.withLock { $0.error = "\(ref.path.display) → \(ref.destination): \(error.reason)" }
        case .destinationDown(let name, let reason, _): state.withLock { $0.error = "\(name): \(reason)" }
        default: break
        }
    }

    var lastError: String? { state.withLock { $0.error } }

    /// Bytes a second since the last question.
    func rate(running: Int64, at now: ContinuousClock.Instant) -> Int64 {
        state.withLock { state in
            let sum = state.done + running
            defer { state.last = (sum, now) }
            guard let last = state.last, now > last.at else { return 0 }
            return max(0, sum - last.sum) * 1000 / max(1, (now - last.at).milliseconds)
        }
    }
}

extension FleetReport.DestinationLine {
    init(_ destination: DestinationState, waiting: Int) {
        let state =
            switch destination.state {
            case _ where destination.isPaused: "paused"
            case _ where destination.isShut: "limited to 0"
            case .trial: "trial"
            case _ where destination.isDown: "down"
            default: destination.isOpen ? "up" : "throttled"
            }
        self.init(
            name: destination.name, type: destination.type, state: state, waiting: waiting,
            error: destination.lastError.map { FleetMembers.cut($0) })
    }
}
