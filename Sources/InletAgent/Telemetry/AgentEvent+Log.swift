internal import InletCore

extension AgentEvent {
    /// What is said of the log itself.
    var logLine: EventLine? {
        switch self {
        case .logLevel(let level, let by):
            Self.line("log.level", .info, ("to", .text(level.rawValue)), ("by", .text(by)))
        case .logTrouble(let reason): Self.line("log.trouble", .error, ("reason", .safe(reason)))
        case .logLost(let lines): Self.line("log.lost", .warning, ("lines", .count(lines)))
        case .logSuppressed(let gap):
            Self.line("log.suppressed", .warning, ("of", .text(gap.event)), ("lines", .count(gap.lines)))
        default: nil
        }
    }
}
