internal import FoundationEssentials
internal import InletConfig
package import InletCore
package import InletFleet
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import Synchronization
package import SystemPackage

/// Everything that makes an agent a member of a fleet, from its configuration and its machine.
package struct FleetSetup: Sendable {
    package var settings: FleetSettings
    package var address: PostgresAddress
    /// The name of the configuration, or the host's.
    package var name: String
    /// To join with; nil for an agent that has joined, or that a person joins.
    package var secret: [UInt8]?
    package var version: String
    /// Facts about this machine for the fleet's view.
    package var about: [String: String]
    /// Which lock file this process holds (`FleetLink.seat`).
    package var seat: [UInt8]

    package init(
        settings: FleetSettings, address: PostgresAddress, name: String, secret: [UInt8]?, version: String,
        about: [String: String], seat: [UInt8]
    ) {
        (self.settings, self.address, self.name, self.secret) = (settings, address, name, secret)
        (self.version, self.about, self.seat) = (version, about, seat)
    }

    /// Reads the address, and the secret where it is there. Blocks.
    ///
    /// - Parameter state: the state directory, whose lock this process holds.
    /// - Throws: an error that names the file or the setting, the cause and the remedy.
    package init(reading settings: FleetSettings, state: FilePath, version: String) throws(FleetError) {
        do throws(FleetError) {
            address = try PostgresAddress(try settings.url.read(), allowsUnverified: settings.allowsUnverified)
        } catch {
            let place = FleetError.Circumstances(server: "the database of fleet.url")
            throw FleetError(error.code, "\(error.sentence(place)); \(error.advice)")
        }
        (self.settings, self.version) = (settings, version)
        name = settings.name ?? ProcessSetup.hostName
        // It is needed once, and may be deleted afterwards. An agent that needs it says that it has none.
        let bytes = settings.joinFile.flatMap { DurableFile.readIfPossible($0, limit: 4096) } ?? []
        let words = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace)
        secret = words.count == 1 ? words.first.map { Array($0.utf8) } : nil
        about = ["host": ProcessSetup.hostName]
        let lock = FileLook.file(at: RootedPath(state, "lock"))
        seat = FleetLink.seat(
            boot: ProcessSetup.bootID() ?? "", device: lock?.device ?? 0, inode: lock?.inode ?? 0)
    }

    /// The address for a new connection: `url_file` is read each time, because passwords change. Blocks.
    func addressNow() throws(FleetError) -> PostgresAddress {
        guard case .file = settings.url else { return address }
        return try read(settings.url)
    }

    /// The address for orders to other agents; nil where the configuration has none. Blocks.
    func adminAddress() throws(FleetError) -> PostgresAddress? {
        guard let source = settings.adminURL else { return nil }
        return try read(source)
    }

    private func read(_ source: FleetSettings.Source) throws(FleetError) -> PostgresAddress {
        do throws(FleetError) {
            return try PostgresAddress(try source.read(), allowsUnverified: settings.allowsUnverified)
        } catch {
            // It may be right again at the next connection; `argument` would be a fault of one call.
            throw error.code == .argument ? FleetError(.away, error.message) : error
        }
    }
}

/// This agent in its fleet: the link, and what its parts have to know of each other.
final class FleetMember: Sendable {
    /// A destination at which agents can meet.
    struct Place: Sendable, Equatable {
        var address: String
        var type: String
        var share: FleetShareSettings
    }

    private struct State {
        var identity: FleetIdentity?
        var places: [String: Place] = [:]
        var news = FleetNews()
        /// Since when nothing is granted; nil while the session is live.
        var failingSince: ContinuousClock.Instant? = .now
        /// How many agents there are, as far as it was heard.
        var agents = 1
        /// The session in which prefixes were claimed.
        var prefixSession: Int64?
        /// The destinations at which the journal asks for keys; nil before the first time, and after a reload.
        var reserved: [String: String?]?
        /// Whether the fleet had this agent as draining when it was heard last.
        var isDraining: Bool
    }

    let setup: FleetSetup
    let journal: Journal
    let log: EventLog
    let signals: Signals
    let link: FleetLink
    private let state: Mutex<State>
    /// Not made by the link, which is made before this object.
    private let relay: Relay

    /// After a failed call, unless the session changes before.
    static let pause = Duration.seconds(5)

