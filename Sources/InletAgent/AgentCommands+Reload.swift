extension AgentCommands {
    /// Has the running agent read its configuration again. - Returns: nil when none runs that has one.
    package func reload() async -> ReloadOutcome? { await live?.reload?.reload() }
}
