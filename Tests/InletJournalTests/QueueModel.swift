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
        /// How many processes died while it was claimed, as far as it may have been its doing.
        var crashes = 0
        /// It is claimed, and known to have begun.
        var hasBegun = false
        /// A holder has it, or had it when a person cancelled it.
        var isOwned = false
        var nextAt: WallTime
        var expiresAt: Int64?
        /// The last that was heard is that its destination works on it.
        var isWorkedOn = false
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
    mutating func admit(
        _ name: String, size: Int64, to destinations: [String], lane: Lane = .big, at now: WallTime
    ) -> Int64? {
        if let index = files.lastIndex(where: { $0.name == name }) {
            let file = files[index]
            // Here the size is the whole identity, so a vacated path that shows it again is the file on its way out.
            let isNew = [.gone, .superseded].contains(file.state)
            if !isNew, file.size == size { return nil }
            // It is there again as it was: what had not been sent of it goes on.
            let isBack = file.size == size && Set(file.deliveries.map(\.destination)) == Set(destinations)
            if file.state == .gone, isBack, retry(file.id, of: [.gone], at: now) { return file.id }
            if file.state == .pending { endOpen(index, .superseded) }
        }
        lastFile += 1
        let deliveries = destinations.map { destination in
            lastDelivery += 1
            return Delivery(
                id: lastDelivery, destination: destination, lane: lane, nextAt: now,
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

    /// Ends it without proof.
    static func end(_ delivery: inout Delivery, _ state: DeliveryState) {
        delivery.state = state
        delivery.isWorkedOn = false
        delivery.hasLeftover = delivery.hasCheckpoint
    }

    /// Files whose deliveries have all ended and which are not finished.
    var unfinished: Set<Int64> { Set(files.filter { $0.state != .pending && !$0.isFinished }.map(\.id)) }

    mutating func pause(_ destination: String, _ isPaused: Bool) {
        if isPaused { paused.insert(destination) } else { paused.remove(destination) }
    }

    mutating func change(_ id: Int64, _ body: (inout Delivery) -> Void) {
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

    mutating func retry(
        _ id: Int64, of again: Set<DeliveryState> = [.failed, .expired, .cancelled, .gone], at now: WallTime
    ) -> Bool {
        guard let index = files.firstIndex(where: { $0.id == id }),
            files[index].deliveries.contains(where: { again.contains($0.state) })
        else { return false }
        for place in files[index].deliveries.indices {
            var delivery = files[index].deliveries[place]
            if again.contains(delivery.state) {
                delivery.state = .ready
                delivery.attempts = 0
                delivery.crashes = 0
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
            !files[index].deliveries.contains(where: { $0.hasLeftover || $0.isOwned })
        else { return false }
        files.remove(at: index)
        return true
    }

    mutating func finish(_ id: Int64) {
        for index in files.indices where files[index].id == id {
            files[index].isFinished = true
        }
    }

    /// A proof came after the end.
    mutating func reopen(_ delivery: Int64) {
        for index in files.indices where files[index].deliveries.contains(where: { $0.id == delivery }) {
            files[index].isFinished = false
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
                && !delivery.isWorkedOn && delivery.expiresAt ?? .max <= uptime
            {
                change(delivery.id) { Self.end(&$0, .expired) }
                expired.append(file.id)
            }
        }
        return expired
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