    /// Nothing connects before `FleetStage` runs.
    init(_ setup: FleetSetup, _ journal: Journal, _ log: EventLog, signals: Signals) async throws {
        let relay = Relay()
        let identity = try await journal.fleetIdentity()
        let agents = max(1, try await journal.fleetRoster().count)
        (self.setup, self.journal, self.log, self.signals, self.relay) = (setup, journal, log, signals, relay)
        link = FleetLink(
            setup.address, journal, identity: identity, version: setup.version, about: setup.about, seat: setup.seat,
            addressNow: { Result { () throws(FleetError) in try setup.addressNow() } }, onChange: { relay.call($0) })
        state = Mutex(
            State(identity: identity, agents: agents, isDraining: try await journal.fleetIsDraining()))
        relay.set { [weak self] in self?.hear($0) }
    }

    var settings: FleetSettings { setup.settings }
    var standing: FleetStanding { link.standing }
    var figures: FleetFigures { standing.figures }
    var identity: FleetIdentity? { state.withLock { $0.identity } }
    var name: String { identity?.name ?? setup.name }
    /// The session; 0 without one.
    var session: Int64 { standing.session ?? 0 }
    /// A third of a lease.
    var beat: Duration { standing.ttl / 3 }
    /// Whether calls that grant something may succeed now.
    var grants: Bool { if case .live = standing.state { true } else { false } }
    var failingSince: ContinuousClock.Instant? { state.withLock { $0.failingSince } }
    /// Whether another process has this identity: then its tag is shared too.
    var isUsedTwice: Bool { [.refused(.usedTwice), .refused(.isAlive)].contains(standing.state) }

    var isDraining: Bool { state.withLock(\.isDraining) }
    /// Durably, so that a start without PostgreSQL admits nothing either.
    func keepDraining(_ isDraining: Bool) async throws(JournalError) {
        try await journal.keepFleetDraining(isDraining)
        state.withLock { $0.isDraining = isDraining }
    }

    var agentsKnown: Int { state.withLock { $0.agents } }
    func knows(agents: Int) { state.withLock { $0.agents = max(1, agents) } }

    /// Why nothing is granted, and the remedy.
    func sentence(_ error: FleetError) -> String {
        if let message = standing.message { return message }
        let place = FleetError.Circumstances(server: setup.address.display, agent: name)
        return "\(error.sentence(place)); \(error.advice)"
    }

    /// The watched folders that the news of an outage name.
    func knows(shares: [String]) { state.withLock { $0.news.shares = shares } }

    func count(_ change: @Sendable (inout FleetFigures) -> Void) { link.count(change) }

    // MARK: - Destinations

    /// The destinations at which agents can meet, by name.
    var places: [String: Place] { state.withLock { $0.places } }

    /// A folder is this machine's own, unless the configuration gives the fleet a part in it, or files of shares may go
    /// there.
    func take(_ destinations: [Destination], _ settings: Settings) {
        let hasPlaces = settings.watch.contains { $0.place != nil }
        let shares = Dictionary(settings.destinations.map { ($0.name, $0.fleet) }) { first, _ in first }
        let places = destinations.reduce(into: [String: Place]()) { places, destination in
            let share = shares[destination.name] ?? FleetShareSettings()
            let isOwn = destination.folder != nil && share == FleetShareSettings() && !hasPlaces
            guard let address = destination.address, !isOwn else { return }
            places[destination.name] = Place(address: address, type: destination.type, share: share)
        }
        state.withLock { ($0.places, $0.reserved) = (places, nil) }
    }

    /// Has keys asked for, except below the prefixes that are known to be this agent's. It goes through all that wait,
    /// so the same again does nothing.
    ///
    /// - Returns: whether something has changed.
    @discardableResult
    func reserveKeys(besides known: [String: String]) async throws(JournalError) -> Bool {
        let wanted = places.mapValues { place -> String? in
            known[place.address] == place.share.prefix ? place.share.prefix : nil
        }
        if state.withLock({ $0.reserved == wanted }) { return false }
        try await journal.reserveKeys(at: wanted)
        state.withLock { $0.reserved = wanted }
        return true
    }

