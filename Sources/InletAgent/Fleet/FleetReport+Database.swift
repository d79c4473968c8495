internal import InletCore
package import InletFleet

/// The fleet as an administrator sees it in the database, without an agent's own standing.
extension FleetReport {
    package init(
        _ status: FleetStatus, _ agents: [FleetAgentRow], _ places: [FleetPlaceRow] = [], server: String
    ) {
        self.init(name: "", server: FleetMembers.cut(server))
        (state, since) = (State(rawValue: status.state) ?? .live, Self.time(status.since))
        (message, fleet) = (status.why.map { FleetMembers.cut($0) }, FleetMembers.cut(status.name))
        waitingFor = status.waitingFor.map { FleetMembers.cut($0) }
        self.agents = agents.map { Member($0) }
        self.places = places.map { Place($0, self.agents) }
    }

    /// PostgreSQL writes `2026-11-27T12:00:00.123456+00:00`, and `-infinity` for never.
    static func time(_ text: String?) -> String? { text.flatMap { WallTime(rfc3339: $0) }?.rfc3339 }
}

extension FleetReport.Member {
    package init(_ row: FleetAgentRow) {
        self.init(name: FleetMembers.cut(row.name))
        state = State(rawValue: row.state) ?? .active
        (isAlive, hasReported) = (row.isAlive, row.hasReported)
        version = row.version.map { FleetMembers.cut($0) }
        (lastSeen, reportedAt) = (FleetReport.time(row.lastSeen), FleetReport.time(row.reportedAt))
        activity = row.report.flatMap { JSON.value($0.utf8) }.flatMap { FleetMembers.activity($0) }
    }
}
