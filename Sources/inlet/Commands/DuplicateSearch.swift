import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletJournal

/// What a running agent knows of a file's content, for `inlet route`.
struct DuplicateSearch {
    private let config: LoadedConfig

    init(_ config: LoadedConfig) { self.config = config }

    /// Lines that say what would not be sent.
    func lines(_ plan: Plan, _ size: Int64) async throws -> [String] {
        guard let digest = plan.digests.sha256 else { return [] }
        guard let agent = try await ControlAccess.runningAgent(config) else {
            return ["  note     whether it is a duplicate shows while the agent runs"]
        }
        defer { agent.shutdown() }
        let found = try await agent.ask(
            Endpoints.contents,
            body: ContentQuestion(
                digest: digest, size: size, route: plan.route, fields: plan.with,
                destinations: plan.destinations))
        let isWhole = found.count == plan.destinations.count
        let end = plan.dedupe == .skip ? "would be skipped" : "would be linked"
        return found.map { content in
            let place = isWhole && found.count == 1 ? "" : " to \(content.destination)"
            let first = "job \(content.job), \(content.path), which is there as \(DisplayText.escape(content.key))"
            return Console.tint("  \(end)\(place): same content as \(first)", .warning)
        }
    }
}
