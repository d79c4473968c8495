internal import FoundationEssentials
internal import InletCore
internal import InletFleet
internal import InletJournal
internal import InletLinux
internal import Synchronization
internal import SystemPackage

extension FleetPlaces {
    /// A share that left the configuration is released with the next look.
    func begin(_ settings: Settings) async throws(JournalError) {
        let isFirst = state.withLock { state in
            defer { state.hasBegun = true }
            return !state.hasBegun
        }
        // Its work is this agent's again once it is claimed.
        if isFirst { try await journal.holdPlaceWork() }
        let wanted = settings.watch.compactMap { watch in watch.place.map { (root: watch.path, name: $0) } }
        state.withLock { state in
            let former = state.shares
            state.shares = [:]
            for (root, name) in wanted {
                let last = former[root].flatMap { $0.name == name ? $0 : nil }
                state.shares[root] = last ?? Share(name: name, root: root)
            }
            state.left += former.values.filter { state.shares[$0.root]?.name != $0.name && $0.fence != nil }
        }
        member.knows(shares: wanted.map(\.root.string))
        // Open work whose destination has another address now is claimed again, for the present ones.
        let destinations = member.places
        let hasMoved = state.withLock { state in
            state.work.values.contains { !$0.addresses.allSatisfy { destinations[$0]?.address == $1 } }
        }
        if hasMoved { member.link.renew() }
        member.signals.raise(.fleet(.places), .fleet(.work))
    }

    func ownership(of root: WatchSettings) -> RootOwnership.Outcome? {
        guard root.place != nil else { return nil }
        let session = member.session
        let (found, isCurrent) = state.withLock { ($0.shares[root.path], session != 0 && $0.session == session) }
        guard let share = found else { return .waits("waits: the configuration has changed just now") }
        if let trouble = share.trouble { return .guarded(trouble) }
        if isCurrent, share.fence != nil { return .watch(nil, doubt: nil) }
        if let why = member.standing.message { return .waits("waits: \(why)") }
        if member.isDraining { return .waits("waits: this agent is drained, and the others list it") }
        if isCurrent, share.number != nil, !share.isTold {
            return .waits("waits: the fleet does not know yet what this agent has sent of it")
        }
        guard isCurrent, share.isAsked else { return .waits("waits: the fleet was not asked yet who lists it") }
        return .standBy(share.holder.map { "\($0) lists it (fleet)" } ?? "another agent of the fleet lists it")
    }

    func objection(to root: FilePath) -> String? {
        guard let share = share(root) else { return nil }
        if let trouble = share.trouble { return trouble }
        return holds(root) ? nil : "another agent of the fleet may list it now"
    }

    /// Whether this agent may list the share and admit its files.
    func holds(_ root: FilePath) -> Bool {
        let session = member.session
        return state.withLock { state in
            guard session != 0, state.session == session, let share = state.shares[root] else { return false }
            return share.fence != nil && share.trouble == nil
        }
    }

    /// The fleet says that it is another's.
    func lose(_ root: FilePath, fence: Int64) {
        state.withLock { state in
            if state.shares[root]?.fence == fence { state.shares[root]?.fence = nil }
        }
        member.signals.raise(.fleet(.places))
    }
}

/// Finds the shares by their markers, and holds those that this agent may list, every third of a lease.
struct PlaceKeeper: Sendable {
    private typealias Share = FleetPlaces.Share

    /// The result of a look at a share's marker.
    fileprivate enum Finding {
        /// It is the right folder; with its number, where the fleet has said it in this session.
        case right(marker: String, number: Int32?)
        case trouble(String)
        /// Nobody can tell yet.
        case unknown
    }

    private let places: FleetPlaces
    private let shared: Shared
    private let threads = MarkerThreads()
    private let pool = BlockingPool(name: "places", threads: 4)
    /// The shares that the log shows as this agent's.
    private var told: [FilePath: String] = [:]
    /// The shares as they were when the loops of the roots were last woken.
    private var shown: [FilePath: Share] = [:]
    private var shownSession: Int64 = 0
    private var overviewAt: ContinuousClock.Instant?

    private var member: FleetMember { places.member }
    private var journal: Journal { places.journal }

    /// So often the fleet may leave out a share that this agent holds: a call about it may run at the same time.
    private static let mostMisses = 3
    private static let overviewPause = Duration.seconds(10)

    init(_ places: FleetPlaces, _ shared: Shared) { (self.places, self.shared) = (places, shared) }

    func run() async {
        var keeper = self
        await member.signals[.fleet(.places)].loop {
            await keeper.pass(at: .now)
            return .now.advanced(by: member.beat)
        }
        // The end of the session frees what it holds.
        pool.shutdown()
    }

