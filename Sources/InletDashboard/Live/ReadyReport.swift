internal import InletAgent
internal import InletCore

/// What `/readyz` answers: whether the agent does what it is there for, and if not, why.
struct ReadyReport: Codable, Sendable {
    var ready: Bool
    /// Left out where there are none, and for those who may not see them.
    var reasons: [String]?

    /// Why an agent is not ready, in sentences; none where it is. Pure.
    ///
    /// - Parameters:
    ///   - journal: why it fails; nil when it does not.
    ///   - destinations: names, and states as `status` shows them.
    static func reasons(
        journal: String?, roots: [(path: String, state: RootStatus.State)],
        destinations: [(name: String, state: String)]
    ) -> [String] {
        var reasons = journal.map { ["the journal cannot be used: \(DisplayText.escape($0))"] } ?? []
        for root in roots {
            switch root.state {
            case .starting: reasons.append("\(root.path) is being listed")
            case .failing(let why): reasons.append("\(root.path) cannot be watched: \(why)")
            case .guarded(let why): reasons.append("\(root.path) is paused: \(why)")
            // One that is not there yet is no fault: it is picked up when it appears; nor is one that another agent has.
            case .missing, .standby, .watching: break
            }
        }
        let away = destinations.filter { ["down", "credentials refused"].contains($0.state) }
        if !destinations.isEmpty, away.count == destinations.count {
            reasons.append(
                "nothing can be sent: " + away.map { "\($0.name) is \($0.state)" }.sorted().joined(separator: ", "))
        }
        return reasons
    }

    static func reasons(_ live: AgentControl.Running?) -> [String] {
        guard let live else { return ["no agent is running"] }
        return reasons(
            journal: live.journalTrouble, roots: live.roots.map { ($0.root.display, $0.state) },
            destinations: live.destinations.map { ($0.name, StatusReport.destination($0, [:]).state) })
    }
}

extension ReadyReport: Described {
    static var schemaName: String { "Ready" }
    static var schema: Schema { .object([.must("ready", .flag), .may("reasons", .list(.text))]) }
}
