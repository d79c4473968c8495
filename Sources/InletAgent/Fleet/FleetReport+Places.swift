internal import InletCore
internal import InletFleet
internal import Synchronization

extension FleetReport {
    /// A share: a folder that several agents watch.
    package struct Place: Sendable, Codable, Equatable {
        package var name: String
        /// Where this agent has it; nil where it does not watch it.
        package var root: String?
        /// The agent that lists it, or did last.
        package var holder: String?
        package var isHeld = false
        package var heldSince: String?
        package var members: [String] = []
        /// Deliveries and finished sources that wait, and those that agents have taken.
        package var waiting = 0
        package var claimed = 0
        /// In words: why nobody lists it, and which agents touch nothing of it or left sources there.
        package var problems: [String] = []

        package init(name: String) { self.name = name }

        private enum CodingKeys: String, CodingKey {
            case name, root, holder, members, waiting, claimed, problems
            case isHeld = "is_held"
            case heldSince = "held_since"
        }
    }

    /// A share with which an agent has trouble: it touches nothing of it now, or has left sources there.
    package struct PlaceLine: Sendable, Codable, Equatable {
        package var name: String
        package var problem: String

        package init(name: String, problem: String) { (self.name, self.problem) = (name, problem) }
    }
}

extension FleetReport.Place {
    /// The row's text comes from other agents.
    ///
    /// - Parameter agents: of the fleet.
    init(_ row: FleetPlaceRow, _ agents: [FleetReport.Member]) {
        self.init(name: FleetMembers.cut(row.name))
        (holder, isHeld) = (row.holder.map { FleetMembers.cut($0) }, row.held)
        heldSince = FleetReport.time(row.heldSince)
        members = row.members.map { FleetMembers.cut($0) }
        (waiting, claimed) = (row.waiting ?? 0, row.claimed ?? 0)
        let own = agents.filter { members.contains($0.name) && $0.state != .retired }
        if !isHeld { problems = [Self.absence(own)] }
        problems += own.filter { $0.isAlive && !$0.isSelf }.flatMap { member in
            (member.activity?.places ?? []).filter { $0.name == name }.map { "\(member.name): \($0.problem)" }
        }
    }

    /// Why nobody lists it, and the remedy.
    private static func absence(_ members: [FleetReport.Member]) -> String {
        let living = members.filter(\.isAlive)
        if living.isEmpty { return "nobody lists it: none of its agents runs; start one" }
        if living.allSatisfy({ $0.state == .draining }) {
            return "nobody lists it: all its agents drain; run 'inlet fleet undrain NAME'"
        }
        return "nobody lists it now"
    }
}

extension FleetPlaces {
    /// The fleet's shares, with what this agent knows of its own ones: that holds without PostgreSQL too.
    func report(_ known: [FleetReport.Place]) -> [FleetReport.Place] {
        var places = Dictionary(known.map { ($0.name, $0) }) { first, _ in first }
        for share in state.withLock({ Array($0.shares.values) }) {
            let name = FleetMembers.cut(share.name)
            var place = places[name] ?? FleetReport.Place(name: name)
            place.root = share.root.display
            places[name] = place
        }
        for line in troubles {
            places[line.name]?.problems.append("\(FleetMembers.cut(member.name)): \(line.problem)")
        }
        return places.values.sorted { $0.name < $1.name }
    }

    /// The shares of which this agent touches nothing, and those in which it has left sources.
    var troubles: [FleetReport.PlaceLine] {
        state.withLock { state in
            state.shares.values.flatMap { share in
                [share.trouble, state.replaced.contains(share.root) ? Self.replaced : nil].compactMap(\.self).map {
                    FleetReport.PlaceLine(name: FleetMembers.cut(share.name), problem: FleetMembers.cut($0))
                }
            }
        }.sorted { $0.name < $1.name }
    }

    private static let replaced =
        "it left sources there: they were replaced, or this mount shows other inode numbers (mount SMB with serverino)"

    /// The shares of the configuration: whether this agent lists them now.
    var listed: [String: Bool] {
        let session = member.session
        return state.withLock { state in
            let isCurrent = session != 0 && state.session == session
            return Dictionary(state.shares.values.map { ($0.name, isCurrent && $0.fence != nil) }) { $0 || $1 }
        }
    }
}
