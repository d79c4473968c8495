import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport

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

    func settlement(at now: WallTime) -> Settlement {
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
