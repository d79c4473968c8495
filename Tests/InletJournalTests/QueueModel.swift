import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport

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
        for index in files.indices where files[index].id == id { files[index].isFinished = true }
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
    mutating func settle(_ id: Int64, _ settlement: ClaimOutcome) {
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

    private static func settle(_ delivery: inout Delivery, _ settlement: ClaimOutcome, _ uptimes: [String: Int64]) {
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
        case .renamed: delivery.attempts -= 1
        case .ended(let state, _, _): end(&delivery, state)
        case .expired:
            delivery.attempts -= 1
            end(&delivery, .expired)
        }
    }

    /// One that was sent again meanwhile has no attempt that could be taken back.
    private static func settleLate(_ delivery: inout Delivery, _ settlement: ClaimOutcome) {
        switch settlement {
        case .delivered: deliver(&delivery)
        case .again(_, let counts, _, _): delivery.attempts = max(0, delivery.attempts - (counts ? 0 : 1))
        case .waiting, .renamed, .ended, .expired: break
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
        delivery.nextAt = now + (isCounted ? RetryPolicy.delay(afterCrashes: delivery.crashes, of: delivery.id) : .zero)
        if delivery.crashes >= RetryPolicy.mostCrashes { end(&delivery, .failed) }
    }
}

/// What is done to a journal and to `QueueModel`. Plain values, so that a sequence can be shortened and played again.
enum QueueCommand: Sendable {
    case admit(name: Int, size: Int64, to: [String])
    /// One delivery is claimed and ends so, with or without a checkpoint.
    case claim(String, Lane, QueueEnding, checkpoint: Bool)
    /// Up to so many are claimed; one may leave a checkpoint, one be cancelled; then the process dies and starts again.
    case crash(String, Lane, most: Int, checkpoint: Bool, cancel: Bool)
    case cancel(Int64)
    case retry(Int64)
    case forget(Int64)
    /// The n-th of what is unfinished.
    case finish(Int)
    case sweep
    /// The destination has been up for so many milliseconds more.
    case pass(String, Int64)
    case restart([String])
    case clear
    case pause(String, Bool)
    /// What has ended goes to the history: nobody should notice.
    case prune
    case wait
}

/// How a claim of `QueueCommand` ends; times in milliseconds from then.
enum QueueEnding: Sendable {
    case delivered
    case again(Int64, counts: Bool)
    case waiting(Int64)
    case ended(DeliveryState)
    case expired

    func settlement(at now: WallTime) -> ClaimOutcome {
        switch self {
        case .delivered: .test(.delivered)
        case .again(let wait, let counts): .again(now + .milliseconds(wait), counts: counts)
        case .waiting(let wait): .waiting(until: now + .milliseconds(wait), saying: "processing")
        case .ended(let state): .test(state)
        case .expired: .expired
        }
    }
}

struct TimedCommand: Sendable, CustomStringConvertible {
    /// Milliseconds after the one before it.
    var after: Int64
    var command: QueueCommand

    var description: String { "+\(after) ms \(command)" }
}

/// Makes commands from a seed.
struct QueueCommands {
    static let destinations = ["r2", "disk", "tape"]
    private var random: SeededGenerator

    static func sequence(seed: UInt64, count: Int) -> [TimedCommand] {
        var commands = QueueCommands(random: SeededGenerator(seed: seed))
        return (0..<count).map { _ in commands.next() }
    }

    private mutating func next() -> TimedCommand {
        TimedCommand(after: Int64.random(in: 0...400, using: &random), command: command())
    }

    private mutating func command() -> QueueCommand {
        let file = Int64.random(in: 1...30, using: &random)
        return switch Int.random(in: 0..<100, using: &random) {
        case 0..<23: admit()
        case 23..<26: .prune
        case 26..<55: .claim(destination(), lane(), ending(), checkpoint: chance(4))
        case 55..<62:
            .crash(
                destination(), lane(), most: Int.random(in: 1...3, using: &random), checkpoint: chance(3),
                cancel: chance(4))
        case 62..<67: .cancel(file)
        case 67..<73: .retry(file)
        case 73..<77: .forget(file)
        case 77..<86: .finish(Int.random(in: 0..<100, using: &random))
        case 86..<89: .sweep
        case 89..<92: .pass(destination(), Int64.random(in: 0...700, using: &random))
        case 92..<95: .restart(Self.destinations.filter { _ in !chance(4) })
        case 95..<97: .pause(destination(), chance(2))
        case 97: .clear
        default: .wait
        }
    }

    private mutating func admit() -> QueueCommand {
        .admit(
            name: Int.random(in: 0..<8, using: &random), size: Int64.random(in: 1...3, using: &random),
            to: Self.destinations.filter { $0 == "r2" || chance(2) })
    }

    /// Outages (`again`, not counted) come in rows, as real ones do.
    private mutating func ending() -> QueueEnding {
        switch Int.random(in: 0..<12, using: &random) {
        case 0..<4: .delivered
        case 4: .again(500, counts: true)
        case 5: .again(500, counts: false)
        case 6: .again(0, counts: false)
        case 7: .waiting(300)
        case 8: .ended(.superseded)
        case 9: .ended(.gone)
        case 10: .expired
        default: .ended(.failed)
        }
    }

    private mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }

    private mutating func destination() -> String { Self.destinations.randomElement(using: &random) ?? "r2" }

    /// Mostly big: only what its destination works on is in the small one.
    private mutating func lane() -> Lane { chance(4) ? .small : .big }
}
