internal import InletCore
internal import InletFleet
internal import InletJournal
internal import InletLinux
internal import SystemPackage

extension FleetPlaces {
    func known(_ arrivals: [FoundFile]) async throws(FleetError) -> [Bool]? {
        guard let root = arrivals.first?.root, share(root) != nil else { return nil }
        guard let held = held(root) else { throw FleetError(.notMember, "another agent may list the share now") }
        let versions = arrivals.map { PlaceVersion(of: $0) }
        do throws(FleetError) {
            var known: [Bool] = []
            // The fleet is asked, because another agent may have ended a version: a file that went away is admitted
            // again.
            for group in versions.groups(of: Self.mostVersions) {
                known += try await member.link.known(held.number, group)
            }
            return known
        } catch {
            if error.code == .fenced || error.code == .notMember { lose(root, fence: held.fence) }
            throw error
        }
    }

    func admit(_ files: [FileAdmission]) async -> [AdmissionResult]? {
        guard let root = files.first?.arrival.root, share(root) != nil else { return nil }
        // Offered again once this agent lists the share.
        guard let held = held(root) else { return files.map { AdmissionResult(arrival: $0.arrival, outcome: .later) } }
        var admission = PlaceAdmission(self, held, files)
        let results = await admission.run()
        if results.contains(where: { !$0.outcome.comesBack }) { member.signals.raise(.fleet(.work)) }
        return results
    }

    /// A share that this agent lists.
    struct Held {
        var root: FilePath
        var marker: String
        var number: Int32
        var fence: Int64
    }

    private func held(_ root: FilePath) -> Held? {
        guard holds(root), let share = share(root), let marker = share.marker, let number = share.number,
            let fence = share.fence
        else { return nil }
        return Held(root: root, marker: marker, number: number, fence: fence)
    }

    /// Of one call.
    fileprivate static let mostVersions = 1000
}

/// Admits files of a share: first their keys, which are the share's whoever lists it, then their deliveries. Each call
/// can be made again, by this agent or its successor, with the same result: a lost answer costs nothing.
private struct PlaceAdmission {
    /// A delivery to be admitted.
    private struct Row {
        /// Its place among the files.
        let file: Int
        let version: PlaceVersion
        let destination: String
        let place: FleetMember.Place
        let ref: Int64
        /// As the route has it.
        let wish: String
        var plan: PlacePlan
        var refusals = 0
    }

    private let places: FleetPlaces
    private let share: FleetPlaces.Held
    private let files: [FileAdmission]
    private var rows: [Row] = []
    private var outcomes: [AdmissionResult.Outcome]

    private var member: FleetMember { places.member }

    /// So many refused names in a row have another reason than equal names.
    private static let mostRefusals = 30
    private static let batch = 500

    init(_ places: FleetPlaces, _ share: FleetPlaces.Held, _ files: [FileAdmission]) {
        (self.places, self.share, self.files) = (places, share, files)
        outcomes = files.map { _ in .later }
    }

    /// - Returns: the result for each file; what is not admitted comes back.
    mutating func run() async -> [AdmissionResult] {
        plan()
        do {
            try await reserve()
            for group in batches() { try await admit(group) }
        } catch let error as FleetError {
            if error.code == .fenced || error.code == .notMember { places.lose(share.root, fence: share.fence) }
            // A call that the schema refuses would be refused each time.
            if error.code == .argument || error.code == .fault {
                member.log.emit(.agentError(reason: "fleet: files of \(share.root.display) are not admitted: \(error)"))
            }
        } catch {
            // The services that use the journal all the time report its failure.
        }
        return zip(files, outcomes).map { AdmissionResult(arrival: $0.arrival, outcome: $1) }
    }

    private mutating func plan() {
        let destinations = member.places
        for (number, file) in files.enumerated() {
            let leaders = file.steps.first
            guard let plans = PlacePlan.all(of: file, address: { destinations[$0]?.address }),
                plans.count == leaders.count
            else {
                let unknown = file.steps.destinations.first { destinations[$0] == nil } ?? ""
                outcomes[number] = .unreadable(
                    why: "other agents cannot know its destination '\(unknown)', which has no address; "
                        + "send files of shares to another one")
                continue
            }
            guard Set(leaders.compactMap { destinations[$0]?.address }).count == leaders.count else {
                outcomes[number] = .unreadable(
                    why: "two destinations of its route have one address, and agents could not tell them apart; "
                        + "name one of them")
                continue
            }
            let version = PlaceVersion(of: file.arrival)
            for (name, plan) in zip(leaders, plans) {
                guard let place = destinations[name] else { continue }
                rows.append(
                    Row(
                        file: number, version: version, destination: name, place: place,
                        ref: version.ref(in: share.marker, to: place.address), wish: plan.key, plan: plan))
            }
        }
    }

