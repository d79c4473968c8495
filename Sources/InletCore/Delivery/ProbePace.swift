/// How often a destination is asked whether it is back.
package struct ProbePace: Sendable, Hashable {
    /// From a failure to the probe after it: what only restarts is back by then.
    package var first: Duration
    /// From the beginning of one probe to the beginning of the next, at least, across all outages.
    package var interval: Duration

    package init(first: Duration = .seconds(5), interval: Duration = .seconds(60)) {
        self.first = first
        self.interval = interval
    }
}
