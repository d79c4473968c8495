internal import InletCore
internal import InletFleet
internal import InletJournal
internal import ServiceLifecycle

/// The parts of an agent that belong to its fleet: nil where it has none.
struct FleetParts: Sendable {
    let member: FleetMember
    let contents: FleetContents
    let shares: FleetShares
    let view: FleetView
    let places: FleetPlaces

    var seams: FleetSeams {
        FleetSeams(
            keys: FleetKeyReservation(member: member, shares: shares), contents: contents, shares: shares,
            places: places, signals: member.signals, isDraining: member.isDraining)
    }

    /// For the metrics.
    var figures: FleetFigures {
        var figures = member.figures
        figures.places = places.listed
        figures.placesHeld = figures.places.values.count { $0 }
        return figures
    }

    init?(_ setup: FleetSetup?, _ journal: Journal, _ log: EventLog) async throws {
        guard let setup else { return nil }
        member = try await FleetMember(setup, journal, log, signals: Signals())
        (contents, shares, view) = (FleetContents(member), FleetShares(member), FleetView(member))
        places = FleetPlaces(member)
    }
}

/// Runs this agent's part of the fleet: the session, and everything that asks by it. Ends after the services that
/// deliver and after `PlaceStage`, so that the ends of their work are said.
struct FleetStage: Service {
    let parts: FleetParts
    let shared: Shared
    let control: AgentControl
    let bandwidth: BandwidthControl

    init(_ parts: FleetParts, _ shared: Shared, _ control: AgentControl, _ bandwidth: BandwidthControl) {
        (self.parts, self.shared, self.control, self.bandwidth) = (parts, shared, control, bandwidth)
    }

    func run() async throws {
        let (member, restarts) = (parts.member, shared.health.restarts)
        control.live?.tally.addFleet { [parts] in parts.figures }
        let publisher = ReceiptPublisher(member: member, contents: parts.contents)
        await withDiscardingTaskGroup { group in
            group.addTask { await restarts.keep("the session of the fleet") { try await member.link.run() } }
            for part in [
                { await member.join() },
                { await KeyReserver(member).run() },
                { await parts.contents.run() },
                { await parts.shares.run(shared, bandwidth) },
                { await publisher.run() },
                { await FleetRecovery(member: member, receipts: publisher).run() },
                { await FleetReporter(parts, control).run() },
                { await PlaceKeeper(parts.places, shared).run() },
            ] as [@Sendable () async -> Void] {
                group.addTask { await cancelWhenGracefulShutdown { await part() } }
            }
        }
    }
}

/// Works for the shares. Ends between the services that deliver and the session.
struct PlaceStage: Service {
    let parts: FleetParts
    let shared: Shared

    func run() async throws {
        await PlaceWorker(parts.places, shared, parts.view).run()
    }
}
