/// Limits the log lines of each event: a burst, then one per second; the others are counted. Otherwise a folder of
/// 50,000 forbidden files would be logged 50,000 times every few seconds, and hide everything else.
///
/// Time is a parameter. The number of events bounds its memory.
package struct LogLimit: Sendable {
    package typealias Instant = ContinuousClock.Instant

    private struct EventLimit {
        var left: Int
        var filledAt: Instant
        var hidden = 0
        var toldAt: Instant
    }

    /// The lines of a burst.
    package static let burst = 100
    /// The pause between two lines after the burst.
    static let interval = Duration.seconds(1)
    /// The pause between two reports of omitted lines.
    static let telling = Duration.seconds(60)

    private var tallies: [String: EventLimit] = [:]

    package init() {}

    /// Whether to write a line of `event` now; otherwise it is counted.
    package mutating func takes(_ event: String, at now: Instant) -> Bool {
        var tally = tallies[event] ?? EventLimit(left: Self.burst, filledAt: now, toldAt: now)
        defer { tallies[event] = tally }
        let gained = Int(max(now - tally.filledAt, .zero) / Self.interval)
        tally.left = min(Self.burst, tally.left + gained)
        tally.filledAt = tally.left == Self.burst ? now : tally.filledAt + Self.interval * gained
        guard tally.left > 0 else {
            // The first report follows after a while, when there is something to report.
            if tally.hidden == 0 { tally.toldAt = now }
            tally.hidden += 1
            return false
        }
        tally.left -= 1
        return true
    }

    /// The unreported omitted lines of the events whose report is due; `all` for the final report.
    package mutating func gaps(at now: Instant, all: Bool = false) -> [(event: String, lines: Int)] {
        let due = tallies.filter { $0.value.hidden > 0 && (all || now - $0.value.toldAt >= Self.telling) }
        for event in due.keys {
            tallies[event]?.hidden = 0
            tallies[event]?.toldAt = now
        }
        return due.sorted { $0.key < $1.key }.map { ($0.key, $0.value.hidden) }
    }
}
