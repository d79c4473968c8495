internal import InletCore
internal import InletPipelines
internal import Synchronization

/// Destinations that come, change and go while the agent runs.
extension DestinationBoard {
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
        // The last to use a connection ends it, which is not to hold up the board.
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
                var entry = DestinationEntry(
                    destination, breaker: breaker, isPaused: paused.contains(destination.name),
                    uptime: uptimes[destination.name] ?? 0)
                entry.updateClock(at: now)
                entries[destination.name] = entry
            }
            return former
        }
        withExtendedLifetime(former) {}
    }

    /// Lets go of all but these. - Returns: the others, with their expiry clocks in milliseconds.
    func keep(only names: Set<String>) -> [String: Int64] {
        let now = clock.instant()
        let (left, former) = entries.withLock { entries in
            var left: [String: Int64] = [:]
            let former = entries.filter { !names.contains($0.key) }.map(\.value.destination)
            for name in entries.keys where !names.contains(name) {
                entries[name]?.updateClock(at: now)
                if let uptime = entries.removeValue(forKey: name)?.uptime { left[name] = uptime }
            }
            return (left, former)
        }
        withExtendedLifetime(former) {}
        if !left.isEmpty { hasStrays() }
        return left
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
