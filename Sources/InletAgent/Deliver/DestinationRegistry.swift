package import InletCore
package import InletJournal
internal import InletLinux
package import InletPipelines
internal import Synchronization
internal import SystemPackage

/// Which destinations may be tried now: breakers, pauses and expiry clocks, in one place. Services report and ask.
package final class DestinationRegistry: Sendable {
    let entries = Mutex<[String: DestinationState]>([:])
    private let log: EventLog
    private let workers: Int
    let clock: AgentClock
    let pace: ProbePace
    /// Raised when something may wait for a destination that is gone.
    let strays = WakeSignal()
    let mayHaveStrays = Atomic<Bool>(false)

    /// - Parameters:
    ///   - unproved: those that are probed before their first delivery: work has waited for them since before this start.
    ///   - uptimes: the expiry clocks as they were written last, in milliseconds.
    init(
        _ destinations: [Destination], paused: Set<String>, uptimes: [String: Int64], workers: Int, log: EventLog,
        unproved: Set<String> = [], pace: ProbePace = ProbePace(), clock: AgentClock = AgentClock()
    ) {
        (self.log, self.workers, self.clock, self.pace) = (log, workers, clock, pace)
        take(destinations, paused: paused, uptimes: uptimes, unproved: unproved)
    }

    /// Small files at once to all destinations together, or `leastSmall` to each where those are more: memory and descriptors are
    /// bounded by it.
    static let mostSmall = 256
    static let leastSmall = 8

    /// Gives each destination its part of `mostSmall`: who wants less than an equal part leaves the rest to the others.
    static func share(_ entries: inout [String: DestinationState]) {
        var (left, count) = (mostSmall, entries.count)
        for (name, entry) in entries.sorted(by: { $0.value.destination.connections < $1.value.destination.connections })
        {
            let share = min(entry.destination.connections, max(leastSmall, left / count))
            entries[name]?.smallShare = share
            (left, count) = (max(0, left - share), count - 1)
        }
    }

    /// The room for the deliveries of a destination; nil while it is down or paused, or gone; of one without credits, for what it
    /// has begun. On trial it gets one in each lane: a film that takes an hour must not keep a picture from proving that it is
    /// back.
    package func room(of name: String) -> ClaimCapacity? {
        let now = clock.instant()
        return entries.withLock { entries in
            guard let entry = entries[name], entry.goesOn else { return nil }
            let destination = entry.destination
            var limits: [Lane: Int] = [
                .small: min(destination.connections, entry.smallShare),
                .big: min(destination.maxInFlight ?? workers, workers),
            ]
            if entry.breaker.state == .trial { limits = limits.mapValues { min(1, $0) } }
            return ClaimCapacity(
                destination: name, limits: limits, isForBegunOnly: !entry.isOpen, uptime: entry.uptime(at: now))
        }
    }

    package subscript(_ name: String) -> Destination? { entries.withLock { $0[name]?.destination } }

    package var names: [String] { entries.withLock { $0.keys.sorted() } }
    var count: Int { entries.withLock { $0.count } }

    /// How a destination stands now.
    func state(of name: String) -> DestinationState? { entries.withLock { $0[name] } }

    /// Puts a destination made with changed credentials in the place of the old one, unless another configuration has done so
    /// meanwhile; running deliveries keep theirs.
    func replace(_ destination: Destination, of generation: Int?) {
        entries.withLock { entries in
            guard entries[destination.name]?.generation == generation else { return }
            entries[destination.name]?.destination = destination
        }
    }

    package func lane(of size: Int64, to destination: String) -> Lane {
        size > self[destination]?.smallLimit ?? 0 ? .big : .small
    }

    /// The destinations that can store a companion of `size`, with its lane there.
    func sidecarLanes(of size: Int64) -> [String: Lane] {
        entries.withLock { entries in
            entries.compactMapValues { entry in
                guard entry.destination.takesSidecars, entry.destination.storage == nil else { return nil }
                return size > entry.destination.smallLimit ? .big : .small
            }
        }
    }

    /// Of `destinations`, those that only register the file at `path` below its root, with the one that must have it first.
    ///
    /// - Parameter fields: the file's own, rendered.
    func storages(_ destinations: [String], path: FilePath, fields: [String: String]) -> [String: String] {
        let needs = entries.withLock { entries in
            destinations.compactMap { name in entries[name]?.destination.storage.map { (name, $0) } }
        }
        return Dictionary(
            uniqueKeysWithValues: needs.filter { $0.1.isNeeded(path, fields) }.map { ($0.0, $0.1.destination) })
    }

    /// The destinations that are told when all of a unit has been sent.
    var closers: [String] {
        entries.withLock { entries in entries.filter { $0.value.destination.closesBatches }.keys.sorted() }
    }

    /// The destinations whose credentials end when they are not used.
    func perishable() -> [Destination] {
        entries.withLock { entries in entries.values.map(\.destination).filter { $0.keepAlive != nil } }
            .sorted { $0.name < $1.name }
    }

    /// Tells the breaker what came of a delivery or a probe.
    ///
    /// - Parameter code: what the event was about. Of `outOfCredits` a probe alone can tell that it is over: jobs that were paid
    ///   for end meanwhile.
    /// - Returns: what the breaker wants done, among it whether a failure was the file's own fault; and whether more may be
    ///   claimed for the destination than before.
    @discardableResult
    package func report(
        _ name: String, _ event: CircuitBreaker.Event, reason: String? = nil, code: ErrorCode? = nil
    ) -> (action: CircuitBreaker.Action, opens: Bool) {
        let result = entries.withLock { entries -> (action: CircuitBreaker.Action, opens: Bool) in
            guard let before = entries[name]?.openness,
                let action = entries[name]?.take(event, reason, code, clock), let after = entries[name]?.openness
            else { return (.none, false) }
            return (action, after > before)
        }
        switch result.action {
        case .none, .blameFile, .askFirst: break
        case .pause(let until):
            log.emit(.destinationDown(destination: name, reason: reason ?? "not reachable", probe: until))
        case .slow(let until):
            log.emit(.destinationThrottled(destination: name, reason: reason ?? "asks for a pause", until: until))
        case .resume: log.emit(.destinationUp(destination: name))
        }
        return result
    }

    package func setPaused(_ name: String, _ paused: Bool) -> Bool {
        entries.withLock { entries in
            guard entries[name] != nil else { return false }
            entries[name]?.isPaused = paused
            entries[name]?.updateClock(at: clock.instant())
            return true
        }
    }

    /// Begins nothing while the limit is 0 at a destination over the network, or at all of them together (nil): it would only
    /// hang, and its time would run out.
    func setShut(_ names: Set<String?>) {
        entries.withLock { entries in
            for (name, entry) in entries where entry.destination.folder == nil {
                entries[name]?.isShut = names.contains(nil) || names.contains(name)
                entries[name]?.updateClock(at: clock.instant())
            }
        }
    }

    /// Those at which nothing begins because a limit is 0.
    var shut: Set<String> { entries.withLock { Set($0.filter(\.value.isShut).keys) } }

    /// Makes the probe of a destination that is down due now; nil = of all.
    func probeNow(_ name: String?) {
        let now = clock.now()
        entries.withLock { entries in
            for key in entries.keys where name ?? key == key { entries[key]?.probeNow(at: now) }
        }
    }

    /// Destinations whose probe is due now.
    package func dueProbes() -> [Destination] {
        let now = clock.now()
        return entries.withLock { $0.values.filter { $0.breaker.probeIsDue(at: now) }.map(\.destination) }
    }

    /// Opens those again whose time is over for which they asked. - Returns: whether there were any.
    func reopen() -> Bool { names.reduce(false) { report($1, .timePassed).opens || $0 } }

    /// When a probe is due, or the time is over for which a destination asked; nil while everything is up.
    package func nextLook() -> WallTime? {
        entries.withLock { entries in entries.values.compactMap(\.breaker.nextLook).min() }
    }

    /// The expiry clocks now, in milliseconds.
    package func uptimes() -> [String: Int64] { uptimes { _ in true } }

    private func uptimes(of isMeant: (DestinationState) -> Bool) -> [String: Int64] {
        entries.withLock { entries in
            for name in entries.keys { entries[name]?.updateClock(at: clock.instant()) }
            return entries.filter { isMeant($0.value) }.mapValues(\.uptime)
        }
    }

    /// Whether a delivery may be tried now.
    func takes(_ delivery: DeliveryRow) -> Bool {
        entries.withLock { entries in
            guard let entry = entries[delivery.destination] else { return false }
            return entry.isOpen || entry.goesOn && delivery.hasBegun
        }
    }

    /// The clock of one destination; nil while it stands. Lanes ask at every exchange: the others are not touched.
    func runningUptime(of name: String) -> Int64? {
        entries.withLock { entries in
            entries[name]?.updateClock(at: clock.instant())
            return entries[name].flatMap { $0.runningSince == nil ? nil : $0.uptime }
        }
    }

    /// The clocks that run now: those of destinations that are up and not paused.
    func runningUptimes() -> [String: Int64] { uptimes { $0.runningSince != nil } }

    /// How all of them stand, by name.
    package func statuses() -> [DestinationState] {
        entries.withLock { Array($0.values) }.sorted { $0.name < $1.name }
    }

    // MARK: - Destinations that come, change and go while the agent runs

    /// Puts those of a new configuration in the place of the old ones. What runs keeps the destination that it began with.
    ///
    /// - Parameters:
    ///   - changed: takes the place of the one of its name, or is new.
    ///   - paused: those of the journal.
    ///   - uptimes: the expiry clocks as they were written last, in milliseconds.
    ///   - unproved: the new ones that are probed first: work waits for them.
    func take(
        _ changed: [Destination], paused: Set<String>, uptimes: [String: Int64], unproved: Set<String>
    ) {
        let now = clock.instant()
        // The last to use a connection ends it, which is not to hold up the others.
        let former = entries.withLock { entries in
            var former: [Destination] = []
            for destination in changed {
                if let old = entries[destination.name]?.destination {
                    former.append(old)
                    entries[destination.name]?.destination = destination
                    entries[destination.name]?.generation += 1
                    continue
                }
                let breaker = CircuitBreaker(isProved: !unproved.contains(destination.name), pace: pace)
                var entry = DestinationState(
                    destination: destination, breaker: breaker, isPaused: paused.contains(destination.name),
                    uptime: uptimes[destination.name] ?? 0)
                entry.updateClock(at: now)
                entries[destination.name] = entry
            }
            Self.share(&entries)
            return former
        }
        withExtendedLifetime(former) {}
    }

    /// Lets go of all but these. - Returns: the others, with their expiry clocks in milliseconds.
    func keep(only names: Set<String>) -> [String: Int64] {
        let now = clock.instant()
        // Ends after the lock, as in `take`.
        let former = entries.withLock { entries in
            let former = entries.filter { !names.contains($0.key) }
            for name in former.keys { entries[name] = nil }
            Self.share(&entries)
            return former
        }
        if !former.isEmpty { hasStrays() }
        return former.mapValues { $0.uptime(at: now) }
    }

    /// After each delivery's end: what has come back to the queue of one that is gone is to be parked.
    func deliveryEnded() {
        if mayHaveStrays.load(ordering: .acquiring) { strays.raise() }
    }

    /// After an admission: it may have been decided by the routes that held before.
    func admitted(for destinations: [String]) {
        let isStray = entries.withLock { entries in destinations.contains { entries[$0] == nil } }
        guard isStray else { return }
        hasStrays()
        strays.raise()
    }

    /// Something of those that are gone may still come back to the queue.
    func hasStrays() { mayHaveStrays.store(true, ordering: .releasing) }

    /// Nothing is open any more of those that are gone. What has come of them since that was found has raised the signal.
    func straysAreParked() { mayHaveStrays.store(false, ordering: .releasing) }
}

