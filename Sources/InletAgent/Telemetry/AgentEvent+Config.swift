internal import InletCore

extension AgentEvent {
    /// A place with its line and caret keeps its lines.
    static func shown(_ error: String) -> String {
        error.split(separator: "\n", omittingEmptySubsequences: false).map { DisplayText.escape(String($0)) }
            .joined(separator: "\n")
    }
}
