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
    /// Raised when a delivery may wait for a removed destination.
    let strays = WakeSignal()
    let mayHaveStrays = Atomic<Bool>(false)
    /// Raised when an outage begins, and when its destination may be used again.
    let recovery = WakeSignal()

    /// - Parameters:
    ///   - unproved: destinations to probe before their first delivery: work has waited for them since before this
    ///     start.
    ///   - uptimes: the expiry clocks as last written, in milliseconds.
    ///   - outages: those before this start after which nothing was sent again; their destinations are probed too.
    init(
        _ destinations: [Destination], paused: Set<String>, uptimes: [String: Int64], workers: Int, log: EventLog,
        unproved: Set<String> = [], outages: [String: WallTime] = [:], pace: ProbePace = ProbePace(),
        clock: AgentClock = AgentClock()
    ) {
        (self.log, self.workers, self.clock, self.pace) = (log, workers, clock, pace)
        take(destinations, paused: paused, uptimes: uptimes, unproved: unproved.union(outages.keys))
        entries.withLock { entries in
            for (name, since) in outages { entries[name]?.outage = Outage(since: since, isStored: true) }
        }
    }

    /// Small files at once to all destinations together, or `leastSmall` to each where those are more: memory and descriptors are
    /// bounded by it.
    static let mostSmall = 256
    static let leastSmall = 8

    /// Gives each destination its part of `mostSmall`. A destination that wants less leaves the rest to the others.
    static func share(_ entries: inout [String: DestinationState]) {
        var (left, count) = (mostSmall, entries.count)
        for (name, entry) in entries.sorted(by: { $0.value.destination.connections < $1.value.destination.connections })
        {
            let share = min(entry.destination.connections, max(leastSmall, left / count))
            entries[name]?.smallShare = share
            (left, count) = (max(0, left - share), count - 1)
        }
    }

    /// The room for deliveries to a destination; nil while it is down, paused or gone. A destination without credits
    /// has room for begun deliveries only. On trial it gets one delivery in each lane: an hour's film must not keep a
    /// picture from proving that the destination is back.
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

    /// A destination's present state.
    func state(of name: String) -> DestinationState? { entries.withLock { $0[name] } }

    /// Replaces a destination by one with renewed credentials, unless another configuration was applied meanwhile.
    /// Running deliveries keep the old one.
    func replace(_ destination: Destination, of generation: Int?) {
        entries.withLock { entries in
            guard entries[destination.name]?.generation == generation else { return }
            entries[destination.name]?.destination = destination
        }
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

    /// The destinations to inform when all of a unit has been sent.
    var closers: [String] {
        entries.withLock { entries in entries.filter { $0.value.destination.closesBatches }.keys.sorted() }
    }

    /// The destinations whose credentials expire when they are not used.
    func perishable() -> [Destination] {
        entries.withLock { entries in entries.values.map(\.destination).filter { $0.keepAlive != nil } }
            .sorted { $0.name < $1.name }
    }

    /// Reports the outcome of a delivery or a probe to the breaker.
    ///
    /// - Parameter code: the cause. Only a probe can end `outOfCredits`: jobs that were paid for still end meanwhile.
    /// - Returns: the breaker's action, which may blame the file; and whether more may be claimed for the destination
    ///   than before.
    @discardableResult
    package func report(
        _ name: String, _ event: CircuitBreaker.Event, reason: String? = nil, code: ErrorCode? = nil
    ) -> (action: CircuitBreaker.Action, opens: Bool) {
        let result = entries.withLock { entries -> (action: CircuitBreaker.Action, opens: Bool, recovers: Bool) in
            guard let before = entries[name]?.openness,
                let action = entries[name]?.take(event, reason, code, clock), let entry = entries[name]
            else { return (.none, false, false) }
            let opens = entry.openness > before
            return (action, opens, entry.outage.map { opens || !$0.isStored } ?? false)
        }
        if result.recovers { recovery.raise() }
        switch result.action {
        case .none, .blameFile, .askFirst: break
        case .pause(let until):
            log.emit(.destinationDown(destination: name, reason: reason ?? "not reachable", probe: until))
        case .slow(let until):
            log.emit(.destinationThrottled(destination: name, reason: reason ?? "asks for a pause", until: until))
        case .resume:
            log.emit(.destinationUp(destination: name))
        }
        return (result.action, result.opens)
    }

    package func setPaused(_ name: String, _ paused: Bool) -> Bool {
        defer { recovery.raise() }
        return entries.withLock { entries in
            guard entries[name] != nil else { return false }
            entries[name]?.isPaused = paused
            entries[name]?.updateClock(at: clock.instant())
            return true
        }
    }

    /// Starts no delivery at a network destination whose limit, or the common limit (nil), is 0: it would only hang
    /// until its timeout.
    func setShut(_ names: Set<String?>) {
        entries.withLock { entries in
            for (name, entry) in entries where entry.destination.folder == nil {
                entries[name]?.isShut = names.contains(nil) || names.contains(name)
                entries[name]?.updateClock(at: clock.instant())
            }
        }
        recovery.raise()
    }

    /// The destinations that a limit of 0 closes.
    var shut: Set<String> { entries.withLock { Set($0.filter(\.value.isShut).keys) } }

    /// Makes the probes of destinations that are down due now; nil is all of them.
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

    /// Reopens destinations whose requested pause is over. - Returns: whether there were any.
    func reopen() -> Bool { names.reduce(false) { report($1, .timePassed).opens || $0 } }

    /// The next probe, or the end of a requested pause; nil while everything is up.
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

    /// The clock of one destination; nil while it is stopped. Lanes ask at every exchange, so other clocks are not
    /// touched.
    func runningUptime(of name: String) -> Int64? {
        entries.withLock { entries in
            entries[name]?.updateClock(at: clock.instant())
            return entries[name].flatMap { $0.runningSince == nil ? nil : $0.uptime }
        }
    }

    /// The running clocks: those of destinations that are up and not paused.
    func runningUptimes() -> [String: Int64] { uptimes { $0.runningSince != nil } }

    /// The state of all destinations, by name.
    package func statuses() -> [DestinationState] {
        entries.withLock { Array($0.values) }.sorted { $0.name < $1.name }
    }

    // MARK: - Destinations of a new configuration

    /// Replaces destinations by those of a new configuration. Running deliveries keep the old ones.
    ///
    /// - Parameters:
    ///   - changed: new destinations, and replacements by name.
    ///   - paused: the journal's paused destinations.
    ///   - uptimes: the expiry clocks as last written, in milliseconds.
    ///   - unproved: new destinations to probe first, because work waits for them.
    func take(
        _ changed: [Destination], paused: Set<String>, uptimes: [String: Int64], unproved: Set<String>
    ) {
        let now = clock.instant()
        // The last user of a connection closes it, which must not delay the others.
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
                    uptime: uptimes[destination.name] ?? 0, worked: clock.now())
                entry.updateClock(at: now)
                entries[destination.name] = entry
            }
            Self.share(&entries)
            return former
        }
        withExtendedLifetime(former) {}
    }

    /// Removes all but these. - Returns: the expiry clocks of the removed ones, in milliseconds.
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

    /// After the end of a delivery: one to a removed destination that returned to the queue must be parked.
    func deliveryEnded() {
        if mayHaveStrays.load(ordering: .acquiring) { strays.raise() }
    }

    /// After an admission, which the former routes may have decided.
    func admitted(for destinations: [String]) {
        let isStray = entries.withLock { entries in destinations.contains { entries[$0] == nil } }
        guard isStray else { return }
        hasStrays()
        strays.raise()
    }

    /// Deliveries to removed destinations may still return to the queue.
    func hasStrays() { mayHaveStrays.store(true, ordering: .releasing) }

    /// No delivery to a removed destination is open. Later returns have raised the signal.
    func straysAreParked() { mayHaveStrays.store(false, ordering: .releasing) }
}