    /// Whether the prefixes must be claimed in this session; true once.
    func beginsPrefixes() -> Bool {
        let session = session
        return state.withLock { state in
            defer { state.prefixSession = session }
            return state.prefixSession != session
        }
    }

    /// They could not be claimed, and are again.
    func endsPrefixes() { state.withLock { $0.prefixSession = nil } }

    /// The configured destination at whose address a key was given; nil where none is there any more.
    func destination(of key: GrantedKey) -> String? {
        let places = places
        guard let address = key.address else { return places[key.destination].map { _ in key.destination } }
        if places[key.destination]?.address == address { return key.destination }
        return places.first { $0.value.address == address }?.key
    }

    /// The fleet's number of a destination in this session.
    func number(of name: String) async throws(FleetError) -> Int32 {
        guard let place = places[name] else { throw FleetError(.argument, "'\(name)' takes no part in the fleet") }
        return try await link.destination(address: place.address, type: place.type, label: name)
    }

    // MARK: - The session

    /// On the link's task: wakes those that wait for a change.
    private func hear(_ standing: FleetStanding) {
        let events = state.withLock { state in
            state.failingSince = if case .live = standing.state { nil } else { state.failingSince ?? .now }
            return state.news.take(standing, named: state.identity?.name ?? setup.name, at: .now)
        }
        log.emit(events)
        for part in Signals.FleetPart.allCases { signals.raise(.fleet(part)) }
    }

    /// Reports, without a change, that PostgreSQL is still away.
    func remind(at now: WallTime) {
        let standing = standing
        log.emit(state.withLock { $0.news.remind(standing, at: now) })
    }

    /// Joins with the secret of the configuration, until that succeeded.
    ///
    /// - Returns: at once for an agent that has joined, or that has no secret.
    func join() async {
        guard identity == nil else { return }
        guard let secret = setup.secret else {
            let file = settings.joinFile.map { "the secret is not in \($0.display)" } ?? "there is no fleet.join_file"
            return log.emit(
                .agentError(
                    reason: "fleet: this agent has not joined, and new files wait: \(file); run 'inlet fleet secret' "
                        + "for one, and 'inlet fleet join' here"))
        }
        let pool = BlockingPool(name: "fleet join", threads: 1)
        defer { pool.shutdown() }
        var (failures, reason) = (0, "")
        // The same at each try: a join whose answer was lost is repeated.
        let uuid = UUID().uuidString.lowercased()
        while !Task.isCancelled {
            do {
                let joined = try await pool.run { [setup] () throws(FleetError) in
                    try FleetMembership.join(
                        try setup.addressNow(), secret: secret, name: setup.name, journal: uuid, seen: 0,
                        about: setup.about)
                }
                try await journal.keepFleetIdentity(joined, isFresh: true)
                state.withLock { $0.identity = joined }
                log.emit(.fleetJoined(name: joined.name, server: setup.address.display))
                return link.lookAgain()
            } catch {
                failures += 1
                let words = (error as? FleetError).map(sentence(ofJoin:)) ?? "the journal keeps no identity: \(error)"
                if words != reason { log.emit(.agentError(reason: words)) }
                reason = words
                await Task.rest(for: .backoff(.seconds(1), upTo: .seconds(60), after: failures))
            }
        }
    }

    private func sentence(ofJoin error: FleetError) -> String {
        let file = settings.joinFile?.display ?? "fleet.join_file"
        switch error.code {
        case .unknownAgent:
            return "fleet: \(setup.address.display) refuses the secret in \(file); "
                + "make another with 'inlet fleet secret', and put it there"
        case .argument:
            return "fleet: cannot join as \(setup.name) (\(DisplayText.escape(error.message))); "
                + "give this agent another fleet.name, and if the former one's journal is lost, retire that one by "
                + "'inlet fleet takeover'"
        default:
            let place = FleetError.Circumstances(server: setup.address.display, agent: setup.name)
            return "\(error.sentence(place)); \(error.advice)"
        }
    }
}

/// Passes the link's changes on to an object that is made after it.
private final class Relay: Sendable {
    private let target = Mutex<(@Sendable (FleetStanding) -> Void)?>(nil)

    func set(_ target: @escaping @Sendable (FleetStanding) -> Void) { self.target.withLock { $0 = target } }
    func call(_ standing: FleetStanding) { target.withLock { $0 }?(standing) }
}
