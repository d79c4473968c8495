internal import InletCore
internal import InletLinux
internal import SystemPackage

/// When an intake loop that found no room in the queue looks again.
struct IntakePressure {
    /// Woken whenever a file leaves the queue, it lets some more leave before it looks: one by one, each file would be a transaction.
    private static let shortestPause = Duration.milliseconds(20)
    /// Not everything that leaves the queue wakes it.
    private static let longestPause = Duration.seconds(1)

    /// Whether the last round took everything that was ready.
    var hasRoomLeft = true
    private var notBefore: ContinuousClock.Instant?
    private var notAfter: ContinuousClock.Instant?

    mutating func begin(at now: ContinuousClock.Instant) {
        notBefore = now.advanced(by: Self.shortestPause)
        notAfter = now.advanced(by: Self.longestPause)
    }

    mutating func end() { (notBefore, notAfter) = (nil, nil) }

    /// Whether it is too soon to look; then it is looked as soon as it is not.
    mutating func holds(at now: ContinuousClock.Instant) -> Bool {
        guard let earliest = notBefore, now < earliest else { return false }
        notAfter = earliest
        return true
    }

    /// When the loop must go on for the sake of what is ready at `time`.
    func deadline(_ time: ContinuousClock.Instant?) -> ContinuousClock.Instant? {
        guard let time, let notAfter else { return time }
        return max(time, notAfter)
    }
}

/// Files for which there is no room in the queue stay in their folder, and their place in the order is kept.
extension IntakeLoop {
    /// The pause of those that unit files overtake.
    private static let overtakenPause = Duration.seconds(5)

    /// Files that are ready, no more than there is room for.
    mutating func dueNow() async -> [FilePath] {
        if pressure.holds(at: .now) { return [] }
        guard let places = await admission.admitter.room.places() else { return settler.due(at: .now) }
        if places == 0, units.isEmpty {
            // What is not ready yet is no reason to say that there is no room.
            if let next = settler.nextDeadline, next <= .now { await refuse() } else { release() }
            return []
        }
        let due = settler.due(at: .now, most: units.isEmpty ? places : .max)
        pressure.hasRoomLeft = due.count < places
        if due.isEmpty { release() }
        return due
    }

    /// Those that were refused come first the next time. While a unit is open they wait behind its files instead: the unit would
    /// never be complete.
    mutating func putBack(_ refused: [FilePath]) async {
        if refused.isEmpty {
            if pressure.hasRoomLeft { release() }
            return
        }
        for path in refused {
            let isTracked =
                units.isEmpty
                ? settler.discover(path, settle: admission.settle(for: path), at: started)
                : settler.observe(path, settle: Self.overtakenPause, at: .now)
            if !isTracked { requestScan() }
        }
        await refuse()
    }

    private mutating func refuse() async {
        pressure.begin(at: .now)
        await admission.admitter.room.refuse(settings.path) { [inbox] in inbox.waker.wake() }
    }

    private mutating func release() {
        pressure.end()
        admission.admitter.room.release(settings.path)
    }
}