/// One destination: its breaker, its pause and its expiry clock.
package struct DestinationState: Sendable {
    var destination: Destination
    /// The generation of its configuration, for `replace`.
    var generation = 0
    /// Its part of the small files that may run at once.
    var smallShare = 0
    private(set) var breaker: CircuitBreaker
    package internal(set) var isPaused: Bool
    /// Its limit or the common one is 0: a new delivery could send nothing.
    package internal(set) var isShut = false
    package private(set) var lastError: String?
    /// Milliseconds on the expiry clock when `runningSince` was set, or now if that is nil.
    private(set) var uptime: Int64
    private(set) var runningSince: SuspendingClock.Instant?
    /// When it last worked, or was first used.
    var worked: WallTime
    var outage: Outage?
    /// It is down for lack of credits, and for nothing else.
    private(set) var lacksCredits = false

    package var name: String { destination.name }
    package var type: String { destination.type }
    /// Whether no limit of bandwidth concerns it.
    package var isLocal: Bool { destination.folder != nil }
    package var state: CircuitBreaker.State { breaker.state }
    var isDown: Bool { breaker.isDown }
    var refusesCredentials: Bool { if case .credentialsRefused = state { true } else { false } }
    var isOpen: Bool { breaker.isOpen && !isHeld }
    private var isHeld: Bool { isPaused || isShut }
    /// Whether begun deliveries continue: they cost nothing more, though no new one may start.
    var goesOn: Bool { isOpen || lacksCredits && !isHeld }

    /// How much may be claimed, to compare before with after.
    var openness: Int {
        if isOpen { return breaker.state == .trial ? 2 : 3 }
        return goesOn ? 1 : 0
    }

    /// - Returns: the change to report.
    mutating func take(
        _ event: CircuitBreaker.Event, _ reason: String?, _ code: ErrorCode?, _ clock: AgentClock
    ) -> CircuitBreaker.Action {
        let wasDown = breaker.isDown
        if lacksCredits {
            switch event {
            case .delivered, .answered: return .none
            // Reported already; deliveries that find no credits either must not postpone the probe.
            case .outage where code == .outOfCredits: return .none
            // It is unreachable as well: an early probe shows when begun deliveries can continue.
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
        noteOutage(event, action, at: clock.now())
        updateClock(at: clock.instant())
        // A further failed probe only moves the next one: logged once, not every minute.
        if case .pause = action, wasDown { return .none }
        if action == .resume { lastError = nil }
        return action
    }

    /// A person asks whether it is back.
    mutating func probeNow(at now: WallTime) { _ = breaker.probeNow(at: now) }

    func uptime(at now: SuspendingClock.Instant) -> Int64 {
        uptime + (runningSince?.duration(to: now).milliseconds ?? 0)
    }

    mutating func updateClock(at now: SuspendingClock.Instant) {
        uptime = uptime(at: now)
        runningSince = isOpen ? now : nil
    }
}
