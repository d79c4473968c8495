internal import InletCore

extension AgentEvent {
    /// What is said of the page and the API.
    var dashboardLine: EventLine? {
        switch self {
        case .dashboardReady(let url): Self.line("dashboard.ready", .info, ("url", .safe(url)))
        case .dashboardFailed(let address, let reason):
            Self.line("dashboard.failed", .warning, ("address", .safe(address)), ("reason", .safe(reason)))
        case .dashboardRefused(let address, let wait):
            Self.line(
                "dashboard.refused", .warning, ("address", .safe(address ?? "*")),
                ("wait_ms", .number(wait.milliseconds)))
        default: nil
        }
    }
}