    // MARK: - Keys

    private mutating func reserve() async throws(FleetError) {
        var open = Array(rows.indices)
        while !open.isEmpty {
            var refused: [Int] = []
            for (name, group) in Dictionary(grouping: open, by: { rows[$0].destination }) {
                let number = try await member.number(of: name)
                for some in group.groups(of: Self.batch) {
                    let answer = try await member.link.reserve(
                        number, some.map { rows[$0].plan.key }, some.map { rows[$0].ref }, place: share.number)
                    refused += zip(some, answer.granted).filter { !$0.1 }.map(\.0)
                }
            }
            let (granted, lost) = (open.count - refused.count, refused.count)
            member.count { figures in
                figures.reserved += granted
                figures.lost += lost
            }
            open = refused.filter { goesOn($0) }
        }
    }

    /// Takes the next name for a delivery: `_2`, `_3`, then in growing steps. - Returns: false where there is none.
    private mutating func goesOn(_ number: Int) -> Bool {
        rows[number].refusals += 1
        let (row, refusals) = (rows[number], rows[number].refusals)
        guard refusals < Self.mostRefusals else {
            outcomes[row.file] = .unreadable(
                why: "the fleet refuses \(DisplayText.escape(row.wish)) and \(refusals) other names at "
                    + "\(row.destination): the folder may be another agent's prefix; change the key of the route")
            return false
        }
        let suffix = refusals < 3 ? refusals + 1 : 1 << refusals
        rows[number].plan.rename(to: KeyTemplate.disambiguated(row.wish, number: suffix))
        return true
    }

    // MARK: - Deliveries

    /// The rows of files that can be admitted, all of a file together.
    private func batches() -> [[Row]] {
        var batches: [[Row]] = []
        for (file, group) in Dictionary(grouping: rows, by: \.file).sorted(by: { $0.key < $1.key }) {
            guard case .later = outcomes[file] else { continue }
            if let last = batches.last, last.count + group.count <= Self.batch {
                batches[batches.count - 1] += group
            } else {
                batches.append(group)
            }
        }
        return batches
    }

    private mutating func admit(_ group: [Row]) async throws {
        var calls: [FleetWorkRow] = []
        for row in group {
            let arrival = files[row.file].arrival
            calls.append(
                FleetWorkRow(
                    version: row.version, name: Array(arrival.path.bytes), size: arrival.identity.size,
                    priority: row.plan.priority, destination: try await member.number(of: row.destination),
                    ref: row.ref, key: row.plan.key, plan: try JSON.encode(row.plan)))
        }
        // The fleet may admit them, and its answer be lost.
        try await places.journal.keepAdmittedInPlace(share.marker, try entries(group), mark: nil)
        Failpoint.admitting.reached()
        let answer = try await member.link.admit(share.number, fence: share.fence, calls)
        let own = zip(group, answer.admitted).filter(\.1).map(\.0)
        // Versions that were admitted before under other keys, or have ended, are in the reports of agents that know
        // them.
        let others = Set(group.map(\.version)).subtracting(own.map(\.version))
        if !own.isEmpty {
            try await places.journal.keepAdmittedInPlace(share.marker, try entries(own), mark: answer.mark)
        }
        if !others.isEmpty { try await places.journal.keepKnownInPlace(share.marker, Array(others)) }
        for row in group { outcomes[row.file] = .journal(.known(id: 0)) }
        Failpoint.admitted.reached()
    }

    /// The rows of each version for a report after a loss.
    private func entries(_ group: [Row]) throws -> [(version: PlaceVersion, rows: [[UInt8]])] {
        var entries: [(version: PlaceVersion, rows: [[UInt8]])] = []
        for row in group {
            let arrival = files[row.file].arrival
            let note = try JSON.encode(
                PlaceRow(
                    name: Array(arrival.path.bytes), size: arrival.identity.size, address: row.place.address,
                    type: row.place.type, ref: row.ref, key: row.plan.key, plan: row.plan))
            if entries.last?.version == row.version {
                entries[entries.count - 1].rows.append(note)
            } else {
                entries.append((row.version, [note]))
            }
        }
        return entries
    }
}

extension PlaceVersion {
    init(of arrival: FoundFile) {
        self.init(of: arrival.path, size: arrival.identity.size, modified: arrival.identity.modified)
    }
}

extension RouteTable {
    /// As they apply to the files of shares: each file goes alone, and nothing of it depends on a journal.
    var forPlaces: RouteTable {
        RouteTable(
            routes.map { route in
                var route = route
                (route.sidecars, route.unit, route.completion) = (SidecarRule(), .file, .quiet)
                (route.derive, route.dedupe, route.manifest) = ([], .off, nil)
                return route
            })
    }
}
