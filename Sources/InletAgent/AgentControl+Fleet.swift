internal import InletCore
package import InletFleet
internal import InletJournal
internal import InletLinux

/// An order to an agent of the fleet.
package enum FleetOrder: String, Sendable, Codable, CaseIterable {
    /// Its destinations get nothing until `resume`.
    case pause
    case resume
    /// It lists its folders anew.
    case rescan
    /// It takes no new files, and sends what it has, until `undrain`.
    case drain
    case undrain
}

/// Questions and orders to the fleet through this agent.
extension AgentControl {
    /// This agent's standing, and the agents of its fleet as they were described a few seconds ago at most; nil for an
    /// agent without a fleet.
    package var fleet: FleetReport? {
        get async {
            guard let fleet = live?.fleet else { return nil }
            return await report(fleet, await fleet.view.current())
        }
    }

    /// The same without a question to PostgreSQL: the agents as they were described last.
    package var fleetAtOnce: FleetReport? {
        get async {
            guard let fleet = live?.fleet else { return nil }
            return await report(fleet, fleet.view.look())
        }
    }

    package var isInFleet: Bool { live?.fleet != nil }

    /// The number of agents at the last look; 0 before that, and without a fleet.
    package var knownFleetSize: Int { live?.fleet?.view.last?.members.count ?? 0 }

    private func report(_ fleet: FleetParts, _ overview: FleetMembers?) async -> FleetReport {
        var report = fleet.member.report
        report.shares = fleet.shares.report()
        report.places = fleet.places.report(overview?.places ?? [])
        report.mayOrder = fleet.member.settings.adminURL != nil
        (report.fleet, report.agents) = (overview?.fleet, overview?.members ?? [])
        report.agentsAt = overview?.at.rfc3339
        // Without an answer of the journal its own state says more.
        report.waitingKeys = (try? await journal.keyRequests(limit: Self.mostWaitingKeys).count) ?? 0
        return report
    }

    private static let mostWaitingKeys = 1000
    private static let mostFindings = 200

    /// Which machine has a file: by its name, the beginning of its key, or its SHA-256.
    ///
    /// - Throws: `FleetError` while PostgreSQL does not answer.
    package func searchFleet(_ text: String) async throws -> [FleetFinding] {
        guard let fleet = live?.fleet else { return [] }
        return try await fleet.member.link.search(text, limit: Self.mostFindings).map { FleetFinding($0) }
    }

    /// Gives an agent an order, with the administrator's address of the configuration.
    ///
    /// - Parameter by: who asks, for the log.
    /// - Returns: false where there is no such address.
    /// - Throws: `FleetError`: `.argument` for an agent that the fleet does not have.
    package func orderFleet(_ order: FleetOrder, to name: String, by: String) async throws -> Bool {
        guard let member = live?.fleet?.member else { return false }
        let pool = BlockingPool(name: "fleet order", threads: 1)
        defer { pool.shutdown() }
        let isGiven = try await pool.run { [setup = member.setup] () throws(FleetError) -> Bool in
            guard let address = try setup.adminAddress() else { return false }
            var fleet = FleetAdministration(try PostgresConnection(address, application: "inlet"))
            switch order {
            case .drain: try fleet.setAgent(name, state: "draining")
            case .undrain: try fleet.setAgent(name, state: "active")
            case .pause, .resume, .rescan: try fleet.order(name, verb: order.rawValue)
            }
            return true
        }
        if isGiven { member.log.emit(.fleetCommand(verb: "\(order.rawValue) \(FleetMembers.cut(name))", by: by)) }
        return isGiven
    }
}

extension FleetMember {
    /// This agent's standing, without the others.
    var report: FleetReport {
        let standing = standing
        var report = FleetReport(name: name, server: standing.server)
        report.state =
            switch standing.state {
            case .alone: .connecting
            case .connecting: standing.error == nil ? .connecting : .away
            case .confirming: .confirming
            case .live: .live
            case .reporting: .recovering
            case .refused: .refused
            }
        (report.since, report.message) = (standing.since.rfc3339, standing.message)
        (report.agent, report.tag) = (identity?.agent, identity?.tag)
        report.sessionSeconds = standing.sessionLeft.map { Double($0.milliseconds) / 1000 }
        (report.waitingFor, report.isDraining) = (standing.waitingFor, isDraining)
        let figures = standing.figures
        (report.reservedKeys, report.lostKeys) = (figures.reserved, figures.lost)
        (report.taggedKeys, report.receiptsBehind) = (figures.tagged, figures.receiptsBehind)
        return report
    }
}

extension FleetFinding {
    /// The row's text comes from other agents.
    package init(_ row: FleetReceiptRow) {
        func cut(_ text: String) -> String { FleetMembers.cut(text, to: 2 << 10) }
        self.init(
            at: WallTime(rfc3339: row.at)?.rfc3339 ?? cut(row.at), agent: cut(row.agent),
            destination: row.destination.map(cut), state: cut(row.state), root: row.root.map(cut), path: cut(row.path),
            size: row.size, key: row.key.map(cut), url: row.url.map(cut), sha256: row.sha256.map(cut))
    }
}