    mutating func pass(at now: ContinuousClock.Instant) async {
        places.enter(member.session)
        await withTaskGroup(of: Void.self) { [self] group in
            for share in places.all { group.addTask { await look(at: share) } }
        }
        await release(places.takeReleases(isDraining: member.isDraining))
        // Some may be back, and were known when they were seen.
        await places.tellOwn { [roots = shared.roots] in roots.list($0) }
        await hold()
        await findHolders(at: now)
        tell()
    }

    // MARK: - Markers

    private func look(at share: Share) async {
        let session = member.session
        do {
            places.take(try await finding(share, session), of: share, in: session)
        } catch let error as FleetError where error.code == .argument {
            places.take(.trouble(DisplayText.escape(error.message)), of: share, in: session)
        } catch {
            // The last finding stays. The standing shows the reason, or another service that uses the journal reports
            // it.
        }
    }

    private func finding(_ share: Share, _ session: Int64) async throws -> Finding {
        guard let seen = await pool.run({ [threads] in threads.read(in: share.root) }) else {
            return .trouble(MarkerThreads.silence)
        }
        if case .found(let marker) = seen { return try await finding(share, marker, session) }
        let known = try await journal.placeMarker(share.name)
        let expected = known.flatMap { $0.isMade ? $0.marker : nil }
        if let trouble = seen.trouble(in: share.root, expected: expected) { return .trouble(trouble) }
        return try await first(share, known?.marker, session)
    }

    /// A share with a marker: the fleet's decides; while it is away, the one that the journal knows.
    private func finding(_ share: Share, _ marker: String, _ session: Int64) async throws -> Finding {
        if share.marker == marker, share.number != nil { return .right(marker: marker, number: share.number) }
        let known = try await journal.placeMarker(share.name)
        guard session != 0 else {
            guard let known, known.isMade else { return .unknown }
            return differs(share, marker, known.marker) ?? .right(marker: marker, number: nil)
        }
        let answer = try await member.link.place(name: share.name, marker: marker)
        if let trouble = differs(share, marker, answer.marker) { return trouble }
        if known?.marker != marker || known?.isMade != true {
            try await journal.keepPlaceMarker(share.name, marker, isMade: true)
        }
        return .right(marker: marker, number: answer.place)
    }

    private func differs(_ share: Share, _ marker: String, _ expected: String) -> Finding? {
        PlaceMarker.found(marker).trouble(in: share.root, expected: expected).map { .trouble($0) }
    }

    /// A share without a marker that this agent does not know: the first agent of all makes it, and nobody after it.
    /// Before the fleet hears of it, the share must be there.
    ///
    /// - Parameter begun: the marker that it was about to make.
    private func first(_ share: Share, _ begun: String?, _ session: Int64) async throws -> Finding {
        guard session != 0 else { return .unknown }
        let doubt = await pool.run { [threads] in threads.doubt(about: share.root) }
        if let doubt { return .trouble(doubt) }
        let marker = begun ?? UUID().uuidString.lowercased()
        if begun == nil { try await journal.keepPlaceMarker(share.name, marker, isMade: false) }
        let answer = try await member.link.place(name: share.name, marker: marker)
        guard answer.marker == marker else {
            return PlaceMarker.missing.trouble(in: share.root, expected: answer.marker).map { .trouble($0) } ?? .unknown
        }
        do {
            let isMade = try await pool.run { [threads] () throws(SystemError) in
                try threads.make(marker, in: share.root)
            }
            // The next look finds whether it was made.
            guard isMade else { return .unknown }
        } catch  where error.isTaken {
            return .unknown
        } catch {
            let file = PlaceMarker.path(in: share.root).display
            return .trouble("its marker cannot be made (\(error)); make it by hand: echo \(marker) > \(file)")
        }
        try await journal.keepPlaceMarker(share.name, marker, isMade: true)
        return .right(marker: marker, number: answer.place)
    }

    // MARK: - Who lists

    private func hold() async {
        let (session, numbers) = (member.session, places.usable.filter(\.isTold).compactMap(\.number))
        guard !numbers.isEmpty, member.grants, !member.isDraining else { return }
        do throws(FleetError) {
            places.take(try await member.link.hold(numbers), of: numbers, in: session, misses: Self.mostMisses)
        } catch {
            // The shares that it holds stay its own until the session ends.
        }
    }

    private func release(_ numbers: [Int32]) async {
        // They are free anyway once the session ends.
        if !numbers.isEmpty { try? await member.link.release(numbers) }
    }

    /// Asks now and then who lists the shares of others; the larger the fleet, the more seldom.
    private mutating func findHolders(at now: ContinuousClock.Instant) async {
        let rest = max(Self.overviewPause, .seconds(2) * member.agentsKnown)
        guard places.isAnyElsewhere else { return overviewAt = nil }
        if let overviewAt, now - overviewAt < rest { return }
        overviewAt = now
        // Without an answer the last names stay.
        guard let bytes = try? await member.link.overview(), let found = JSON.value(bytes)?["places"]?.array else {
            return
        }
        var holders: [String: String] = [:]
        for place in found where place["held"]?.boolean == true {
            if let name = place["name"]?.string, let holder = place["holder"]?.string {
                holders[name] = FleetMembers.cut(holder)
            }
        }
        places.take(holders: holders)
    }

