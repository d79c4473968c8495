internal import InletCore

extension AgentEvent {
    /// What is said of configurations that come while the agent runs.
    var configLine: EventLine? {
        switch self {
        case .configReloaded(let file, let changes, let parked, let restart, let warnings):
            Self.line(
                "config.reloaded", parked > 0 || !restart.isEmpty || !warnings.isEmpty ? .warning : .info,
                ("path", .path(file)), ("changes", .list(changes)), ("parked", .count(parked)),
                ("restart_needed", .list(restart)), ("warnings", .list(warnings.map(Self.shown))))
        case .configWarning(let file, let warning):
            Self.line("config.warning", .warning, ("path", .path(file)), ("warning", .safe(warning)))
        case .configRefused(let file, let errors):
            Self.line("config.refused", .error, ("path", .path(file)), ("errors", .list(errors.map(Self.shown))))
        default: nil
        }
    }

    /// A place with its line and caret keeps its lines.
    private static func shown(_ error: String) -> String {
        error.split(separator: "\n", omittingEmptySubsequences: false).map { DisplayText.escape(String($0)) }
            .joined(separator: "\n")
    }
}
