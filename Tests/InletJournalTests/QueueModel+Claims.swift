import InletCore
import InletJournal

/// What holders do with deliveries, and what a start makes of those that died.
extension QueueModel {
    /// Whether an older content of that name is on its way.
    func isBusy(_ name: String, size: Int64) -> Bool {
        guard let file = files.last(where: { $0.name == name }) else { return false }
        return file.size != size && file.deliveries.contains { $0.state == .claimed }
    }

    /// Claims those that a claim must find which has so many places at each destination, and counts their attempts.
    /// - Returns: in its order.
    mutating func claim(_ places: [String: Int], _ lane: Lane, _ most: Int, at now: WallTime) -> [Int64] {
        var found: [Delivery] = []
        for (destination, limit) in places {
            let all = files.flatMap(\.deliveries).filter { $0.destination == destination && $0.lane == lane }
            found += all.filter { $0.state == .ready && $0.nextAt <= now && !$0.isOwned }
                .sorted { ($0.nextAt, $0.id) < ($1.nextAt, $1.id) }
                .prefix(max(0, limit - all.count { $0.state == .claimed }))
        }
        let due = found.sorted { ($0.nextAt, $0.id) < ($1.nextAt, $1.id) }.prefix(most).map(\.id)
        for id in due {
            change(id) { delivery in
                delivery.state = .claimed
                delivery.attempts += 1
                delivery.isOwned = true
                // Nobody claims more big ones than begin at once.
                delivery.hasBegun = lane == .big
            }
        }
        return due
    }

    /// One that waited at hand begins, and is known to have been claimed when a process died before.
    mutating func begin(_ id: Int64) { change(id) { $0.hasBegun = $0.hasBegun || $0.state == .claimed } }

    /// Progress: what is left behind is remembered. It takes no crash back.
    mutating func checkpoint(_ id: Int64) { change(id) { $0.hasCheckpoint = true } }

    /// The end of a claim. One that was cancelled meanwhile changes nothing any more, unless it is a proof, after which the
    /// file is finished anew.
    mutating func settle(_ id: Int64, _ settlement: Settlement) {
        var isLate = false
        let uptimes = uptimes
        change(id) { delivery in
            isLate = delivery.state != .claimed
            delivery.isOwned = false
            if isLate {
                Self.settleLate(&delivery, settlement)
            } else {
                Self.settle(&delivery, settlement, uptimes)
            }
        }
        if isLate, case .delivered = settlement { reopen(id) }
    }

    private static func settle(
        _ delivery: inout Delivery, _ settlement: Settlement, _ uptimes: [String: Int64]
    ) {
        switch settlement {
        case .delivered: deliver(&delivery)
        case .again(let time, let counts, let code, _):
            (delivery.state, delivery.nextAt) = (.ready, time)
            delivery.attempts -= counts ? 0 : 1
            if delivery.isWorkedOn, code != nil {
                delivery.isWorkedOn = false
                delivery.expiresAt = (uptimes[delivery.destination] ?? 0) + Self.life
            }
        case .waiting(let time, _):
            (delivery.state, delivery.nextAt, delivery.lane) = (.ready, time, .small)
            delivery.isWorkedOn = true
            delivery.attempts -= 1
            delivery.crashes = 0
        case .ended(let state, _, _): end(&delivery, state)
        case .expired:
            delivery.attempts -= 1
            end(&delivery, .expired)
        }
    }

    /// One that was sent again meanwhile has no attempt that could be taken back.
    private static func settleLate(_ delivery: inout Delivery, _ settlement: Settlement) {
        switch settlement {
        case .delivered: deliver(&delivery)
        case .again(_, let counts, _, _): delivery.attempts = max(0, delivery.attempts - (counts ? 0 : 1))
        case .waiting, .ended, .expired: break
        }
    }

    private static func deliver(_ delivery: inout Delivery) {
        delivery.state = .delivered
        delivery.hasCheckpoint = false
        delivery.hasLeftover = false
    }

    /// What a process that starts puts right. - Returns: how many it freed, parked and put back.
    mutating func recover(_ destinations: [String], at now: WallTime) -> [Int] {
        var freed = 0
        for owned in files.flatMap(\.deliveries) where owned.isOwned {
            freed += owned.state == .claimed ? 1 : 0
            change(owned.id) { delivery in
                delivery.isOwned = false
                if delivery.state == .claimed { Self.crash(&delivery, at: now) }
            }
        }
        let (parked, unparked) = arrange(destinations)
        return [freed, parked, unparked]
    }

    /// Other destinations are configured. - Returns: how many it parked, and how many it put back.
    mutating func arrange(_ destinations: [String]) -> (parked: Int, unparked: Int) {
        var counts = (0, 0)
        for delivery in files.flatMap(\.deliveries) {
            let isConfigured = destinations.contains(delivery.destination)
            if delivery.state == .ready, !isConfigured {
                change(delivery.id) { $0.state = .parked }
                counts.0 += 1
            } else if delivery.state == .parked, isConfigured {
                change(delivery.id) { $0.state = .ready }
                counts.1 += 1
            }
        }
        return counts
    }

    /// What is not known to have begun counts one crash at most, and comes back at once.
    private static func crash(_ delivery: inout Delivery, at now: WallTime) {
        let isCounted = delivery.crashes == 0 || delivery.hasBegun
        delivery.crashes += isCounted ? 1 : 0
        delivery.state = .ready
        delivery.attempts -= 1
        delivery.nextAt = now + (isCounted ? CrashRule.delay(after: delivery.crashes, of: delivery.id) : .zero)
        if delivery.crashes >= CrashRule.most { end(&delivery, .failed) }
    }
}