    // MARK: - What is said

    /// Logs changes, each once, and wakes those who act upon them.
    private mutating func tell() {
        let all = places.all
        let held = all.filter { places.holds($0.root) }
        for (root, name) in told where !held.contains(where: { $0.root == root && $0.name == name }) {
            member.log.emit(.fleetPlaceLost(place: name, reason: reason(of: root, name)))
            told[root] = nil
        }
        for share in held where told[share.root] == nil {
            told[share.root] = share.name
            member.log.emit(.fleetPlaceHeld(place: share.name, fence: share.fence ?? 0))
            if let before = shown[share.root]?.holder, before != member.name {
                member.log.emit(.fleetPlaceTaken(place: share.name, from: before))
            }
        }
        member.count { [count = held.count] in $0.placesHeld = count }
        let now = Dictionary(all.map { ($0.root, $0) }) { first, _ in first }
        for share in all {
            if share.trouble != nil {
                shared.roots.set(.guarded, share.root)
            } else if share.marker != nil, shared.roots.isUnknown(share.root) || shown[share.root]?.trouble != nil {
                shared.roots.set(.present(volume: nil), share.root)
            }
            if shown[share.root] != share { shared.roots.nudge(share.root) }
        }
        // Also with equal numbers in another session, whose work is claimed once they are known.
        let session = places.state.withLock(\.session)
        guard now != shown || session != shownSession else { return }
        (shown, shownSession) = (now, session)
        member.signals.raise(.fleet(.work), .finishable)
    }

    private func reason(of root: FilePath, _ name: String) -> String {
        guard let share = places.share(root), share.name == name else { return "it left the configuration" }
        if let trouble = share.trouble { return trouble }
        if let why = member.standing.message { return why }
        return member.isDraining ? "this agent is drained" : "its claim is over; another agent may list it"
    }
}

// The keeper's findings.
extension FleetPlaces {
    var all: [Share] { state.withLock { $0.shares.values.sorted { $0.name < $1.name } } }

    /// Whether others list a share.
    fileprivate var isAnyElsewhere: Bool { usable.contains { $0.isAsked && $0.fence == nil } }

    /// Numbers and fences hold for one session.
    fileprivate func enter(_ session: Int64) {
        state.withLock { state in
            guard state.session != session else { return }
            state.session = session
            state.left = []
            for root in state.shares.keys {
                state.shares[root]?.number = nil
                state.shares[root]?.fence = nil
                state.shares[root]?.isAsked = false
            }
        }
    }

    fileprivate func take(_ finding: PlaceKeeper.Finding, of share: Share, in session: Int64) {
        state.withLock { state in
            guard var now = state.shares[share.root], now.name == share.name else { return }
            switch finding {
            case .right(let marker, let number):
                if now.marker != marker { now.isTold = false }
                (now.marker, now.trouble) = (marker, nil)
                if let number, state.session == session { now.number = number }
            case .trouble(let why): now.trouble = why
            case .unknown: now.trouble = nil
            }
            state.shares[share.root] = now
        }
    }

    /// The numbers of shares that this agent holds and may not list any longer; they are no longer held here.
    fileprivate func takeReleases(isDraining: Bool) -> [Int32] {
        state.withLock { state in
            var numbers = state.left.compactMap(\.number)
            state.left = []
            for share in state.shares.values where share.fence != nil && (isDraining || share.trouble != nil) {
                state.shares[share.root]?.fence = nil
                if let number = share.number { numbers.append(number) }
            }
            return numbers
        }
    }

    /// The answer to a question about shares of these numbers. A share that it omits may still be this agent's.
    fileprivate func take(_ holds: [FleetHold], of numbers: [Int32], in session: Int64, misses most: Int) {
        let fences = Dictionary(holds.map { ($0.place, $0.fence) }) { first, _ in first }
        state.withLock { state in
            guard state.session == session else { return }
            for var share in state.shares.values {
                guard let number = share.number, numbers.contains(number), share.trouble == nil else { continue }
                share.isAsked = true
                if let fence = fences[number] {
                    (share.fence, share.misses) = (fence, 0)
                } else if share.fence != nil {
                    share.misses += 1
                    if share.misses >= most { (share.fence, share.misses) = (nil, 0) }
                }
                state.shares[share.root] = share
            }
        }
    }

    /// The holders of shares, by name; for display.
    fileprivate func take(holders: [String: String]) {
        state.withLock { state in
            for (root, share) in state.shares { state.shares[root]?.holder = holders[share.name] }
        }
    }
}
