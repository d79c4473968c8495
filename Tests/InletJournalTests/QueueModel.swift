import InletCore
import InletJournal

/// What the journal should hold, in the plainest terms: arrays, and no memory of how it came about.
struct QueueModel {
    struct Delivery: Equatable {
        var id: Int64
        var destination: String
        var state = DeliveryState.ready
        var lane = Lane.big
        var attempts = 0
        var interrupted = 0
        /// A holder has it, or had it when a person cancelled it.
        var isOwned = false
        var nextAt: WallTime
        var expiresAt: Int64?
        var hasLeftover = false
        var hasCheckpoint = false
    }

    struct File: Equatable {
        var id: Int64
        var name: String
        var size: Int64
        var isFinished = false
        var deliveries: [Delivery]

        var state: FileState { deliveries.isEmpty ? .rejected : FileState.combined(deliveries.map(\.state)) }
    }

    static let life: Int64 = 1000
    private(set) var files: [File] = []
    private(set) var uptimes: [String: Int64] = [:]
    private(set) var paused: Set<String> = []
    private var lastFile: Int64 = 0
    private var lastDelivery: Int64 = 0

    var totals: [FileState: StateSum] {
        files.reduce(into: [:]) { totals, file in totals[file.state, default: StateSum()] += file.size }
    }

    /// nil: the file is known.
    mutating func admit(_ name: String, size: Int64, to destinations: [String], at now: WallTime) -> Int64? {
        if let index = files.lastIndex(where: { $0.name == name }) {
            let file = files[index]
            // Here the size is the whole identity, so a vacated path that shows it again is the file on its way out.
            let isNew = [.gone, .superseded].contains(file.state)
            if !isNew, file.size == size { return nil }
            if file.state == .pending { endOpen(index, .superseded) }
        }
        lastFile += 1
        let deliveries = destinations.map { destination in
            lastDelivery += 1
            return Delivery(
                id: lastDelivery, destination: destination, nextAt: now,
                expiresAt: (uptimes[destination] ?? 0) + Self.life)
        }
        files.append(File(id: lastFile, name: name, size: size, deliveries: deliveries))
        return lastFile
    }

    private mutating func endOpen(_ index: Int, _ state: DeliveryState) {
        for place in files[index].deliveries.indices where !files[index].deliveries[place].state.isFinal {
            end(&files[index].deliveries[place], state)
        }
    }

    private func end(_ delivery: inout Delivery, _ state: DeliveryState) {
        delivery.state = state
        delivery.hasLeftover = delivery.hasCheckpoint
    }

    /// Files whose deliveries have all ended and which are not finished.
    var unfinished: Set<Int64> { Set(files.filter { $0.state != .pending && !$0.isFinished }.map(\.id)) }

    mutating func pause(_ destination: String, _ isPaused: Bool) {
        if isPaused { paused.insert(destination) } else { paused.remove(destination) }
    }

    /// Claims those that a claim must find, and counts their attempts.
    mutating func claim(_ destination: String, _ lane: Lane, _ most: Int, at now: WallTime) -> [Int64] {
        let due = files.flatMap(\.deliveries)
            .filter { $0.destination == destination && $0.lane == lane && $0.state == .ready && $0.nextAt <= now }
            .sorted { ($0.nextAt, $0.id) < ($1.nextAt, $1.id) }.prefix(most).map(\.id)
        for id in due {
            change(id) { delivery in
                delivery.state = .claimed
                delivery.attempts += 1
                delivery.isOwned = true
            }
        }
        return due
    }

    /// Progress: what is left behind is remembered, and the attempt counts as one that came somewhere.
    mutating func checkpoint(_ id: Int64) {
        change(id) { delivery in
            delivery.hasCheckpoint = true
            delivery.interrupted = 0
        }
    }

    mutating func settle(_ id: Int64, _ settlement: Settlement) {
        change(id) { delivery in
            delivery.isOwned = false
            switch settlement {
            case .delivered:
                delivery.state = .delivered
                delivery.hasCheckpoint = false
            case .again(let time, let counts, _, _):
                delivery.state = .ready
                delivery.nextAt = time
                delivery.attempts -= counts ? 0 : 1
            case .waiting(let time, _):
                delivery.state = .ready
                delivery.nextAt = time
                delivery.attempts -= 1
                delivery.lane = .small
            case .ended(let state, _, _):
                delivery.state = state
                delivery.hasLeftover = delivery.hasCheckpoint
            }
        }
    }