/// One destination: its breaker, its pause and its expiry clock.
package struct DestinationState: Sendable {
    var destination: Destination
    /// Counts the configurations that it was taken from, for `replace`.
    var generation = 0
    /// Small files at once that are its part of what all destinations together may have.
    var smallShare = 0
    private(set) var breaker: CircuitBreaker
    package internal(set) var isPaused: Bool
    /// Its limit, or that of all together, is 0: what would begin now could send nothing.
    package internal(set) var isShut = false
    package private(set) var lastError: String?
    /// Milliseconds on the expiry clock when `runningSince` was set, or now if that is nil.
    private(set) var uptime: Int64
    private(set) var runningSince: SuspendingClock.Instant?
    /// It is down because the account there has no credits left, and for nothing else.
    private(set) var lacksCredits = false

    package var name: String { destination.name }
    package var type: String { destination.type }
    package var state: CircuitBreaker.State { breaker.state }
    var refusesCredentials: Bool { if case .credentialsRefused = state { true } else { false } }
    var isOpen: Bool { breaker.isOpen && !isHeld }
    private var isHeld: Bool { isPaused || isShut }
    /// Whether what it has begun goes on: that costs nothing any more, and may end, though nothing new may begin.
    var goesOn: Bool { isOpen || lacksCredits && !isHeld }

    /// How much may be claimed, to compare before with after.
    var openness: Int {
        if isOpen { return breaker.state == .trial ? 2 : 3 }
        return goesOn ? 1 : 0
    }

    /// - Returns: what is to be said of it.
    mutating func take(
        _ event: CircuitBreaker.Event, _ reason: String?, _ code: ErrorCode?, _ clock: AgentClock
    ) -> CircuitBreaker.Action {
        let wasDown = breaker.isDown
        if lacksCredits {
            switch event {
            case .delivered, .answered: return .none
            // Said already; and the probe comes no later for each delivery that finds nothing either.
            case .outage where code == .outOfCredits: return .none
            // Now it is away as well: a probe shall tell soon when what has begun can go on.
            case .outage, .brokenOff, .stranger: breaker.forgetOutage()
            default: break
            }
        }
        let action = breaker.event(event, at: clock.now())
        if let reason, action != .blameFile { lastError = reason }
        switch event {
        case .outage, .brokenOff, .stranger, .credentials, .probeFailed:
            if case .down = breaker.state { lacksCredits = code == .outOfCredits } else { lacksCredits = false }
        default: if !breaker.isDown { lacksCredits = false }
        }
        updateClock(at: clock.instant())
        // A probe that fails again only moves the next probe: said once, not every minute.
        if case .pause = action, wasDown { return .none }
        if action == .resume { lastError = nil }
        return action
    }

    /// A person wants to know now whether it is back.
    mutating func probeNow(at now: WallTime) { _ = breaker.probeNow(at: now) }

    func uptime(at now: SuspendingClock.Instant) -> Int64 {
        uptime + (runningSince?.duration(to: now).milliseconds ?? 0)
    }

    mutating func updateClock(at now: SuspendingClock.Instant) {
        uptime = uptime(at: now)
        runningSince = isOpen ? now : nil
    }
}
