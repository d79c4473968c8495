/// Which warnings are written again: each is written once, and its repeats are counted. After an hour the next repeat is
/// written, with the count. Decides only; time is a parameter.
package struct RepeatedWarnings: Sendable {
    package typealias Instant = ContinuousClock.Instant

    private struct Warning {
        let event: String
        var saidAt: Instant
        /// Since then.
        var repeats = 0
    }

    /// The longest silence about a warning that goes on.
    static let interval = Duration.seconds(3600)
    /// Warnings that are remembered; beyond that the oldest is forgotten.
    static let most = 1000
    /// Between two looks for counts that no repeat reports.
    private static let look = Duration.seconds(60)

    private var warnings: [Int: Warning] = [:]
    /// The causes in the order they came, as a ring.
    private var causes: [Int] = []
    private var oldest = 0
    /// Repeats of forgotten warnings that no line has reported, by event.
    private var unreported: [String: Int] = [:]
    private var nextLook: Instant?

    package init() {}

    /// Counts a warning.
    ///
    /// - Parameter cause: the same for the same event, subject and reason.
    /// - Returns: how many repeats were left out since the warning was written last; nil when this one is left out too.
    package mutating func repeats(_ cause: Int, of event: String, at now: Instant) -> Int? {
        guard let known = warnings[cause] else {
            remember(cause, Warning(event: event, saidAt: now))
            return 0
        }
        guard now - known.saidAt >= Self.interval else {
            warnings[cause]?.repeats += 1
            return nil
        }
        warnings[cause] = Warning(event: event, saidAt: now)
        return known.repeats
    }

    /// The warning was not written after all: its next line is the first.
    package mutating func forget(_ cause: Int) { warnings[cause] = nil }

    private mutating func remember(_ cause: Int, _ warning: Warning) {
        if causes.count < Self.most {
            causes.append(cause)
        } else {
            if let forgotten = warnings.removeValue(forKey: causes[oldest]), forgotten.repeats > 0 {
                unreported[forgotten.event, default: 0] += forgotten.repeats
            }
            causes[oldest] = cause
            oldest = (oldest + 1) % Self.most
        }
        warnings[cause] = warning
    }

    /// Repeats that no further line reports. Their warnings were forgotten, or did not come again within an hour after their next
    /// line was due. `all` reports every count, as the last word.
    package mutating func gaps(at now: Instant, all: Bool = false) -> [String: Int] {
        if !all, let nextLook, now < nextLook { return [:] }
        nextLook = now + Self.look
        defer { unreported = [:] }
        var gaps = unreported
        for (cause, warning) in warnings where warning.repeats > 0 && (all || now - warning.saidAt >= Self.interval * 2)
        {
            gaps[warning.event, default: 0] += warning.repeats
            warnings[cause]?.repeats = 0
        }
        return gaps
    }
}
