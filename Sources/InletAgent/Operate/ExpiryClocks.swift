internal import InletCore
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle

/// Keeps the expiry clocks and warns of long queues. Writes nothing while no delivery waits.
struct ExpiryClocks: Service {
    let shared: Shared

    private static let interval = Duration.seconds(30)
    /// Between two looks, however much happens.
    private static let shortest = Duration.milliseconds(200)

    /// How many deliveries wait, in the journal or at hand, as far as it matters here. The destinations whose clocks
    /// run and can end something, without those that are down or paused or wait for their window. The time of the next
    /// look.
    typealias Waiting = (total: Int, clocks: Set<String>, pause: Duration)

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var (wasOver, pause) = (false, Self.shortest)
            await shared.signals[.expirable].loop {
                // At any rate.
                guard await Task.rest(for: pause) else { return nil }
                do throws(JournalError) {
                    let waiting = try await self.waiting()
                    wasOver = await pass(waiting, wasOver)
                    // Without a running clock that can end something, there is none to keep, and no reason to wake up.
                    let rests = waiting.clocks.isEmpty
                    pause = rests ? Self.shortest : waiting.pause
                    return rests ? nil : .now
                } catch {
                    // Asked again at the next pass; the lanes, which ask the journal all the time, report its failure.
                    pause = Self.interval
                    return .now
                }
            }
        }
        for (name, uptime) in shared.destinations.uptimes() where uptime > 0 {
            await shared.journal.keepUptime(name, uptime)
        }
    }

    func waiting() async throws(JournalError) -> Waiting {
        let (atHand, uptimes) = (shared.lanes.waiting, shared.destinations.runningUptimes())
        let expiries = try await shared.journal.nextExpiries(of: Array(uptimes.keys))
        let total = try await shared.journal.queueLength(of: shared.destinations.names) + atHand.values.reduce(0, +)
        let left = expiries.map { Duration.milliseconds($0.value - (uptimes[$0.key] ?? 0)) }.min() ?? Self.interval
        let clocks = Set(uptimes.keys).intersection(Set(expiries.keys).union(atHand.keys))
        return (total, clocks, min(Self.interval, max(left, Self.shortest)))
    }

    /// Expires deliveries, and warns of a long queue. - Returns: whether more wait than the warning allows.
    func pass(_ waiting: Waiting, _ wasOver: Bool) async -> Bool {
        let uptimes = shared.destinations.runningUptimes()
        for name in waiting.clocks {
            guard let uptime = uptimes[name] else { continue }
            while await expire(name, uptime), !Task.isCancelled {}
        }
        let limit = shared.settings.settings.queueWarning
        let isOver = waiting.total > limit
        if isOver, !wasOver {
            // How many wait, as the journal knows without counting a million rows.
            let pending = await shared.journal.pendingIfKnown()?.files ?? 0
            shared.log.emit(.queueWarning(waiting: max(waiting.total, pending), limit: limit))
        }
        if wasOver, !isOver { shared.log.emit(.queueNormal(waiting: waiting.total, limit: limit)) }
        return isOver
    }

    /// - Returns: whether there may be more.
    private func expire(_ name: String, _ uptime: Int64) async -> Bool {
        let expired: [Int64]
        do throws(JournalError) {
            expired = try await shared.journal.setUptime(name, uptime, at: .now)
        } catch {
            // Deliveries that cannot expire now expire at a later pass.
            return false
        }
        if expired.isEmpty { return false }
        for id in expired {
            // It has expired, and the status shows it; only this log line may be missing.
            if let file = await shared.journal.fileIfKnown(id) { shared.log.emit(.expired(file, name)) }
        }
        shared.signals.raise(.finishable, .leftover)
        // The expired file may have been the last that others waited for.
        shared.signals.raiseDeliverable()
        return expired.count == Journal.expiredAtOnce
    }
}

extension Journal {
    /// Stores a destination's expiry clock at its end.
    func keepUptime(_ destination: String, _ uptime: Int64) async {
        // Without this the clock continues from its last stored value: files expire later, never too soon.
        _ = try? await setUptime(destination, uptime, at: .now)
    }
}
