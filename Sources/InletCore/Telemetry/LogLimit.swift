/// How many lines of one event a log takes: some at once, then one a second; the others are counted. A folder of 50,000 files
/// that nobody may look at would otherwise say so 50,000 times every few seconds, and nothing else would be found.
///
/// Time is a parameter. What it holds is bounded by the number of events that there are.
package struct LogLimit: Sendable {
    package typealias Instant = ContinuousClock.Instant

    private struct EventLimit {
        var left: Int
        var filledAt: Instant
        var hidden = 0
        var toldAt: Instant
    }

    /// Lines at once.
    package static let burst = 100
    /// Between two lines beyond them.
    static let interval = Duration.seconds(1)
    /// Between two words on what is left out.
    static let telling = Duration.seconds(60)

    private var tallies: [String: EventLimit] = [:]

    package init() {}

    /// Whether a line of `event` is written now; otherwise it is counted.
    package mutating func takes(_ event: String, at now: Instant) -> Bool {
        var tally = tallies[event] ?? EventLimit(left: Self.burst, filledAt: now, toldAt: now)
        defer { tallies[event] = tally }
        let gained = Int(max(now - tally.filledAt, .zero) / Self.interval)
        tally.left = min(Self.burst, tally.left + gained)
        tally.filledAt = tally.left == Self.burst ? now : tally.filledAt + Self.interval * gained
        guard tally.left > 0 else {
            // The first word on a gap comes a while after its beginning, when there is something to tell.
            if tally.hidden == 0 { tally.toldAt = now }
            tally.hidden += 1
            return false
        }
        tally.left -= 1
        return true
    }

    /// How many lines were left out and are not told yet, of the events for which it is time; `all` for the last word.
    package mutating func gaps(at now: Instant, all: Bool = false) -> [(event: String, lines: Int)] {
        let due = tallies.filter { $0.value.hidden > 0 && (all || now - $0.value.toldAt >= Self.telling) }
        for event in due.keys {
            tallies[event]?.hidden = 0
            tallies[event]?.toldAt = now
        }
        return due.sorted { $0.key < $1.key }.map { ($0.key, $0.value.hidden) }
    }
}
