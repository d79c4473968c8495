internal import InletCore
internal import InletFleet
internal import InletJournal
internal import InletLinux
internal import Synchronization

/// The agents of the fleet as the database last described them. Their text is data: escaped and cut.
struct FleetMembers: Sendable {
    struct Returning: Sendable, Equatable {
        var name: String
        var isAlive: Bool
    }

    var fleet: String?
    var members: [FleetReport.Member] = []
    var places: [FleetReport.Place] = []
    /// For the report after a loss of commits.
    var roster: [(name: String, tag: String, journal: String)] = []
    /// By name: the agents' numbers, and when each was last heard of.
    var numbers: [String: Int64] = [:]
    var lastSeen: [String: WallTime] = [:]
    /// By tag, the agents that are alive, or may come back soon.
    var returning: [String: Returning] = [:]
    var at = WallTime.now

    /// After so long an agent is gone for those who wait for what it has hidden. By the server's clock.
    private static let absence = Duration.seconds(3600)

    private static let longestText = 300
    private static let most = 10_000

    /// - Parameter own: this agent's name.
    init?(_ bytes: [UInt8], own: String) {
        guard let value = JSON.value(bytes), let agents = value["agents"]?.array else { return nil }
        fleet = value["status"]?["name"]?.string.map { Self.cut($0) }
        for agent in agents.prefix(Self.most) {
            guard let name = agent["name"]?.string else { continue }
            var member = FleetReport.Member(name: Self.cut(name))
            member.state = agent["state"]?.string.flatMap { .init(rawValue: $0) } ?? .active
            member.isSelf = name == own
            member.isAlive = agent["alive"]?.boolean ?? false
            member.hasReported = agent["reported"]?.boolean ?? true
            member.version = agent["version"]?.string.map { Self.cut($0) }
            (member.lastSeen, member.reportedAt) = (Self.time(agent["last_seen"]), Self.time(agent["report_at"]))
            member.activity = agent["report"].flatMap { Self.activity($0) }
            members.append(member)
            if member.state != .retired, let tag = agent["tag"]?.string, let journal = agent["journal"]?.string {
                roster.append((name, tag, journal))
            }
            numbers[member.name] = agent["id"]?.integer
            lastSeen[member.name] = member.lastSeen.flatMap { WallTime(rfc3339: $0) }
        }
        let newest = lastSeen.values.max()
        for agent in agents.prefix(Self.most) where agent["state"]?.string != "retired" {
            guard let tag = agent["tag"]?.string, let name = agent["name"]?.string.map({ Self.cut($0) }) else {
                continue
            }
            let isRecent = lastSeen[name].flatMap { seen in newest.map { $0 - seen < Self.absence } } ?? false
            let isAlive = agent["alive"]?.boolean == true
            if isAlive || isRecent { returning[tag] = Returning(name: name, isAlive: isAlive) }
        }
        members.sort { $0.name < $1.name }
        // One of another version may lack what is needed here.
        places = (value["places"]?.array ?? []).prefix(Self.most).compactMap { place in
            JSON.note(place.bytes, as: FleetPlaceRow.self).map { FleetReport.Place($0, members) }
        }
    }

    static func cut(_ text: String, to length: Int = longestText) -> String {
        String(DisplayText.escape(text.utf8.prefix(4 * length)).prefix(length))
    }

    private static func time(_ value: JSONValue?) -> String? { FleetReport.time(value?.string) }

    /// A report of another version may have other members.
    static func activity(_ value: JSONValue) -> FleetReport.Activity? {
        guard var activity = JSON.note(value.bytes, else: FleetReport.Activity()) else { return nil }
        (activity.state, activity.version) = (cut(activity.state), cut(activity.version))
        activity.problems = activity.problems.prefix(FleetReport.Activity.mostProblems).map { cut($0) }
        activity.lastError = activity.lastError.map { cut($0) }
        activity.oldest = activity.oldest.flatMap { WallTime(rfc3339: $0) }?.rfc3339
        activity.destinations = activity.destinations.prefix(FleetReport.Activity.mostDestinations).map { line in
            var line = line
            (line.name, line.type, line.state) = (cut(line.name), cut(line.type), cut(line.state))
            line.error = line.error.map { cut($0) }
            return line
        }
        activity.places = activity.places.prefix(FleetReport.Activity.mostPlaces).map {
            FleetReport.PlaceLine(name: cut($0.name), problem: cut($0.problem))
        }
        return activity
    }

    // MARK: - Silence

    /// The agents that should be alive and have not been heard of for so long.
    func silent(for patience: Duration, at now: WallTime) -> [String] {
        members.filter { member in
            guard member.state == .active || member.state == .draining, !member.isAlive,
                let seen = lastSeen[member.name]
            else { return false }
            return now - seen > patience
        }.map(\.name)
    }

    /// Whether this agent speaks for the fleet: of the living ones it has the lowest number.
    var speaks: Bool {
        let living = members.filter(\.isAlive).compactMap { member in
            numbers[member.name].map { ($0, member.isSelf) }
        }
        return living.min { $0.0 < $1.0 }?.1 ?? false
    }
}

extension FleetReport.Activity {
    static let mostProblems = 10
    static let mostDestinations = 100
    static let mostPlaces = 20
}

/// The overview, asked for at most every few seconds however many people look.
///
/// PostgreSQL may take seconds to fail, so that a status only looks at the last one, and has the reporter ask again.
final class FleetView: Sendable {
    private let member: FleetMember
    private let state = Mutex<(overview: FleetMembers?, asked: ContinuousClock.Instant?, isWanted: Bool)>(
        (nil, nil, false))

    static let rest = Duration.seconds(3)

    init(_ member: FleetMember) { self.member = member }

    /// As heard last.
    var last: FleetMembers? { state.withLock(\.overview) }
    /// Whether somebody has looked at it since it was asked for.
    var isWanted: Bool { state.withLock(\.isWanted) }

    /// The last one, without a question.
    func look() -> FleetMembers? {
        state.withLock { state in
            state.isWanted = true
            return state.overview
        }
    }

    /// - Returns: the last one while PostgreSQL does not answer; nil before any.
    func current() async -> FleetMembers? {
        let now = ContinuousClock.now
        let isDue = state.withLock { state in
            if state.overview != nil, let asked = state.asked, now - asked < Self.rest { return false }
            (state.asked, state.isWanted) = (now, false)
            return true
        }
        // The standing says why there is no newer one.
        guard isDue, let bytes = try? await member.link.overview(), let found = FleetMembers(bytes, own: member.name)
        else { return last }
        state.withLock { $0.overview = found }
        member.knows(agents: found.members.count { $0.state == .active || $0.state == .draining })
        if !found.roster.isEmpty {
            // An older one is nearly as good.
            try? await member.journal.keepFleetRoster(found.roster)
        }
        return found
    }
}