    private mutating func change(_ id: Int64, _ body: (inout Delivery) -> Void) {
        for file in files.indices {
            for place in files[file].deliveries.indices where files[file].deliveries[place].id == id {
                body(&files[file].deliveries[place])
            }
        }
    }

    mutating func cancel(_ id: Int64) -> Bool {
        guard let index = files.firstIndex(where: { $0.id == id }), files[index].state == .pending else { return false }
        endOpen(index, .cancelled)
        return true
    }

    mutating func retry(_ id: Int64, at now: WallTime) -> Bool {
        let again: Set<DeliveryState> = [.failed, .expired, .cancelled, .gone]
        guard let index = files.firstIndex(where: { $0.id == id }),
            files[index].deliveries.contains(where: { again.contains($0.state) })
        else { return false }
        for place in files[index].deliveries.indices {
            var delivery = files[index].deliveries[place]
            if again.contains(delivery.state) {
                delivery.state = .ready
                delivery.attempts = 0
                delivery.nextAt = now
            }
            if delivery.state == .ready { delivery.expiresAt = (uptimes[delivery.destination] ?? 0) + Self.life }
            delivery.hasLeftover = false
            files[index].deliveries[place] = delivery
        }
        files[index].isFinished = false
        return true
    }

    mutating func forget(_ id: Int64) -> Bool {
        guard let index = files.firstIndex(where: { $0.id == id }), files[index].isFinished,
            !files[index].deliveries.contains(where: \.hasLeftover)
        else { return false }
        files.remove(at: index)
        return true
    }

    mutating func finish(_ id: Int64) {
        for index in files.indices where files[index].id == id {
            files[index].isFinished = true
        }
    }

    mutating func sweep() {
        for delivery in files.flatMap(\.deliveries) where delivery.hasLeftover {
            change(delivery.id) {
                $0.hasLeftover = false
                $0.hasCheckpoint = false
            }
        }
    }

    mutating func pass(_ uptime: Int64, of destination: String) -> [Int64] {
        uptimes[destination] = max(uptimes[destination] ?? 0, uptime)
        var expired: [Int64] = []
        for file in files {
            for delivery in file.deliveries
            where delivery.destination == destination && delivery.state == .ready
                && delivery.expiresAt ?? .max <= uptime
            {
                change(delivery.id) { delivery in
                    delivery.state = .expired
                    delivery.hasLeftover = delivery.hasCheckpoint
                }
                expired.append(file.id)
            }
        }
        return expired
    }

    mutating func recover(_ destinations: [String], at now: WallTime) -> [Int] {
        var counts = [0, 0, 0]
        for owned in files.flatMap(\.deliveries) where owned.isOwned {
            let isClaimed = owned.state == .claimed
            counts[0] += isClaimed ? 1 : 0
            change(owned.id) { delivery in
                delivery.isOwned = false
                let before = delivery.interrupted
                delivery.interrupted += 1
                guard isClaimed else { return }
                delivery.state = .ready
                delivery.attempts -= 1
                let wait = before < 3 ? 0 : Int64(min(before, 15)) * 1000
                delivery.nextAt = now + .milliseconds(wait)
            }
        }
        for delivery in files.flatMap(\.deliveries) {
            let isConfigured = destinations.contains(delivery.destination)
            if delivery.state == .ready, !isConfigured {
                change(delivery.id) { $0.state = .parked }
                counts[1] += 1
            } else if delivery.state == .parked, isConfigured {
                change(delivery.id) { $0.state = .ready }
                counts[2] += 1
            }
        }
        return counts
    }
}

/// Files and bytes.
struct StateSum: Equatable {
    var files = 0
    var bytes: Int64 = 0

    static func += (sum: inout StateSum, size: Int64) {
        sum.files += 1
        sum.bytes += size
    }
}
