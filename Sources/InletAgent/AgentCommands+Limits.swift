package import InletCore

extension AgentCommands {
    /// Sets how fast may be sent to a destination, or to all together, until `auto` or the next start.
    ///
    /// - Returns: what holds there now; nil for a destination that there is none of, and while no agent runs.
    package func limit(_ order: BandwidthBook.Order, for destination: String?) -> BandwidthBook.Standing? {
        live?.limits.take(order, for: destination)
    }
}
