internal import InletCore
internal import InletFleet

/// Turns changes of the session into events, each once; that PostgreSQL is away is repeated each hour.
struct FleetNews: Sendable {
    private enum Condition: Equatable {
        case starting
        case connected
        case away
        case refused(FleetError.Code)
    }

    private var condition = Condition.starting
    private var session: Int64?
    private var isRecovering = false
    /// Since when PostgreSQL is away, and when that was last said.
    private var away: (since: WallTime, said: WallTime)?

    /// The watched folders that pause while PostgreSQL is away.
    var shares: [String] = []

    static let interval = Duration.seconds(3600)

    mutating func take(_ standing: FleetStanding, named name: String, at now: WallTime) -> [AgentEvent] {
        switch standing.state {
        case .alone: return []
        case .live, .confirming, .reporting: return connected(standing, at: now)
        case .refused(let code): return refused(code, standing, named: name)
        case .connecting: return disconnected(standing, at: now)
        }
    }

    private mutating func connected(_ standing: FleetStanding, at now: WallTime) -> [AgentEvent] {
        var events: [AgentEvent] = []
        if let away {
            events.append(.fleetBack(server: standing.server, away: now - away.since))
            self.away = nil
        }
        if standing.session != session, let number = standing.session {
            session = number
            events.append(
                .fleetConnected(server: standing.server, agent: standing.agent ?? 0, session: number))
        }
        condition = .connected
        let recovers = standing.phase == .recovering || standing.owesReport
        if recovers != isRecovering {
            isRecovering = recovers
            events.append(
                recovers
                    ? .fleetRecovering(reason: "PostgreSQL lost commits", waiting: standing.waitingFor) : .fleetOpen)
        }
        return events
    }

    private mutating func disconnected(_ standing: FleetStanding, at now: WallTime) -> [AgentEvent] {
        guard let error = standing.error else { return [] }
        if error.code != .away {
            guard condition == .connected else { return [] }
            condition = .starting
            return [.fleetSessionLost(reason: error.description)]
        }
        guard away == nil else { return [] }
        (condition, away) = (.away, (now, now))
        return [away(standing, error, since: now)]
    }

    private mutating func refused(
        _ code: FleetError.Code, _ standing: FleetStanding, named name: String
    ) -> [AgentEvent] {
        guard condition != .refused(code) else { return [] }
        condition = .refused(code)
        let error = standing.error ?? FleetError(code, "refused")
        switch code {
        case .usedTwice, .isAlive: return [.fleetIdentityTwice(name: name, reason: standing.message ?? "\(error)")]
        case .wentBack: return [.fleetJournalWentBack(reason: standing.message ?? "\(error)")]
        case .schema: return [.fleetSchemaOld(reason: error.message, needed: FleetSchema.version)]
        default: return [.agentError(reason: standing.message ?? "\(error)")]
        }
    }

    /// That PostgreSQL is still away, once an hour.
    mutating func remind(_ standing: FleetStanding, at now: WallTime) -> [AgentEvent] {
        guard let away, let error = standing.error, now - away.said >= Self.interval else { return [] }
        self.away = (away.since, now)
        return [self.away(standing, error, since: away.since)]
    }

    private func away(_ standing: FleetStanding, _ error: FleetError, since: WallTime) -> AgentEvent {
        .fleetAway(server: standing.server, reason: error.message, since: since, paused: shares)
    }
}
