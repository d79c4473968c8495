internal import InletCore
internal import InletJournal
internal import InletPipelines

/// One destination on the board: its breaker, its pause and its expiry clock.
struct DestinationState: Sendable {
    var destination: Destination
    /// Counts the configurations that it was taken from.
    var generation = 0
    /// Small files at once that are its part of what all destinations together may have.
    var smallShare = 0
    private(set) var breaker: CircuitBreaker
    var isPaused: Bool
    /// Its limit is 0: what would begin now could send nothing.
    var isShut = false
    private(set) var lastError: String?
    /// Milliseconds on the expiry clock when `runningSince` was set, or now if that is nil.
    private(set) var uptime: Int64
    private(set) var runningSince: SuspendingClock.Instant?
    /// It is down because the account there has no credits left, and for nothing else.
    private var lacksCredits = false

    init(_ destination: Destination, breaker: CircuitBreaker, isPaused: Bool, uptime: Int64) {
        self.destination = destination
        self.breaker = breaker
        self.isPaused = isPaused
        self.uptime = uptime
    }

    var isOpen: Bool { breaker.isOpen && !isHeld }
    private var isHeld: Bool { isPaused || isShut }
    /// Whether what it has begun goes on: that costs nothing any more, and may end, though nothing new may begin.
    var goesOn: Bool { isOpen || lacksCredits && !isHeld }

    /// How much may be claimed, to compare before with after.
    var openness: Int {
        if isOpen { return breaker.state == .trial ? 2 : 3 }
        return goesOn ? 1 : 0
    }

    /// The room for its deliveries; nil while it takes none. On trial it gets one in each lane: a film that takes an hour
    /// must not keep a picture from proving that it is back.
    func room(workers: Int, at now: SuspendingClock.Instant) -> ClaimRoom? {
        guard goesOn else { return nil }
        var limits: [Lane: Int] = [
            .small: min(destination.connections, smallShare), .big: min(destination.maxInFlight ?? workers, workers),
        ]
        if breaker.state == .trial { limits = limits.mapValues { min(1, $0) } }
        return ClaimRoom(
            destination: destination.name, limits: limits, isForBegunOnly: !isOpen, uptime: uptime(at: now))
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

    private func uptime(at now: SuspendingClock.Instant) -> Int64 {
        uptime + (runningSince?.duration(to: now).milliseconds ?? 0)
    }

    mutating func updateClock(at now: SuspendingClock.Instant) {
        uptime = uptime(at: now)
        runningSince = isOpen ? now : nil
    }
}
