import InletCore
import InletJournal

/// What the journal should hold, in the plainest terms: arrays, and no memory of how it came about.
struct QueueModel {
    struct Delivery: Equatable {
        var id: Int64
        var destination: String
        var state = DeliveryState.ready
        var attempts = 0
        var nextAt: WallTime
        var expiresAt: Int64?
        var hasLeftover = false
        var hasCheckpoint = false
        /// Somebody works on it, or did when it was cancelled.
        var isHeld = false
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
            Self.end(&files[index].deliveries[place], state)
        }
    }

    private static func end(_ delivery: inout Delivery, _ state: DeliveryState) {
        delivery.state = state
        delivery.hasLeftover = delivery.hasCheckpoint
    }

    /// The delivery that a claim must find.
    func next(_ destination: String, at now: WallTime) -> Int64? {
        files.flatMap(\.deliveries)
            .filter { $0.destination == destination && $0.state == .ready && $0.nextAt <= now && !$0.isHeld }
            .min { ($0.nextAt, $0.id) < ($1.nextAt, $1.id) }?.id
    }

    mutating func claim(_ id: Int64) {
        change(id) { delivery in
            delivery.state = .claimed
            delivery.attempts += 1
            delivery.isHeld = true
        }
    }

    /// The end of a claim. One that was cancelled meanwhile changes nothing any more, unless it is a proof.
    mutating func settle(_ id: Int64, _ settlement: Settlement, leavingCheckpoint: Bool = false) {
        var isProof = false
        change(id) { delivery in
            if leavingCheckpoint { delivery.hasCheckpoint = true }
            delivery.isHeld = false
            let isClaimed = delivery.state == .claimed
            switch settlement {
            case .delivered:
                isProof = !isClaimed
                delivery.state = .delivered
                delivery.hasCheckpoint = false
            case .again(let time, let counts, _, _):
                if !counts { delivery.attempts = max(0, delivery.attempts - 1) }
                if isClaimed { (delivery.state, delivery.nextAt) = (.ready, time) }
            case .waiting(let time, _):
                if isClaimed {
                    (delivery.state, delivery.nextAt, delivery.attempts) = (.ready, time, delivery.attempts - 1)
                }
            case .ended(let state, _, _):
                if isClaimed { Self.end(&delivery, state) }
            case .expired:
                if isClaimed {
                    delivery.attempts -= 1
                    Self.end(&delivery, .expired)
                }
            }
        }
        if isProof { reopen(id) }
    }

    /// A proof that came after the end: the file is finished anew.
    private mutating func reopen(_ delivery: Int64) {
        for index in files.indices where files[index].deliveries.contains(where: { $0.id == delivery }) {
            files[index].isFinished = false
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
            !files[index].deliveries.contains(where: { $0.hasLeftover || $0.isHeld })
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

    /// What a process that starts puts right. - Returns: how many it freed, parked and put back.
    mutating func recover(_ destinations: [String], at now: WallTime) -> [Int] {
        var counts = [0, 0, 0]
        for held in files.flatMap(\.deliveries) where held.isHeld || held.state == .claimed {
            change(held.id) { delivery in
                if delivery.state == .claimed {
                    // What is not known to have begun counts one crash at most, and comes back at once.
                    (delivery.state, delivery.nextAt) = (.ready, now)
                    delivery.attempts -= 1
                    counts[0] += 1
                }
                delivery.isHeld = false
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
